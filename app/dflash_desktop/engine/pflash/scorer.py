"""The scorer's life: loaded when first needed, for texts as long as they come, released or kept as asked."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.sizes import memory_text
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeFile, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer, plan_scorer
from dflash_desktop.engine.devices import choose_device, list_devices, reserve_bytes
from dflash_desktop.engine.events import MemoryUse
from dflash_desktop.engine.pflash.chat import ChatPlan
from dflash_desktop.engine.pflash.compress import Compressor, Views
from dflash_desktop.engine.pflash.remembered import Remembered
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
    encode: Remembered[list[int]]
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
        self._counter: tuple[PromptReader, Remembered[int]] | None = None

    def compressor(
        self, path: Path, device: str | None, plan: ChatPlan
    ) -> Generator[tuple[int, int], None, Compressor]:
        """Load what is missing, a piece per turn (bytes done, of all); the generator's value shortens conversations.

        `plan` says how much text there is, in tokens of any model; half as much again is made room for, and more where
        the scorer has more tokens than that for it: for a language that it was not made for. Raises AppError or
        NativeError: an unsound file, a model that cannot score, no memory.
        """
        found = self._open
        if found is not None and (found.path != path or found.device != device):
            self.release()
            found = None
        self.views(path)
        if found is None:
            found = yield from self._load(path, device)
        found.encode.begin()
        n_own_tokens = sum(len(found.encode(text)) for text in plan.texts)
        if found.scorer is None or found.compressor is None or found.text_tokens < n_own_tokens:
            if found.scorer is not None:
                found.scorer.close()
                found.scorer = found.compressor = None
            room = self._room(found, n_own_tokens, max(n_own_tokens, opened_tokens(plan.n_text)))
            scorer = found.resources.enter_context(
                NativeScorer(found.target, sized(abi.ScorerParams, text_tokens=room))
            )
            is_chatml = None not in (found.tokenizer.token_id("<|im_start|>"), found.tokenizer.token_id("<|im_end|>"))
            tail = CHATML_TAIL if is_chatml else "\n\n"
            found.scorer, found.text_tokens = scorer, room
            found.compressor = Compressor(scorer, found.tokenizer, tail, self._views, found.encode)
        return found.compressor

    def _room(self, found: _Open, needed: int, wanted: int) -> int:
        """Tokens to open it for: `wanted`, or as many as are `needed` where only those fit. Raises AppError."""
        if needed > MOST_TEXT_TOKENS:
            raise AppError(f"The text has {needed} tokens of the scorer's; at most {MOST_TEXT_TOKENS} can be rated.")
        device = choose_device(list_devices(self._library), found.device)
        left = device.free_bytes - reserve_bytes(device)
        taken = 0
        for n_tokens in (stepped(wanted), stepped(needed)):
            memory = plan_memory(self._library, found.path, device=device.index, n_text_tokens=n_tokens)
            taken = memory.total_bytes - memory.target_weights_bytes  # those are there already
            if taken <= left:
                return n_tokens
        raise AppError(
            f"The text has {needed} tokens of the scorer {found.path.stem}, which takes {memory_text(taken)} to rate "
            f"them; {device.name} has {memory_text(max(0, left))} to spare. Choose another device for the scorer, or a "
            "scorer that is smaller or was made for the text's language."
        )

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

    def counter(self, reader: PromptReader) -> Callable[[str], int]:
        """How many tokens of the target a text of a new request has; those of the request before are remembered."""
        if self._counter is None or self._counter[0] is not reader:
            self._counter = reader, Remembered(lambda text: len(reader.tokenize(text, has_control_tokens=False)))
        self._counter[1].begin()
        return self._counter[1]

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
            self._open = _Open(path, device, target, tokenizer, stack.pop_all(), Remembered(tokenizer.encode))
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
    return stepped(n_text_tokens * 3 // 2)


def stepped(n_tokens: int) -> int:
    """Up to the next multiple of TEXT_STEP."""
    return min(-(-n_tokens // TEXT_STEP) * TEXT_STEP, MOST_TEXT_TOKENS)


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
