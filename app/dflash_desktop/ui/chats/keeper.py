"""The chats of this person in the window: what the store says, delivered in the GUI thread, and what it is told.

Without a store (a test, a build without a disk) chats live until the window closes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.events import (
    ChatOpened,
    ChatsFound,
    ChatsListed,
    SavingFailed,
    SavingWorks,
    StoreEvent,
    StoreOpened,
)
from dflash_desktop.chats.records import Attachment, ChatRecord, Conversation, Preset
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.chats.talk import Talk
from dflash_desktop.ui.kit.cause_words import told

COMPOSER_TEXT = "composer_text"
OPEN_CHAT = "open_chat"


class ChatKeeper(QObject):
    """Knows every chat by its record; the messages of those that are not open are in the store only."""

    chats_changed = Signal()  # another list, order, name or pin
    presets_changed = Signal()
    opened = Signal(object)  # StoreOpened, once
    talk_opened = Signal(object)  # Talk, after `open`
    found = Signal(object)  # ChatsFound
    troubled = Signal(object)  # the store's sentence; "" when all is well again
    _event_arrived = Signal(object)

    def __init__(self, store: ChatStore | None) -> None:
        super().__init__()
        self._store = store
        self._is_open = True
        self._in_memory: dict[int, Talk] = {}  # without a store
        self._records: dict[int, ChatRecord] = {}
        self._deleted: set[int] = set()  # a reply that ends late must not bring its chat back
        self._new_text = ""  # unsent, of the chat that is not stored yet
        self._unsent: dict[int | None, tuple[Attachment, ...]] = {}  # attached to unsent text; None: of the new chat
        self.presets: tuple[Preset, ...] = ()
        self._event_arrived.connect(self.on_event_arrived, Qt.ConnectionType.QueuedConnection)
        if store is not None:
            store.start(self._event_arrived.emit)

    @property
    def has_store(self) -> bool:
        return self._store is not None

    def close(self) -> None:
        """Write what waits; nothing is delivered afterwards."""
        self._is_open = False
        if self._store is not None:
            self._store.close()

    def chats(self) -> list[ChatRecord]:
        """Pinned ones first, then by time, the newest first."""
        return sorted(self._records.values(), key=lambda chat: (not chat.is_pinned, -chat.changed_s, -chat.chat_id))

    def record(self, chat_id: int) -> ChatRecord | None:
        return self._records.get(chat_id)

    # ---- one chat

    def open(self, chat_id: int) -> None:
        """Fetch a chat with its messages; `talk_opened` follows."""
        if self._store is not None:
            self._store.open_chat(chat_id)
        elif chat_id in self._in_memory:
            self.talk_opened.emit(self._in_memory[chat_id])

    def save(self, talk: Talk, messages: Sequence[Message] = ()) -> None:
        """Write the chat and these of its messages."""
        if talk.chat_id in self._deleted:
            return
        known = self._records.get(talk.chat_id)
        if known is not None:  # its name and pin may have been changed in the list
            talk.record = replace(
                talk.record,
                title=known.title or talk.record.title,
                has_own_title=known.has_own_title,
                is_pinned=known.is_pinned,
            )
        self._take(talk.record)
        if self._store is None:
            self._in_memory[talk.chat_id] = talk
        elif messages:
            self._store.add_messages(talk.record, [message.record() for message in messages])
        else:
            self._store.save_chat(talk.record)

    def extend_reply(self, message: Message, text: str, reasoning: str) -> None:
        if self._store is not None:
            self._store.extend_reply(message.message_id, text, reasoning)

    def show_message(self, message: Message) -> None:
        if self._store is not None:
            self._store.show_message(message.message_id, message.shown_order)

    def delete_messages(self, messages: Sequence[Message]) -> None:
        if self._store is not None:
            self._store.delete_messages([message.message_id for message in messages])

    def keep_composer_text(self, chat_id: int | None, text: str) -> None:
        """Remember unsent text: of a chat that is stored, else of the new one."""
        known = self._records.get(chat_id) if chat_id is not None else None
        if text == self.composer_text(chat_id):
            return
        if known is not None:
            self._records[known.chat_id] = replace(known, composer_text=text)
        else:
            self._new_text = text
        if self._store is None:
            return
        if known is not None:
            self._store.keep_composer_text(known.chat_id, text)
        else:
            self._store.keep(COMPOSER_TEXT, text)

    def composer_text(self, chat_id: int | None) -> str:
        """The unsent text of that chat, or of the new one."""
        known = self._records.get(chat_id) if chat_id is not None else None
        return known.composer_text if known is not None else self._new_text

    def keep_attachments(self, chat_id: int | None, attachments: Sequence[Attachment]) -> None:
        """Remember what was attached to unsent text."""
        key = chat_id if chat_id in self._records else None
        if tuple(attachments) == self._unsent.get(key, ()):
            return
        self._unsent[key] = tuple(attachments)
        if self._store is not None:
            self._store.keep_unsent(key, attachments)

    def attachments(self, chat_id: int | None) -> tuple[Attachment, ...]:
        """What was attached to the unsent text of that chat, or of the new one."""
        return self._unsent.get(chat_id if chat_id in self._records else None, ())

    def keep_open_chat(self, chat_id: int | None) -> None:
        if self._store is not None:
            self._store.keep(OPEN_CHAT, "" if chat_id is None else str(chat_id))

    # ---- the list

    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat a name of the person's own; an empty one brings the automatic one back with the next message."""
        self._change(chat_id, title=title.strip(), has_own_title=bool(title.strip()))

    def pin(self, chat_id: int, *, is_pinned: bool) -> None:
        self._change(chat_id, is_pinned=is_pinned)

    def delete(self, chat_id: int) -> ChatRecord | None:
        """Take a chat out of the list; `restore` with what this returned brings it back."""
        record = self._records.pop(chat_id, None)
        self._deleted.add(chat_id)
        if record is not None:
            if self._store is not None:
                self._store.delete_chat(chat_id)
            self.chats_changed.emit()
        return record

    def restore(self, record: ChatRecord) -> None:
        self._deleted.discard(record.chat_id)
        if self._store is not None:
            self._store.restore_chat(record.chat_id)
        self._take(record)

    def find(self, query: str) -> None:
        """Search all chats; `found` follows."""
        if self._store is not None:
            self._store.find(query)

    def add(self, conversations: Sequence[Conversation]) -> None:
        """Take chats that were imported."""
        if self._store is not None:
            self._store.add_conversations(conversations)
            return
        for one in conversations:
            self._in_memory[one.chat.chat_id] = Talk.of(one)
            self._take(one.chat)

    def read(self, question: Callable[[ChatFile], object]) -> bool:
        """Run `question` on the store's reading thread. False without a store."""
        if self._store is None:
            return False
        self._store.read(question)
        return True

    def _change(self, chat_id: int, **changes: Any) -> None:
        record = self._records.get(chat_id)
        if record is not None:
            changed = replace(record, **changes)
            if self._store is not None:
                self._store.save_chat(changed)
            self._take(changed)

    def _take(self, record: ChatRecord) -> None:
        known = self._records.get(record.chat_id)
        if known is not None:
            record = replace(record, composer_text=known.composer_text)
        self._records[record.chat_id] = record
        if known != record:
            self.chats_changed.emit()

    # ---- presets

    def save_preset(self, name: str, settings: Mapping[str, Any]) -> None:
        preset = Preset(name, dict(settings))
        others = [one for one in self.presets if one.name != name]
        self.presets = tuple(sorted([*others, preset], key=lambda one: one.name.casefold()))
        if self._store is not None:
            self._store.save_preset(preset)
        self.presets_changed.emit()

    def delete_preset(self, name: str) -> None:
        self.presets = tuple(one for one in self.presets if one.name != name)
        if self._store is not None:
            self._store.delete_preset(name)
        self.presets_changed.emit()

    # ---- what the store says

    @Slot(object)
    def on_event_arrived(self, event: StoreEvent) -> None:
        if not self._is_open:
            return
        match event:
            case StoreOpened():
                # A chat that was begun before the disk answered is newer than what the disk knows.
                self._records = {chat.chat_id: chat for chat in event.chats} | self._records
                self.presets = event.presets
                self._new_text = self._new_text or event.kept.get(COMPOSER_TEXT, "")
                self._unsent = dict(event.unsent) | self._unsent
                self.chats_changed.emit()
                self.presets_changed.emit()
                self.opened.emit(event)
            case ChatsListed():
                self._records = {chat.chat_id: chat for chat in event.chats}
                self.chats_changed.emit()
            case ChatOpened():
                if event.conversation is not None:
                    self.talk_opened.emit(Talk.of(event.conversation))
            case ChatsFound():
                self.found.emit(event)
            case SavingFailed():
                self.troubled.emit(told(event.cause, event.message))
            case SavingWorks():
                self.troubled.emit("")
