"""The live list of requests, and the inspector beside it."""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QModelIndex, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.tables import row_table
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, label, push_button
from dflash_desktop.ui.server.inspector_view import InspectorView
from dflash_desktop.ui.server.request_item_model import (
    AL,
    CACHED,
    CLIENT,
    DECODED,
    MODEL,
    PREFILLED,
    SPEED,
    STATE,
    TIME,
    TOOK,
    RequestItemModel,
)

ROW_PIXELS = 34
WIDE = 1400  # below this the open inspector takes the room of the columns that it shows itself
NARROW = 960
INSPECTOR_WIDTH = 400
_HIDDEN_BESIDE_INSPECTOR = (MODEL, CACHED, PREFILLED, AL, TOOK)
ROOM_FOR_MODEL = 980  # below this it is left to the inspector: the name is the same in most rows
_WIDTHS = {TIME: 94, CLIENT: 120, CACHED: 90, PREFILLED: 98, DECODED: 100, AL: 66, SPEED: 74, TOOK: 104}


class RequestsView(QWidget):
    """Choose a row and the inspector opens; Esc or its button closes it."""

    def __init__(self, theme: Theme, icons: Icons, requests: RequestItemModel) -> None:
        super().__init__()
        self._theme = theme
        self._requests = requests
        self._chosen_id = ""
        self.table = self._build_table()
        self.inspector = InspectorView(theme, icons)
        self.inspector.hide()
        self.clear_button = push_button(theme, self.tr("Clear"), "link")
        self._empty = self._build_empty()
        card = Card(theme, self.tr("Requests"))
        self._count = label(theme, "", "caption", tone="muted")
        card.head.addWidget(self._count)
        card.head.addWidget(self.clear_button)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self.table)
        card.body.addWidget(self._stack, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(M)
        row.addWidget(card, 3)
        row.addWidget(self.inspector)
        self.inspector.setFixedWidth(theme.px(INSPECTOR_WIDTH))
        self.table.selectionModel().selectionChanged.connect(self.on_selection_changed)
        self.inspector.close_clicked.connect(self.on_inspector_closed)
        self.clear_button.clicked.connect(requests.forget_ended)
        requests.shown.connect(self.on_request_shown)
        requests.rowsInserted.connect(self.on_rows_changed)
        requests.rowsRemoved.connect(self.on_rows_changed)
        self.on_rows_changed()

    def _build_table(self) -> QTableView:
        table = row_table(self._theme, self._requests, self.tr("Requests"), row_pixels=ROW_PIXELS)
        table.setFont(self._theme.figure_font("body", weight=self._theme.font("body").weight()))
        heads = table.horizontalHeader()
        heads.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        heads.setMinimumSectionSize(self._theme.px(44))
        for column, width in _WIDTHS.items():
            heads.resizeSection(column, max(self._theme.px(width), heads.sectionSizeHint(column)))
        heads.setSectionResizeMode(MODEL, QHeaderView.ResizeMode.Stretch)
        heads.setSectionResizeMode(STATE, QHeaderView.ResizeMode.Stretch)
        return table

    def _build_empty(self) -> QWidget:
        box = QWidget()
        column = QVBoxLayout(box)
        column.setSpacing(S)
        words = (
            label(self._theme, self.tr("No program has asked for a reply yet."), "body"),
            label(
                self._theme,
                self.tr("Each request appears here with its tokens, its speed and what the model read."),
                "caption",
                tone="muted",
                wraps=True,
            ),
        )
        column.addStretch(1)
        for each in words:
            each.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            column.addWidget(each)
        column.addStretch(1)
        return box

    @Slot()
    def on_rows_changed(self) -> None:
        n_rows = self._requests.rowCount()
        self._stack.setCurrentWidget(self.table if n_rows else self._empty)
        self.clear_button.setVisible(n_rows > 0)
        self._count.setText(self.tr("{0} kept").format(n_rows) if n_rows else "")
        if self._chosen_id and self._requests.find(self._chosen_id) is None:
            self.on_inspector_closed()

    @Slot(QItemSelection, QItemSelection)
    def on_selection_changed(self, chosen: QItemSelection, _before: QItemSelection) -> None:
        indexes = chosen.indexes()
        if indexes:
            self.open_row(indexes[0].row())

    def open_row(self, row: int) -> None:
        record = self._requests.record(row)
        self._chosen_id = record.request_id
        self.inspector.show_record(record)
        self.inspector.show()
        self._fit()

    @Slot()
    def on_inspector_closed(self) -> None:
        self._chosen_id = ""
        self.inspector.hide()
        self.table.clearSelection()
        self.table.setCurrentIndex(QModelIndex())
        self._fit()

    @Slot(object)
    def on_request_shown(self, request_id: str) -> None:
        if request_id == self._chosen_id and self.inspector.isVisible():
            record = self._requests.find(request_id)
            if record is not None:
                self.inspector.show_record(record)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        is_open = self.inspector.isVisibleTo(self)
        for column in _HIDDEN_BESIDE_INSPECTOR:
            least = WIDE if is_open else ROOM_FOR_MODEL if column == MODEL else 0
            self.table.setColumnHidden(column, self.width() < self._theme.px(least))
        self.table.setColumnHidden(TIME, is_open and self.width() < self._theme.px(NARROW))
