"""A person who clicks everywhere at once: whatever was done, the window still answers (B127, B133, B134)."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QFileDialog,
    QMenu,
    QToolButton,
    QWidget,
)

from dflash_desktop.base.paths import app_paths
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.startup import serving_parts
from dflash_desktop.ui.chats.message_menu import message_menu
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.hub.desk import HubParts
from dflash_desktop.ui.parts import Home, Parts
from ui.conftest import Desk
from ui.scripted_engine import Script

CODE = "```python\nfor n in range(9):\n    print(n)\n```\n\n"
TEXT = "## Sky\n\nIt is **blue**: $x^2$\n\n" + CODE + "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
SIZES = [(1024, 640), (1280, 800), (1900, 1000), (1024, 1300)]
N_ACTS = int(os.environ.get("DFLASH_TEST_ACTS", "120"))
"""More of them, and other seeds, for an hour with nothing better to do: DFLASH_TEST_ACTS=3000 pytest ..."""


class Monkey:
    """Acts at random, and only as a person could."""

    def __init__(self, desk: Desk, seed: int) -> None:
        self._desk, self._window, self._random = desk, desk.window, random.Random(seed)
        self.acts: list[str] = []
        self._can = (
            self.click, self.click, self.click, self.key, self.send, self.resize, self.menu, self.slide, self.choose,
            self.page, self.talk, self.load, self.open_dialog, self.close_dialogs, self.look,
        )  # fmt: skip

    def act(self) -> None:
        act = self._random.choice(self._can)
        self.acts.append(act.__name__)
        act()
        for _ in range(self._random.randint(0, 3)):
            QApplication.processEvents()

    def _shown(self, kind: type[QWidget]) -> list[QWidget]:
        tops = [top for top in QApplication.topLevelWidgets() if top.isVisible() and not isinstance(top, QMenu)]
        modal = QApplication.activeModalWidget()
        tops = [modal] if modal is not None else tops
        found = [child for top in tops for child in top.findChildren(kind)]
        return [one for one in found if one.isVisible() and one.isEnabled()]

    def click(self) -> None:
        if buttons := self._shown(QAbstractButton):
            button = self._random.choice(buttons)
            assert isinstance(button, QAbstractButton)
            self.acts[-1] += f" {button.accessibleName() or button.text()}"
            if isinstance(button, QToolButton) and button.menu() is not None:
                self._trigger(button.menu())  # the menu itself would wait for a person
            else:
                button.click()

    def key(self) -> None:
        keys = (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Tab, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Delete)
        letters = (Qt.Key.Key_N, Qt.Key.Key_K, Qt.Key.Key_F, Qt.Key.Key_B, Qt.Key.Key_R, Qt.Key.Key_Plus, Qt.Key.Key_0)
        focus = QApplication.focusWidget() or self._window
        if self._random.random() < 0.5:
            QTest.keyClick(focus, self._random.choice(keys))
        else:
            QTest.keyClick(focus, self._random.choice(letters), Qt.KeyboardModifier.ControlModifier)

    def send(self) -> None:
        self._desk.send(self._random.choice(["go", "x" * 5000, "家庭 😀\n\n$$\\frac{1}{2}$$", "   "]))

    def resize(self) -> None:
        for _ in range(self._random.randint(1, 6)):
            self._window.resize(QSize(*self._random.choice(SIZES)))
            QApplication.processEvents()

    def menu(self) -> None:
        items = self._desk.items
        if items.rowCount():
            row = self._random.randrange(items.rowCount())
            view = self._desk.page.view
            self._trigger(message_menu(view, view._stack.boxes[row], row))
        if chats := self._desk.page.keeper.chats():
            self._trigger(self._desk.page.chats.menu_for(self._random.randrange(len(chats))))

    def _trigger(self, menu: QMenu | None) -> None:
        actions = [action for action in menu.actions() if action.isEnabled()] if menu is not None else []
        if actions and self._random.random() < 0.6:
            action = self._random.choice(actions)
            self.acts[-1] += f" {action.text()}"
            action.trigger()

    def slide(self) -> None:
        if sliders := self._shown(QAbstractSlider):
            slider = self._random.choice(sliders)
            assert isinstance(slider, QAbstractSlider)
            slider.setValue(self._random.randint(slider.minimum(), slider.maximum()))

    def choose(self) -> None:
        if boxes := self._shown(QComboBox):
            box = self._random.choice(boxes)
            assert isinstance(box, QComboBox)
            if box.count():
                box.setCurrentIndex(self._random.randrange(box.count()))
                box.activated.emit(box.currentIndex())

    def page(self) -> None:
        self._window.show_page(self._random.choice(["chat", "chat", "models", "engine", "serve", "settings"]))

    def talk(self) -> None:
        chats = self._desk.page.keeper.chats()
        if chats:
            self._desk.page.desk.on_chat_chosen(self._random.choice(chats).chat_id)
        if chats and self._random.random() < 0.3:
            self._desk.page.chats.delete(self._random.choice(chats))

    def load(self) -> None:
        state = self._window.pair_state
        self._random.choice([self._window.load_starter, state.unload, state.cancel_load, self._window.load_starter])()

    def open_dialog(self) -> None:
        window, exporting = self._window, self._desk.page.exporting
        ways: list[Callable[[], object]] = [
            window.open_dialog,
            window.open_palette,
            window.on_adjust_wanted,
            lambda: exporting.ask(None),
        ]
        self._random.choice(ways)()

    def close_dialogs(self) -> None:
        for top in QApplication.topLevelWidgets():
            if top.isVisible() and top is not self._window:
                top.close()

    def look(self) -> None:
        view = self._desk.page.view.viewport()
        point = QPoint(self._random.randrange(max(1, view.width())), self._random.randrange(max(1, view.height())))
        QTest.mouseMove(view, point)
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, point)


@pytest.fixture
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the system's own opens: its dialogs would wait for a person."""
    nothing: Callable[..., tuple[str | Sequence[str], str]] = lambda *_args, **_more: ("", "")  # noqa: E731
    for name in ("getOpenFileName", "getSaveFileName"):
        monkeypatch.setattr(QFileDialog, name, nothing)
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_args, **_more: ([], ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args, **_more: "")
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _url: True)
    monkeypatch.setattr(QMenu, "popup", lambda *_args: None)


@pytest.mark.parametrize("seed", [int(os.environ.get("DFLASH_TEST_SEED", "1"))])
def test_a_window_that_was_clicked_at_random_still_answers(
    make_desk: Callable[..., Desk], hub_parts: HubParts, tmp_path: Path, no_way_out: None, seed: int
) -> None:
    paths = app_paths()
    parts = Parts(
        chats=ChatStore(tmp_path / "chats"),
        hub=hub_parts,
        settings=SettingsStore(tmp_path / "settings.json"),
        pair_memory=PairMemory(tmp_path / "pairs.json"),
        home=Home(paths),
        server=serving_parts(paths),
    )
    desk = make_desk(Script(text=TEXT * 6, step_s=0.001, load_s=0.002), parts=parts)
    window, qtbot = desk.window, desk.qtbot
    window.restart = lambda: None  # type: ignore[method-assign]
    window.closeEvent, close = lambda event: event.ignore(), window.closeEvent  # type: ignore[method-assign]
    monkey = Monkey(desk, seed)
    try:
        for _ in range(N_ACTS):
            monkey.act()
    finally:
        window.closeEvent = close  # type: ignore[method-assign]
    monkey.close_dialogs()
    desk.chat.replies.stop_all()
    qtbot.waitUntil(lambda: window.pair_state.phase in (Phase.EMPTY, Phase.LOADED))
    window.show_page("chat")
    desk.page.desk.on_new_wanted()
    desk.load()
    qtbot.waitUntil(lambda: not desk.chat.is_busy)
    desk.engine.script = Script(text="All is well.")
    desk.send("Are you well?")
    desk.wait_for_reply()
    assert desk.items.message(desk.items.rowCount() - 1).text == "All is well.", monkey.acts[-20:]
