"""Counts what the next prompt will take of the context, before it is sent: in a thread, each message once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.ui.chats.messages import Message, sent_text
from dflash_desktop.ui.kit.worker import Worker

COUNT_MS = 250
PIECE_CHARS = 20_000
"""Text is counted in pieces: the tokenizer lets nobody else run meanwhile."""


@dataclass(frozen=True, slots=True)
class _Text:
    key: tuple[int, int] | None  # message and length: counted before, or to be remembered
    text: str


class ContextCounter(QObject):
    """Ask with `count`; `counted` follows when the person has stopped typing for a moment."""

    counted = Signal(int)  # tokens; off by a few, because words may join at borders

    def __init__(self) -> None:
        super().__init__()
        self._worker = Worker("count-tokens")
        self._reader: PromptReader | None = None
        self._known: dict[tuple[int, int], int] = {}
        self._overhead: int | None = None
        self._wanted: tuple[list[_Text], int] | None = None
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

    def count(self, messages: Sequence[Message], more: Sequence[str]) -> None:
        """Count these messages and what is not a message yet: the system prompt, unsent text."""
        if self._reader is None:
            return
        texts = [_Text((one.message_id, len(one.text)), sent_text(one)) for one in messages]
        texts += [_Text(None, text) for text in more if text]
        self._wanted = (texts, len(texts))
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
        texts, n_messages = wanted
        unknown = [text for text in texts if text.key is None or text.key not in self._known]
        n_known = sum(self._known[text.key] for text in texts if text.key is not None and text.key in self._known)

        def work() -> tuple[int, dict[tuple[int, int], int], int]:
            overhead = self._overhead if self._overhead is not None else overhead_of(reader)
            counts = [count_tokens(reader, text.text) for text in unknown]
            known = {text.key: n for text, n in zip(unknown, counts, strict=True) if text.key is not None}
            return n_known + sum(counts) + overhead * n_messages, known, overhead

        self._worker.do(work, lambda result: self._finish(reader, *result), self._give_up)

    def _finish(self, reader: PromptReader, n_tokens: int, known: dict[tuple[int, int], int], overhead: int) -> None:
        self._is_counting = False
        if reader is self._reader:
            self._known.update(known)
            self._overhead = overhead
            self.counted.emit(n_tokens)
        if self._wanted is not None:
            self._timer.start()

    def _give_up(self, _error: Exception) -> None:
        self._is_counting = False


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


def overhead_of(reader: PromptReader) -> int:
    """Tokens that the template adds to each message."""
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}]
    try:
        rendered = reader.render(ChatPrompt(talk))
    except AppError:
        return 0
    return max(0, round((len(rendered.token_ids) - 3) / 3))
