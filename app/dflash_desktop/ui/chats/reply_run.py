"""A reply that is being made: what has arrived of it, split into thoughts and answer, and who said which token."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from dflash_desktop.engine.events import PrefillProgress, StepDone, StepReason
from dflash_desktop.engine.pflash.options import PromptCompressed, ScoreProgress
from dflash_desktop.server.parsing.reasoning import ReasoningSplitter
from dflash_desktop.ui.chats.facts import AskedWith
from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.chats.talk import Talk

Purpose = Literal["send", "edit", "again", "continue"]
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


@dataclass(slots=True)
class ReplySplitter:
    """Raw text in, thoughts and answer out, each as it becomes certain."""

    starts_in_thoughts: bool = False
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    _splitter: ReasoningSplitter = field(init=False)

    def __post_init__(self) -> None:
        self._splitter = ReasoningSplitter(
            self.reasoning.append, self.text.append, starts_inside=self.starts_in_thoughts
        )

    @property
    def is_thinking(self) -> bool:
        return self._splitter.is_inside

    def feed(self, raw: str) -> None:
        self._splitter.feed(raw)

    def finish(self) -> None:
        self._splitter.finish()

    def take(self) -> tuple[str, str]:
        """What came since the last call: answer, thoughts."""
        taken = "".join(self.text), "".join(self.reasoning)
        self.text.clear()
        self.reasoning.clear()
        return taken


@dataclass(slots=True)
class TokenRuns:
    """How many bytes of a reply, by turns, are the target's own and the draft's that the target accepted."""

    token_bytes: Callable[[int], bytes] | None
    runs: list[int] = field(default_factory=lambda: [0])  # the target's own first

    def add(self, step: StepDone) -> None:
        if self.token_bytes is None:
            return
        for index, token in enumerate(step.token_ids):
            is_accepted = index < step.n_accepted
            if (len(self.runs) % 2 == 0) != is_accepted:
                self.runs.append(0)
            self.runs[-1] += len(self.token_bytes(token))

    def in_characters(self, raw: str, n_shown: int) -> tuple[int, ...]:
        """Runs of the last `n_shown` characters of the reply's raw text; empty when they do not add up."""
        data = raw.encode("utf-8", "replace")
        total = sum(self.runs)
        if self.token_bytes is None or len(self.runs) < 2 or total < len(data) or "\N{REPLACEMENT CHARACTER}" in raw:
            return ()
        counts: list[int] = []
        begin = 0
        for n_bytes in self.runs:
            piece = data[begin : begin + n_bytes]
            counts.append(len(piece.translate(None, _CONTINUATION_BYTES)))
            begin += n_bytes
        return _last(counts, n_shown)


def _last(counts: list[int], n_shown: int) -> tuple[int, ...]:
    """The runs of the last `n_shown` characters; which run is whose stays as it was."""
    to_drop = sum(counts) - n_shown
    kept = []
    for count in counts:
        dropped = min(count, to_drop)
        to_drop -= dropped
        kept.append(count - dropped)
    return tuple(kept)


@dataclass(slots=True, eq=False)
class ReplyRun:
    """The state of one reply between its question and its end."""

    talk: Talk
    message: Message
    purpose: Purpose
    settings: ReplySettings
    question: Message | None = None  # taken back with the reply when the engine refuses it
    job_id: int | None = None  # None while the pair loads
    asked: AskedWith = field(default_factory=AskedWith)
    prefix: str = ""  # the text that is being continued
    raw: list[str] = field(default_factory=list)  # arrived, not yet looked at
    whole: list[str] = field(default_factory=list)  # all of it, as the model wrote it
    prefill: PrefillProgress | None = None  # arrived, not yet shown
    rating: ScoreProgress | None = None  # likewise
    compressed: PromptCompressed | None = None
    rated_s: float = 0.0  # what the preview of this prompt has taken
    splitter: ReplySplitter = field(default_factory=ReplySplitter)
    tokens: TokenRuns = field(default_factory=lambda: TokenRuns(None))
    reasons: Counter[StepReason] = field(default_factory=Counter)
    speed_up: float = 0.0
    is_stopped: bool = False
    unsaved: tuple[str, str] = ("", "")  # shown, not yet given to the store
    thinking_since: float | None = None

    def add(self, step: StepDone) -> None:
        self.reasons[step.reason] += 1
        self.speed_up = step.speed_up or self.speed_up
        self.tokens.add(step)
        if step.text:
            self.raw.append(step.text)

    def advance(self) -> tuple[str, str]:
        """Look at what has arrived; return what is new of the answer and of the thoughts."""
        raw = "".join(self.raw)
        self.raw.clear()
        if not raw:
            return "", ""
        self.whole.append(raw)
        self.splitter.feed(raw)
        return self._taken()

    def finish(self) -> tuple[str, str]:
        """The text is complete: what was held back is out."""
        self.splitter.finish()
        return self._taken()

    def _taken(self) -> tuple[str, str]:
        text, reasoning = self.splitter.take()
        message = self.message
        if reasoning and self.thinking_since is None:
            self.thinking_since = time.perf_counter()
        message.is_thinking = self.splitter.is_thinking and not text
        if text and self.thinking_since is not None and message.reasoning_s is None:
            message.reasoning_s = time.perf_counter() - self.thinking_since
        self.unsaved = (self.unsaved[0] + text, self.unsaved[1] + reasoning)
        return text, reasoning

    def close_thoughts(self) -> None:
        """The reply is over: nobody thinks any more."""
        self.message.is_thinking = False
        if self.thinking_since is not None and self.message.reasoning_s is None:
            self.message.reasoning_s = time.perf_counter() - self.thinking_since

    def accepted_runs(self) -> tuple[int, ...]:
        """Of the finished answer's characters."""
        n_new = len(self.message.text) - len(self.prefix)
        runs = self.tokens.in_characters("".join(self.whole), n_new)
        if not runs or not self.prefix:
            return runs
        return (len(self.prefix) + runs[0], *runs[1:])  # who wrote the part before is not known any more
