"""What is kept of conversations: chats, their messages, attachments, presets. Plain data."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "system", "tool"]
State = Literal["done", "stopped", "failed", "interrupted", "writing"]
"""interrupted: the program ended in the middle of the reply; what had been said by then is kept."""

AttachmentKind = Literal["pasted", "text", "pdf"]

ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")
STATES: tuple[State, ...] = ("done", "stopped", "failed", "interrupted", "writing")


@dataclass(frozen=True, slots=True)
class Attachment:
    """Text that was sent along with a message: a file's, or a long paste."""

    name: str  # the file's; empty for a paste
    kind: AttachmentKind
    text: str
    n_bytes: int  # of the file, or of the pasted text


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """One message. Messages of a chat form branches by `parent_id`; of siblings, the greatest `shown_order` shows."""

    message_id: int
    parent_id: int | None
    role: Role
    text: str
    created_s: float  # seconds since 1970
    shown_order: int
    state: State = "done"
    reasoning: str = ""
    reasoning_s: float | None = None  # how long the model thought
    error: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # what the engine measured, and with which settings
    accepted_runs: tuple[int, ...] = ()  # characters of `text`, by turns the target's own and drafted ones
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat without its messages."""

    chat_id: int
    title: str = ""
    has_own_title: bool = False  # the person named it: never replaced by an automatic one
    is_pinned: bool = False
    created_s: float = 0.0
    changed_s: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    composer_text: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat with all its branches, oldest message first."""

    chat: ChatRecord
    messages: tuple[MessageRecord, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A named system prompt with sampling settings."""

    name: str
    settings: Mapping[str, Any]


_last_id = 0
_id_lock = threading.Lock()


def new_id() -> int:
    """An id for a chat or message: grows with time, unlike any other, fits a signed 64-bit number. From any thread."""
    global _last_id
    with _id_lock:
        _last_id = max(_last_id + 1, (time.time_ns() // 1_000_000 << 20) | secrets.randbits(20))
        return _last_id
