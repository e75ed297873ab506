"""What the store says: frozen, past tense, complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dflash_desktop.base.causes import Cause
from dflash_desktop.chats.records import Attachment, ChatRecord, Conversation, Preset
from dflash_desktop.chats.search import Hit


@dataclass(frozen=True, slots=True)
class StoreOpened:
    """The chats are there. `problem` tells, for the person, what was wrong with them; empty when nothing was."""

    chats: tuple[ChatRecord, ...]
    kept: Mapping[str, str]
    presets: tuple[Preset, ...]
    problem: str
    unsent: Mapping[int | None, tuple[Attachment, ...]] = field(default_factory=dict)  # attached; None: of the new chat


@dataclass(frozen=True, slots=True)
class ChatsListed:
    chats: tuple[ChatRecord, ...]


@dataclass(frozen=True, slots=True)
class ChatOpened:
    """The chat that was asked for; None when it is gone."""

    chat_id: int
    conversation: Conversation | None


@dataclass(frozen=True, slots=True)
class ChatsFound:
    query: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class SavingFailed:
    """Changes wait in memory and are tried again; `message` is for the person."""

    message: str
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class SavingWorks:
    """What had waited is on the disk."""


StoreEvent = StoreOpened | ChatsListed | ChatOpened | ChatsFound | SavingFailed | SavingWorks
