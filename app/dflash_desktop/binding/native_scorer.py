"""PFlash's scorer as an owned handle: how much a question attends to each token of a text."""

from __future__ import annotations

import threading
from ctypes import byref, c_float, c_int32
from typing import TYPE_CHECKING, Any

from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeTarget, Progress, _Owned, path_bytes, sized

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_QUESTION_TOKENS = 512


class NativeScorer(_Owned):
    """Begin with a text and a question, run until complete, take the masses."""

    def __init__(self, target: NativeTarget, params: abi.ScorerParams) -> None:
        """Reserve everything for a text of params.text_tokens. Raises OutOfMemory, Unsupported."""
        super().__init__(target.library, target)
        self._cancel_lock = threading.Lock()  # cancel comes from other threads and must not meet close
        handle = abi.ScorerHandle()
        self.library.check(self.library.c.dflash_scorer_open(target.handle, byref(params), byref(handle)))
        self._n_text = 0
        self._opened(handle)

    def close(self) -> None:
        """Free the scorer."""
        with self._cancel_lock:
            super().close()

    def _free(self, handle: Any) -> None:
        self.library.c.dflash_scorer_close(handle)

    def memory(self) -> abi.Memory:
        """Bytes by part."""
        memory = sized(abi.Memory)
        self.library.check(self.library.c.dflash_scorer_memory(self.handle, byref(memory)))
        return memory

    def begin(self, text: Sequence[int], question: Sequence[int], weights: Sequence[float] | None = None) -> None:
        """Token ids of the scorer's own vocabulary; `weights`, one per token of the question, say whose look counts."""
        self._n_text = len(text)
        self.library.check(
            self.library.c.dflash_scorer_begin(
                self.handle,
                (c_int32 * len(text))(*text),
                len(text),
                (c_int32 * len(question))(*question),
                len(question),
                (c_float * len(weights))(*weights) if weights is not None else None,
            )
        )

    def run(self) -> Progress:
        """Score the next piece of the text."""
        progress = sized(abi.Progress)
        status = self.library.check(self.library.c.dflash_scorer_run(self.handle, byref(progress)))
        return Progress(progress.n_done, progress.n_total, status is abi.Status.OK)

    def masses(self) -> list[float]:
        """One per token of the text, 0 to 1."""
        out = (c_float * self._n_text)()
        self.library.check(self.library.c.dflash_scorer_masses(self.handle, out, self._n_text))
        return list(out)

    def cancel(self) -> None:
        """Make the running or next piece raise Cancelled soon. Any thread; cleared by `begin`."""
        with self._cancel_lock:
            if self._handle is not None:
                self.library.c.dflash_scorer_cancel(self._handle)


def plan_scorer(library: Library, path: Path, *, device: int, params: abi.ScorerParams) -> abi.Memory:
    """What a scorer would take, from the file's header alone. Raises BadFile, Unsupported."""
    memory = sized(abi.Memory)
    load = sized(abi.LoadParams, device=device)
    library.check(library.c.dflash_plan_scorer(path_bytes(path), byref(load), byref(params), byref(memory)))
    return memory
