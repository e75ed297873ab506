"""One conversation in memory: its messages, its branches, and which of them show. No signals, no store, no engine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dflash_desktop.chats.branches import Branches
from dflash_desktop.chats.records import Attachment, ChatRecord, Conversation, new_id
from dflash_desktop.chats.titles import title_of
from dflash_desktop.ui.chats.messages import Message, ReplyState, message_from


class Talk:
    """A new one is not stored until its first message."""

    def __init__(self, record: ChatRecord | None = None) -> None:
        self.record = record or ChatRecord(new_id(), created_s=time.time(), changed_s=time.time())
        self._branches = Branches()
        self._messages: dict[int, Message] = {}

    @classmethod
    def of(cls, conversation: Conversation) -> Talk:
        """A conversation from the store."""
        talk = cls(conversation.chat)
        for record in conversation.messages:
            talk.put(message_from(record))
        return talk

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def chat_id(self) -> int:
        return self.record.chat_id

    def message(self, message_id: int) -> Message:
        return self._messages[message_id]

    def has(self, message: Message) -> bool:
        return self._messages.get(message.message_id) is message

    def messages(self) -> Sequence[Message]:
        """All of them on all branches, parents first."""
        return tuple(self._messages.values())

    def path(self) -> list[Message]:
        """The messages that show, each knowing its place among its versions."""
        return self._placed(self._branches.path())

    def before(self, message: Message) -> list[Message]:
        """The messages that lead to `message`, without it."""
        found = []
        parent_id = message.parent_id
        while parent_id is not None and parent_id in self._messages:
            found.append(self._messages[parent_id])
            parent_id = found[-1].parent_id
        return found[::-1]

    def versions(self, message: Message) -> list[Message]:
        return [self._messages[one] for one in self._branches.siblings(message.message_id)]

    def put(self, message: Message) -> None:
        """Take a message that has its parent and order already."""
        self._messages[message.message_id] = message
        self._branches.add(message.message_id, message.parent_id, message.shown_order)

    def add_question(self, text: str, attachments: tuple[Attachment, ...], parent: Message | None) -> Message:
        """What the person says after `parent`: a new branch when something follows that already."""
        made = Message("user", text, attachments=attachments, parent_id=parent.message_id if parent else None)
        return self._add(made)

    def add_reply(self, question: Message) -> Message:
        """An empty reply to `question`: another version when there is one already."""
        return self._add(Message("assistant", "", ReplyState.WAITING, parent_id=question.message_id))

    def _add(self, message: Message) -> Message:
        message.shown_order = self._branches.next_order()
        self.put(message)
        self.record = replace(self.record, changed_s=message.created_s)
        return message

    def show(self, message: Message) -> None:
        """Let that version show instead of its siblings."""
        message.shown_order = self._branches.show(message.message_id)

    def remove(self, message: Message) -> list[Message]:
        """Take out a message with all that follows it on every branch; return them, parents first."""
        return [self._messages.pop(one) for one in self._branches.remove(message.message_id)]

    def name_it(self) -> bool:
        """Give the chat a title from its first message, unless it has one. True when it got one."""
        if self.record.title or self.record.has_own_title:
            return False
        first = next(iter(self._messages.values()), None)
        if first is None:
            return False
        title = title_of(first.text) or next((one.name for one in first.attachments if one.name), "")
        title = title or next((title_of(one.text) for one in first.attachments), "")
        self.record = replace(self.record, title=title)
        return bool(title)

    def use_settings(self, settings: Mapping[str, Any]) -> None:
        self.record = replace(self.record, settings=dict(settings))

    def _placed(self, ids: list[int]) -> list[Message]:
        path = [self._messages[one] for one in ids]
        for message in path:
            message.place = self._branches.place(message.message_id)
        return path
