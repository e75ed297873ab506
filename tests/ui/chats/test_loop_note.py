"""A reply that has fallen into a loop says so below it, with the ways out; nothing of the reply is changed by that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from dflash_desktop.engine.requests import Generate
from dflash_desktop.ui.chats.facts import facts_from
from dflash_desktop.ui.chats.messages import Message, ReplyState
from ui.chats.conftest import OpenDesk, ask, open_chat, titles
from ui.conftest import Desk
from ui.scripted_engine import Script

REPLIES = json.loads((Path(__file__).parents[2] / "engine" / "starter_replies.json").read_text("utf-8"))
LOOP = next(one["text"] for one in REPLIES if one["loops"])
SOUND = next(one["text"] for one in REPLIES if not one["loops"])


def reply_of(desk: Desk) -> Message:
    return desk.items.message(desk.items.rowCount() - 1)


def test_the_note_comes_while_the_reply_streams_and_nothing_is_stopped(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text=LOOP, step_s=0.005, max_committed=3))
    desk.load()
    desk.send("Tell me a story")
    desk.qtbot.waitUntil(lambda: bool(reply_of(desk).note_words()))
    assert desk.chat.is_busy
    assert "Esc" in reply_of(desk).note_words()
    row = desk.items.rowCount() - 1
    box = desk.page.view._stack.boxes[row]
    assert box.height >= box.content_height + box.parts.note_height(box.width)
    assert reply_of(desk).note_words() in desk.items.spoken(row)
    desk.wait_for_reply()
    reply = reply_of(desk)
    assert reply.state is ReplyState.DONE
    assert reply.text == LOOP
    assert "Answer again" in reply.note_words()
    assert "temperature" in reply.note_words()
    asked = [job for job in desk.engine.jobs if isinstance(job, Generate)]
    assert len(asked) == 1


def test_a_reply_that_is_stopped_in_its_loop_keeps_the_note(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text=LOOP * 3, step_s=0.005, max_committed=3))
    desk.load()
    desk.send("Tell me a story")
    desk.qtbot.waitUntil(lambda: reply_of(desk).is_looping)
    QTest.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.wait_for_reply()
    assert reply_of(desk).state is ReplyState.STOPPED
    assert "Answer again" in reply_of(desk).note_words()


def test_other_replies_have_none(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text=SOUND))
    desk.load()
    desk.send("Hello")
    desk.wait_for_reply()
    assert reply_of(desk).text == SOUND
    assert reply_of(desk).note_words() == ""
    row = desk.items.rowCount() - 1
    box = desk.page.view._stack.boxes[row]
    assert box.parts.foot_height(box.width, has_content=True) < 80


def test_thoughts_that_loop_say_so_as_well(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text=f"<think>\n{LOOP}", step_s=0.002))
    desk.load()
    desk.send("Tell me a story")
    desk.qtbot.waitUntil(lambda: bool(reply_of(desk).note_words()))
    assert reply_of(desk).text == ""
    desk.wait_for_reply()
    assert reply_of(desk).note_words()


def test_the_note_is_there_after_the_next_start_and_gone_when_the_answer_goes_on(open_desk: OpenDesk) -> None:
    desk = open_desk(Script(text=LOOP))
    desk.load()
    ask(desk, "Tell me a story")
    assert reply_of(desk).note_words()
    desk.window.close()
    again = open_desk(Script(text=" And then the song ended, and all of them went home."))
    again.qtbot.waitUntil(lambda: bool(titles(again)))
    if not again.items.rowCount():
        open_chat(again, titles(again)[0])
    again.qtbot.waitUntil(lambda: again.items.rowCount() == 2)
    reply = reply_of(again)
    assert reply.note_words()
    assert reply.text == LOOP
    again.load()
    reply.state = ReplyState.STOPPED
    again.chat.continue_reply(reply)
    assert reply.note_words() == ""
    again.wait_for_reply()
    assert reply.text.endswith("went home.")
    assert reply.note_words() == ""


@pytest.mark.parametrize("stored", [{}, {"is_looping": "yes"}, {"is_looping": 1}])
def test_what_an_older_version_or_a_hand_stored_is_no_loop(stored: dict[str, object]) -> None:
    facts = facts_from({"finish_reason": "stop", **stored})
    assert facts is not None
    assert not facts.is_looping
