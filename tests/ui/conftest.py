"""A window on a scripted engine, taken down like the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import SignalBlocker

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.devices import list_devices
from dflash_desktop.startup import starter_pair
from dflash_desktop.ui.app import make_application, take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pair_state import Phase, StarterPair
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.window import MainWindow
from support.patience import LONG_MS
from ui.scripted_engine import FAKE_DEVICES, Script, ScriptedEngine

RESOURCES = Path(__file__).parents[2] / "resources"
STARTER = StarterPair(
    "SmolLM2 135M Instruct", Path("/models/t.gguf"), Path("/models/d.gguf"), 113_196_896, "Apache-2.0"
)


def installed_pair() -> StarterPair:
    """The built-in pair, for the real engine; skips the test where either is missing."""
    try:
        list_devices()
        starter = starter_pair()
    except AppError as error:
        pytest.skip(f"the engine is not installed: {error}")
    if starter is None:
        pytest.skip("this build has no built-in pair")
    return starter


class PatientBot(QtBot):
    """Waits longer than five seconds unless told not to: on a busy machine those are soon over."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = LONG_MS) -> None:  # pytest-qt's names
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal: Any, *, timeout: int = LONG_MS, **more: Any) -> SignalBlocker:
        return super().waitSignal(signal, timeout=timeout, **more)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    """In place of pytest-qt's own."""
    return PatientBot(request)


class Desk:
    """A shown window and what is behind it."""

    def __init__(self, window: MainWindow, engine: ScriptedEngine, bridge: EngineBridge, qtbot: QtBot) -> None:
        self.window, self.engine, self.bridge, self.qtbot = window, engine, bridge, qtbot
        self.page = window.chat_page
        self.chat = window.chat
        self.items = window.chat.items
        self.composer = window.chat_page.composer

    def load(self) -> None:
        self.window.load_starter()
        self.qtbot.waitUntil(lambda: self.window.pair_state.phase is Phase.LOADED)

    def send(self, text: str) -> None:
        self.composer.set_text(text)
        self.page.on_send_clicked()

    def wait_for_reply(self) -> None:
        self.qtbot.waitUntil(lambda: not self.chat.is_busy)


@pytest.fixture(scope="session")
def app(qapp: QApplication) -> QApplication:
    assert make_application(RESOURCES) is qapp
    return qapp


@pytest.fixture(scope="session")
def theme(app: QApplication) -> Theme:
    return Theme(app, "light")


@pytest.fixture(scope="session")
def icons(theme: Theme) -> Icons:
    return Icons(RESOURCES / "icons", theme)


@pytest.fixture
def state_file(tmp_path: Path) -> WindowStateFile:
    return WindowStateFile(tmp_path / "window.json")


@pytest.fixture
def make_desk(
    app: QApplication, theme: Theme, icons: Icons, state_file: WindowStateFile, qtbot: QtBot
) -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(
        script: Script | None = None, *, starter: StarterPair | None = STARTER, parts: Parts | None = None
    ) -> Desk:
        engine = ScriptedEngine(script)
        bridge = EngineBridge(engine, lambda: FAKE_DEVICES)
        window = MainWindow(bridge, theme, icons, starter, state_file, parts=parts)
        desk = Desk(window, engine, bridge, qtbot)
        made.append(desk)
        with qtbot.waitSignal(bridge.devices_listed):
            window.show()
        # A bare X server has no window manager that would make it active, and shortcuts need that.
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        return desk

    yield make
    for desk in made:
        desk.window.close()
        desk.bridge.close()
        take_down(app, desk.window, desk.bridge)
    theme.set_mode("light")


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()
