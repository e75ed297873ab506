"""Chats that outlive the window: list, search, names, pins, deletion, unsent text."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from dflash_desktop.chats.opening import FILE_NAME
from dflash_desktop.chats.records import Attachment
from dflash_desktop.ui.chats.chat_list_model import ChatRow, Heading
from dflash_desktop.ui.chats.keeper import ChatKeeper
from ui.chats.conftest import OpenDesk, ask, open_chat, texts, titles, titles_with_rows
from ui.scripted_engine import Script


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


def test_a_recalled_text_is_no_new_chat_s_while_the_chats_are_still_read(
    open_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk()
    desk.load()
    ask(desk, "one")
    desk.composer.set_text("half of one")
    desk.window.close()
    arrived, late = ChatKeeper.on_event_arrived, []
    monkeypatch.setattr(ChatKeeper, "on_event_arrived", lambda keeper, event: late.append((keeper, event)))
    again = open_desk()
    again.page.desk.recall("half of one")
    again.page.desk.keep_composer_text()  # as its timer does when the disk is slow
    monkeypatch.undo()
    while len(again.chat.talk) == 0:
        for keeper, event in late:
            arrived(keeper, event)
        late.clear()
        again.qtbot.wait(5)
    assert again.composer.text() == "half of one"
    again.page.on_new_clicked()
    assert again.composer.text() == ""


def test_what_was_attached_waits_in_its_chat_beside_what_was_typed(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.load()
    ask(desk, "one")
    file, paste = Attachment("a.txt", "text", "of a file", 9), Attachment("", "pasted", "pasted words", 12)
    desk.composer.put("about these", (file, paste))
    desk.page.on_new_clicked()
    assert (desk.composer.text(), desk.composer.attached.attachments()) == ("", ())
    open_chat(desk, "one")
    assert (desk.composer.typed_text(), desk.composer.attached.attachments()) == ("about these", (file, paste))
    desk.composer.clear()
    desk.page.on_new_clicked()
    open_chat(desk, "one")
    assert (desk.composer.text(), desk.composer.attached.attachments()) == ("", ())


def test_what_was_attached_and_not_sent_is_there_after_the_next_start(open_desk: OpenDesk) -> None:
    desk = open_desk()
    desk.load()
    ask(desk, "one")
    file, paste = Attachment("a.txt", "text", "of a file", 9), Attachment("", "pasted", "pasted words", 12)
    desk.composer.put("about these", (file, paste))
    desk.page.on_new_clicked()
    desk.composer.put("", (file,))
    desk.window.close()
    again = open_desk()
    again.qtbot.waitUntil(lambda: again.composer.attached.attachments() == (file,))
    assert again.composer.text() == ""
    open_chat(again, "one")
    assert (again.composer.typed_text(), again.composer.attached.attachments()) == ("about these", (file, paste))
    again.load()
    again.page.on_send_clicked()
    again.wait_for_reply()
    again.window.close()
    last = open_desk()
    last.qtbot.waitUntil(lambda: len(last.chat.talk) > 0)
    assert (last.composer.text(), last.composer.attached.attachments()) == ("", ())


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
