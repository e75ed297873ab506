"""Cards of other programs in the window: shown, copied, written after consent, taken back, ticked when they connect."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from dflash_desktop.server.events import ClientSeen, RequestArrived, RequestEnded
from dflash_desktop.ui.clients.card_view import HIDDEN_KEY
from dflash_desktop.ui.clients.client_ticks import ClientTicks
from dflash_desktop.ui.clients.code_well import CodeWell
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.server.request_item_model import CLIENT
from dflash_desktop.ui.server.serving import ServePhase
from support.patience import LONG_MS
from support.sdk_socket import SdkSocket, prediction
from ui.server.conftest import MakeRoom, ServeRoom

OLD_STATE = '{"actModeApiProvider": "anthropic", "mine": [1, 2]}'


def texts_of(room: ServeRoom) -> list[str]:
    wells = room.serve_page.clients.card._body.findChildren(CodeWell)
    return [well.view.toPlainText() for well in wells if not well.isHidden()]


def choose(room: ServeRoom, client_id: str) -> None:
    view = room.serve_page.clients
    room.qtbot.waitUntil(lambda: view.items.row_of(client_id) >= 0, timeout=LONG_MS)
    view.choose(client_id)
    assert view.chosen == client_id


def test_programs_that_are_here_come_first_and_every_one_has_a_status(room: ServeRoom, qtmodeltester: Any) -> None:
    items = room.serve_page.clients.items
    room.qtbot.waitUntil(lambda: items.rowCount() > 10, timeout=LONG_MS)
    names = [items.index(row).data() for row in range(items.rowCount())]
    assert names[0] == "Cline"
    wanted = {"Roo Code", "Continue", "Codex CLI", "Claude Code", "OpenCode", "Qwen Code", "Open WebUI", "Zed"}
    assert wanted <= set(names)
    assert items.index(0).data(Qt.ItemDataRole.AccessibleTextRole) == "Cline: found on this computer"
    assert items.index(items.row_of("zed")).data(Qt.ItemDataRole.AccessibleTextRole) == "Zed: not found here"
    qtmodeltester.check(items)


def test_before_a_model_is_loaded_a_card_says_what_is_missing(room: ServeRoom) -> None:
    choose(room, "cline")
    card = room.serve_page.clients.card
    assert "Load a model first" in card._why_not.text()
    assert not card.write_button.isVisible()
    room.load_and_wait()
    room.qtbot.waitUntil(lambda: card.write_button.isVisible(), timeout=LONG_MS)
    assert not card.write_button.isEnabled()
    assert "Turn the server on" in card._why_not.text()
    assert texts_of(room)


def test_cards_carry_the_open_port_the_loaded_model_and_the_key(room: ServeRoom) -> None:
    room.serve_loaded()
    choose(room, "claude_code")
    room.qtbot.waitUntil(lambda: any(f":{room.serving.port}" in text for text in texts_of(room)), timeout=LONG_MS)
    assert any("smollm2-135m-instruct" in text for text in texts_of(room))
    room.serve_page.access.asks_key.click()
    key = room.serving.key()
    room.qtbot.waitUntil(lambda: any(HIDDEN_KEY in text for text in texts_of(room)), timeout=LONG_MS)
    assert not any(key in text for text in texts_of(room))  # on the screen nobody reads it
    well = next(each for each in room.serve_page.clients.card._body.findChildren(CodeWell) if each.isVisible())
    well.copy.click()
    assert QGuiApplication.clipboard().text() == well.view.toPlainText().replace(HIDDEN_KEY, key)
    assert key in QGuiApplication.clipboard().text()


def test_writing_shows_the_change_first_and_undo_leaves_nothing(room: ServeRoom, home: Path) -> None:
    state_path = home / ".cline" / "data" / "globalState.json"
    state_path.write_text(OLD_STATE)
    room.serve_loaded()
    choose(room, "cline")
    card = room.serve_page.clients.card
    room.qtbot.waitUntil(card.write_button.isEnabled, timeout=LONG_MS)
    QTest.mouseClick(card.write_button, Qt.MouseButton.LeftButton)
    room.qtbot.waitUntil(card._preview.isVisible, timeout=LONG_MS)
    shown = "\n".join(well.view.toPlainText() for well in card._preview.findChildren(CodeWell))
    assert '+  "lastUsedProvider": "lmstudio"' in shown
    assert '"anthropic"' in shown
    assert state_path.read_text() == OLD_STATE  # seen is not written
    QTest.mouseClick(card.cancel_button, Qt.MouseButton.LeftButton)
    assert not card._preview.isVisible()
    QTest.mouseClick(card.write_button, Qt.MouseButton.LeftButton)
    room.qtbot.waitUntil(card._preview.isVisible, timeout=LONG_MS)
    QTest.keyClick(card.confirm_button, Qt.Key.Key_Space)
    room.qtbot.waitUntil(lambda: card.note.text().startswith("Written. Next:"), timeout=LONG_MS)
    written = json.loads(state_path.read_text())
    assert written["actModeApiProvider"] == "lmstudio"
    assert written["lmStudioBaseUrl"] == f"http://127.0.0.1:{room.serving.port}"
    assert written["mine"] == [1, 2]
    assert "Reload Window" in card.note.text()
    room.qtbot.waitUntil(card.undo_button.isVisible, timeout=LONG_MS)
    items = room.serve_page.clients.items
    status = items.index(items.row_of("cline")).data(Qt.ItemDataRole.ToolTipRole)
    assert status == "settings written, not connected yet"
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    room.qtbot.waitUntil(lambda: card.note.text() == "Taken back.", timeout=LONG_MS)
    assert state_path.read_text() == OLD_STATE
    assert not (home / ".cline" / "data" / "settings" / "providers.json").exists()
    room.qtbot.waitUntil(lambda: not card.undo_button.isVisible(), timeout=LONG_MS)


def test_what_is_written_is_what_was_shown_even_if_the_server_moved_meanwhile(room: ServeRoom, home: Path) -> None:
    room.serve_loaded()
    choose(room, "cline")
    card = room.serve_page.clients.card
    room.qtbot.waitUntil(card.write_button.isEnabled, timeout=LONG_MS)
    card.write_button.click()
    room.qtbot.waitUntil(card._preview.isVisible, timeout=LONG_MS)
    before = room.serving.port
    room.choose_free_port()
    room.qtbot.waitUntil(lambda: room.serving.port not in (0, before), timeout=LONG_MS)
    room.wait_for(ServePhase.SERVING)
    card.on_confirmed()
    room.qtbot.waitUntil(lambda: card.note.text().startswith("Written"), timeout=LONG_MS)
    written = json.loads((home / ".cline" / "data" / "globalState.json").read_text())
    assert written["lmStudioBaseUrl"] == f"http://127.0.0.1:{before}"


def test_a_file_that_is_broken_is_left_alone_and_named(room: ServeRoom, home: Path) -> None:
    broken = home / ".cline" / "data" / "globalState.json"
    broken.write_text("{ not json")
    room.serve_loaded()
    choose(room, "cline")
    card = room.serve_page.clients.card
    room.qtbot.waitUntil(card.write_button.isEnabled, timeout=LONG_MS)
    card.write_button.click()
    room.qtbot.waitUntil(lambda: "globalState.json" in card.note.text(), timeout=LONG_MS)
    assert broken.read_text() == "{ not json"
    assert card.write_button.isEnabled()


def test_a_small_context_is_said_on_the_cards_of_agents(make_room: MakeRoom) -> None:
    room = make_room()
    room.load_and_wait()
    choose(room, "cline")
    words = " ".join(
        label.text()
        for label in room.serve_page.clients.card._body.findChildren(type(room.serve_page.clients.card._name))
    )
    assert "some refuse below 64000 tokens" in words


def test_the_card_ticks_when_its_program_connects(room: ServeRoom) -> None:
    room.serve_loaded()
    choose(room, "codex")
    card = room.serve_page.clients.card
    assert card._tick.text() == "Not found here"  # how long ago: test_words_of_a_tick
    room.ask("/v1/models", None, {"User-Agent": "codex_cli_rs/0.9"}).wait()
    room.qtbot.waitUntil(lambda: card._tick.text().endswith(": model listed"), timeout=LONG_MS)
    assert room.ask_chat(agent="codex_cli_rs/0.9").wait().status == 200
    room.qtbot.waitUntil(lambda: card._tick.text().endswith("model listed, 1 reply"), timeout=LONG_MS)
    assert card._tick.property("tone") == "good"
    assert room.ask_chat("x" * 60_000, agent="codex_cli_rs/0.9").wait().status == 400
    room.window.pair_state.unload()
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.EMPTY, timeout=LONG_MS)


def test_the_card_for_lm_studio_ticks_over_its_sdk_and_the_reply_is_listed(room: ServeRoom) -> None:
    room.serve_loaded()
    choose(room, "lm_studio")
    said: list[str] = []

    def program() -> None:
        with SdkSocket(room.serving.port, "/system") as system:
            system.result("listDownloadedModels")
        with SdkSocket(room.serving.port) as llm:
            said.append(llm.stream("predict", prediction())[-1]["type"])

    thread = threading.Thread(target=program)
    thread.start()
    card = room.serve_page.clients.card
    room.qtbot.waitUntil(lambda: card._tick.text().endswith("model listed, 1 reply"), timeout=LONG_MS)
    thread.join()
    assert said == ["success"] and card._tick.property("tone") == "good"
    assert room.serve.requests.index(0, CLIENT).data() == "LM Studio's SDK"
    room.window.pair_state.unload()
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.EMPTY, timeout=LONG_MS)


def test_words_of_a_tick() -> None:
    ticks = ClientTicks()
    now_s = time.time()
    ticks.on_server_event(ClientSeen("cline", "x", "/api/v0/models", now_s - 3))
    assert ticks.tick("cline").words(now_s) == "connected 3 s ago: model listed"
    assert ticks.tick("zed").words(now_s) == ""
    ticks.on_server_event(RequestArrived("r1", "cline", "x", "/v1/chat/completions", "m", True, 1, 0, now_s))
    assert ticks.tick("cline").words(now_s) == "connected just now: model listed, 1 running"
    ticks.on_server_event(
        RequestEnded("r1", "failed", "No room.", "", "", (), (), 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    )
    assert ticks.tick("cline").words(now_s) == "connected just now: model listed, 1 failed"
    assert not ticks.tick("cline").is_good
    assert ticks.tick("cline").words(now_s + 600).startswith("connected 10 min ago")
    ticks.on_server_event(ClientSeen("self_test", "x", "/v1/models", now_s))
    assert ticks.connected == ["cline"]
