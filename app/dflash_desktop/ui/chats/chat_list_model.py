"""The list of chats as rows: headings by time, or what a search has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QDate,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTime,
)

from dflash_desktop.chats.records import ChatRecord
from dflash_desktop.chats.search import Hit

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = int(Qt.ItemDataRole.UserRole) + 1
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A chat as the list shows it. `snippet` and `ranges` are a search's; without one, both are empty."""

    chat: ChatRecord
    title: str
    when: str
    snippet: str = ""
    ranges: tuple[tuple[int, int], ...] = ()
    n_more: int = 0  # further messages of this chat that were found
    is_running: bool = False


class ChatListItemModel(QAbstractListModel):
    """Give it chats with `show_chats` or hits with `show_hits`; both leave rows alone that stay the same."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Heading | ChatRow] = []

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or not 0 <= index.row() < len(self._rows):
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return row.text if isinstance(row, Heading) else row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return row.text if isinstance(row, Heading) else self._spoken(row)
            case Qt.ItemDataRole.ToolTipRole:
                return None if isinstance(row, Heading) else row.title
            case _ if role == ROW_ROLE:
                return row
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], Heading):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable

    def row(self, number: int) -> Heading | ChatRow:
        return self._rows[number]

    def chat_at(self, number: int) -> ChatRecord | None:
        row = self._rows[number] if 0 <= number < len(self._rows) else None
        return row.chat if isinstance(row, ChatRow) else None

    def number_of(self, chat_id: int) -> int | None:
        """The row of that chat."""
        for number, row in enumerate(self._rows):
            if isinstance(row, ChatRow) and row.chat.chat_id == chat_id:
                return number
        return None

    def show_chats(self, chats: Sequence[ChatRecord], running: frozenset[int], now: datetime) -> None:
        """Show all chats, in the given order, under headings by time."""
        rows: list[Heading | ChatRow] = []
        heading = ""
        for chat in chats:
            when = datetime.fromtimestamp(chat.changed_s).astimezone()
            wanted = translate("chats", "Pinned") if chat.is_pinned else _age_words(when, now)
            if wanted != heading:
                heading = wanted
                rows.append(Heading(wanted))
            rows.append(ChatRow(chat, _title(chat), _when_words(when, now), is_running=chat.chat_id in running))
        self._show(rows)

    def show_hits(self, hits: Sequence[Hit], chats: Sequence[ChatRecord], now: datetime) -> None:
        """Show what a search has found."""
        known = {chat.chat_id: chat for chat in chats}
        rows: list[Heading | ChatRow] = []
        for hit in hits:
            chat = known.get(hit.chat_id)
            if chat is not None:
                when = datetime.fromtimestamp(chat.changed_s).astimezone()
                n_more = max(0, hit.n_messages - 1)
                rows.append(ChatRow(chat, _title(chat), _when_words(when, now), hit.snippet, hit.ranges, n_more))
        self._show(rows)

    def _show(self, rows: list[Heading | ChatRow]) -> None:
        if [_identity(row) for row in rows] == [_identity(row) for row in self._rows]:
            for number, row in enumerate(rows):
                if row != self._rows[number]:
                    self._rows[number] = row
                    self.dataChanged.emit(self.index(number), self.index(number))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def _spoken(self, row: ChatRow) -> str:
        parts = [row.title, row.when, row.snippet]
        if row.chat.is_pinned:
            parts.append(translate("chats", "pinned"))
        if row.is_running:
            parts.append(translate("chats", "an answer is being written"))
        return ", ".join(part for part in parts if part)


def _identity(row: Heading | ChatRow) -> object:
    return row.text if isinstance(row, Heading) else row.chat.chat_id


def _title(chat: ChatRecord) -> str:
    return chat.title or translate("chats", "Chat without a name")


def _age_words(when: datetime, now: datetime) -> str:
    days = (now.date() - when.date()).days
    if days <= 0:
        return translate("chats", "Today")
    if days == 1:
        return translate("chats", "Yesterday")
    if days < 7:
        return translate("chats", "Last seven days")
    if days < 31:
        return translate("chats", "Last month")
    return str(when.year)


def _when_words(when: datetime, now: datetime) -> str:
    """The time of today, the weekday of this week, else the date, as people here write it."""
    locale = QLocale()
    if when.date() == now.date():
        return locale.toString(QTime(when.hour, when.minute), QLocale.FormatType.ShortFormat)
    if now - when < timedelta(days=7):
        return locale.dayName(when.isoweekday(), QLocale.FormatType.ShortFormat)
    return locale.toString(QDate(when.year, when.month, when.day), QLocale.FormatType.ShortFormat)
