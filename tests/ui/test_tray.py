"""The tray icon: what it tells, what its menu does, and when a closed window lives on in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtGui import QCloseEvent, QIcon
from PySide6.QtWidgets import QSystemTrayIcon
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.tray import UPDATE_MS, Tray, TrayState
from ui.conftest import Desk
from ui.scripted_engine import Script

MakeDesk = Callable[..., Desk]


@pytest.fixture
def tray(desk: Desk, theme: Theme, icons: Icons) -> Tray:
    """As on a desktop with a tray; the offscreen one has none."""
    assert desk.window.tray.icon is None
    made = Tray(desk.window, theme, icons, is_available=True)
    desk.window.tray = made
    return made


def test_it_tells_what_is_loaded_and_unloads_it(tray: Tray, desk: Desk, qtbot: QtBot) -> None:
    assert tray.icon is not None
    assert tray.state == TrayState()
    assert tray.words() == ["No model is loaded"]
    assert not tray.unload_action.isEnabled()
    desk.load()
    qtbot.waitUntil(lambda: tray.state.model != "")
    assert tray.icon.toolTip().startswith("DFlash Desktop\nLoaded: SmolLM2")
    tray.unload_action.trigger()
    qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.EMPTY)
    qtbot.waitUntil(lambda: not tray.unload_action.isEnabled())


def test_a_running_reply_shows_and_the_icon_is_drawn_at_most_once_a_second(
    make_desk: MakeDesk, theme: Theme, icons: Icons, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk(Script(text="word " * 4000, step_s=0.05))
    tray = desk.window.tray = Tray(desk.window, theme, icons, is_available=True)
    assert tray._timer.interval() == UPDATE_MS >= 1000
    drawn: list[TrayState] = []
    updates: list[object] = []  # how often a second was over
    tray._timer.timeout.connect(lambda: updates.append(None))
    draw = tray._drawn

    def counted(state: TrayState) -> QIcon:
        drawn.append(state)
        return draw(state)

    monkeypatch.setattr(tray, "_drawn", counted)
    desk.load()
    desk.send("Begin")
    for _ in range(50):
        desk.window.pair_state.changed.emit()
    assert len(drawn) == len(updates)
    qtbot.waitUntil(lambda: tray.state.kind == "answering")
    assert tray.words()[0] == "Answering"
    qtbot.waitUntil(lambda: len(drawn) == len(updates))
    desk.chat.stop()
    qtbot.waitUntil(lambda: tray.state.kind == "idle")


def test_each_state_looks_different(tray: Tray) -> None:
    looks = {
        bytes(tray._drawn(state).pixmap(32, 32).toImage().constBits())
        for state in (
            TrayState(),
            TrayState("serving", port=1234),
            TrayState("answering"),
            TrayState("downloading", percent=10),
            TrayState("downloading", percent=60),
        )
    }
    assert len(looks) == 5


def test_a_download_is_told_with_its_share(tray: Tray) -> None:
    tray.state = TrayState("downloading", percent=42, port=1234, model="M")
    assert tray.words() == ["Downloading: 42 %", "Serving other programs on port 1234", "Loaded: M"]


def test_a_click_brings_the_window_up(tray: Tray, desk: Desk) -> None:
    desk.window.hide()
    tray.on_activated(QSystemTrayIcon.ActivationReason.Context)
    assert not desk.window.isVisible()
    tray.on_activated(QSystemTrayIcon.ActivationReason.Trigger)
    assert desk.window.isVisible()


class Spontaneous(QCloseEvent):
    """As the window's frame sends it."""

    def spontaneous(self) -> bool:
        return True


def test_closing_means_closing_unless_it_is_wanted_and_others_are_served(
    tray: Tray, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not desk.window.desks.settings.values.stays_in_tray
    serving = TrayState("serving", port=1234)
    monkeypatch.setattr(tray, "state_now", lambda: serving)
    assert not tray.can_hold_window()
    desk.window.desks.settings.change(stays_in_tray=True)
    assert tray.can_hold_window()
    event = Spontaneous()
    desk.window.closeEvent(event)
    assert not event.isAccepted()
    assert not desk.window.isVisible()
    assert tray.holds_window()
    tray.open_window()
    assert not tray.holds_window()
    monkeypatch.setattr(tray, "state_now", TrayState)
    assert not tray.can_hold_window()
    event = Spontaneous()
    desk.window.closeEvent(event)
    assert event.isAccepted()


def test_quit_asks_over_the_window_while_work_runs(
    make_desk: MakeDesk, theme: Theme, icons: Icons, qtbot: QtBot
) -> None:
    desk = make_desk(Script(text="word " * 4000, step_s=0.05))
    tray = desk.window.tray = Tray(desk.window, theme, icons, is_available=True)
    desk.load()
    desk.send("Begin")
    desk.window.hide()
    tray.on_quit_triggered()
    assert desk.window.isVisible()
    box = desk.window.closing.box
    assert box is not None
    box.reject()
    desk.chat.stop()
    qtbot.waitUntil(lambda: not desk.chat.is_busy)
    tray.on_quit_triggered()
    assert not desk.window.isVisible()
