"""Requests of clients as a Qt item model, newest first. Events are taken at their pace and shown at ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Signal, Slot

from dflash_desktop.server.events import RequestArrived, RequestEnded, RequestMoved, RequestRefused, RequestRendered
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.pace import PLOT_MS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.server.request_records import RequestRecord, refused_record
from dflash_desktop.ui.server.serving import SELF_TEST_CLIENT

Index = QModelIndex | QPersistentModelIndex
_INVALID = QModelIndex()
KEPT_REQUESTS = 200
KEPT_CHARS = 16_000_000
"""Prompts of agents are long: past this sum the oldest requests are forgotten."""
TIME, CLIENT, MODEL, CACHED, PREFILLED, DECODED, AL, SPEED, TOOK, STATE = range(10)


class RequestItemModel(QAbstractTableModel):
    """One row per request. Our own self-test is not listed."""

    shown = Signal(object)  # the id of a request whose row changed

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._records: list[RequestRecord] = []  # newest first
        self._by_id: dict[str, RequestRecord] = {}
        self._dirty: set[str] = set()
        self._timer = QTimer(self)
        self._timer.setInterval(PLOT_MS)
        self._timer.timeout.connect(self._show)

    def _heads(self) -> tuple[str, ...]:
        """In the language in force: the model outlives the window that shows it."""
        return (
            self.tr("Time"),
            self.tr("Client"),
            self.tr("Model"),
            self.tr("Cached"),
            self.tr("Prefilled"),
            self.tr("Decoded"),
            self.tr("AL"),
            self.tr("tok/s"),
            self.tr("Took"),
            self.tr("State"),
        )

    # ---- events

    @Slot(object)
    def on_server_event(self, event: object) -> None:
        if isinstance(event, RequestArrived):
            if event.client != SELF_TEST_CLIENT:
                self._add(RequestRecord(event))
        elif isinstance(event, RequestRefused):
            if event.client != SELF_TEST_CLIENT and event.request_id not in self._by_id:
                self._add(refused_record(event))
        elif isinstance(event, RequestRendered | RequestMoved | RequestEnded):
            record = self._by_id.get(event.request_id)
            if record is not None:
                record.take(event)
                self._dirty.add(event.request_id)
                self._start_timer()

    def record(self, row: int) -> RequestRecord:
        return self._records[row]

    def find(self, request_id: str) -> RequestRecord | None:
        return self._by_id.get(request_id)

    def row_of(self, request_id: str) -> int:
        """Its row; -1 when it was forgotten."""
        return next((row for row, each in enumerate(self._records) if each.request_id == request_id), -1)

    @Slot()
    def forget_ended(self) -> None:
        """Drop what is over; what runs stays."""
        for row in reversed(range(len(self._records))):
            if not self._records[row].is_running:
                self._remove(row)

    def _add(self, record: RequestRecord) -> None:
        self.beginInsertRows(_INVALID, 0, 0)
        self._records.insert(0, record)
        self._by_id[record.request_id] = record
        self.endInsertRows()
        n_chars = 0
        for row, each in enumerate(self._records):
            n_chars += each.n_text_chars()
            if row and (row >= KEPT_REQUESTS or n_chars > KEPT_CHARS):
                for last in reversed(range(row, len(self._records))):
                    if not self._records[last].is_running:
                        self._remove(last)
                break
        self._start_timer()

    def _remove(self, row: int) -> None:
        self.beginRemoveRows(_INVALID, row, row)
        gone = self._records.pop(row)
        del self._by_id[gone.request_id]
        self._dirty.discard(gone.request_id)
        self.endRemoveRows()

    def _start_timer(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _show(self) -> None:
        """At most ten times a second: tell the views what changed."""
        dirty, self._dirty = self._dirty, set()
        is_anything_running = False
        for row, record in enumerate(self._records):
            is_anything_running |= record.is_running
            if record.is_running or record.request_id in dirty:
                self.dataChanged.emit(self.index(row, 0), self.index(row, len(_CELLS) - 1))
                self.shown.emit(record.request_id)
        if not is_anything_running:
            self._timer.stop()

    # ---- Qt's questions

    def rowCount(self, parent: Index = _INVALID) -> int:
        return 0 if parent.isValid() else len(self._records)

    def columnCount(self, parent: Index = _INVALID) -> int:
        return 0 if parent.isValid() else len(_CELLS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(_CELLS):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return self._heads()[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._records):
            return None
        record, column = self._records[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _CELLS[column](record)
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
            case Qt.ItemDataRole.ForegroundRole if column == STATE:
                names = {"accent": "accent_text"}
                tone = record.tone()
                return self._theme.color(names.get(tone, tone))
            case Qt.ItemDataRole.ForegroundRole if column == TIME:
                return self._theme.color("muted")
            case Qt.ItemDataRole.ToolTipRole:
                return record.ended.message or None if record.ended is not None else None
            case _:
                return None


def _alignment(column: int) -> int:
    side = Qt.AlignmentFlag.AlignRight if CACHED <= column <= TOOK else Qt.AlignmentFlag.AlignLeft
    return int((side | Qt.AlignmentFlag.AlignVCenter).value)


def _count(value: int | None) -> str:
    return numbers.DASH if value is None else numbers.count(value)


_CELLS: dict[int, Callable[[RequestRecord], str]] = {
    TIME: RequestRecord.time_words,
    CLIENT: RequestRecord.client_words,
    MODEL: lambda record: record.arrived.model_asked or numbers.DASH,
    CACHED: lambda record: _count(record.n_reused_tokens),
    PREFILLED: lambda record: _count(record.n_prefilled_tokens),
    DECODED: lambda record: _count(record.n_reply_tokens),
    AL: lambda record: numbers.decimal(record.acceptance_length or float("nan"), 2),
    SPEED: lambda record: numbers.rate(record.decode_tps),
    TOOK: lambda record: numbers.seconds(record.total_s),
    STATE: RequestRecord.state_words,
}
