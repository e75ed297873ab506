"""Counts what the next prompt will take of the context, before it is sent: in a thread, each message once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.ui.chats.messages import Message, sent_text
from dflash_desktop.ui.kit.worker import Worker

log = logging.getLogger(__name__)
COUNT_MS = 250
PIECE_CHARS = 20_000
"""Text is counted in pieces: the tokenizer lets nobody else run meanwhile."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens that the template adds to what was written."""

    n_once: float = 0  # with the beginning of the reply, and a system prompt of the template's own
    n_once_with_system: float = 0  # where the person has one
    n_each: float = 0  # to each turn, on average: an answer's mark may be longer than a question's
    n_join: int = 0  # between two messages that are one turn


@dataclass(frozen=True, slots=True)
class _Text:
    key: tuple[int, int] | None  # message and length: counted before, or to be remembered
    text: str


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A prompt to count: its texts, of how many turns it is, and where two messages are joined to one."""

    texts: list[_Text]
    n_turns: int
    n_joins: int
    has_system: bool

    def added(self, overhead: Overhead) -> int:
        once = overhead.n_once_with_system if self.has_system else overhead.n_once
        return round(once + overhead.n_each * self.n_turns) + overhead.n_join * self.n_joins


class ContextCounter(QObject):
    """Ask with `count`; `counted` follows when the person has stopped typing for a moment."""

    counted = Signal(int)  # tokens; off by a few, because words may join at borders

    def __init__(self) -> None:
        super().__init__()
        self._worker = Worker("count-tokens")
        self._reader: PromptReader | None = None
        self._known: dict[tuple[int, int], int] = {}
        self._overhead: Overhead | None = None
        self._wanted: _Wanted | None = None
        self._is_counting = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(COUNT_MS)
        self._timer.timeout.connect(self._start)

    def use_reader(self, reader: PromptReader | None) -> None:
        """Another model cuts text into other tokens."""
        if reader is not self._reader:
            self._reader = reader
            self._known.clear()
            self._overhead = None

    def count(self, messages: Sequence[Message], system_prompt: str, unsent: Sequence[str]) -> None:
        """Count the next prompt: these messages, the system prompt, and what is not sent yet."""
        if self._reader is None:
            return
        texts = [_Text((one.message_id, len(one.text)), sent_text(one)) for one in messages]
        texts += [_Text(None, text) for text in (system_prompt, *unsent) if text.strip()]
        # As prompt_messages joins them: neighbours of one role are one turn.
        roles = [one.role for one in messages if one.role != "assistant" or one.text]
        roles += ["user"] * any(text.strip() for text in unsent)
        n_turns = sum(1 for _ in groupby(roles))
        self._wanted = _Wanted(texts, n_turns, len(roles) - n_turns, has_system=bool(system_prompt.strip()))
        self._timer.start()

    def close(self) -> None:
        self._worker.close()

    @property
    def known(self) -> dict[tuple[int, int], int]:
        """Tokens by message and its length, of what has been counted."""
        return self._known

    @Slot()
    def _start(self) -> None:
        reader, wanted = self._reader, self._wanted
        if reader is None or wanted is None or self._is_counting:
            return
        self._wanted = None
        self._is_counting = True
        texts = wanted.texts
        unknown = [text for text in texts if text.key is None or text.key not in self._known]
        n_known = sum(self._known[text.key] for text in texts if text.key is not None and text.key in self._known)

        def work() -> tuple[int, dict[tuple[int, int], int], Overhead]:
            overhead = self._overhead if self._overhead is not None else overhead_of(reader)
            counts = [count_tokens(reader, text.text) for text in unknown]
            known = {text.key: n for text, n in zip(unknown, counts, strict=True) if text.key is not None}
            return n_known + sum(counts) + (wanted.added(overhead) if texts else 0), known, overhead

        self._worker.do(work, lambda result: self._finish(reader, *result), self._give_up)

    def _finish(
        self, reader: PromptReader, n_tokens: int, known: dict[tuple[int, int], int], overhead: Overhead
    ) -> None:
        self._is_counting = False
        if reader is self._reader:
            self._known.update(known)
            self._overhead = overhead
            self.counted.emit(n_tokens)
        if self._wanted is not None:
            self._timer.start()

    def _give_up(self, error: Exception) -> None:
        log.warning("the next prompt could not be counted: %s", error)
        self._is_counting = False
        if self._wanted is not None:
            self._timer.start()


def count_tokens(reader: PromptReader, text: str) -> int:
    """How many tokens `text` has, up to one for each PIECE_CHARS."""
    total = 0
    begin = 0
    while begin < len(text):
        end = begin + PIECE_CHARS
        if end < len(text):
            space = text.rfind(" ", begin + PIECE_CHARS // 2, end)
            end = space if space > 0 else end
        total += len(reader.tokenize(text[begin:end], has_control_tokens=False))
        begin = end
    return total


def overhead_of(reader: PromptReader) -> Overhead:
    """What the template adds, found by rendering short conversations; nothing where it refuses them."""
    user, answer = {"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}
    n_x = count_tokens(reader, "x")

    def size(*rows: dict[str, str]) -> int:
        return len(reader.render(ChatPrompt(list(rows))).token_ids) - n_x * len(rows)

    try:
        one, three = size(user), size(user, answer, user)
    except AppError:
        return Overhead()
    n_each = max(0.0, (three - one) / 2)
    try:
        with_system = size({"role": "system", "content": "x"}, user)
    except AppError:
        with_system = one
    n_join = count_tokens(reader, "\n\n")
    return Overhead(max(0.0, one - n_each), max(0.0, with_system - n_each), n_each, n_join)
