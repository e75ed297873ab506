"""The main window: navigation rail, model bar, pages, shortcuts, and the way out."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QCoreApplication, QSize, Qt, QTimer, Signal, Slot
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
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.carried import CarriedChat, give_to, take_from
from dflash_desktop.ui.chats.page import ChatPage
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.closing import ClosingQuestion
from dflash_desktop.ui.commands import shortcuts, window_commands
from dflash_desktop.ui.desks import Desks
from dflash_desktop.ui.engine.load_dialogs import LoadDialogs
from dflash_desktop.ui.engine.model_bar import ModelBar
from dflash_desktop.ui.engine.open_pair_dialog import OpenPairDialog, dropped_models
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase, StarterPair
from dflash_desktop.ui.hub.entry import ModelsEntry
from dflash_desktop.ui.kit.command_palette import CommandPalette
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.rail import NavigationRail
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import rule
from dflash_desktop.ui.kit.window_state import WindowStateFile, restored
from dflash_desktop.ui.pages import pages_of
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.settings.theme_menu import ThemeMenu
from dflash_desktop.ui.tray import Tray
from dflash_desktop.ui.troubles import Troubles

if TYPE_CHECKING:
    from dflash_desktop.ui.engine.page import EnginePage
    from dflash_desktop.ui.settings.page import SettingsPage

SMALLEST = QSize(1024, 640)
FIRST_SIZE = QSize(1280, 800)


class MainWindow(QWidget):
    """Shows its desks; close it and everything they asked for is cancelled. `leave` makes room for another one around
    the same desks."""

    rebuild_wanted = Signal()  # its words or its letters are not those of the settings any more

    def __init__(
        self,
        bridge: EngineBridge,
        theme: Theme,
        icons: Icons,
        starter: StarterPair | None,
        state_file: WindowStateFile,
        *,
        parts: Parts | None = None,
        desks: Desks | None = None,
    ) -> None:
        """`desks`: those of the window that this one takes the place of; else they are built from `parts`."""
        super().__init__()
        self.desks = desks or Desks(bridge, theme, starter, state_file, parts)
        self._parts = self.desks.parts
        self._settings = self.desks.settings
        self.is_restart_wanted = False
        self._bridge = bridge
        self._theme = theme
        self._icons = icons
        self._starter = starter
        self._state_file = state_file
        self._is_closing = False
        self.closing = ClosingQuestion(self)
        self._is_recalled = False
        self._is_second = desks is not None  # the desks know more by now than what was stored
        self.pair_state = self.desks.pair_state
        self.load_desk = self.desks.load
        self.settings_desk = self.desks.settings_desk
        self.figures = self.desks.figures
        self.chat = self.desks.chat
        self.serve_desk = self.desks.serve
        self.models_desk = self.desks.models
        folder = self.desks.state.last_folder
        self.dialogs = LoadDialogs(theme, icons, self, self.pair_state, self.load_desk, folder)
        self.setWindowTitle("DFlash Desktop")
        self.setWindowIcon(icons.app_icon())
        self.setMinimumSize(SMALLEST)
        self.resize(FIRST_SIZE)
        self.setAcceptDrops(True)
        self.model_bar = ModelBar(theme, icons, self.pair_state, starter)
        self.chat_page = ChatPage(theme, icons, self.chat, self.pair_state, self.figures, starter)
        self._pages = {page.key: page for page in pages_of(self)}
        self._built: dict[str, QWidget] = {}
        self.rail = NavigationRail(theme, icons)
        self.notice = Notice(theme, icons)
        self._stack = QStackedWidget()
        self._build()
        self._connect()
        self.troubles = Troubles(self, self.pair_state, self.load_desk, self.settings_desk)
        for helper in (self.dialogs, self.troubles):  # they go with the window, and hear of nothing afterwards
            helper.setParent(self)
        self.tray = Tray(self, theme, icons)
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
        self.settings_desk.rebuild_wanted.connect(self.rebuild_wanted)
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
            self.serve_desk.badge_changed.connect(self.on_serve_badge_changed)
            self.serve_desk.on_serving_changed()
            self.serve_desk.hint_due.connect(self.on_serve_hint_due)
        if self.models_desk is not None:
            self.models_entry = ModelsEntry(self, self.models_desk, self.chat_page.start, self.pair_state)
            self.models_entry.setParent(self)
        for keys, slot in shortcuts(self).items():
            QShortcut(QKeySequence(keys), self, slot)

    # ---- settings

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
        if not self.desks.has_begun:
            reloads = self.desks.state.reloads_pair
            self.desks.state = replace(self.desks.state, reloads_pair=False)
            self.troubles.begin(reloads=reloads)
            self.desks.start_work()

    @Slot()
    def restart(self) -> None:
        """Close, and ask whoever shows windows to start again with everything below, with the pair that is loaded."""
        before = self.desks.state
        self.desks.state = replace(before, reloads_pair=self.pair_state.phase in (Phase.LOADED, Phase.LOADING))
        self.is_restart_wanted = self.close()
        if not self.is_restart_wanted:
            self.desks.state = before

    # ---- serving

    @Slot(object, object)
    def on_serve_badge_changed(self, color: str, words: str) -> None:
        self.rail.set_badge("serve", color, words)

    @Slot()
    def on_serve_hint_due(self) -> None:
        if self.serve_desk is not None and not self.chat_page.notice.text():
            self.serve_desk.take_hint_as_shown()
            self.chat_page.notice.show_info(
                self.tr("Your editor and agents (Cline, Codex, Claude Code…) can use this model too."),
                self.tr("Set up other programs…"),
                lambda: self.show_page("serve"),
            )

    # ---- commands

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def icons(self) -> Icons:
        return self._icons

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
        cast("EnginePage", self._built["engine"]).show_view("load")

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
        self.desks.take_devices(devices, problem)
        self.chat_page.start.show_devices(devices, problem)
        if (page := self._built.get("engine")) is not None:
            cast("EnginePage", page).show_devices(devices, problem)

    # ---- state between starts

    def _recall(self) -> None:
        state = self.desks.state
        self.restoreGeometry(state.geometry_bytes())
        self._theme.set_zoom(min(max(state.zoom_percent, 50), 300))
        self.chat_page.recall(
            composer_text=state.composer_text,
            has_side_panel=state.has_side_panel,
            has_chat_list=state.has_chat_list,
            settings=self.chat.settings if self._is_second else restored(ReplySettings(), state.reply_settings),
        )
        if self.desks.devices is not None:
            self.on_devices_listed(*self.desks.devices)
        self.show_page(state.page if state.page in self._pages else "chat")
        self._is_recalled = True

    @Slot()
    def save_state(self) -> None:
        """Write down what the next start needs. Cheap when nothing changed."""
        if not self._is_recalled:
            return
        current = next((key for key, page in self._built.items() if page is self._stack.currentWidget()), "chat")
        self.desks.state = replace(
            self.desks.state,
            geometry=base64.b64encode(self.saveGeometry().data()).decode("ascii"),
            page=current,
            zoom_percent=self._theme.zoom_percent,
            last_folder=self.dialogs.folder,
            server=self.serve_desk.remembered() if self.serve_desk is not None else self.desks.state.server,
            **self.chat_page.remember(),
        )
        self._state_file.write(self.desks.state)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # After the first paint: listing devices may wake drivers.
        QTimer.singleShot(0, self._bridge.refresh_devices)
        QTimer.singleShot(0, self._begin)

    # ---- making room for another window around the same desks

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or has made room for another one."""
        return self._is_closing

    def leave(self) -> CarriedChat:
        """Its desks stay, with all that runs in them; what only this window knows is handed to the next one."""
        self._is_closing = True
        self.tray.hide()
        self.save_state()
        carried = take_from(self.chat_page)
        self.chat_page.close_down()
        self.load_desk.drop_panels()
        return carried

    def go_on(self, carried: CarriedChat) -> None:
        """Show what the window before has handed over. Shown by now."""
        give_to(self.chat_page, carried)

    @Slot()
    def quit(self) -> None:
        """Close, after a question if work is running."""
        if not self.closing.must_wait():
            self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        # The person's own doing, through the window's frame: a signal or the end of the session asks nothing.
        if event.spontaneous() and not self._is_closing and self.tray.can_hold_window():
            event.ignore()
            self.save_state()
            self.tray.take_window()
            return
        if event.spontaneous() and not self._is_closing and self.closing.must_wait():
            event.ignore()
            return
        if not self._is_closing:
            self._is_closing = True
            if self.tray.holds_window():  # Qt has no window to see closed
                QTimer.singleShot(0, QCoreApplication.quit)
            self.tray.hide()
            self.save_state()
            self.chat_page.close_down()
            if self.serve_desk is not None:
                self.hide()  # closing the port may take a moment; nobody has to watch
            self.desks.close()
        super().closeEvent(event)
