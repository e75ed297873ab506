"""The native engine as Python objects: the library, and owned handles for files, targets, drafts and sessions.

Every handle is a context manager and belongs to the thread that opened it; only `NativeSession.cancel` may be called
from elsewhere. A handle refuses to close while something opened with it is still open. There is no `__del__`: at
interpreter exit it would run in any order.
"""

from __future__ import annotations

import ctypes
import importlib.resources
import logging
import os
import sys
import threading
from ctypes import byref, c_double, c_float, c_int32, c_uint32
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dflash_desktop.base.driver_guard import starting_drivers
from dflash_desktop.base.paths import app_paths
from dflash_desktop.binding import abi, prototypes
from dflash_desktop.binding.failures import (
    BY_STATUS,
    BadArgument,
    BadState,
    InternalError,
    LibraryMissing,
    OutOfMemory,
    Shortage,
)
from dflash_desktop.binding.values import MetaValue, python_value, text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self


S = TypeVar("S", bound=ctypes.Structure)

_STARTING = threading.Lock()  # backends are the process's, whoever opens the library

_LOG_LEVELS: dict[int, int] = {
    abi.LogLevel.DEBUG: logging.DEBUG,
    abi.LogLevel.INFO: logging.INFO,
    abi.LogLevel.WARNING: logging.WARNING,
    abi.LogLevel.ERROR: logging.ERROR,
}


def library_file() -> Path:
    """Where the installed library lies: beside ggml's, in `binding/lib`."""
    name = {"win32": "dflash.dll", "darwin": "libdflash.dylib"}.get(sys.platform, "libdflash.so")
    # Joined piece by piece: an editable install spans two folders, and only one of them holds the library.
    return Path(str(importlib.resources.files("dflash_desktop.binding").joinpath("lib").joinpath(name)))


def sized(struct: type[S], **values: Any) -> S:
    """A struct with its `size` member set, as every call wants it."""
    return struct(size=ctypes.sizeof(struct), **values)


def path_bytes(path: Path) -> bytes:
    """A path as the engine takes it. Raises BadArgument for one that no file can have."""
    raw = os.fsencode(path)  # UTF-8 on Windows; elsewhere the very bytes of the file's name
    if b"\0" in raw:
        raise BadArgument(f"The path {str(path)!r} contains a NUL character.")
    return raw


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load (bytes) or a prefill (tokens) is."""

    n_done: int
    n_total: int
    is_complete: bool


class Library:
    """The loaded library with its backends started. Any thread may use it."""

    def __init__(self, path: Path | None = None) -> None:
        """Load and start the library at `path` (default: the installed one). Raises LibraryMissing."""
        self.path = path or library_file()
        try:
            self.c = ctypes.CDLL(str(self.path))
            prototypes.declare(self.c)
        except (OSError, AttributeError) as error:
            raise LibraryMissing(f"The engine library {self.path} cannot be loaded: {error}") from error
        version = self.c.dflash_abi_version()
        if version != abi.ABI_VERSION:
            raise LibraryMissing(
                f"The engine library {self.path} has interface {version}, this package needs {abi.ABI_VERSION}. "
                "Install the package again."
            )
        with _STARTING:
            if self.c.dflash_device_count(byref(c_int32())) < 0:  # not started yet in this process
                with starting_drivers(app_paths(ignores_moves=True).cache):
                    self.check(self.c.dflash_start(path_bytes(self.path.parent)))

    def check(self, status: int) -> abi.Status:
        """Return a status that is no failure, raise the exception of one that is. Call right after the native call."""
        if status >= 0:
            return abi.Status(status)
        sentence = text(self.c.dflash_last_error()) or f"The engine failed with status {status} and gave no reason."
        if status == abi.Status.OUT_OF_MEMORY:
            raise OutOfMemory(sentence, shortage=self._shortage())
        raise BY_STATUS.get(status, InternalError)(sentence)

    def _shortage(self) -> Shortage:
        """The numbers of this thread's last failure, which was for want of memory."""
        failure, device = sized(abi.Failure), sized(abi.Device)
        self.c.dflash_last_failure(byref(failure))
        is_known = failure.device >= 0 and self.c.dflash_device_get(failure.device, byref(device)) == abi.Status.OK
        name = text(device.name) if is_known else ""
        return Shortage(abi.Part(failure.part), name, failure.needed_bytes, failure.free_bytes)

    def devices(self) -> list[abi.Device]:
        """The compute devices as they are now."""
        count = c_int32()
        self.check(self.c.dflash_device_count(byref(count)))
        found = []
        for index in range(count.value):
            device = sized(abi.Device)
            self.check(self.c.dflash_device_get(index, byref(device)))
            found.append(device)
        return found

    def ggml_version(self) -> str:
        """The version of ggml that computes."""
        return text(self.c.dflash_ggml_version())

    def drain_log(self, logger: logging.Logger) -> None:
        """Pass the engine's waiting log lines on to `logger`."""
        line = sized(abi.LogLine)
        while self.check(self.c.dflash_log_next(byref(line))) is abi.Status.OK:
            logger.log(_LOG_LEVELS.get(line.level, logging.INFO), "%s", text(line.text))

    def write_aborts_to(self, path: Path) -> None:
        """Where ggml's last words go when it ends the process, beside stderr. Raises BadArgument for a long path."""
        self.check(self.c.dflash_log_aborts_to(path_bytes(path)))

    def check_pair(self, target: NativeFile, draft: NativeFile) -> None:
        """Raise Unsupported, with the reason, when `draft` was not made for a target like `target`."""
        self.check(self.c.dflash_file_pair(target.handle, draft.handle))


class _Owned:
    """A native object with one owner: opened, used and closed on one thread, children before parents."""

    def __init__(self, library: Library, *parents: _Owned) -> None:
        self.library = library
        self._parents = parents
        self._thread = threading.get_ident()
        self.n_children = 0
        self._handle: Any = None

    def _opened(self, handle: Any) -> None:
        self._handle = handle
        for parent in self._parents:
            parent.n_children += 1

    @property
    def handle(self) -> Any:
        """The native pointer. Raises BadState when closed or when asked for on another thread."""
        if self._handle is None:
            raise BadState(f"This {type(self).__name__} is closed.")
        if threading.get_ident() != self._thread:
            raise BadState(f"This {type(self).__name__} belongs to another thread.")
        return self._handle

    def close(self) -> None:
        """Free the object. Closing twice is fine; closing before what was opened with it raises BadState."""
        if self._handle is None:
            return
        handle = self.handle
        if self.n_children:
            raise BadState(f"This {type(self).__name__} is still in use: close what was opened with it first.")
        self._handle = None
        self._free(handle)
        for parent in self._parents:
            parent.n_children -= 1

    def _free(self, handle: Any) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class NativeFile(_Owned):
    """A checked, memory-mapped model file: metadata only."""

    def __init__(self, library: Library, path: Path) -> None:
        """Open `path`. Raises BadFile with file, field and value."""
        super().__init__(library)
        self.path = path
        handle = abi.FileHandle()
        library.check(library.c.dflash_file_open(path_bytes(path), byref(handle)))
        self._opened(handle)

    def _free(self, handle: Any) -> None:
        self.library.c.dflash_file_close(handle)

    def describe(self) -> abi.FileInfo:
        """What the file is, and whether this engine runs it."""
        info = sized(abi.FileInfo)
        self.library.check(self.library.c.dflash_file_describe(self.handle, byref(info)))
        return info

    def value(self, key: str) -> MetaValue | None:
        """One metadata value, or None when the file has no such key. Arrays become lists."""
        found = sized(abi.Value)
        status = self.library.check(self.library.c.dflash_file_value(self.handle, key.encode(), byref(found)))
        return None if status is abi.Status.END else python_value(found, f"{self.path.name}, {key}")


class NativeTarget(_Owned):
    """Read-only weights of a target on a device. Call `load_piece` until it says complete."""

    def __init__(self, library: Library, path: Path, *, device: int, n_threads: int = 0) -> None:
        """Check the file and prepare to load it onto the device with that index."""
        super().__init__(library)
        handle = abi.TargetHandle()
        params = sized(abi.LoadParams, device=device, n_threads=n_threads)
        library.check(library.c.dflash_target_open(path_bytes(path), byref(params), byref(handle)))
        self._opened(handle)

    def _free(self, handle: Any) -> None:
        self.library.c.dflash_target_close(handle)

    def load_piece(self) -> Progress:
        """Move the next piece of the weights."""
        progress = sized(abi.Progress)
        status = self.library.check(self.library.c.dflash_target_load(self.handle, byref(progress)))
        return Progress(progress.n_done, progress.n_total, status is abi.Status.OK)

    def stop_tokens(self) -> list[int]:
        """The tokens after which a reply ends."""
        n = c_int32()
        self.library.check(self.library.c.dflash_target_stop_tokens(self.handle, 0, None, byref(n)))
        ids = (c_int32 * max(n.value, 1))()
        self.library.check(self.library.c.dflash_target_stop_tokens(self.handle, n.value, ids, byref(n)))
        return list(ids[: n.value])


class NativeDraft(_Owned):
    """Read-only weights of a draft, bound to its loaded target."""

    def __init__(
        self,
        library: Library,
        path: Path,
        target: NativeTarget,
        *,
        device: int,
        n_threads: int = 0,
        is_apart: bool = False,
    ) -> None:
        """Check the file against the target. Raises Unsupported, with the reason, when the two do not fit.

        is_apart: with a stream and copies of its own even on the target's device, as on another one.
        """
        super().__init__(library, target)
        handle = abi.DraftHandle()
        params = sized(abi.LoadParams, device=device, n_threads=n_threads, is_apart=is_apart)
        library.check(library.c.dflash_draft_open(path_bytes(path), target.handle, byref(params), byref(handle)))
        self._opened(handle)

    def _free(self, handle: Any) -> None:
        self.library.c.dflash_draft_close(handle)

    def load_piece(self) -> Progress:
        """Move the next piece of the weights."""
        progress = sized(abi.Progress)
        status = self.library.check(self.library.c.dflash_draft_load(self.handle, byref(progress)))
        return Progress(progress.n_done, progress.n_total, status is abi.Status.OK)


class NativeSession(_Owned):
    """One timeline: KV cache, draft context, sampler. Begin, prefill until complete, step until finished."""

    def __init__(
        self, target: NativeTarget, draft: NativeDraft | None, params: abi.SessionParams | None = None
    ) -> None:
        """Reserve everything a full context needs, so that memory runs out here or never."""
        super().__init__(target.library, target, *([draft] if draft else []))
        self._cancel_lock = threading.Lock()  # cancel comes from other threads and must not meet close
        handle = abi.SessionHandle()
        self.library.check(
            self.library.c.dflash_session_open(
                target.handle,
                draft.handle if draft else None,
                byref(params or sized(abi.SessionParams)),
                byref(handle),
            )
        )
        self._opened(handle)

    def close(self) -> None:
        """Free the session. A `cancel` of another thread waits or comes too late, but never meets freed memory."""
        with self._cancel_lock:
            super().close()

    def _free(self, handle: Any) -> None:
        self.library.c.dflash_session_close(handle)

    def tuning(self) -> list[float]:
        """What the session has learnt about times and acceptance, for SessionParams.tuning of a later one."""
        n = c_int32()
        self.library.check(self.library.c.dflash_session_tuning(self.handle, 0, None, byref(n)))
        values = (c_double * max(n.value, 1))()
        self.library.check(self.library.c.dflash_session_tuning(self.handle, n.value, values, byref(n)))
        return list(values[: n.value])

    def reset(self) -> None:
        """Forget every token; what was learnt stays."""
        self.library.check(self.library.c.dflash_probe_reset(self.handle))

    def memory(self) -> abi.Memory:
        """Bytes by part, on the session's device."""
        memory = sized(abi.Memory)
        self.library.check(self.library.c.dflash_session_memory(self.handle, byref(memory)))
        return memory

    def prefixes(self) -> abi.Prefixes:
        """What the prefix cache holds and has done."""
        prefixes = sized(abi.Prefixes)
        self.library.check(self.library.c.dflash_session_prefixes(self.handle, byref(prefixes)))
        return prefixes

    def begin(self, prompt: Sequence[int], generation: abi.Generation) -> abi.Begun:
        """Begin a reply to `prompt` (1 to context_tokens - 1 ids)."""
        begun = sized(abi.Begun)
        ids = (c_int32 * len(prompt))(*prompt)
        self.library.check(
            self.library.c.dflash_session_begin(self.handle, ids, len(prompt), byref(generation), byref(begun))
        )
        return begun

    def prefill(self) -> Progress:
        """One chunk of the prompt."""
        progress = sized(abi.Progress)
        status = self.library.check(self.library.c.dflash_session_prefill(self.handle, byref(progress)))
        return Progress(progress.n_done, progress.n_total, status is abi.Status.OK)

    def step(self) -> abi.Step:
        """Draft, verify, commit. The step that finishes the reply says why in `finish`."""
        step = sized(abi.Step)
        self.library.check(self.library.c.dflash_session_step(self.handle, byref(step)))
        return step

    def propose(self) -> abi.Step:
        """The first half of a step: `tokens[:n_committed]` is what the target says next; nothing is committed."""
        step = sized(abi.Step)
        self.library.check(self.library.c.dflash_session_propose(self.handle, byref(step)))
        return step

    def likeliest(self, index: int, k: int) -> list[tuple[int, float]]:
        """The k likeliest tokens at a place of the proposal and their log-probabilities, best first."""
        ids, logprobs = (c_int32 * k)(), (c_float * k)()
        self.library.check(self.library.c.dflash_session_likeliest(self.handle, index, k, ids, logprobs))
        return list(zip(ids, logprobs, strict=True))

    def settle(self, n_keep: int, allowed: bytes | None = None) -> abi.Step:
        """The second half: commit the first `n_keep` tokens.

        `allowed` (bit t % 8 of byte t // 8 for each token t, whole 32-bit words): choose one more, among these.
        """
        step = sized(abi.Step)
        words = (c_uint32 * (len(allowed) // 4)).from_buffer_copy(allowed) if allowed is not None else None
        n_words = len(words) if words is not None else 0
        self.library.check(self.library.c.dflash_session_settle(self.handle, n_keep, words, n_words, byref(step)))
        return step

    def cancel(self) -> None:
        """Make the running or next prefill or step raise Cancelled soon. Any thread; cleared by `begin`."""
        with self._cancel_lock:
            if self._handle is not None:
                self.library.c.dflash_session_cancel(self._handle)
