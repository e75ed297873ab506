"""The pages of the window, each built when it is first shown: so the start stays quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from dflash_desktop.ui.window import MainWindow

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Page:
    """A page, its icon and name at the rail. `build` runs when it is first shown."""

    key: str
    icon: str
    name: str
    build: Callable[[], QWidget]
    is_low: bool = False  # at the rail's bottom


def pages_of(window: MainWindow) -> list[Page]:
    """Those that this window has, from the top."""
    desks = window.desks
    pages = [Page("chat", "chat", translate("MainWindow", "Chat"), lambda: window.chat_page)]
    if desks.models is not None:
        pages.append(Page("models", "models", translate("MainWindow", "Models"), lambda: _models_page(window)))
    pages.append(Page("engine", "engine", translate("MainWindow", "Engine"), lambda: _engine_page(window)))
    if desks.serve is not None:
        pages.append(Page("serve", "server", translate("MainWindow", "Serve"), lambda: _serve_page(window)))
    settings = translate("MainWindow", "Settings")
    pages.append(Page("settings", "settings", settings, lambda: _settings_page(window), is_low=True))
    return pages


def _engine_page(window: MainWindow) -> QWidget:
    # pyqtgraph and numpy take a third of a second to import: not before somebody looks.
    from dflash_desktop.ui.engine.page import EnginePage

    desks = window.desks
    tools = desks.parts.engine_tools
    page = EnginePage(
        window.theme,
        window.icons,
        desks.pair_state,
        desks.figures,
        desks.load,
        tools.read_device if tools is not None else None,
    )
    page.open_wanted.connect(window.on_open_wanted)
    page.refresh_clicked.connect(desks.bridge.refresh_devices)
    page.show_devices(*(desks.devices or ((), "")))
    return page


def _models_page(window: MainWindow) -> QWidget:
    from dflash_desktop.ui.hub.page import ModelsPage

    assert window.desks.models is not None
    page = ModelsPage(window.theme, window.icons, window.desks.models, window.desks.pair_state)
    page.load_wanted.connect(window.models_entry.load)
    return page


def _serve_page(window: MainWindow) -> QWidget:
    from dflash_desktop.ui.server.page import ServePage

    assert window.desks.serve is not None
    page = ServePage(window.theme, window.icons, window.desks.serve, window.desks.pair_state)
    page.state_changed.connect(window.save_state)
    return page


def _settings_page(window: MainWindow) -> QWidget:
    from dflash_desktop.ui.settings.page import SettingsPage

    desks = window.desks
    page = SettingsPage(window.theme, window.icons, desks.settings_desk, desks.parts.pair_memory, desks.models)
    page.restart_wanted.connect(window.restart)
    return page
