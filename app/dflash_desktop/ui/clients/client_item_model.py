"""Clients as a Qt item model: name, and whether they are here or have connected."""

from __future__ import annotations

import time
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Slot

from dflash_desktop.ui.clients.card_words import said
from dflash_desktop.ui.clients.client_desk import CardState, ClientDesk
from dflash_desktop.ui.clients.client_ticks import ClientTicks, Tick

Index = QModelIndex | QPersistentModelIndex
_INVALID = QModelIndex()
StatusRole = int(Qt.ItemDataRole.UserRole) + 1
ToneRole = int(Qt.ItemDataRole.UserRole) + 2  # good, bad, text or muted


class ClientItemModel(QAbstractListModel):
    """Rows stay in the order of the cards; those that are installed come first."""

    def __init__(self, desk: ClientDesk, ticks: ClientTicks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._ticks = ticks
        self._states: list[CardState] = list(desk.states)
        desk.cards_changed.connect(self.on_cards_changed)
        ticks.changed.connect(self.on_tick_changed)

    def client_id(self, row: int) -> str:
        return self._states[row].card.client_id

    def row_of(self, client_id: str) -> int:
        """Its row; -1 when there is no such card."""
        return next((row for row, each in enumerate(self._states) if each.card.client_id == client_id), -1)

    def tick(self, row: int) -> Tick:
        return self._ticks.tick(self.client_id(row))

    @Slot()
    def on_cards_changed(self) -> None:
        states = self._desk.states
        if [each.card.client_id for each in states] == [each.card.client_id for each in self._states]:
            self._states = list(states)
            self.refresh()
            return
        self.beginResetModel()
        self._states = list(states)
        self.endResetModel()

    @Slot(object)
    def on_tick_changed(self, client_id: str) -> None:
        row = self.row_of(client_id)
        if row >= 0:
            self.dataChanged.emit(self.index(row), self.index(row))

    @Slot()
    def refresh(self) -> None:
        """Ages have moved on."""
        if self._states:
            self.dataChanged.emit(self.index(0), self.index(len(self._states) - 1))

    def rowCount(self, parent: Index = _INVALID) -> int:
        return 0 if parent.isValid() else len(self._states)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._states):
            return None
        state = self._states[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return said(state.card.name)
            case _ if role == StatusRole:
                return self._status(state)
            case _ if role == ToneRole:
                return self._tone(state)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self.tr("{0}: {1}").format(said(state.card.name), self._status(state))
            case Qt.ItemDataRole.ToolTipRole:
                return self._status(state)
            case _:
                return None

    def _status(self, state: CardState) -> str:
        words = self._ticks.tick(state.card.client_id).words(time.time())
        if words:
            return words
        if state.can_undo:
            return self.tr("settings written, not connected yet")
        if state.card.client_id == "other":
            return self.tr("addresses to copy")
        return self.tr("found on this computer") if state.card.is_detected else self.tr("not found here")

    def _tone(self, state: CardState) -> str:
        tick = self._ticks.tick(state.card.client_id)
        if tick.last_at_s:
            return "good" if tick.is_good else "bad"
        return "text" if state.card.is_detected else "muted"
