"""Exceptions of the HTTP client, of huggingface_hub and of the file system, as HubProblems."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING

from dflash_desktop.hub.problems import Aborted, HubProblem, ProblemKind

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

_NO_NETWORK = {errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL}


def problem_of(error: BaseException, where: str) -> HubProblem | Aborted:
    """What `error` means to the person. Errors that nobody expected are raised again: they are bugs."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    match error:
        case HubProblem() | Aborted():
            return error
        case OfflineModeIsEnabled():
            return HubProblem("offline", "HF_HUB_OFFLINE is set", where=where)
        case HfHubHTTPError() if error.response is not None:
            return status_problem(error.response, where)
        case httpx2.HTTPStatusError():
            return status_problem(error.response, where)
        case HFValidationError():
            return HubProblem("not_found", str(error), where=where)
        case httpx2.TooManyRedirects() | httpx2.DecodingError():
            return HubProblem("not_a_hub", str(error), where=where)
        case httpx2.ProxyError():
            return HubProblem("proxy", str(error), where=where)
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return HubProblem("unreachable", "no answer", where=where)
        case httpx2.TimeoutException():
            return HubProblem("stalled", where=where)
        case httpx2.TransportError() | httpx2.InvalidURL():
            return HubProblem(_connection_kind(error), str(error), where=where)
        case ValueError():  # a page of HTML where JSON was asked for
            return HubProblem("not_a_hub", where=where)
    raise error


def status_problem(response: httpx2.Response, where: str) -> HubProblem:
    """What a status that is no success means. The hub says more in X-Error-Code than in the number."""
    status = response.status_code
    code = response.headers.get("X-Error-Code", "")
    said = response.headers.get("X-Error-Message", "")
    detail = f"{status} {said}".strip()
    has_token = "authorization" in response.request.headers
    if code in ("EntryNotFound", "RevisionNotFound") or status == 404:
        return HubProblem("not_found", detail, where=where)
    if status in (401, 403):
        if not has_token:
            return HubProblem("token_needed", detail, where=where)
        if status == 401 and code != "GatedRepo":
            return HubProblem("token_refused", detail, where=where)
        return HubProblem("terms", detail, where=where)
    if status in (407, 502) and response.headers.get("Proxy-Authenticate"):
        return HubProblem("proxy", detail, where=where)
    if status == 429:
        return HubProblem("rate_limited", detail, where=where, retry_after_s=_retry_after(response))
    if status == 408 or status >= 500:
        return HubProblem("server_error", detail, where=where, retry_after_s=_retry_after(response))
    return HubProblem("other", detail, where=where)


def disk_problem(error: OSError, folder: Path, *, needed_bytes: int = 0, free_bytes: int = 0) -> HubProblem:
    """What the file system's refusal means."""
    kinds: dict[int | None, ProblemKind] = {
        errno.ENOSPC: "disk_full",
        errno.EDQUOT: "disk_full",
        errno.EFBIG: "file_too_large",
        errno.EROFS: "folder_read_only",
        errno.EACCES: "folder_read_only",
        errno.EPERM: "folder_read_only",
        errno.ENOTDIR: "folder_missing",
        errno.ENOENT: "folder_missing",
        errno.ENODEV: "folder_missing",
        errno.EIO: "folder_missing",
    }
    return HubProblem(
        kinds.get(error.errno, "other"),
        error.strerror or str(error),
        where=str(folder),
        needed_bytes=needed_bytes,
        free_bytes=free_bytes,
    )


def _connection_kind(error: BaseException) -> ProblemKind:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "tls"
        if isinstance(cause, socket.gaierror) or (isinstance(cause, OSError) and cause.errno in _NO_NETWORK):
            return "offline"
        cause = cause.__cause__ or cause.__context__
    return "unreachable"


def _retry_after(response: httpx2.Response) -> float | None:
    said = response.headers.get("Retry-After", "")
    return min(float(said), 3600.0) if said.isdecimal() else None
