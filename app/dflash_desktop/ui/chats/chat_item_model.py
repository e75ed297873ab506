"""The conversation as a Qt item model: one row per message. Rows are updated, never reset while text streams in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from dflash_desktop.ui.chats.messages import Message, ReplyFacts, ReplyState

Index = QModelIndex | QPersistentModelIndex
STATE_ROLE = int(Qt.ItemDataRole.UserRole) + 1
SENDER_ROLE = int(Qt.ItemDataRole.UserRole) + 2


class ChatItemModel(QAbstractListModel):
    """Owns the messages; views read `message(row)`."""

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
        who = self.tr("You") if message.role == "user" else self.tr("Answer")
        rest = [message.text, message.status_words(), message.error, message.facts.line() if message.facts else ""]
        return f"{who}: " + "\n".join(part for part in rest if part)

    def message(self, row: int) -> Message:
        return self._messages[row]

    def messages(self) -> Sequence[Message]:
        return tuple(self._messages)

    def append(self, message: Message) -> int:
        """Add a row and return its number."""
        row = len(self._messages)
        self.beginInsertRows(QModelIndex(), row, row)
        self._messages.append(message)
        self.endInsertRows()
        return row

    def extend_reply(self, row: int, text: str) -> None:
        message = self._messages[row]
        message.state = ReplyState.WRITING
        message.text += text
        self._tell(row)

    def set_text(self, row: int, text: str) -> None:
        self._messages[row].text = text
        self._tell(row)

    def set_state(self, row: int, state: ReplyState) -> None:
        self._messages[row].state = state
        self._tell(row)

    def set_prefill(self, row: int, n_done: int, n_total: int, elapsed_s: float) -> None:
        message = self._messages[row]
        message.state = ReplyState.READING
        message.n_read_tokens, message.n_prompt_tokens, message.read_s = n_done, n_total, elapsed_s
        self._tell(row)

    def finish(self, row: int, state: ReplyState, facts: ReplyFacts | None) -> None:
        message = self._messages[row]
        message.state, message.facts = state, facts
        self._tell(row)

    def fail(self, row: int, error: str) -> None:
        message = self._messages[row]
        message.state, message.error = ReplyState.FAILED, error
        self._tell(row)

    def remove_from(self, row: int) -> list[Message]:
        """Remove that row and all after it, and return them."""
        if row >= len(self._messages):
            return []
        self.beginRemoveRows(QModelIndex(), row, len(self._messages) - 1)
        removed = self._messages[row:]
        del self._messages[row:]
        self.endRemoveRows()
        return removed

    def _tell(self, row: int) -> None:
        index = self.index(row)
        self.dataChanged.emit(index, index)
