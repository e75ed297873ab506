"""The serve page on the real engine and the built-in pair: one click, a real HTTP request, a clean end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.clients.endpoint import Machine
from dflash_desktop.engine.devices import list_devices
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.server.server import ApiServer
from dflash_desktop.ui.app import take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.server.bridge import ServerParts
from dflash_desktop.ui.server.page import ServePage
from dflash_desktop.ui.server.serving import ServePhase
from dflash_desktop.ui.window import MainWindow
from support.patience import LONG_MS
from support.ports import free_port
from ui.conftest import installed_pair
from ui.server.conftest import Asked


@pytest.fixture
def window(
    app: QApplication, theme: Theme, icons: Icons, tmp_path: Path, qtbot: QtBot
) -> Iterator[tuple[MainWindow, Path, Path | None]]:
    starter = installed_pair()
    engine = Engine(PairLoader())
    engine.start()
    bridge = EngineBridge(engine, list_devices)
    server = ServerParts(
        make_server=lambda lane, subscriber, submit_load: ApiServer(lane, subscriber, submit_load=submit_load),
        machine=Machine(tmp_path, {"PATH": ""}, "linux"),
        backups=tmp_path / "backups",
        key_file=tmp_path / "server-key",
        largest_context=lambda target, draft, options: 8192,
    )
    made = MainWindow(
        bridge, theme, icons, starter, WindowStateFile(tmp_path / "window.json"), parts=Parts(server=server)
    )
    with qtbot.waitSignal(bridge.devices_listed, timeout=LONG_MS):
        made.show()
    yield made, starter.target, starter.draft
    made.close()
    bridge.close()
    take_down(app, made, bridge)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith(("dflash-", "server-"))]


def test_a_program_is_answered_by_the_model_in_the_window(
    window: tuple[MainWindow, Path, Path | None], qtbot: QtBot
) -> None:
    made, target, draft = window
    desk = made.serve_desk
    assert desk is not None
    page = made.page("serve")
    assert isinstance(page, ServePage)
    made.show_page("serve")
    page.socket.port.setValue(free_port())
    # One thread: the machine that runs the tests has other work too.
    made.pair_state.load(PairFiles(target, draft, LoadOptions(context_tokens=2048, n_threads=1)))
    qtbot.waitUntil(lambda: made.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    QTest.mouseClick(page.socket.switch, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: desk.serving.phase in (ServePhase.SERVING, ServePhase.TEST_FAILED), timeout=LONG_MS)
    assert desk.serving.phase is ServePhase.SERVING, [line for line in desk.serving.checks if not line.passed]
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}
    asked = Asked(qtbot, desk.serving.port, "/v1/chat/completions", body, {"User-Agent": "Zed/1.0"}).wait()
    assert asked.status == 200, asked.text
    assert asked.json["choices"][0]["message"]["content"].strip()
    qtbot.waitUntil(lambda: desk.requests.rowCount() == 1 and not desk.requests.record(0).is_running, timeout=LONG_MS)
    record = desk.requests.record(0)
    assert record.client_words() == "Zed"
    assert record.n_reply_tokens == asked.json["usage"]["completion_tokens"]
    assert "Say hello." in record.prompt_text()
    assert record.reply_text() == asked.json["choices"][0]["message"]["content"]
    assert desk.ticks.tick("zed").n_answered == 1
    again = Asked(qtbot, desk.serving.port, "/v1/chat/completions", {**body, "max_tokens": 0}, {})
    qtbot.waitUntil(lambda: desk.serving.n_running == 1, timeout=LONG_MS)
    made.close()  # in the middle of a reply
    again.wait()
