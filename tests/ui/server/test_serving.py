"""The switch shows the socket: start, self-test, taken ports, settings in force, and the next start of the window."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from dflash_desktop.engine.requests import LoadPair
from dflash_desktop.server.self_test import check_names
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.server.serving import ServePhase
from support.patience import LONG_MS
from support.ports import free_port
from ui.scripted_engine import Script
from ui.server.conftest import MakeRoom, ServeRoom


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as sock:
        port = free_port()
        sock.bind(("127.0.0.1", port))
        sock.listen()
        yield port


def can_connect(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_the_switch_is_green_only_after_every_dialect_answered(room: ServeRoom) -> None:
    card = room.serve_page.socket
    seen: list[tuple[ServePhase, int]] = []
    room.serving.changed.connect(lambda: seen.append((room.serving.phase, len(room.serving.checks))))
    port = room.choose_free_port()
    room.load_and_wait()
    QTest.mouseClick(card.switch, Qt.MouseButton.LeftButton)
    assert room.serving.phase is ServePhase.STARTING
    assert not card.switch.isChecked()  # the wish is not the state
    room.wait_for(ServePhase.SERVING)
    assert card.switch.isChecked()
    assert card.state_words() == "Serving"
    assert f"port {port}" in card.sentence()
    assert card.checks.texts()[0] == "✓ Health"
    assert all(text.startswith("✓") for text in card.checks.texts())
    growing = [n_checks for phase, n_checks in seen if phase is ServePhase.TESTING]
    assert growing == sorted(growing)
    assert set(growing) >= set(range(len(check_names())))  # one tick after the other, not all at the end
    assert card.addresses.urls() == [f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{port}"]
    assert room.window.rail._group.button(2).accessibleDescription() == "Serving"
    QTest.mouseClick(card.switch, Qt.MouseButton.LeftButton)
    room.wait_for(ServePhase.OFF)
    assert not can_connect(port)
    assert not card.switch.isChecked()


def test_without_a_model_it_listens_and_says_so_and_tests_when_one_is_there(room: ServeRoom) -> None:
    room.choose_free_port()
    room.serving.start()
    room.wait_for(ServePhase.NO_MODEL)
    assert "no model is loaded" in room.serve_page.socket.sentence()
    answer = room.ask_chat().wait()
    assert answer.status == 503
    assert "No model is loaded" in answer.json["error"]["message"]
    QTest.mouseClick(room.serve_page.socket.ask.buttons()[0], Qt.MouseButton.LeftButton)
    room.wait_for(ServePhase.SERVING)
    assert room.ask_chat().wait().status == 200
    room.window.pair_state.unload()
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.EMPTY)
    assert room.serving.phase is ServePhase.NO_MODEL


def test_a_model_loaded_before_the_first_start_is_served(room: ServeRoom) -> None:
    room.load_and_wait()
    room.window.pair_state.unload()
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.EMPTY)
    room.load_and_wait()
    room.choose_free_port()
    room.serving.start()
    room.wait_for(ServePhase.SERVING)
    assert "smollm2" in room.ask("/v1/models").wait().text


def test_a_taken_port_names_its_program_and_offers_another(room: ServeRoom, taken_port: int) -> None:
    """B093."""
    room.load_and_wait()
    card = room.serve_page.socket
    card.port.setValue(taken_port)
    card.switch.click()
    room.wait_for(ServePhase.FAILED)
    assert not card.switch.isChecked()
    assert f"Port {taken_port} is in use by" in card.sentence()
    assert room.serving.failure is not None
    assert room.serving.failure.owner is not None
    assert str(room.serving.failure.owner) in card.sentence()
    other = room.serving.failure.free_port
    assert other is not None
    button = card.ask.buttons()[0]
    assert button.text() == f"Use port {other}"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    room.wait_for(ServePhase.SERVING)
    assert room.serving.port == other
    assert card.port.value() == other


def test_trying_again_works_when_the_other_program_is_gone(room: ServeRoom) -> None:
    """B093."""
    with socket.socket() as sock:
        port = free_port()
        sock.bind(("127.0.0.1", port))
        sock.listen()
        room.serve_page.socket.port.setValue(port)
        room.serving.start()
        room.wait_for(ServePhase.FAILED)
    again = next(button for button in room.serve_page.socket.ask.buttons() if button.text() == "Try again")
    QTest.mouseClick(again, Qt.MouseButton.LeftButton)
    room.wait_for(ServePhase.NO_MODEL)
    assert room.serving.port == port


def test_another_port_takes_the_server_along_while_nobody_waits(room: ServeRoom) -> None:
    room.serve_loaded()
    before, after = room.serving.port, free_port()
    room.serve_page.socket.port.setValue(after)
    room.qtbot.waitUntil(lambda: room.serving.port == after and room.serving.phase is ServePhase.SERVING)
    assert not can_connect(before)
    assert can_connect(after)


def test_settings_wait_while_a_program_waits_for_its_reply(make_room: MakeRoom) -> None:
    gate = threading.Event()
    room = make_room()
    room.serve_loaded()
    before, after = room.serving.port, free_port()
    room.engine.script.wait_for = gate
    asked = room.ask_chat()
    room.qtbot.waitUntil(lambda: room.serving.n_running == 1)
    room.serve_page.socket.port.setValue(after)
    assert room.serving.has_pending_settings
    assert "count when nobody waits" in room.serve_page.socket.ask.text()
    assert room.serving.port == before
    gate.set()
    assert asked.wait().status == 200
    room.qtbot.waitUntil(lambda: room.serving.port == after and room.serving.is_listening, timeout=LONG_MS)
    assert not can_connect(before)
    assert not room.serving.has_pending_settings


def test_unloading_ends_the_self_test_before_it_asks_for_the_model_again(room: ServeRoom) -> None:
    room.choose_free_port()
    room.load_and_wait()
    gate = room.engine.script.wait_for = threading.Event()
    room.serve_page.socket.switch.click()
    room.qtbot.waitUntil(lambda: bool(room.engine.generations()), timeout=LONG_MS)
    room.window.pair_state.unload()  # while the first check that wants a reply waits for it
    gate.set()
    is_over = threading.Event()
    room.serving._bridge._tester.do(is_over.set)  # behind the test that runs
    room.qtbot.waitUntil(is_over.is_set, timeout=LONG_MS)
    room.wait_for(ServePhase.NO_MODEL)
    assert sum(isinstance(job, LoadPair) for job in room.engine.jobs) == 1


def test_new_settings_can_be_had_at_once(make_room: MakeRoom) -> None:
    room = make_room()
    room.serve_loaded()
    after = free_port()
    gate = room.engine.script.wait_for = threading.Event()
    asked = room.ask_chat()
    room.qtbot.waitUntil(lambda: room.serving.n_running == 1)
    room.serve_page.socket.port.setValue(after)
    room.serve_page.socket.ask.buttons()[0].click()
    asked.wait()  # cut, without its answer
    gate.set()
    room.qtbot.waitUntil(lambda: room.serving.port == after and room.serving.is_listening, timeout=LONG_MS)
    assert asked.status != 200


def test_turning_it_off_while_a_program_waits_asks_once(make_room: MakeRoom) -> None:
    room = make_room()
    room.serve_loaded()
    room.engine.script.wait_for = threading.Event()  # never set: the reply hangs until it is cancelled
    asked = room.ask_chat()
    room.qtbot.waitUntil(lambda: room.serving.n_running == 1)
    card = room.serve_page.socket
    card.switch.click()
    assert "wait for 1 replies" in card.ask.text()
    card.ask.buttons()[1].click()
    assert card.ask.text() == ""
    card.switch.click()
    card.ask.buttons()[0].click()
    room.wait_for(ServePhase.OFF)
    asked.wait()
    assert card.ask.text() == ""
    assert room.serving.n_running == 0
    record = room.serve.requests.record(0)
    assert record.state_words() == "client left"


def test_the_question_goes_away_when_nobody_waits_any_more(make_room: MakeRoom) -> None:
    gate = threading.Event()
    room = make_room()
    room.serve_loaded()
    room.engine.script.wait_for = gate
    asked = room.ask_chat()
    room.qtbot.waitUntil(lambda: room.serving.n_running == 1)
    room.serve_page.socket.switch.click()
    assert room.serve_page.socket.ask.text()
    gate.set()
    asked.wait()
    room.qtbot.waitUntil(lambda: room.serve_page.socket.ask.text() == "")
    assert room.serving.phase is ServePhase.SERVING


def test_the_next_start_serves_again_with_the_same_settings(make_room: MakeRoom, state_file: WindowStateFile) -> None:
    room = make_room()
    room.serve_loaded()
    room.serve_page.access.reload.click()
    room.qtbot.waitUntil(lambda: room.serving.phase is not ServePhase.SERVING)
    room.wait_for(ServePhase.SERVING)
    port = room.serving.port
    room.window.close()
    assert not can_connect(port)
    stored = state_file.read().server
    assert (stored["port"], stored["is_on"], stored["can_clients_load"]) == (port, True, False)
    room.bridge.close()
    again = make_room()
    again.wait_for(ServePhase.NO_MODEL)
    assert again.serving.port == port
    assert not again.serving.settings.can_clients_load
    again.serving.stop()
    again.wait_for(ServePhase.OFF)
    again.window.close()
    assert state_file.read().server["is_on"] is False


def test_the_server_outlives_the_page_and_closing_the_window_ends_it(room: ServeRoom) -> None:
    """B140: the port is free and no thread is left."""
    room.serve_loaded()
    room.window.show_page("chat")
    assert room.ask_chat().wait().status == 200
    room.window.show_page("engine")
    assert room.ask_chat().wait().status == 200
    port = room.serving.port
    room.engine.script.wait_for = threading.Event()
    hanging = room.ask_chat()
    room.qtbot.waitUntil(lambda: room.serving.n_running == 1)
    room.window.close()
    assert not can_connect(port)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith(("dflash-server", "server-"))]
    hanging.wait()


def test_one_click_loads_the_pair_with_a_context_for_agents_and_serves(make_room: MakeRoom) -> None:
    room = make_room(largest_context=200_000)
    port = free_port()
    room.serve_page.socket.port.setValue(port)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dflash_desktop.ui.server.serve_now.STANDARD_PORT", port)  # 1234 may be somebody's here
        QTest.mouseClick(room.serve_page.socket.serve_button, Qt.MouseButton.LeftButton)
    room.wait_for(ServePhase.SERVING)
    loads = [job for job in room.engine.jobs if isinstance(job, LoadPair)]
    assert [job.options.context_tokens for job in loads] == [65_536]
    assert room.serving.port == port
    card = room.serve_page.clients.card
    room.qtbot.waitUntil(lambda: card._preview.isVisible(), timeout=LONG_MS)
    assert card.client_id == "cline"
    assert not (Path(str(card._state.card.edits[0].path))).exists()  # type: ignore[union-attr]


def test_one_click_without_cline_says_in_one_sentence_what_to_do(make_room: MakeRoom, home: Path) -> None:
    (home / ".cline" / "data").rmdir()
    room = make_room()
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dflash_desktop.ui.server.serve_now.STANDARD_PORT", port)
        room.serve_page.on_serve_wanted()
    room.wait_for(ServePhase.SERVING)
    room.qtbot.waitUntil(lambda: room.serve_page.notice.text().startswith("It serves."), timeout=LONG_MS)
    assert room.serve_page.clients.chosen == "cline"
    assert not room.serve_page.clients.card._preview.isVisible()


def test_one_click_with_a_small_model_takes_what_fits(make_room: MakeRoom) -> None:
    room = make_room(largest_context=8192)
    room.choose_free_port()
    room.serve.serve_now.load()
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    assert room.window.pair_state.pair is not None
    assert room.window.pair_state.pair.context_tokens == 8192
    assert room.serving.phase is ServePhase.OFF


def test_one_click_goes_on_after_a_taken_port(room: ServeRoom, taken_port: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dflash_desktop.ui.server.serve_now.STANDARD_PORT", taken_port)
        room.serve_page.on_serve_wanted()
    room.wait_for(ServePhase.FAILED)
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    with room.qtbot.waitSignal(room.serve.serve_now.ready, timeout=LONG_MS):
        room.serve_page.socket.ask.buttons()[0].click()


def test_a_load_that_fails_ends_the_one_click_way(make_room: MakeRoom) -> None:
    room = make_room(Script(load_failure="x.gguf is cut short."))
    port = room.choose_free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dflash_desktop.ui.server.serve_now.STANDARD_PORT", port)
        with room.qtbot.waitSignal(room.serve.serve_now.stopped, timeout=LONG_MS):
            room.serve_page.on_serve_wanted()
    assert room.serving.phase is ServePhase.NO_MODEL


def test_the_first_answer_in_the_chat_points_to_the_serve_page_once(room: ServeRoom) -> None:
    room.window.show_page("chat")
    room.load()
    room.send("hello")
    room.wait_for_reply()
    room.qtbot.waitUntil(lambda: "can use this model too" in room.page.notice.text())
    room.page.notice._button.click()
    assert room.serve_page.isVisible()
    room.window.show_page("chat")
    room.send("again")
    room.wait_for_reply()
    assert room.page.notice.text() == ""


def test_the_switch_and_the_page_obey_the_keyboard(room: ServeRoom) -> None:
    room.serve_loaded()
    room.serve_page.socket.switch.setFocus()
    QTest.keyClick(room.serve_page.socket.switch, Qt.Key.Key_Space)
    room.wait_for(ServePhase.OFF)
    QTest.keyClick(room.window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert not room.serve_page.isVisible()
    QTest.keyClick(room.window, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    assert room.serve_page.isVisible()
