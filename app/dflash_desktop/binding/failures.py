"""What the native engine may say instead of an answer: one exception per status, carrying the engine's sentence."""

# The names read as sentences (`except OutOfMemory`), hence no "Error" at their end.

from __future__ import annotations

from dataclasses import dataclass

from dflash_desktop.base.causes import Cause
from dflash_desktop.binding.abi import Part, Status


@dataclass(frozen=True, slots=True)
class Shortage:
    """Memory that could not be had. 0 and "" stand for what is not known."""

    part: Part = Part.UNKNOWN
    device: str = ""
    needed_bytes: int = 0
    free_bytes: int = 0


class NativeError(Exception):
    """A native call failed. str() is the engine's sentence, made for the person: file, field, value."""

    status: Status = Status.INTERNAL

    def __init__(self, message: str = "", *, cause: Cause | None = None) -> None:
        super().__init__(message)
        self.cause = cause  # set where it is known what the call was about


class BadArgument(NativeError):
    """The caller asked for something that makes no sense."""

    status = Status.BAD_ARGUMENT


class BadFile(NativeError):
    """The file is unreadable, truncated, malformed or inconsistent."""

    status = Status.BAD_FILE


class Unsupported(NativeError):
    """A sound file or setting that this engine or device cannot run."""

    status = Status.UNSUPPORTED


class OutOfMemory(NativeError):
    """The device or the machine has no room left. What it was for, and how much, is in `shortage`."""

    status = Status.OUT_OF_MEMORY

    def __init__(self, message: str = "", *, cause: Cause | None = None, shortage: Shortage | None = None) -> None:
        super().__init__(message, cause=cause)
        self.shortage = shortage or Shortage()


class DeviceFailed(NativeError):
    """The backend reported an error while computing."""

    status = Status.DEVICE_FAILED


class Cancelled(NativeError):
    """`NativeSession.cancel` was called."""

    status = Status.CANCELLED


class BadState(NativeError):
    """Right call, wrong moment: a closed object, a wrong order, a foreign thread."""

    status = Status.BAD_STATE


class InternalError(NativeError):
    """A bug in the engine."""


class LibraryMissing(NativeError):
    """The built library cannot be found or loaded, or is another version than this package."""


BY_STATUS: dict[int, type[NativeError]] = {
    int(kind.status): kind
    for kind in (
        BadArgument,
        BadFile,
        Unsupported,
        OutOfMemory,
        DeviceFailed,
        Cancelled,
        BadState,
        InternalError,
    )
}
