"""A window with the real server in it, on a scripted engine, with a home of its own for other programs' settings."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.clients.endpoint import Machine
from dflash_desktop.server.server import ApiServer
from dflash_desktop.ui.app import take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.server.bridge import ServerParts
from dflash_desktop.ui.server.page import ServePage
from dflash_desktop.ui.server.serve_desk import ServeDesk
from dflash_desktop.ui.server.serving import ServePhase
from dflash_desktop.ui.window import MainWindow
from support.patience import LONG_MS, LONG_S
from support.ports import free_port
from support.scripted_engine import ScriptedReader
from ui.conftest import STARTER, Desk
from ui.scripted_engine import FAKE_DEVICES, Script, ScriptedEngine


class ServeRoom(Desk):
    """A shown window with a serve page, and a small HTTP client in a thread."""

    def __init__(self, window: MainWindow, engine: ScriptedEngine, bridge: EngineBridge, qtbot: QtBot) -> None:
        super().__init__(window, engine, bridge, qtbot)
        assert window.serve_desk is not None
        self.serve: ServeDesk = window.serve_desk
        self.serving = window.serve_desk.serving
        built = window.page("serve")
        assert isinstance(built, ServePage)
        self.serve_page = built

    def wait_for(self, phase: ServePhase) -> None:
        others = {ServePhase.TEST_FAILED, ServePhase.FAILED, ServePhase.SERVING} - {phase}
        self.qtbot.waitUntil(lambda: self.serving.phase in {phase, *others}, timeout=LONG_MS)
        bad = [line for line in self.serving.checks if not line.passed]
        assert self.serving.phase is phase, (self.serving.phase, self.serving.failure, bad)

    def load_and_wait(self) -> None:
        self.window.load_starter()
        self.qtbot.waitUntil(lambda: self.window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)

    def choose_free_port(self) -> int:
        port = free_port()
        self.serve_page.socket.port.setValue(port)
        return port

    def serve_loaded(self) -> None:
        """On a free port, with a model, tested."""
        self.choose_free_port()
        self.load_and_wait()
        self.serve_page.socket.switch.click()
        self.wait_for(ServePhase.SERVING)

    def ask(self, path: str, body: object = None, headers: dict[str, str] | None = None) -> Asked:
        """Begin a request in a thread, so that the window goes on meanwhile."""
        return Asked(self.qtbot, self.serving.port, path, body, headers or {})

    def ask_chat(self, text: str = "Hi", *, agent: str = "codex_cli_rs/1.0", **more: Any) -> Asked:
        body = {"messages": [{"role": "user", "content": text}], **more}
        return self.ask("/v1/chat/completions", body, {"User-Agent": agent})


class Asked:
    """One HTTP request on its way."""

    def __init__(self, qtbot: QtBot, port: int, path: str, body: object, headers: dict[str, str]) -> None:
        self._qtbot = qtbot
        self.status = 0
        self.text = ""
        self.error = ""
        self._thread = threading.Thread(target=self._run, args=(port, path, body, headers), name="test-client")
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    def wait(self) -> Asked:
        self._qtbot.waitUntil(lambda: self.is_over, timeout=LONG_MS)
        self._thread.join()
        return self

    def _run(self, port: int, path: str, body: object, headers: dict[str, str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_S)
        try:
            if body is None:
                connection.request("GET", path, None, headers)
            else:
                connection.request(
                    "POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
                )
            answer = connection.getresponse()
            self.text = answer.read().decode()
            self.status = answer.status
        except OSError as error:
            self.error = str(error)
        finally:
            connection.close()


class ChatReader(ScriptedReader):
    """The scripted template and tokenizer, with what the chat page asks of a tokenizer too."""

    tokenizer = SimpleNamespace(token_bytes=lambda token: b"word ")


MakeRoom = Callable[..., ServeRoom]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / ".cline" / "data").mkdir(parents=True)
    return folder


@pytest.fixture
def make_room(
    app: QApplication,
    theme: Theme,
    icons: Icons,
    state_file: WindowStateFile,
    home: Path,
    tmp_path: Path,
    qtbot: QtBot,
) -> Iterator[MakeRoom]:
    made: list[ServeRoom] = []

    def make(script: Script | None = None, *, largest_context: int = 100_000) -> ServeRoom:
        script = script or Script()
        script.reader = ChatReader(has_thinking=False)
        engine = ScriptedEngine(script)
        bridge = EngineBridge(engine, lambda: FAKE_DEVICES)
        server = ServerParts(
            make_server=lambda lane, subscriber, submit_load: ApiServer(lane, subscriber, submit_load=submit_load),
            machine=Machine(home, {"PATH": ""}, "linux"),
            backups=tmp_path / "backups",
            key_file=tmp_path / "server-key",
            largest_context=lambda target, draft, options: largest_context,
        )
        window = MainWindow(bridge, theme, icons, STARTER, state_file, parts=Parts(server=server))
        room = ServeRoom(window, engine, bridge, qtbot)
        made.append(room)
        window.show_page("serve")
        with qtbot.waitSignal(bridge.devices_listed):
            window.show()
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow)
        return room

    yield make
    for room in made:
        room.window.close()
        room.bridge.close()
        take_down(app, room.window, room.bridge)
        app.processEvents(QEventLoop.ProcessEventsFlag.AllEvents)
    theme.set_mode("light")


@pytest.fixture
def room(make_room: MakeRoom) -> ServeRoom:
    return make_room()
