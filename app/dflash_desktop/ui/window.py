"""The main window: navigation rail, model bar, pages, shortcuts, and the way out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Slot
from PySide6.QtGui import (
    QAction,
    QActionGroup,
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QMenu, QStackedWidget, QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat import Chat, ReplySettings
from dflash_desktop.ui.chats.page import ChatPage
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.model_bar import ModelBar
from dflash_desktop.ui.engine.open_pair_dialog import OpenPairDialog, dropped_models
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase, StarterPair
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.rail import NavigationRail
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import rule
from dflash_desktop.ui.kit.window_state import WindowStateFile, restored

if TYPE_CHECKING:
    from dflash_desktop.ui.engine.page import EnginePage

SMALLEST = QSize(1024, 640)
FIRST_SIZE = QSize(1280, 800)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of the window. `build` runs when it is first shown, so that the start stays quick."""

    key: str
    icon: str
    name: str
    build: Callable[[], QWidget]


class MainWindow(QWidget):
    """Built once from long-lived parts; close it and everything it asked for is cancelled."""

    def __init__(
        self,
        bridge: EngineBridge,
        theme: Theme,
        icons: Icons,
        starter: StarterPair | None,
        state_file: WindowStateFile,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._theme = theme
        self._icons = icons
        self._starter = starter
        self._state_file = state_file
        self._state = state_file.read()
        self._devices: tuple[Sequence[Device], str] = ((), "")
        self._is_closing = False
        self._is_recalled = False
        self._dialog: OpenPairDialog | None = None
        self._engine_page: EnginePage | None = None
        self.pair_state = PairState(bridge, starter, self._state.draft_mode)
        self.figures = LiveFigures(bridge)
        self.chat = Chat(bridge, self.pair_state)
        self.setWindowTitle("DFlash Desktop")
        self.setWindowIcon(icons.app_icon())
        self.setMinimumSize(SMALLEST)
        self.resize(FIRST_SIZE)
        self.setAcceptDrops(True)
        self.model_bar = ModelBar(theme, icons, self.pair_state, starter)
        self.chat_page = ChatPage(theme, icons, self.chat, self.pair_state, self.figures, starter)
        self._pages = {
            page.key: page
            for page in (
                _Page("chat", "chat", self.tr("Chat"), lambda: self.chat_page),
                _Page("engine", "engine", self.tr("Engine"), self._build_engine_page),
            )
        }
        self._built: dict[str, QWidget] = {}
        self.rail = NavigationRail(theme, icons)
        self._stack = QStackedWidget()
        self._build()
        self._connect()
        self._recall()

    def _build(self) -> None:
        for page in self._pages.values():
            self.rail.add_page(page.key, page.icon, page.name)
        self.theme_button = self.rail.add_at_bottom("theme", self.tr("Theme"))
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.model_bar)
        right.addWidget(rule())
        right.addWidget(self._stack, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addLayout(right, 1)
        self._build_theme_menu()

    def _build_theme_menu(self) -> None:
        self.theme_menu = QMenu(self)
        group = QActionGroup(self)
        names = {"system": self.tr("Follow the system"), "light": self.tr("Light"), "dark": self.tr("Dark")}
        for mode, name in names.items():
            action = QAction(name, self.theme_menu)
            action.setCheckable(True)
            action.setData(mode)
            action.setChecked(mode == self._theme.mode)
            group.addAction(action)
            self.theme_menu.addAction(action)
        group.triggered.connect(self.on_theme_chosen)

    def _connect(self) -> None:
        self.rail.page_chosen.connect(self.show_page)
        self.theme_button.clicked.connect(self.on_theme_clicked)
        self.model_bar.open_wanted.connect(self.on_open_wanted)
        self.model_bar.start_wanted.connect(self.load_starter)
        self.model_bar.draft_mode_chosen.connect(self.on_draft_mode_chosen)
        self.chat_page.open_wanted.connect(self.on_open_wanted)
        self.chat_page.start_wanted.connect(self.load_starter)
        self.chat_page.engine_page_wanted.connect(lambda: self.show_page("engine"))
        self.chat_page.state_changed.connect(self.save_state)
        self.chat_page.start_view_shown.connect(self._offer_start)
        self._bridge.devices_listed.connect(self.on_devices_listed)
        slots: dict[str, Callable[[], object]] = {
            "Esc": self.chat.stop,
            "Ctrl+N": self.chat_page.on_new_clicked,
            "Ctrl+O": self.on_open_wanted,
            "Ctrl+1": lambda: self.show_page("chat"),
            "Ctrl+2": lambda: self.show_page("engine"),
            "Ctrl+L": self.chat_page.composer.edit.setFocus,
            "Ctrl+Q": self.close,
        }
        for keys, slot in slots.items():
            QShortcut(QKeySequence(keys), self, slot)

    def _build_engine_page(self) -> QWidget:
        # pyqtgraph and numpy take a third of a second to import: not before somebody looks.
        from dflash_desktop.ui.engine.page import EnginePage

        self._engine_page = page = EnginePage(self._theme, self._icons, self.pair_state, self.figures)
        page.refresh_clicked.connect(self._bridge.refresh_devices)
        page.show_devices(*self._devices)
        return page

    # ---- pages

    @Slot(object)
    def show_page(self, key: str) -> None:
        if key not in self._built:
            self._built[key] = self._pages[key].build()
            self._stack.addWidget(self._built[key])
        self.rail.choose(key)
        self._stack.setCurrentWidget(self._built[key])
        self._offer_start()
        if key == "chat":
            self.chat_page.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _offer_start(self) -> None:
        is_chat = self._stack.currentWidget() is self.chat_page
        self.model_bar.offer_start(is_offered=not (is_chat and self.chat_page.is_start_shown))

    def page(self, key: str) -> QWidget:
        """The page, built if it was not yet."""
        if key not in self._built:
            self.show_page(key)
        return self._built[key]

    # ---- loading

    @Slot()
    def load_starter(self) -> None:
        if self._starter is not None:
            self.pair_state.load(PairFiles(self._starter.target, self._starter.draft))

    @Slot()
    def on_open_wanted(self) -> None:
        self.open_dialog()

    def open_dialog(self, files: list[Path] | None = None) -> OpenPairDialog:
        """The dialog for one's own files; a second call brings the first one up."""
        if self._dialog is None:
            self._dialog = OpenPairDialog(self._theme, self._icons, self, self._state.last_folder)
            self._dialog.pair_chosen.connect(self.pair_state.load)
            self._dialog.folder_used.connect(self.on_folder_used)
            self._dialog.finished.connect(self.on_dialog_finished)
        if files:
            self._dialog.take_files(files)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    @Slot()
    def on_dialog_finished(self) -> None:
        self._dialog = None

    @Slot(object)
    def on_folder_used(self, folder: str) -> None:
        self._state = replace(self._state, last_folder=folder)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_models(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.open_dialog(dropped_models(event))

    @Slot(object)
    def on_draft_mode_chosen(self, mode: str) -> None:
        self.pair_state.set_draft_mode(mode)
        self.save_state()

    @Slot(object, object)
    def on_devices_listed(self, devices: Sequence[Device], problem: str) -> None:
        self._devices = (devices, problem)
        self.chat_page.start.show_devices(devices, problem)
        if self._engine_page is not None:
            self._engine_page.show_devices(devices, problem)

    # ---- theme

    @Slot()
    def on_theme_clicked(self) -> None:
        corner = self.theme_button.mapToGlobal(self.theme_button.rect().topRight())
        height = self.theme_menu.sizeHint().height()
        self.theme_menu.popup(corner - QPoint(0, height - self.theme_button.height()))

    @Slot(QAction)
    def on_theme_chosen(self, action: QAction) -> None:
        self._theme.set_mode(action.data())
        self.save_state()

    # ---- state between starts

    def _recall(self) -> None:
        state = self._state
        self.restoreGeometry(state.geometry_bytes())
        self.chat_page.recall(
            composer_text=state.composer_text,
            has_side_panel=state.has_side_panel,
            settings=restored(ReplySettings(), state.reply_settings),
        )
        self.show_page(state.page if state.page in self._pages else "chat")
        self._is_recalled = True

    @Slot()
    def save_state(self) -> None:
        """Write down what the next start needs. Cheap when nothing changed."""
        if not self._is_recalled:
            return
        current = next((key for key, page in self._built.items() if page is self._stack.currentWidget()), "chat")
        self._state = replace(
            self._state,
            theme=self._theme.mode,
            geometry=base64.b64encode(self.saveGeometry().data()).decode("ascii"),
            page=current,
            draft_mode=self.pair_state.draft_mode,
            **self.chat_page.remember(),
        )
        self._state_file.write(self._state)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # After the first paint: listing devices may wake drivers.
        QTimer.singleShot(0, self._bridge.refresh_devices)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.save_state()
            self.chat.stop()
            if self.pair_state.phase is Phase.LOADING:
                self.pair_state.cancel_load()
        super().closeEvent(event)
