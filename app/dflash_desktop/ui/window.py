"""The main window: navigation rail, model bar, pages, shortcuts, and the way out."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QSize, Qt, QTimer, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat import Chat
from dflash_desktop.ui.chats.keeper import ChatKeeper
from dflash_desktop.ui.chats.page import ChatPage
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.closing import ClosingQuestion
from dflash_desktop.ui.commands import shortcuts, window_commands
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.load_dialogs import LoadDialogs
from dflash_desktop.ui.engine.model_bar import ModelBar
from dflash_desktop.ui.engine.open_pair_dialog import OpenPairDialog, dropped_models
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase, StarterPair
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.entry import ModelsEntry
from dflash_desktop.ui.hub.scorers import scorer_files
from dflash_desktop.ui.kit.command_palette import CommandPalette
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.rail import NavigationRail
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import rule
from dflash_desktop.ui.kit.window_state import WindowStateFile, restored
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.server.serve_desk import ServeDesk
from dflash_desktop.ui.server.serving import ServeSettings
from dflash_desktop.ui.settings.desk import SettingsDesk
from dflash_desktop.ui.settings.theme_menu import ThemeMenu
from dflash_desktop.ui.troubles import Troubles

if TYPE_CHECKING:
    from dflash_desktop.ui.engine.page import EnginePage
    from dflash_desktop.ui.settings.page import SettingsPage

SMALLEST = QSize(1024, 640)
FIRST_SIZE = QSize(1280, 800)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of the window. `build` runs when it is first shown, so that the start stays quick."""

    key: str
    icon: str
    name: str
    build: Callable[[], QWidget]
    is_low: bool = False  # at the rail's bottom


class MainWindow(QWidget):
    """Built once from long-lived parts; close it and everything it asked for is cancelled."""

    def __init__(
        self,
        bridge: EngineBridge,
        theme: Theme,
        icons: Icons,
        starter: StarterPair | None,
        state_file: WindowStateFile,
        *,
        parts: Parts | None = None,
    ) -> None:
        super().__init__()
        self._parts = parts or Parts()
        self._settings = self._parts.settings or SettingsStore(None)
        self.is_restart_wanted = False
        self._has_begun = False
        self._bridge = bridge
        self._theme = theme
        self._icons = icons
        self._starter = starter
        self._state_file = state_file
        self._state = state_file.read()
        self._devices: tuple[Sequence[Device], str] = ((), "")
        self._is_closing = False
        self.closing = ClosingQuestion(self)
        self._is_recalled = False
        self._engine_page: EnginePage | None = None
        memory = self._parts.pair_memory
        self.pair_state = PairState(bridge, starter, self._settings.values.draft_mode, memory)
        self.load_desk = LoadDesk(bridge, theme, self.pair_state, self._settings, self._parts)
        folder = self._state.last_folder
        self.dialogs = LoadDialogs(theme, icons, self, self.pair_state, self.load_desk, folder)
        self.settings_desk = SettingsDesk(self._settings, theme, self.pair_state, self._parts.home)
        self.figures = LiveFigures(bridge)
        self.chat = Chat(bridge, self.pair_state, ChatKeeper(self._parts.chats))
        self.serve_desk = self._make_serve_desk()
        self.models_desk = ModelsDesk(self._parts.hub) if self._parts.hub is not None else None
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
                *([_Page("models", "models", self.tr("Models"), self._build_models_page)] if self.models_desk else []),
                _Page("engine", "engine", self.tr("Engine"), self._build_engine_page),
                *([_Page("serve", "server", self.tr("Serve"), self._build_serve_page)] if self.serve_desk else []),
                _Page("settings", "settings", self.tr("Settings"), self._build_settings_page, is_low=True),
            )
        }
        self._built: dict[str, QWidget] = {}
        self.rail = NavigationRail(theme, icons)
        self.notice = Notice(theme, icons)
        self._stack = QStackedWidget()
        self._build()
        self._connect()
        self.troubles = Troubles(self, self.pair_state, self.load_desk, self.settings_desk)
        self._recall()

    def _build(self) -> None:
        self.theme_button = self.rail.add_at_bottom("theme", self.tr("Theme"))
        for page in self._pages.values():
            self.rail.add_page(page.key, page.icon, page.name, is_low=page.is_low)
        right = QVBoxLayout()
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addWidget(self.model_bar)
        right.addWidget(rule())
        right.addWidget(self.notice)
        right.addWidget(self._stack, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.rail)
        row.addLayout(right, 1)
        self.theme_menu = ThemeMenu(self, self.settings_desk)

    def _connect(self) -> None:
        self.rail.page_chosen.connect(self.show_page)
        self.theme_button.clicked.connect(lambda: self.theme_menu.popup_beside(self.theme_button))
        self.settings_desk.restart_wanted.connect(self.restart)
        self.model_bar.open_wanted.connect(self.on_open_wanted)
        self.model_bar.start_wanted.connect(self.load_starter)
        self.model_bar.adjust_wanted.connect(self.on_adjust_wanted)
        self.model_bar.draft_mode_chosen.connect(self.on_draft_mode_chosen)
        self.chat_page.open_wanted.connect(self.on_open_wanted)
        self.chat_page.start_wanted.connect(self.load_starter)
        self.chat_page.engine_page_wanted.connect(lambda: self.show_page("engine"))
        self.chat_page.pflash_page_wanted.connect(self.show_load_view)
        self.chat_page.state_changed.connect(self.save_state)
        self.chat_page.start_view_shown.connect(self._offer_start)
        self._bridge.devices_listed.connect(self.on_devices_listed)
        if self.serve_desk is not None:
            self.serve_desk.badge_changed.connect(partial(self.rail.set_badge, "serve"))
            self.serve_desk.hint_due.connect(self.on_serve_hint_due)
        if self.models_desk is not None:
            self.models_desk.shelf_changed.connect(self._offer_scorers)
            self.pair_state.load_began.connect(self._offer_scorers)
            self.models_entry = ModelsEntry(self, self.models_desk, self.chat_page.start, self.pair_state)
        for keys, slot in shortcuts(self).items():
            QShortcut(QKeySequence(keys), self, slot)

    def _build_engine_page(self) -> QWidget:
        # pyqtgraph and numpy take a third of a second to import: not before somebody looks.
        from dflash_desktop.ui.engine.page import EnginePage

        tools = self._parts.engine_tools
        self._engine_page = page = EnginePage(
            self._theme,
            self._icons,
            self.pair_state,
            self.figures,
            self.load_desk,
            tools.read_device if tools is not None else None,
        )
        page.open_wanted.connect(self.on_open_wanted)
        page.refresh_clicked.connect(self._bridge.refresh_devices)
        page.show_devices(*self._devices)
        return page

    def _build_models_page(self) -> QWidget:
        from dflash_desktop.ui.hub.page import ModelsPage

        assert self.models_desk is not None
        page = ModelsPage(self._theme, self._icons, self.models_desk, self.pair_state)
        page.load_wanted.connect(self.models_entry.load)
        return page

    # ---- settings

    def _build_settings_page(self) -> QWidget:
        from dflash_desktop.ui.settings.page import SettingsPage

        page = SettingsPage(self._theme, self._icons, self.settings_desk, self._parts.pair_memory, self.models_desk)
        page.restart_wanted.connect(self.restart)
        return page

    def _settings_page(self) -> SettingsPage:
        self.show_page("settings")
        return cast("SettingsPage", self._built["settings"])

    def show_log(self) -> None:
        """The log, over the page where reports are made."""
        if (card := self._settings_page().help_card) is not None:
            card.on_log_clicked()

    def ask_for_report(self) -> None:
        """Where to save a report, and then save it."""
        if (card := self._settings_page().help_card) is not None:
            card.on_report_clicked()

    def current_notice(self) -> Notice:
        """Where a message is seen now."""
        return self.chat_page.notice if self._stack.currentWidget() is self.chat_page else self.notice

    @Slot()
    def _begin(self) -> None:
        """Once, after the first paint."""
        if not self._has_begun:
            self._has_begun = True
            reloads = self._state.reloads_pair
            self._state = replace(self._state, reloads_pair=False)
            self.troubles.begin(reloads=reloads)

    @Slot()
    def restart(self) -> None:
        """Close, and ask whoever shows windows to build this one again, with the pair that is loaded."""
        before = self._state
        self._state = replace(before, reloads_pair=self.pair_state.phase in (Phase.LOADED, Phase.LOADING))
        self.is_restart_wanted = self.close()
        if not self.is_restart_wanted:
            self._state = before

    # ---- serving

    def _make_serve_desk(self) -> ServeDesk | None:
        if self._parts.server is None:
            return None
        settings = restored(ServeSettings(), self._state.server)
        last_pair = partial(self.load_desk.pair_to_serve, self._starter)
        return ServeDesk(self._parts.server, self._bridge, self.pair_state, self._theme, settings, last_pair=last_pair)

    def _build_serve_page(self) -> QWidget:
        from dflash_desktop.ui.server.page import ServePage

        assert self.serve_desk is not None
        page = ServePage(self._theme, self._icons, self.serve_desk, self.pair_state)
        page.state_changed.connect(self.save_state)
        return page

    @Slot()
    def on_serve_hint_due(self) -> None:
        if self.serve_desk is not None and not self.chat_page.notice.text():
            self.serve_desk.take_hint_as_shown()
            self.chat_page.notice.show_info(
                self.tr("Your editor and agents can use this model too."),
                self.tr("Use it in Cline / Claude Code / Codex…"),
                lambda: self.show_page("serve"),
            )

    # ---- commands

    @property
    def theme(self) -> Theme:
        return self._theme

    def page_names(self) -> list[tuple[str, str]]:
        """Key and name of each page."""
        return [(page.key, page.name) for page in self._pages.values()]

    def open_palette(self) -> CommandPalette:
        """Everything that can be done, by name."""
        palette = CommandPalette(self._theme, window_commands(self), self)
        palette.open_over(self)
        return palette

    # ---- pages

    @Slot(object)
    def show_page(self, key: str) -> None:
        if key not in self._pages:
            return
        if key not in self._built:
            self._built[key] = self._pages[key].build()
            self._stack.addWidget(self._built[key])
        self.rail.choose(key)
        self._stack.setCurrentWidget(self._built[key])
        self._offer_start()
        if key == "chat":
            self.chat_page.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def show_load_view(self) -> None:
        """How the loaded pair is loaded, PFlash among it."""
        self.show_page("engine")
        if self._engine_page is not None:
            self._engine_page.show_view("load")

    @Slot()
    def _offer_scorers(self) -> None:
        desk = self.models_desk
        if desk is not None and desk.shelf is not None:
            asked = self.pair_state.asked
            self.load_desk.show_scorers(
                scorer_files(desk.shelf, desk.catalogue, asked.target.name if asked is not None else "")
            )

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

    def open_dialog(self, files: Sequence[Path] = ()) -> OpenPairDialog:
        """The dialog for one's own files."""
        return self.dialogs.open(files)

    @Slot()
    def on_adjust_wanted(self) -> None:
        """The load panel with the files that are loaded, or that were asked for."""
        if self.pair_state.asked is not None:
            self.adjust_load(self.pair_state.asked)

    def adjust_load(self, files: PairFiles) -> None:
        """The load panel with these files."""
        self.dialogs.adjust(files)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_models(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.open_dialog(dropped_models(event))

    @Slot(object)
    def on_draft_mode_chosen(self, mode: str) -> None:
        self.pair_state.set_draft_mode(mode)
        self._settings.change(draft_mode=mode)

    @Slot(object, object)
    def on_devices_listed(self, devices: Sequence[Device], problem: str) -> None:
        self._devices = (devices, problem)
        self.chat_page.start.show_devices(devices, problem)
        if self.models_desk is not None:
            self.models_desk.show_devices(devices, problem)
        if self._engine_page is not None:
            self._engine_page.show_devices(devices, problem)

    # ---- state between starts

    def _recall(self) -> None:
        state = self._state
        self.restoreGeometry(state.geometry_bytes())
        self._theme.set_zoom(min(max(state.zoom_percent, 50), 300))
        self.chat_page.recall(
            composer_text=state.composer_text,
            has_side_panel=state.has_side_panel,
            has_chat_list=state.has_chat_list,
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
            geometry=base64.b64encode(self.saveGeometry().data()).decode("ascii"),
            page=current,
            zoom_percent=self._theme.zoom_percent,
            last_folder=self.dialogs.folder,
            server=self.serve_desk.remembered() if self.serve_desk is not None else self._state.server,
            **self.chat_page.remember(),
        )
        self._state_file.write(self._state)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # After the first paint: listing devices may wake drivers.
        QTimer.singleShot(0, self._bridge.refresh_devices)
        QTimer.singleShot(0, self._begin)
        if self.serve_desk is not None:
            QTimer.singleShot(0, self.serve_desk.start_if_it_ran)
        if self.models_desk is not None:
            QTimer.singleShot(0, self.models_desk.start)

    @Slot()
    def quit(self) -> None:
        """Close, after a question if work is running."""
        if not self.closing.must_wait():
            self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        # The person's own doing, through the window's frame: a signal or the end of the session asks nothing.
        if event.spontaneous() and not self._is_closing and self.closing.must_wait():
            event.ignore()
            return
        if not self._is_closing:
            self._is_closing = True
            self.save_state()
            self.chat_page.close_down()
            if self.pair_state.phase is Phase.LOADING:
                self.pair_state.cancel_load()
            self.settings_desk.close()
            self.load_desk.close()
            if self.models_desk is not None:
                self.models_desk.close()
            if self.serve_desk is not None:
                self.hide()  # closing the port may take a moment; nobody has to watch
                self.serve_desk.close()
        super().closeEvent(event)
