"""The serve page: the socket on top, below it the clients, their requests, and who may call."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from dflash_desktop.ui.clients.clients_view import ClientsView
from dflash_desktop.ui.engine.pair_state import PairState
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.page_frame import PageHead, frame_page
from dflash_desktop.ui.kit.palette import XL, L, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import ElidedLabel, SegmentedControl
from dflash_desktop.ui.server.access_view import AccessView
from dflash_desktop.ui.server.requests_view import RequestsView
from dflash_desktop.ui.server.serve_desk import ServeDesk
from dflash_desktop.ui.server.serving import STANDARD_PORT
from dflash_desktop.ui.server.socket_card import SocketCard

FIRST_CLIENT = "cline"


class ServePage(QWidget):
    """Shows what ServeDesk keeps. The server does not notice whether anybody looks."""

    state_changed = Signal()  # something that is remembered between starts

    def __init__(self, theme: Theme, icons: Icons, desk: ServeDesk, pair_state: PairState) -> None:
        super().__init__()
        self._theme = theme
        self._desk = desk
        self.socket = SocketCard(theme, icons, desk.serving, pair_state)
        self.notice = Notice(theme, icons)
        self.tabs = SegmentedControl(
            theme,
            [
                ("clients", self.tr("Programs")),
                ("requests", self.tr("Requests")),
                ("access", self.tr("Access")),
            ],
            self.tr("Show"),
        )
        self._activity = ElidedLabel(theme, "caption", tone="muted")
        self.clients = ClientsView(theme, icons, desk.clients, desk.ticks)
        self.requests = RequestsView(theme, icons, desk.requests)
        self.access = AccessView(theme, icons, desk.serving)
        self._stack = QStackedWidget()
        for view in (self.clients, self.requests, self.access):
            self._stack.addWidget(view)
        self._build()
        self.tabs.chosen.connect(self.show_tab)
        self.socket.serve_wanted.connect(self.on_serve_wanted)
        self.socket.load_wanted.connect(desk.serve_now.load)
        desk.serve_now.ready.connect(self.on_ready)
        desk.serve_now.stopped.connect(self.on_stopped)
        desk.serving.told.connect(self.on_told)
        desk.serving.changed.connect(self.on_serving_changed)
        self.on_serving_changed()

    def _build(self) -> None:
        head = PageHead(self._theme, self.tr("Serve"))
        head.row.addSpacing(M)
        words = ElidedLabel(self._theme, "body", tone="muted")
        words.setText(self.tr("Programs on this computer use the model as if it were LM Studio's"))
        head.row.addWidget(words, 1)
        tabs = QHBoxLayout()
        tabs.setSpacing(M)
        tabs.addWidget(self.tabs)
        tabs.addWidget(self._activity, 1)
        page = QVBoxLayout()
        page.setContentsMargins(XL, L, XL, L)
        page.setSpacing(M)
        page.addWidget(self.socket)
        page.addWidget(self.notice)
        page.addLayout(tabs)
        page.addWidget(self._stack, 1)
        frame_page(self, head, page)

    @Slot(object)
    def show_tab(self, key: str) -> None:
        """clients, requests or access."""
        self.tabs.choose(key)
        self._stack.setCurrentWidget({"clients": self.clients, "requests": self.requests, "access": self.access}[key])

    @Slot()
    def on_serve_wanted(self) -> None:
        self.notice.hide()
        self._desk.serve_now.begin()

    @Slot()
    def on_ready(self) -> None:
        """Every dialect answers: show what would be set in Cline, or say what to do by hand."""
        self.show_tab("clients")
        self.clients.choose(FIRST_CLIENT, with_preview=True)
        state = self._desk.clients.state(FIRST_CLIENT)
        if state is None or not state.card.can_write:
            self.notice.show_info(
                self.tr("It serves as LM Studio. In your program choose the provider LM Studio; nothing else to set.")
                if self._desk.serving.port == STANDARD_PORT
                else self.tr("It serves. Give your program the address above; the card below has the steps.")
            )

    @Slot(object)
    def on_stopped(self, sentence: str) -> None:
        if sentence:
            self.notice.show_error(sentence)

    @Slot(object)
    def on_told(self, sentence: str) -> None:
        self.notice.show_info(sentence)

    @Slot()
    def on_serving_changed(self) -> None:
        n_running = self._desk.serving.n_running
        self._activity.setText(self.tr("{0} running or waiting").format(n_running) if n_running else "")
        self.state_changed.emit()
