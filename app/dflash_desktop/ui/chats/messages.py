"""What the conversation consists of: messages and the state of a reply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from PySide6.QtCore import QCoreApplication

from dflash_desktop.chats.records import Attachment, MessageRecord, Role, State, new_id
from dflash_desktop.ui.chats.facts import ReplyFacts, facts_from
from dflash_desktop.ui.kit import numbers

translate = QCoreApplication.translate


class ReplyState(Enum):
    WAITING = "waiting"  # for the pair to load
    QUEUED = "queued"  # in the engine's queue
    READING = "reading"  # prefill
    WRITING = "writing"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"  # the program ended in the middle of it


LEAST_THOUGHT_S = 0.05
UNFINISHED = (ReplyState.WAITING, ReplyState.QUEUED, ReplyState.READING, ReplyState.WRITING)
_STORED: dict[ReplyState, State] = {
    ReplyState.DONE: "done",
    ReplyState.STOPPED: "stopped",
    ReplyState.FAILED: "failed",
    ReplyState.INTERRUPTED: "interrupted",
}
_READ: dict[str, ReplyState] = {stored: state for state, stored in _STORED.items()}


@dataclass(slots=True, eq=False)
class Message:
    """One row of the conversation. Only ChatItemModel and Talk change it."""

    role: Role
    text: str
    state: ReplyState = ReplyState.DONE
    error: str = ""
    n_read_tokens: int = 0  # prefill: done
    n_prompt_tokens: int = 0  # prefill: all
    read_s: float = 0.0
    facts: ReplyFacts | None = None
    message_id: int = field(default_factory=new_id)
    parent_id: int | None = None
    shown_order: int = 0
    created_s: float = field(default_factory=time.time)
    reasoning: str = ""
    reasoning_s: float | None = None  # how long the model thought; None while it does, or when nobody measured
    is_thinking: bool = False
    attachments: tuple[Attachment, ...] = ()
    accepted_runs: tuple[int, ...] = ()  # characters of `text`, by turns the target's own and drafted ones
    place: tuple[int, int] = (1, 1)  # which of how many versions
    keep: float | None = None  # of a question: the share that the person chose to send of what may be left out
    is_rated: bool = False  # while READING: the scorer reads, not the target
    is_looping: bool = False  # its end is one piece again and again: engine/loops.py

    @property
    def is_reply(self) -> bool:
        return self.role not in ("user", "system")

    @property
    def can_continue(self) -> bool:
        """Whether the reply ended before its end."""
        is_cut = self.facts is not None and self.facts.finish_reason in ("length", "context")
        ended = self.state in (ReplyState.STOPPED, ReplyState.INTERRUPTED, ReplyState.FAILED)
        return self.role == "assistant" and bool(self.text) and (is_cut or ended)

    def record(self) -> MessageRecord:
        """For the store. A reply that is not finished is one that the program's end would interrupt."""
        return MessageRecord(
            message_id=self.message_id,
            parent_id=self.parent_id,
            role=self.role,
            text=self.text,
            created_s=self.created_s,
            shown_order=self.shown_order,
            state=_STORED.get(self.state, "writing"),
            reasoning=self.reasoning,
            reasoning_s=self.reasoning_s,
            error=self.error,
            facts=self.facts.as_dict() if self.facts else {} if self.keep is None else {"keep": self.keep},
            accepted_runs=self.accepted_runs,
            attachments=self.attachments,
        )

    def prefill_words(self) -> str:
        """Where the prefill is, and how long it will take."""
        if self.is_rated:
            words = translate("facts", "Choosing what to keep of the prompt")
            counted = translate("facts", "Choosing what to keep of the prompt  ·  {0} of {1} tokens")
        else:
            words = translate("facts", "Reading the prompt")
            counted = translate("facts", "Reading the prompt  ·  {0} of {1} tokens")
        if self.n_prompt_tokens <= 0:
            return words
        words = counted.format(numbers.count(self.n_read_tokens), numbers.count(self.n_prompt_tokens))
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
            case ReplyState.STOPPED if not self.text and not self.reasoning:
                return translate("facts", "Stopped before the first token.")
            case ReplyState.INTERRUPTED:
                return translate("facts", "The program ended in the middle of this answer.")
            case _:
                return ""

    def note_words(self) -> str:
        """What the person should know of a reply that is none the worse for it; "" most of the time."""
        if not self.is_looping:
            return ""
        if self.state in UNFINISHED:
            return translate(
                "facts",
                "This answer repeats itself. Esc stops it; a higher temperature or another model may help then.",
            )
        return translate(
            "facts", "This answer repeats itself. Answer again with a higher temperature, or with another model."
        )

    def reasoning_words(self) -> str:
        """The line that stands for the folded thoughts."""
        if self.is_thinking:
            return translate("facts", "Thinking")
        if self.reasoning_s is None or self.reasoning_s < LEAST_THOUGHT_S:
            return translate("facts", "Thoughts")
        return translate("facts", "Thought for {0}").format(numbers.seconds(self.reasoning_s))


def message_from(record: MessageRecord) -> Message:
    """A message as it was stored."""
    facts = facts_from(record.facts)
    return Message(
        role=record.role,
        text=record.text,
        state=_READ.get(record.state, ReplyState.INTERRUPTED),
        error=record.error,
        facts=facts,
        is_looping=facts is not None and facts.is_looping,
        keep=_share(record.facts.get("keep")),
        message_id=record.message_id,
        parent_id=record.parent_id,
        shown_order=record.shown_order,
        created_s=record.created_s,
        reasoning=record.reasoning,
        reasoning_s=record.reasoning_s,
        attachments=record.attachments,
        accepted_runs=record.accepted_runs,
    )


def _share(stored: object) -> float | None:
    return float(stored) if isinstance(stored, (int, float)) and 0 < stored <= 1 else None


def sent_text(message: Message) -> str:
    """What the model reads of a message: its text, then what was attached."""
    parts = [message.text] if message.text else []
    for attachment in message.attachments:
        if attachment.kind == "pasted":
            parts.append(attachment.text)
        else:
            parts.append(f'<file name="{attachment.name}">\n{attachment.text}\n</file>')
    return "\n\n".join(parts)


def prompt_messages(messages: Sequence[Message], system_prompt: str) -> list[dict[str, Any]]:
    """The conversation for the chat template: empty replies dropped, neighbours of one role joined.

    Some templates refuse two messages of one role in a row, which stopping a reply at once would produce. Thoughts are
    not sent again: models are made to read answers only.
    """
    rows: list[dict[str, Any]] = []
    if system_prompt.strip():
        rows.append({"role": "system", "content": system_prompt})
    for message in messages:
        text = sent_text(message)
        if message.role == "assistant" and not text:
            continue
        if rows and rows[-1]["role"] == message.role:
            rows[-1]["content"] += "\n\n" + text
        else:
            rows.append({"role": message.role, "content": text})
    return rows
