"""What can go wrong between here and the hub, as kinds that the window puts into words in the person's language."""

from __future__ import annotations

from typing import Literal

from dflash_desktop.base.errors import AppError

ProblemKind = Literal[
    "offline",  # no network at all, or the hub's name cannot be looked up
    "unreachable",  # the host refuses, times out, or closes the connection
    "stalled",  # connected, but no bytes come
    "tls",  # the certificate is not accepted
    "proxy",  # the proxy refuses, or its address makes no sense
    "not_a_hub",  # something else answers: a sign-in page of a hotel, a mirror that is none
    "token_needed",  # gated or private, and no access token is set
    "token_refused",  # the access token is not valid
    "terms",  # the token is valid, its owner has not accepted the model's terms
    "not_found",  # no such repository or file
    "rate_limited",  # too many requests
    "server_error",  # 5xx
    "changed",  # the file on the hub is another one than the one that was begun
    "corrupt",  # fetched twice, and both times not what the hub's own sha256 says
    "disk_full",
    "file_too_large",  # the file system has a limit for one file
    "folder_missing",  # an absent drive
    "folder_read_only",
    "busy",  # another program writes the same file
    "bad_name",  # the hub names a file in a way that cannot be a path here
    "other",
]

PASSING: frozenset[ProblemKind] = frozenset(
    {
        "offline",
        "not_a_hub",  # a sign-in page: the person signs in, and it goes on
        "unreachable",
        "stalled",
        "rate_limited",
        "server_error",
        "disk_full",
        "folder_missing",
        "busy",
        "proxy",
    }
)
"""Kinds that go away without the person: tried again by itself, for as long as it takes."""


class HubProblem(AppError):
    """`str()` is for the log, in English; the window says it in its own words from `kind` and the facts."""

    def __init__(
        self,
        kind: ProblemKind,
        detail: str = "",
        *,
        where: str = "",
        needed_bytes: int = 0,
        free_bytes: int = 0,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(": ".join(part for part in (kind, where, detail) if part))
        self.kind: ProblemKind = kind
        self.detail = detail
        self.where = where  # host, repository or folder
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes
        self.retry_after_s = retry_after_s


class Aborted(Exception):
    """Somebody stopped it: paused, cancelled, or the program closes. Not a failure."""
