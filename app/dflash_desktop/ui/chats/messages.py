"""What the conversation consists of: messages, the state of a reply, and the facts known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from PySide6.QtCore import QCoreApplication

from dflash_desktop.engine import metrics
from dflash_desktop.engine.events import FinishReason, GenerationDone, StepReason
from dflash_desktop.ui.kit import numbers

Role = Literal["user", "assistant"]
translate = QCoreApplication.translate


class ReplyState(Enum):
    WAITING = "waiting"  # for the pair to load
    QUEUED = "queued"  # in the engine's queue
    READING = "reading"  # prefill
    WRITING = "writing"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


UNFINISHED = (ReplyState.WAITING, ReplyState.QUEUED, ReplyState.READING, ReplyState.WRITING)


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """Measured by the engine, shown under the reply. None: not measured, which is shown as a dash."""

    finish_reason: FinishReason
    n_tokens: int
    decode_tps: float | None
    ttft_s: float | None
    acceptance_length: float | None
    is_drafted: bool  # in most of its steps: a probe now and then does not count
    reason: StepReason | None  # why most steps had the size they had
    seed: int
    model_name: str

    def draft_words(self) -> str:
        if self.is_drafted:
            return translate("facts", "draft on")
        match self.reason:
            case "no_draft":
                return translate("facts", "no draft")
            case "plain_faster":
                return translate("facts", "draft off: plain is faster here")
            case _:
                return translate("facts", "draft off")

    def finish_words(self) -> str:
        words = {
            "stop": translate("facts", "finished"),
            "length": translate("facts", "token limit reached"),
            "context": translate("facts", "context is full"),
            "cancelled": translate("facts", "stopped by you"),
        }
        return words[self.finish_reason]

    def line(self) -> str:
        """The facts in one line, the most interesting first."""
        parts = [
            translate("facts", "{0} tok/s").format(numbers.rate(self.decode_tps)),
            translate("facts", "first token {0}").format(numbers.seconds(self.ttft_s)),
        ]
        if self.is_drafted and self.acceptance_length is not None:
            parts.append(translate("facts", "AL {0}").format(numbers.decimal(self.acceptance_length, 2)))
        parts += [self.draft_words(), numbers.tokens(self.n_tokens), self.finish_words()]
        return "  ·  ".join(parts)


@dataclass(slots=True)
class Message:
    """One row of the conversation. Only ChatItemModel changes it."""

    role: Role
    text: str
    state: ReplyState = ReplyState.DONE
    error: str = ""
    n_read_tokens: int = 0  # prefill: done
    n_prompt_tokens: int = 0  # prefill: all
    read_s: float = 0.0
    facts: ReplyFacts | None = None

    def prefill_words(self) -> str:
        """Where the prefill is, and how long it will take."""
        if self.n_prompt_tokens <= 0:
            return translate("facts", "Reading the prompt")
        words = translate("facts", "Reading the prompt  ·  {0} of {1} tokens").format(
            numbers.count(self.n_read_tokens), numbers.count(self.n_prompt_tokens)
        )
        if self.n_read_tokens > 0 and self.read_s > 0:
            left_s = self.read_s / self.n_read_tokens * (self.n_prompt_tokens - self.n_read_tokens)
            words += "  ·  " + numbers.remaining(left_s)
        return words

    def status_words(self) -> str:
        match self.state:
            case ReplyState.WAITING:
                return translate("facts", "Waiting for the model to load; this message is sent then.")
            case ReplyState.QUEUED:
                return translate("facts", "Waiting for its turn")
            case ReplyState.READING:
                return self.prefill_words()
            case ReplyState.STOPPED if not self.text:
                return translate("facts", "Stopped before the first token.")
            case _:
                return ""


def facts_of(done: GenerationDone, *, reason: StepReason | None, seed: int, model_name: str) -> ReplyFacts:
    """What is worth telling of a finished reply. `reason`: why most of its steps had the size they had."""
    return ReplyFacts(
        finish_reason=done.finish_reason,
        n_tokens=done.n_committed,
        decode_tps=metrics.decode_tps(done),
        ttft_s=metrics.ttft(done),
        acceptance_length=metrics.acceptance_length(done),
        is_drafted=done.n_plain_steps * 2 < done.n_steps,
        reason=reason,
        seed=seed,
        model_name=model_name,
    )


def prompt_messages(messages: Sequence[Message], system_prompt: str) -> list[dict[str, Any]]:
    """The conversation for the chat template: empty replies dropped, neighbours of one role joined.

    Some templates refuse two messages of one role in a row, which stopping a reply at once would produce.
    """
    rows: list[dict[str, Any]] = []
    if system_prompt.strip():
        rows.append({"role": "system", "content": system_prompt})
    for message in messages:
        if message.role == "assistant" and not message.text:
            continue
        if rows and rows[-1]["role"] == message.role:
            rows[-1]["content"] += "\n\n" + message.text
        else:
            rows.append({"role": message.role, "content": message.text})
    return rows
