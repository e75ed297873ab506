"""Versions of a message, branches, and answers that go on, are continued or refused, in chats that are kept."""

from __future__ import annotations

import threading

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from dflash_desktop.ui.chats.chat_list_model import ChatRow
from dflash_desktop.ui.chats.messages import ReplyState
from ui.chats.conftest import OpenDesk, ask, open_chat, texts, titles, titles_with_rows
from ui.scripted_engine import Script


def test_branches_survive_the_window(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text="A1"))
    desk.load()
    ask(desk, "Q1")
    desk.engine.script = Script(text="A2")
    desk.chat.regenerate()
    desk.wait_for_reply()
    assert texts(desk) == ["Q1", "A2"]
    assert desk.items.message(1).place == (2, 2)
    desk.engine.script = Script(text="A3")
    desk.page.desk.on_edit_wanted(desk.items.message(0))
    assert desk.composer.is_editing
    desk.composer.edit.setPlainText("Q2")
    desk.page.on_send_clicked()
    desk.wait_for_reply()
    assert texts(desk) == ["Q2", "A3"]
    desk.page.view.version_clicked.emit(desk.items.message(0), -1)
    assert texts(desk) == ["Q1", "A2"]
    desk.page.view.version_clicked.emit(desk.items.message(1), -1)
    assert texts(desk) == ["Q1", "A1"]
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: texts(again) == ["Q1", "A1"])
    assert again.items.message(0).place == (1, 2)
    assert again.items.message(1).place == (1, 2)
    again.page.view.version_clicked.emit(again.items.message(0), 1)
    assert texts(again) == ["Q2", "A3"]
    again.load()
    again.engine.script = Script(text="A4")
    again.chat.regenerate(again.items.message(1))
    again.wait_for_reply()
    assert again.items.message(1).place == (2, 2)


def test_a_deleted_message_takes_what_follows_and_comes_back(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text="A"))
    desk.load()
    ask(desk, "Q1", "Q2")
    desk.page.view.delete_clicked.emit(desk.items.message(1))
    assert texts(desk) == ["Q1"]
    assert "3 messages" in desk.page.notice.text()
    QTest.mouseClick(desk.page.notice._button, Qt.MouseButton.LeftButton)
    assert texts(desk) == ["Q1", "A", "Q2", "A"]
    desk.page.view.delete_clicked.emit(desk.items.message(2))
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: texts(again) == ["Q1", "A"])


def test_a_branch_becomes_a_chat_of_its_own(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text="A"))
    desk.load()
    ask(desk, "Q1", "Q2")
    desk.page.view.branch_clicked.emit(desk.items.message(1))
    assert texts(desk) == ["Q1", "A"]
    ask(desk, "Q3")
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: texts(again) == ["Q1", "A", "Q3", "A"])
    assert len(titles(again)) == 2


def test_an_answer_goes_on_while_another_chat_is_open(open_desk: OpenDesk) -> None:
    gate = threading.Event()
    desk = open_desk(Script(text="slow answer", wait_for=gate))
    desk.load()
    desk.send("slow")
    desk.qtbot.waitUntil(lambda: desk.chat.is_busy)
    desk.page.on_new_clicked()
    assert not desk.chat.is_busy
    row = desk.page.chats.items.row(titles_with_rows(desk)["slow"])
    assert isinstance(row, ChatRow)
    assert row.is_running
    gate.set()
    slow = row.chat.chat_id
    desk.qtbot.waitUntil(lambda: desk.chat.replies.of(slow) is None)
    open_chat(desk, "slow")
    assert texts(desk) == ["slow", "slow answer"]
    assert desk.items.message(1).state is ReplyState.DONE


def test_a_stopped_answer_is_continued(open_desk: OpenDesk) -> None:
    gate = threading.Event()
    desk = open_desk(Script(text="one two three " * 2000, step_s=0.02))
    desk.load()
    desk.send("count")
    desk.qtbot.waitUntil(lambda: len(desk.items.message(1).text) > 30)
    desk.chat.stop()
    desk.qtbot.waitUntil(lambda: desk.items.message(1).facts is not None)
    stopped = desk.items.message(1).text
    assert desk.items.message(1).can_continue
    desk.engine.script = Script(text="and the end.", wait_for=gate)
    desk.page.view.continue_clicked.emit(desk.items.message(1))
    gate.set()
    desk.wait_for_reply()
    assert texts(desk)[1] == stopped + "and the end."
    prompt = desk.engine.generations()[-1].prompt
    assert prompt.continue_last  # type: ignore[union-attr]
    assert prompt.messages[-1] == {"role": "assistant", "content": stopped}  # type: ignore[union-attr]
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: again.items.rowCount() == 2)
    assert texts(again)[1] == stopped + "and the end."


def test_a_refused_first_message_leaves_no_chat(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(failure="Too long.", failure_kind="context_exceeded"))
    desk.load()
    ask(desk, "much too long")
    assert titles(desk) == []
    assert desk.composer.text() == "much too long"
    desk.engine.script = Script(text="Fine.")
    ask(desk, "shorter")
    assert titles(desk) == ["shorter"]
    desk.window.close()
    assert titles(open_desk()) == ["shorter"]


def test_a_refused_second_version_leaves_the_first(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text="A"))
    desk.load()
    ask(desk, "Q")
    desk.engine.script = Script(failure="No.", failure_kind="bad_request")
    desk.chat.regenerate()
    desk.wait_for_reply()
    assert texts(desk) == ["Q", "A"]
    assert desk.items.message(1).place == (1, 1)
    assert desk.composer.text() == ""
    assert desk.page.notice.text() == "No."
