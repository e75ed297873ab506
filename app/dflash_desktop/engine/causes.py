"""Which cause a failure of the engine has. The engine's library gives a status and a sentence; what it was about is
known where it was called."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dflash_desktop.base.causes import Cause, CauseCode
from dflash_desktop.base.presence import is_there
from dflash_desktop.binding.failures import BadFile, DeviceFailed, LibraryMissing, NativeError, OutOfMemory, Unsupported


@contextmanager
def about_file(path: Path) -> Iterator[None]:
    """What fails in here fails because of that file."""
    try:
        yield
    except BadFile as error:
        if is_there(path):
            error.cause = error.cause or Cause("file_broken", {"file": path.name})
        else:
            error.cause = Cause("file_missing", {"file": path.name, "folder": str(path.parent)})
        raise
    except Unsupported as error:
        error.cause = error.cause or Cause("file_unsupported", {"file": path.name, "reason": str(error)})
        raise


def cannot_run(file: str, role: str, architecture: str, reason: str) -> Cause:
    """Why the engine does not run a sound model file that it can describe. `reason`: its own sentence."""
    if role == "other":
        if architecture:
            return Cause("architecture_unknown", {"file": file, "architecture": architecture})
        return Cause("wrong_role", {"file": file, "role": role, "wanted": "target"})
    if "mixture-of-experts" in reason:
        return Cause("experts_unsupported", {"file": file})
    code: CauseCode = "draft_unsupported" if role == "draft" else "file_unsupported"
    return Cause(code, {"file": file, "reason": reason})


@contextmanager
def about_pair(target: Path, draft: Path) -> Iterator[None]:
    """What is refused in here is refused because the two do not belong together."""
    try:
        yield
    except (Unsupported, BadFile) as error:
        error.cause = Cause("draft_mismatch", {"draft": draft.name, "target": target.name})
        raise


@contextmanager
def about_device(name: str) -> Iterator[None]:
    """What fails in here fails on that device."""
    try:
        yield
    except NativeError as error:
        error.cause = cause_of(error, name)
        raise


def cause_of(error: Exception, device: str = "") -> Cause | None:
    """The cause that was set where it happened, else what the kind of the error tells. `device`: where it computed."""
    found: Cause | None = getattr(error, "cause", None)
    if found is not None:
        return found
    match error:
        case MemoryError():
            return Cause("no_memory")
        case OSError() if error.errno == errno.ENOSPC:
            return Cause("disk_full", {"folder": str(error.filename or "")})
        case OutOfMemory():
            short = error.shortage
            return Cause(
                "out_of_memory",
                {
                    "device": short.device or device,
                    "part": short.part.name.lower(),
                    "needed_bytes": short.needed_bytes,
                    "free_bytes": short.free_bytes,
                },
            )
        case DeviceFailed():
            return Cause("device_failed", {"device": device})
        case LibraryMissing():
            return Cause("engine_missing")
        case _:
            return None
