"""The window on the real engine and the built-in pair: type, stream, stop, close."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.devices import list_devices
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.ui.app import take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.window import MainWindow
from support.patience import LONG_MS
from ui.conftest import installed_pair


@pytest.fixture
def window(app: QApplication, theme: Theme, icons: Icons, tmp_path: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    starter = installed_pair()
    engine = Engine(PairLoader())
    engine.start()
    bridge = EngineBridge(engine, list_devices)
    made = MainWindow(bridge, theme, icons, starter, WindowStateFile(tmp_path / "window.json"))
    with qtbot.waitSignal(bridge.devices_listed, timeout=LONG_MS):
        made.show()
    made.activateWindow()  # shortcuts are the active window's, and no window manager may be there to choose it
    qtbot.waitUntil(made.isActiveWindow)
    yield made
    made.close()  # how soon it ends: test_app.py
    bridge.close()
    take_down(app, made, bridge)


def test_type_stream_stop_and_close(window: MainWindow, qtbot: QtBot) -> None:
    page, items = window.chat_page, window.chat.items
    QTest.mouseClick(page.start.start_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    assert window.model_bar.names().startswith("SmolLM2")
    QTest.mouseClick(window.model_bar.draft_switch.buttons()[1], Qt.MouseButton.LeftButton)
    page.panel.temperature.set_value(0.0)
    page.panel.max_tokens.setValue(24)
    QTest.keyClicks(page.composer.edit, "Write a JavaScript function that checks whether a number is prime.")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=LONG_MS)
    reply = items.message(1)
    assert reply.state is ReplyState.DONE
    assert reply.text
    assert reply.facts is not None
    assert reply.facts.n_tokens == 24
    assert reply.facts.is_drafted
    assert reply.facts.acceptance_length is not None
    assert reply.facts.acceptance_length > 1.0
    engine_page = window.page("engine")
    assert isinstance(engine_page, EnginePage)
    window.show_page("engine")
    engine_page.show_view("live")
    card = engine_page.live.step_card
    qtbot.waitUntil(card.isVisible)
    for _ in window.figures.records:  # the last step had no room for a tree: walk back to one that had
        if card.tree_view._tree is None:
            card.on_back_clicked()
    assert card.tree_view._tree is not None
    trees = [record.tree for record in window.figures.records if record.tree is not None]
    assert any(window.pair_state.token_text(token).strip() for token in trees[-1].tokens)
    window.show_page("chat")

    page.panel.max_tokens.setValue(0)
    QTest.keyClicks(page.composer.edit, "Tell me a long story.")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(items.message(3).text), timeout=LONG_MS)
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    assert items.message(3).state is ReplyState.STOPPED
    qtbot.waitUntil(lambda: items.message(3).facts is not None, timeout=LONG_MS)

    QTest.keyClicks(page.composer.edit, "And another one.")
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(items.message(5).text), timeout=LONG_MS)
    # The fixture closes the window in the middle of this reply.


def test_a_file_that_is_no_model_is_refused_with_the_engines_reason(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    broken = tmp_path / "模型 & 'q' #1.gguf"
    broken.write_bytes(b"GGUF\x03\x00\x00\x00")
    window.pair_state.load(PairFiles(broken, None))
    qtbot.waitUntil(lambda: bool(window.chat_page.notice.text()), timeout=LONG_MS)
    assert broken.name in window.chat_page.notice.text()
    assert window.pair_state.phase is Phase.EMPTY
