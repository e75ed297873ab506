"""The conversation as a Qt item model: one row per message that shows. Rows are updated, never reset while text
streams in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from dflash_desktop.ui.chats.facts import ReplyFacts
from dflash_desktop.ui.chats.messages import Message, ReplyState

Index = QModelIndex | QPersistentModelIndex
STATE_ROLE = int(Qt.ItemDataRole.UserRole) + 1
SENDER_ROLE = int(Qt.ItemDataRole.UserRole) + 2


class ChatItemModel(QAbstractListModel):
    """Views read `message(row)`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._messages: list[Message] = []

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self._messages)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or not 0 <= index.row() < len(self._messages):
            return None
        message = self._messages[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return message.text
            case Qt.ItemDataRole.AccessibleTextRole:
                return self.spoken(index.row())
            case _ if role == STATE_ROLE:
                return message.state.value
            case _ if role == SENDER_ROLE:
                return message.role
            case _:
                return None

    def spoken(self, row: int) -> str:
        """The message as a screen reader says it."""
        message = self._messages[row]
        who = {"user": self.tr("You"), "system": self.tr("System"), "tool": self.tr("Tool result")}
        version, n_versions = message.place
        rest = [
            self.tr("Version {0} of {1}").format(version, n_versions) if n_versions > 1 else "",
            message.reasoning_words() if message.reasoning else "",
            message.text,
            *(attachment.name for attachment in message.attachments),
            message.status_words(),
            message.note_words(),
            message.error,
            message.facts.line() if message.facts else "",
        ]
        return f"{who.get(message.role, self.tr('Answer'))}: " + "\n".join(part for part in rest if part)

    def message(self, row: int) -> Message:
        return self._messages[row]

    def messages(self) -> Sequence[Message]:
        return tuple(self._messages)

    def row_of(self, message: Message) -> int | None:
        """Its row; None when it does not show."""
        for row in range(len(self._messages) - 1, -1, -1):
            if self._messages[row] is message:
                return row
        return None

    def append(self, message: Message) -> int:
        """Add a row and return its number."""
        row = len(self._messages)
        self.beginInsertRows(QModelIndex(), row, row)
        self._messages.append(message)
        self.endInsertRows()
        return row

    def reset_to(self, messages: Sequence[Message]) -> None:
        """Show another conversation."""
        self.beginResetModel()
        self._messages = list(messages)
        self.endResetModel()

    def follow_path(self, messages: Sequence[Message]) -> None:
        """Show these: rows that stay are left alone, what comes after the first difference is exchanged."""
        n_same = 0
        for have, wanted in zip(self._messages, messages, strict=False):
            if have is not wanted:
                break
            n_same += 1
        self.remove_from(n_same)
        if n_same < len(messages):
            self.beginInsertRows(QModelIndex(), n_same, len(messages) - 1)
            self._messages += messages[n_same:]
            self.endInsertRows()
        if n_same:
            self.dataChanged.emit(self.index(0), self.index(n_same - 1))

    def tell(self, message: Message) -> None:
        """The message was changed: whoever shows it looks again."""
        row = self.row_of(message)
        if row is not None:
            index = self.index(row)
            self.dataChanged.emit(index, index)

    def extend_reply(self, message: Message, text: str, reasoning: str = "") -> None:
        message.state = ReplyState.WRITING
        message.text += text
        message.reasoning += reasoning
        self.tell(message)

    def set_text(self, message: Message, text: str) -> None:
        message.text = text
        self.tell(message)

    def set_looping(self, message: Message, *, is_looping: bool) -> None:
        if message.is_looping != is_looping:
            message.is_looping = is_looping
            self.tell(message)

    def set_state(self, message: Message, state: ReplyState) -> None:
        message.state = state
        self.tell(message)

    def set_prefill(
        self, message: Message, n_done: int, n_total: int, elapsed_s: float, *, is_rated: bool = False
    ) -> None:
        """`is_rated`: the scorer reads, not the target."""
        message.state = ReplyState.READING
        message.is_rated = is_rated
        message.n_read_tokens, message.n_prompt_tokens, message.read_s = n_done, n_total, elapsed_s
        self.tell(message)

    def finish(self, message: Message, state: ReplyState, facts: ReplyFacts | None) -> None:
        message.state, message.facts = state, facts
        self.tell(message)

    def fail(self, message: Message, error: str) -> None:
        message.state, message.error = ReplyState.FAILED, error
        self.tell(message)

    def remove_from(self, row: int) -> list[Message]:
        """Remove that row and all after it, and return them."""
        if row >= len(self._messages):
            return []
        self.beginRemoveRows(QModelIndex(), row, len(self._messages) - 1)
        removed = self._messages[row:]
        del self._messages[row:]
        self.endRemoveRows()
        return removed
