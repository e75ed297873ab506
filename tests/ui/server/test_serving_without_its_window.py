"""Other programs are served while the window is built again, and while it is away in the tray."""

from __future__ import annotations

import pytest
import shiboken6
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.desks import Desks
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.language import apply_language
from dflash_desktop.ui.kit.rail import RailButton
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.rebuilding import ShownWindow
from dflash_desktop.ui.server.serving import ServePhase
from dflash_desktop.ui.tray import Tray
from dflash_desktop.ui.window import MainWindow
from support.patience import LONG_MS
from ui.conftest import RESOURCES, STARTER
from ui.scripted_engine import Script
from ui.server.conftest import MakeRoom, ServeRoom


def test_another_language_leaves_the_port_open_and_answers_what_was_asked(
    app: QApplication, make_room: MakeRoom, theme: Theme, icons: Icons, state_file: WindowStateFile, qtbot: QtBot
) -> None:
    room: ServeRoom = make_room(Script(text="word " * 100, step_s=0.02))
    room.serve_loaded()
    port = room.serving.port

    def make_window(desks: Desks | None) -> MainWindow:
        if desks is None:
            return room.window
        return MainWindow(room.bridge, theme, icons, STARTER, state_file, desks=desks)

    shown = ShownWindow(make_window, lambda: apply_language(app, RESOURCES, "zh_CN"))
    asked = room.ask_chat(agent="Cline/3")
    qtbot.waitUntil(lambda: room.serving.n_running == 1, timeout=LONG_MS)
    with qtbot.waitSignal(shown.changed, timeout=LONG_MS):
        room.window.rebuild_wanted.emit()
    room.window = shown.window
    try:
        assert asked.wait().status == 200
        assert asked.json["choices"][0]["message"]["content"].strip() == ("word " * 100).strip()
        assert (room.serving.phase, room.serving.port) == (ServePhase.SERVING, port)
        shown.window.show_page("serve")
        assert room.serve.requests.rowCount() == 1
        tips = [button.toolTip() for button in shown.window.rail.findChildren(RailButton)]
        assert any(tips)  # the dot on the page's icon is there again
    finally:
        shiboken6.delete(shown)
        apply_language(app, RESOURCES, "system")


def test_the_tray_tells_of_the_server_and_switches_it(
    room: ServeRoom, theme: Theme, icons: Icons, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    tray = room.window.tray = Tray(room.window, theme, icons, is_available=True)
    assert tray.serve_action.text() == "Start the server"
    room.serve_loaded()
    qtbot.waitUntil(lambda: tray.state.kind == "serving", timeout=LONG_MS)
    assert f"Serving other programs on port {room.serving.port}" in tray.words()
    assert tray.serve_action.text() == "Stop the server"
    assert not tray.can_hold_window()
    room.window.desks.settings.change(stays_in_tray=True)
    assert tray.can_hold_window()
    tray.take_window()
    assert tray.holds_window()
    assert room.ask_chat().wait().status == 200
    tray.open_window()
    tray.serve_action.trigger()
    qtbot.waitUntil(lambda: room.serving.phase is ServePhase.OFF, timeout=LONG_MS)
    qtbot.waitUntil(lambda: tray.serve_action.text() == "Start the server", timeout=LONG_MS)
    assert not tray.can_hold_window()
