"""The scorer's life: loaded when first needed, for texts as long as they come, released or kept as asked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeFile, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer, plan_scorer
from dflash_desktop.engine.devices import choose_device, list_devices
from dflash_desktop.engine.events import MemoryUse
from dflash_desktop.engine.pflash.chat import ChatPlan
from dflash_desktop.engine.pflash.compress import Compressor, Views
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.tokens import Tokenizer

TEXT_STEP = 8192  # scorers are opened for multiples of it, so that a chat that grows seldom opens one anew
MOST_TEXT_TOKENS = 1 << 22  # what the engine opens a scorer for
CHATML_TAIL = "<|im_end|>\n<|im_start|>assistant\n"


@dataclass(slots=True)
class _Open:
    path: Path
    device: str | None
    target: NativeTarget
    tokenizer: Tokenizer
    resources: ExitStack
    scorer: NativeScorer | None = None
    text_tokens: int = 0
    compressor: Compressor | None = None


class ScorerSlot:
    """At most one scorer at a time. Used from one thread, except `cancel`."""

    def __init__(self, library: Library, n_threads: int = 0) -> None:
        self._library = library
        self._n_threads = n_threads
        self._open: _Open | None = None
        self._views = Views()
        self._last_path: Path | None = None
        self._reader: tuple[Path, PromptReader] | None = None

    def compressor(
        self, path: Path, device: str | None, plan: ChatPlan
    ) -> Generator[tuple[int, int], None, Compressor]:
        """Load what is missing, a piece per turn (bytes done, of all); the generator's value shortens conversations.

        `plan` says how much text there is, in tokens of any model; half as much again is made room for, and more where
        the scorer's own tokens are shorter than that. Raises AppError or NativeError: an unsound file, a model that
        cannot score, no memory.
        """
        found = self._open
        if found is not None and (found.path != path or found.device != device):
            self.release()
            found = None
        self.views(path)
        if found is None:
            found = yield from self._load(path, device)
        n_own_tokens = sum(len(found.tokenizer.encode(text)) for text in plan.texts)
        wanted = opened_tokens(max(plan.n_text, -(-n_own_tokens * 2 // 3)))
        if found.scorer is None or found.compressor is None or found.text_tokens < wanted:
            if found.scorer is not None:
                found.scorer.close()
                found.scorer = found.compressor = None
            scorer = found.resources.enter_context(
                NativeScorer(found.target, sized(abi.ScorerParams, text_tokens=wanted))
            )
            is_chatml = None not in (found.tokenizer.token_id("<|im_start|>"), found.tokenizer.token_id("<|im_end|>"))
            found.scorer, found.text_tokens = scorer, wanted
            found.compressor = Compressor(scorer, found.tokenizer, CHATML_TAIL if is_chatml else "\n\n", self._views)
        return found.compressor

    def views(self, path: Path) -> Views:
        """What that scorer chose before. Another one's choices are forgotten."""
        if path != self._last_path:
            self._views, self._last_path = Views(), path
        return self._views

    def reader(self, path: Path) -> PromptReader:
        """Template and tokenizer of a scorer, where no target's are at hand. Raises AppError or NativeError."""
        if self._reader is None or self._reader[0] != path:
            with NativeFile(self._library, path) as file:
                self._reader = path, PromptReader(file, path.name)
        return self._reader[1]

    def _load(self, path: Path, device: str | None) -> Generator[tuple[int, int], None, _Open]:
        chosen = choose_device(list_devices(self._library), device)
        with NativeFile(self._library, path) as file:
            tokenizer = Tokenizer(file, path.name)
        with ExitStack() as stack:
            target = stack.enter_context(
                NativeTarget(self._library, path, device=chosen.index, n_threads=self._n_threads)
            )
            while True:
                progress = target.load_piece()
                yield progress.n_done, progress.n_total
                if progress.is_complete:
                    break
            self._open = _Open(path, device, target, tokenizer, stack.pop_all())
        return self._open

    def cancel(self) -> None:
        """End the running piece soon. Any thread."""
        found = self._open
        if found is not None and found.scorer is not None:
            found.scorer.cancel()

    def release(self) -> None:
        """Free the scorer. What it chose for conversations is remembered until another scorer is taken."""
        found, self._open = self._open, None
        if found is not None:
            found.resources.close()


def opened_tokens(n_text_tokens: int) -> int:
    """How long a text a scorer is opened for, in its own tokens, when there are so many of any model of its kind."""
    return min(-(-(n_text_tokens * 3 // 2) // TEXT_STEP) * TEXT_STEP, MOST_TEXT_TOKENS)


def plan_memory(library: Library, path: Path, *, device: int, n_text_tokens: int) -> MemoryUse:
    """What a scorer takes for texts of that length, from the file's header. Raises NativeError."""
    memory = plan_scorer(library, path, device=device, params=sized(abi.ScorerParams, text_tokens=n_text_tokens))
    return MemoryUse(
        target_weights_bytes=memory.target_weights_bytes,
        draft_weights_bytes=0,
        kv_cache_bytes=memory.kv_cache_bytes,
        recurrent_bytes=memory.recurrent_bytes,
        draft_kv_bytes=0,
        compute_bytes=memory.compute_bytes,
    )
