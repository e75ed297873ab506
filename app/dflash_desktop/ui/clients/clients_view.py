"""All clients: the list, and the card of the one that is chosen."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QListView, QWidget

from dflash_desktop.clients.writer import Preview
from dflash_desktop.ui.clients.card_view import CardView
from dflash_desktop.ui.clients.client_delegate import ClientDelegate
from dflash_desktop.ui.clients.client_desk import ClientDesk
from dflash_desktop.ui.clients.client_item_model import ClientItemModel
from dflash_desktop.ui.clients.client_ticks import ClientTicks
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import AGE_MS
from dflash_desktop.ui.kit.palette import XS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card

LIST_WIDTH = 288


class ClientsView(QWidget):
    """Arrow keys choose a client, Tab goes into its card."""

    def __init__(self, theme: Theme, icons: Icons, desk: ClientDesk, ticks: ClientTicks) -> None:
        super().__init__()
        self._desk = desk
        self._ticks = ticks
        self._wanted = ""  # a client to choose as soon as its card is read
        self._will_preview = False
        self.items = ClientItemModel(desk, ticks, self)
        self.list = QListView()
        self.list.setModel(self.items)
        self.list.setItemDelegate(ClientDelegate(theme, icons, self.list))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setMouseTracking(True)
        self.list.setUniformItemSizes(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setAccessibleName(self.tr("Programs"))
        self.card = CardView(theme, icons)
        box = Card(theme)
        outer = box.layout()
        assert outer is not None
        outer.setContentsMargins(XS, XS, XS, XS)
        row = QHBoxLayout()
        row.setSpacing(0)
        self.list.setFixedWidth(theme.px(LIST_WIDTH))
        line = QFrame()
        line.setProperty("kind", "rule")
        line.setFixedWidth(1)
        row.addWidget(self.list)
        row.addWidget(line)
        row.addWidget(self.card, 1)
        box.body.addLayout(row, 1)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(box)
        self._timer = QTimer(self)
        self._timer.setInterval(AGE_MS)
        self._timer.timeout.connect(self.on_time_passed)
        self.list.selectionModel().currentChanged.connect(self.on_current_changed)
        self.items.modelReset.connect(self.on_reset)
        desk.cards_changed.connect(self.on_cards_changed)
        desk.previewed.connect(self.on_previewed)
        desk.written.connect(self.on_written)
        desk.undone.connect(self.on_undone)
        desk.failed.connect(self.on_failed)
        ticks.changed.connect(self.on_tick_changed)
        self.card.preview_wanted.connect(desk.preview)
        self.card.write_wanted.connect(desk.write)
        self.card.undo_wanted.connect(desk.undo)
        self.on_reset()

    def choose(self, client_id: str, *, with_preview: bool = False) -> None:
        """Show that client's card, and what writing would change if `with_preview`."""
        self._wanted = client_id
        self._will_preview = with_preview
        self._choose_wanted()

    @property
    def chosen(self) -> str:
        """The client whose card is shown."""
        return self.card.client_id

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._desk.refresh()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def on_time_passed(self) -> None:
        self.items.refresh()
        self._show_tick()

    @Slot()
    def on_reset(self) -> None:
        self._wanted = self._wanted or self.card.client_id
        if not self._wanted and self.items.rowCount():
            self._wanted = self.items.client_id(0)
        self._choose_wanted()

    @Slot()
    def on_cards_changed(self) -> None:
        self._choose_wanted()
        self._show_card()

    @Slot(QModelIndex, QModelIndex)
    def on_current_changed(self, _now: QModelIndex, _before: QModelIndex) -> None:
        self._show_card()

    @Slot(object)
    def on_tick_changed(self, client_id: str) -> None:
        if client_id == self.card.client_id:
            self._show_tick()

    @Slot(object, object)
    def on_previewed(self, client_id: str, previews: list[Preview]) -> None:
        if client_id == self.card.client_id:
            self.card.show_preview(previews)

    @Slot(object, object)
    def on_written(self, client_id: str, backup: Path) -> None:
        if client_id == self.card.client_id:
            self.card.show_written(backup)

    @Slot(object)
    def on_undone(self, client_id: str) -> None:
        if client_id == self.card.client_id:
            self.card.show_undone()

    @Slot(object, object)
    def on_failed(self, client_id: str, sentence: str) -> None:
        if client_id == self.card.client_id:
            self.card.show_failure(sentence)

    def _choose_wanted(self) -> None:
        row = self.items.row_of(self._wanted)
        if row < 0:
            return
        client_id, self._wanted = self._wanted, ""
        self.list.setCurrentIndex(self.items.index(row))
        self._show_card()
        will_preview, self._will_preview = self._will_preview, False
        if will_preview and self._desk.can_write and self.card.can_be_written:
            self._desk.preview(client_id)

    def _show_card(self) -> None:
        row = self.list.currentIndex().row()
        if row < 0:
            return
        client_id = self.items.client_id(row)
        state = self._desk.state(client_id)
        if state is not None:
            endpoint = self._desk.endpoint()
            self.card.show_state(
                state,
                self._ticks.tick(client_id),
                can_write=self._desk.can_write,
                context_tokens=endpoint.context_tokens,
                access_token=endpoint.key,
            )

    def _show_tick(self) -> None:
        self.card.show_tick(self._ticks.tick(self.card.client_id))
