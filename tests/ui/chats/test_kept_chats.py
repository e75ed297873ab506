"""Chats that outlive the window: list, search, names, pins, deletion, branches, unsent text."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from dflash_desktop.chats.opening import FILE_NAME
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.ui.chats.chat_list_model import ChatRow, Heading
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.parts import Parts
from ui.conftest import Desk
from ui.scripted_engine import Script

OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(make_desk: Callable[..., Desk], tmp_path: Path) -> OpenDesk:
    """A window with a store, ready when its chats are there. A second call is the next start."""

    def make(script: Script | None = None) -> Desk:
        desk = make_desk(script, parts=Parts(chats=ChatStore(tmp_path / "chats")))
        desk.qtbot.waitUntil(lambda: desk.page.keeper._store._opened is not None)  # type: ignore[union-attr]
        desk.qtbot.wait(30)
        return desk

    return make


def ask(desk: Desk, *texts: str) -> None:
    for text in texts:
        desk.send(text)
        desk.wait_for_reply()


def titles(desk: Desk) -> list[str]:
    items = desk.page.chats.items
    rows = [items.row(number) for number in range(items.rowCount())]
    return [row.title for row in rows if isinstance(row, ChatRow)]


def texts(desk: Desk) -> list[str]:
    return [message.text for message in desk.items.messages()]


def open_chat(desk: Desk, title: str) -> None:
    items = desk.page.chats.items
    number = titles_with_rows(desk)[title]
    desk.page.chats.list.clicked.emit(items.index(number))
    desk.qtbot.waitUntil(lambda: desk.page.head.title() == title)


def titles_with_rows(desk: Desk) -> dict[str, int]:
    items = desk.page.chats.items
    found = {}
    for number in range(items.rowCount()):
        row = items.row(number)
        if isinstance(row, ChatRow):
            found[row.title] = number
    return found


def test_a_chat_is_there_at_the_next_start_with_its_facts(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text="It is **blue**."))
    desk.load()
    ask(desk, "Why is the sky blue?\nReally.")
    facts = desk.items.message(1).facts
    assert facts is not None
    assert titles(desk) == ["Why is the sky blue?"]
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: again.items.rowCount() == 2)
    assert texts(again) == ["Why is the sky blue?\nReally.", "It is **blue**."]
    kept = again.items.message(1).facts
    assert kept == facts
    assert kept.asked.model_name == "SmolLM2 135M Instruct"
    assert "SmolLM2 DFlash" in kept.details()
    assert again.page.head.title() == "Why is the sky blue?"


def test_chats_are_listed_by_time_and_pins_stay_on_top(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.load()
    for text in ("first", "second", "third"):
        ask(desk, text)
        desk.page.on_new_clicked()
    assert titles(desk) == ["third", "second", "first"]
    desk.page.chats.list.setFocus()
    desk.page.chats.list.setCurrentIndex(desk.page.chats.items.index(titles_with_rows(desk)["first"]))
    QTest.keyClick(desk.page.chats.list, Qt.Key.Key_P)
    assert titles(desk) == ["first", "third", "second"]
    heading = desk.page.chats.items.row(0)
    assert isinstance(heading, Heading)
    assert heading.text == "Pinned"
    open_chat(desk, "second")
    ask(desk, "once more")
    assert titles(desk) == ["first", "second", "third"]
    desk.window.close()
    assert titles(open_desk()) == ["first", "second", "third"]


def test_a_name_of_ones_own_stays(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.load()
    ask(desk, "long and dull")
    chats = desk.page.chats
    chats.list.setFocus()
    chats.list.setCurrentIndex(chats.items.index(1))
    QTest.keyClick(chats.list, Qt.Key.Key_F2)
    editor = chats.list.findChild(QLineEdit)
    assert editor is not None
    assert editor.text() == "long and dull"
    QApplication.sendEvent(editor, QInputMethodEvent("ming zi", []))
    QTest.keyClick(editor, Qt.Key.Key_Return)  # B137: takes the candidate, not the name
    assert titles(desk) == ["long and dull"]
    committed = QInputMethodEvent("", [])
    committed.setCommitString("名字")
    QApplication.sendEvent(editor, committed)
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert titles(desk) == ["名字"]
    ask(desk, "and on")
    assert titles(desk) == ["名字"]
    desk.window.close()
    assert titles(open_desk()) == ["名字"]


def test_a_deleted_chat_comes_back_by_one_click_or_is_gone(open_desk: OpenDesk, tmp_path: Path) -> None:
    desk = open_desk(Script(text="a quiet answer"))
    desk.load()
    ask(desk, "keep me")
    desk.page.on_new_clicked()
    ask(desk, "a secret question")
    chats = desk.page.chats
    chats.list.setFocus()
    chats.list.setCurrentIndex(chats.items.index(titles_with_rows(desk)["a secret question"]))
    QTest.keyClick(chats.list, Qt.Key.Key_Delete)
    assert titles(desk) == ["keep me"]
    assert desk.page.is_start_shown
    assert "a secret question" in desk.page.notice.text()
    QTest.mouseClick(desk.page.notice._button, Qt.MouseButton.LeftButton)
    assert titles(desk) == ["a secret question", "keep me"]
    record = chats.items.chat_at(titles_with_rows(desk)["a secret question"])
    assert record is not None
    chats.delete(record)
    desk.window.close()
    assert titles(open_desk()) == ["keep me"]
    assert b"secret" not in (tmp_path / "chats" / FILE_NAME).read_bytes()


def test_search_finds_lights_up_and_opens_by_keyboard(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text="Light is scattered by the air."))
    desk.load()
    ask(desk, "sky")
    desk.page.on_new_clicked()
    desk.engine.script = Script(text="Because of nothing.")
    ask(desk, "sea")
    chats = desk.page.chats
    QTest.keyClick(desk.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert chats.search.hasFocus()
    QTest.keyClicks(chats.search, "catter")
    desk.qtbot.waitUntil(lambda: titles(desk) == ["sky"])
    row = chats.items.row(0)
    assert isinstance(row, ChatRow)
    assert [row.snippet[start:end] for start, end in row.ranges] == ["catter"]
    QTest.keyClick(chats.search, Qt.Key.Key_Return)
    assert chats.list.hasFocus()
    QTest.keyClick(chats.list, Qt.Key.Key_Return)
    desk.qtbot.waitUntil(lambda: texts(desk)[:1] == ["sky"])
    QTest.keyClick(chats.search, Qt.Key.Key_Escape)
    assert titles(desk) == ["sea", "sky"]
    chats.search.setText("zzz")
    desk.qtbot.waitUntil(lambda: titles(desk) == [])
    assert not chats._empty.isHidden()


def test_each_chat_has_its_own_unsent_text_and_settings(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.load()
    desk.page.panel.temperature.set_value(1.5)
    ask(desk, "one")
    desk.composer.set_text("half of one")
    desk.page.on_new_clicked()
    assert desk.composer.text() == ""
    desk.composer.set_text("of the new one")
    desk.page.panel.temperature.set_value(0.75)
    open_chat(desk, "one")
    assert desk.composer.text() == "half of one"
    assert desk.chat.settings.temperature == 1.5
    desk.page.on_new_clicked()
    assert desk.composer.text() == "of the new one"
    desk.page.panel.temperature.set_value(0.25)
    ask(desk, "two")
    open_chat(desk, "one")
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: again.composer.text() == "half of one")
    open_chat(again, "two")
    assert again.composer.text() == ""
    assert again.chat.settings.temperature == 0.25
    again.page.on_new_clicked()
    assert again.composer.text() == ""


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
    desk = open_desk(Script(text="one two three " * 50, step_s=0.005))
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


def test_a_damaged_file_is_told_in_the_window(open_desk: OpenDesk, tmp_path: Path) -> None:
    """B128."""
    desk = open_desk(Script(text="A"))
    desk.load()
    ask(desk, "Q")
    desk.window.close()
    path = tmp_path / "chats" / FILE_NAME
    path.write_bytes(path.read_bytes()[:-4096])
    again = open_desk()
    again.qtbot.waitUntil(lambda: "was damaged" in again.page.notice.text())
    assert len(list(path.parent.glob("*broken*"))) == 1


def test_every_action_while_an_answer_is_written_leaves_all_chats_whole(open_desk: OpenDesk, tmp_path: Path) -> None:
    """B127: delete, rename, switch, again, stop, in the middle of answers."""
    import random

    moments = random.Random(5)
    desk = open_desk(Script(text="word " * 2000, step_s=0.001))
    desk.load()
    ask_and_wait = 3
    for number in range(ask_and_wait):
        desk.send(f"chat {number}")
        desk.qtbot.waitUntil(lambda: bool(desk.items.message(desk.items.rowCount() - 1).text))
        desk.page.on_new_clicked()

    def some_chat() -> int:
        return moments.choice(desk.page.keeper.chats()).chat_id

    for _ in range(30):
        if not desk.page.keeper.chats():
            desk.send("another")
        match moments.randrange(7):
            case 0:
                desk.page.desk.on_chat_chosen(some_chat())
            case 1:
                desk.page.keeper.rename(some_chat(), f"name {moments.random():.3f}")
            case 2 if len(desk.page.keeper.chats()) > 2:
                desk.chat.delete_chat(some_chat())
            case 3:
                desk.chat.stop()
                desk.chat.regenerate()
            case 4:
                desk.send("more")
            case 5 if desk.items.rowCount():
                desk.chat.delete(desk.items.message(desk.items.rowCount() - 1))
            case _:
                desk.page.keeper.pin(some_chat(), is_pinned=True)
        desk.qtbot.wait(moments.randrange(25))
    n_chats = len(desk.page.keeper.chats())
    desk.window.close()
    with sqlite3.connect(tmp_path / "chats" / FILE_NAME) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("SELECT count(*) FROM reply_pieces").fetchone() == (0,)
        assert file.execute("SELECT count(*) FROM messages WHERE state = 'writing'").fetchone() == (0,)
        assert file.execute("SELECT count(*) FROM chats").fetchone() == (n_chats,)
    file.close()
