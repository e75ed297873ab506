"""Requests in the window: live rows, the inspector, one engine for chat and programs, loads that programs ask for."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.requests import Generate, LoadPair
from dflash_desktop.server.events import RequestArrived, RequestEnded, RequestMoved, RequestRendered
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.server.request_item_model import (
    AL,
    CACHED,
    CLIENT,
    DECODED,
    KEPT_REQUESTS,
    MODEL,
    PREFILLED,
    SPEED,
    STATE,
    RequestItemModel,
)
from dflash_desktop.ui.server.serving import ServePhase
from support.patience import LONG_MS, in_time
from ui.scripted_engine import Script
from ui.server.conftest import MakeRoom, ServeRoom

SECRET = "the launch code is 0000"


def arrived(number: int, client: str = "cline", at_s: float = 0.0) -> RequestArrived:
    path = "/v1/chat/completions"
    return RequestArrived(f"r{number}", client, "agent/1", path, "m", True, 2, 1, at_s or time.time())


def rendered(number: int, text: str = "prompt") -> RequestRendered:
    return RequestRendered(f"r{number}", text, 100, ("read_file", "write_file"), 512, 0.7, ("ignored members: foo",))


def moved(number: int, phase: str, **more: float) -> RequestMoved:
    figures = {"n_ahead": 0, "n_reused_tokens": 40, "n_prefilled_tokens": 30, "n_prompt_tokens": 100} | {
        "n_reply_tokens": 0,
        "acceptance_length": 0.0,
        "decode_tps": 0.0,
    }
    return RequestMoved(f"r{number}", phase, **(figures | more))  # type: ignore[arg-type]


def ended(number: int, outcome: str = "stop", message: str = "", text: str = "Hello") -> RequestEnded:
    notes = ("ignored members: foo",)
    return RequestEnded(
        f"r{number}", outcome, message, text, "I think.", ('read_file {"path": "a"}',), notes,  # type: ignore[arg-type]
        100, 40, 21, 10, 30, 11, 2.1, 0.1, 0.5, 0.4, 2.0, 3.0,
    )  # fmt: skip


def cells(model: RequestItemModel, row: int = 0) -> dict[int, str]:
    return {column: model.index(row, column).data() for column in range(model.columnCount())}


def test_a_row_follows_its_request_from_the_queue_to_the_end(theme: Theme, qtmodeltester: Any) -> None:
    model = RequestItemModel(theme)
    model.on_server_event(arrived(1))
    model.on_server_event(rendered(1))
    assert cells(model)[STATE] == "waiting"
    model.on_server_event(moved(1, "waiting", n_ahead=2))
    assert cells(model)[STATE] == "waiting, 2 ahead"
    model.on_server_event(moved(1, "prefill"))
    assert cells(model)[STATE] == "reading, 50 %"
    assert (cells(model)[CACHED], cells(model)[PREFILLED], cells(model)[SPEED]) == ("40", "30", "–")
    model.on_server_event(moved(1, "decode", n_reply_tokens=7, acceptance_length=2.5, decode_tps=31.0))
    assert cells(model)[STATE] == "answering"
    shown = cells(model)
    assert [shown[each] for each in (CLIENT, MODEL, PREFILLED, DECODED, AL, SPEED)] == [
        "Cline",
        "m",
        "60",
        "7",
        "2.50",
        "31.0",
    ]
    model.on_server_event(ended(1))
    shown = cells(model)
    assert [shown[each] for each in (CACHED, PREFILLED, DECODED, AL, SPEED, STATE)] == [
        "40",
        "60",
        "21",
        "2.10",
        "10.0",
        "answered",
    ]
    model.on_server_event(arrived(2, client="self_test"))
    model.on_server_event(arrived(3))
    assert [model.record(row).request_id for row in range(model.rowCount())] == ["r3", "r1"]
    qtmodeltester.check(model)


def test_failures_say_why_and_a_request_nobody_knows_is_ignored(theme: Theme) -> None:
    model = RequestItemModel(theme)
    model.on_server_event(ended(9))
    assert model.rowCount() == 0
    model.on_server_event(arrived(1, client="other"))
    model.on_server_event(ended(1, "failed", "The prompt is too long."))
    assert cells(model)[CLIENT] == "agent"  # a program without a card is called what it calls itself
    assert cells(model)[STATE] == "failed"
    assert model.index(0, STATE).data(Qt.ItemDataRole.ToolTipRole) == "The prompt is too long."
    assert ("Why", "The prompt is too long.") in model.record(0).facts()


def test_a_refused_request_is_listed_with_its_reason(room: ServeRoom) -> None:
    room.serve_loaded()
    room.serve_page.access.asks_key.click()
    room.qtbot.waitUntil(lambda: room.serving.phase is not ServePhase.SERVING)
    room.wait_for(ServePhase.SERVING)
    assert room.ask_chat(agent="claude-cli/2").wait().status == 401
    room.qtbot.waitUntil(lambda: room.serve.requests.rowCount() == 1, timeout=LONG_MS)
    shown = cells(room.serve.requests)
    assert (shown[CLIENT], shown[STATE]) == ("Claude Code", "refused (401)")
    assert dict(room.serve.requests.record(0).facts())["Why"].startswith("The key is missing or wrong.")
    assert "key is missing" in room.serve.ticks.tick("claude_code").last_failure
    room.serve_page.show_tab("requests")
    room.serve_page.requests.open_row(0)
    assert room.serve_page.requests.inspector.isVisible()


def has_rows(room: ServeRoom, n_rows: int) -> bool:
    return room.serve.requests.rowCount() == n_rows


def test_what_is_turned_away_before_it_is_read_is_listed_too(room: ServeRoom) -> None:
    """A wrong address, wrong fields, another host: who set it up wrongly looks here."""
    room.serve_loaded()
    agent = {"User-Agent": "Cline/3"}
    wrong: list[tuple[int, str, object, dict[str, str]]] = [
        (404, "/v1/nothing", None, agent),
        (400, "/v1/chat/completions", {"messages": 3}, agent),
        (403, "/v1/models", None, {**agent, "Host": "evil.example"}),
    ]
    for n_rows, (status, path, body, headers) in enumerate(wrong, start=1):
        assert room.ask(path, body, headers).wait().status == status
        room.qtbot.waitUntil(partial(has_rows, room, n_rows), timeout=LONG_MS)
        shown = cells(room.serve.requests)
        assert (shown[CLIENT], shown[STATE]) == ("Cline", f"refused ({status})")
        facts = dict(room.serve.requests.record(0).facts())
        assert facts["Path"] == path
        assert facts["Why"]


def test_a_reply_that_fails_is_counted_once(make_room: MakeRoom) -> None:
    room = make_room(Script(text="Some words."))
    room.serve_loaded()
    room.engine.script.failure = "The device stopped."
    assert room.ask_chat(agent="Zed/1").wait().status == 500
    room.qtbot.waitUntil(lambda: room.serve.ticks.tick("zed").n_failed > 0, timeout=LONG_MS)
    room.qtbot.wait(100)  # what would come a second time is on its way by now
    assert room.serve.ticks.tick("zed").n_failed == 1
    assert room.serve.requests.rowCount() == 1
    assert room.serve.requests.record(0).state_words() == "failed"


def test_views_are_told_at_most_ten_times_a_second(theme: Theme, qtbot: QtBot) -> None:
    model = RequestItemModel(theme)
    model.on_server_event(arrived(1))
    told: list[str] = []
    model._timer.timeout.disconnect()
    model._timer.timeout.connect(lambda: told.append("a tenth of a second is over"))
    model._timer.timeout.connect(model._show)
    model.dataChanged.connect(lambda *_: told.append("the views are told"))
    for number in range(2000):
        model.on_server_event(moved(1, "decode", n_reply_tokens=number))
    assert told == []
    qtbot.waitUntil(lambda: len(told) >= 8)
    assert told[:8] == ["a tenth of a second is over", "the views are told"] * 4
    assert model._timer.interval() == 100
    model.on_server_event(ended(1))
    qtbot.waitUntil(lambda: not model._timer.isActive())


def test_old_requests_are_forgotten_by_number_and_by_size_but_never_running_ones(theme: Theme) -> None:
    model = RequestItemModel(theme)
    for number in range(KEPT_REQUESTS + 50):
        model.on_server_event(arrived(number))
        if number:
            model.on_server_event(ended(number))
    assert model.rowCount() <= KEPT_REQUESTS + 2
    assert model.find("r0") is not None  # it still runs
    for number in range(1000, 1010):
        model.on_server_event(arrived(number))
        model.on_server_event(rendered(number, "x" * 4_000_000))
        model.on_server_event(ended(number))
    assert model.rowCount() < 10
    model.forget_ended()
    assert [model.record(row).request_id for row in range(model.rowCount())] == ["r0"]


def test_a_request_of_a_program_is_listed_live_and_inspected(make_room: MakeRoom) -> None:
    room = make_room(Script(text="It is blue. " * 30))
    room.serve_loaded()
    room.engine.script.step_s = 0.2
    view = room.serve_page.requests
    room.serve_page.show_tab("requests")
    tool = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}
    asked = room.ask_chat(SECRET, agent="claude-cli/2.0 (external)", tools=[tool], stream=True, model="my-model")
    room.qtbot.waitUntil(lambda: room.serve.requests.rowCount() == 1, timeout=LONG_MS)
    QTest.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=view.table.visualRect(
        view.table.model().index(0, CLIENT)).center())  # fmt: skip
    assert view.inspector.isVisible()
    room.qtbot.waitUntil(lambda: cells(room.serve.requests)[STATE] == "answering", timeout=LONG_MS)
    room.engine.script.step_s = 0.0
    assert asked.wait().status == 200
    room.qtbot.waitUntil(lambda: cells(room.serve.requests)[STATE] == "answered", timeout=LONG_MS)
    shown = cells(room.serve.requests)
    assert (shown[CLIENT], shown[MODEL]) == ("Claude Code", "my-model")
    assert int(shown[DECODED]) > 20
    facts = dict(room.serve.requests.record(0).facts())
    assert facts["Tools"] == "read_file"
    assert facts["Path"] == "/v1/chat/completions"
    view.inspector.tabs.buttons()[1].click()
    assert SECRET in view.inspector.text.toPlainText()
    assert "<|im_start|>" in view.inspector.text.toPlainText()  # as the model read it
    view.inspector.tabs.buttons()[2].click()
    assert view.inspector.text.toPlainText().startswith("It is blue.")
    view.inspector.copy_text_button.click()
    assert QGuiApplication.clipboard().text().startswith("It is blue.")
    view.inspector.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    assert SECRET not in copied
    assert "It is blue" not in copied
    events = [json.loads(line) for line in copied.split("\n")]
    assert {event["event"] for event in events} >= {"RequestArrived", "RequestRendered", "RequestEnded"}
    view.inspector.close_button.click()
    assert not view.inspector.isVisible()


@in_time(0.5)
def test_a_very_long_prompt_is_shown_without_its_middle_and_copied_whole(room: ServeRoom, within_s: float) -> None:
    model = room.serve.requests
    model.on_server_event(arrived(1))
    model.on_server_event(rendered(1, "a" * 100_000 + "b" * 100_000))
    room.serve_page.show_tab("requests")
    inspector = room.serve_page.requests.inspector
    inspector.tabs.buttons()[1].click()
    begin = time.thread_time()
    room.serve_page.requests.open_row(0)
    took_s = time.thread_time() - begin
    shown = inspector.text.toPlainText()
    assert "136000 characters are not shown" in shown
    assert shown.endswith("b" * 100)
    inspector.copy_text_button.click()
    assert len(QGuiApplication.clipboard().text()) == 200_000
    document = inspector.text.document()
    lengths = [document.findBlockByNumber(i).length() for i in range(document.blockCount())]
    assert max(lengths) <= 1001, "one line of 64,000 characters would be laid out whole before it is painted"
    assert took_s < within_s
    model.on_server_event(ended(1))


def test_chat_and_programs_share_the_lane_in_the_order_of_their_coming(make_room: MakeRoom) -> None:
    gate = threading.Event()
    room = make_room(Script(text="Some words."))
    room.serve_loaded()
    n_tests = len(room.engine.generations())
    room.engine.script.wait_for = gate
    room.window.show_page("chat")
    first = room.ask_chat("one", agent="codex_cli_rs/1")
    room.qtbot.waitUntil(lambda: room.serving.n_running == 1, timeout=LONG_MS)
    second = room.ask_chat("two", agent="claude-cli/1")
    room.qtbot.waitUntil(lambda: room.serving.n_running == 2, timeout=LONG_MS)
    room.qtbot.waitUntil(lambda: len(room.engine.generations()) == n_tests + 1, timeout=LONG_MS)
    room.send("three")
    assert room.items.message(1).state is ReplyState.QUEUED
    assert "Waiting for its turn" in room.items.message(1).status_words()
    waiting = [record.state_words() for record in map(room.serve.requests.record, range(2))]
    assert waiting[0].startswith("waiting")
    gate.set()
    first.wait()
    room.wait_for_reply()
    second.wait()
    assert (first.status, second.status) == (200, 200)
    assert room.items.message(1).text == "Some words."
    # One request of programs is in the lane at a time: the chat's message came before the second one's turn.
    order = [type(job.prompt).__name__ for job in room.engine.generations()[n_tests:]]
    assert order == ["TokenPrompt", "ChatPrompt", "TokenPrompt"]


def test_the_draft_switch_counts_for_programs_too_and_the_graphs_follow_their_replies(make_room: MakeRoom) -> None:
    room = make_room(Script(text="Some words here and there."))
    room.serve_loaded()
    room.window.model_bar.draft_switch.buttons()[2].click()
    assert room.ask_chat().wait().status == 200
    asked = room.engine.generations()[-1]
    assert isinstance(asked, Generate)
    assert asked.draft.mode == "off"
    room.window.model_bar.draft_switch.buttons()[1].click()
    assert room.ask_chat().wait().status == 200
    assert room.engine.generations()[-1].draft.mode == "tree"
    room.qtbot.waitUntil(lambda: not room.window.figures.is_running)
    assert room.window.figures.n_committed > 0


def test_a_load_that_a_program_asks_for_is_seen_by_the_whole_window(make_room: MakeRoom) -> None:
    room = make_room()
    room.serve_loaded()
    gate = room.engine.script.load_gate = threading.Event()
    asked = room.ask("/api/v1/models/load", {"model": "smollm2-135m-instruct", "context_length": 16_384})
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.LOADING, timeout=LONG_MS)
    assert room.serving.phase is ServePhase.NO_MODEL
    assert "loading" in room.serve_page.socket.sentence()
    gate.set()
    assert asked.wait().status == 200, asked.text
    room.wait_for(ServePhase.SERVING)
    pair = room.window.pair_state.pair
    assert pair is not None
    assert pair.context_tokens == 16_384
    assert "16384" in room.serve_page.notice.text()
    assert "context of 16384 tokens" in room.serve_page.socket.sentence()
    loads = [job for job in room.engine.jobs if isinstance(job, LoadPair)]
    assert [job.options.context_tokens for job in loads] == [0, 16_384]


def test_a_reply_in_the_chat_is_not_cut_by_a_load_that_a_program_asks_for(make_room: MakeRoom) -> None:
    gate = threading.Event()
    room = make_room(Script(text="All of it."))
    room.serve_loaded()
    room.window.show_page("chat")
    room.engine.script.wait_for = gate
    room.send("hello")
    room.qtbot.waitUntil(lambda: room.items.message(1).state is ReplyState.READING)
    asked = room.ask("/api/v1/models/load", {"model": "smollm2-135m-instruct", "context_length": 16_384})
    room.qtbot.waitUntil(lambda: "16384" in room.serve_page.notice.text(), timeout=LONG_MS)
    assert room.window.pair_state.phase is Phase.LOADED
    gate.set()
    room.wait_for_reply()
    assert room.items.message(1).text == "All of it."
    assert room.items.message(1).state is ReplyState.DONE
    assert asked.wait().status == 200, asked.text


def test_the_person_s_load_goes_before_a_program_s_load_that_waits(make_room: MakeRoom, tmp_path: Path) -> None:
    room = make_room(Script(load_s=0.05))
    room.serve_loaded()
    room.window.load_starter()
    asked = room.ask("/api/v1/models/load", {"model": "smollm2-135m-instruct", "context_length": 16_384})
    asked.wait()
    room.qtbot.waitUntil(lambda: room.window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    room.wait_for(ServePhase.SERVING)
    served = room.ask("/v1/models").wait().json["data"][0]["context_length"]
    pair = room.window.pair_state.pair
    assert pair is not None
    assert served == pair.context_tokens  # window and server agree, whoever came last
