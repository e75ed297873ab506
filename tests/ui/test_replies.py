"""Replies in the window, on a scripted engine: asked for, stopped, failed and cleared, whatever else happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.engine.pair_state import Phase
from support.patience import in_time
from ui.conftest import Desk
from ui.scripted_engine import Script

MakeDesk = Callable[..., Desk]
LONG = Script(text="word " * 4000, step_s=0.05)
"""Minutes, if nobody stops it: however slow the window is, it is still being written."""


def prompt_of(desk: Desk, number: int = -1) -> list[dict[str, str]]:
    prompt = desk.engine.generations()[number].prompt
    assert isinstance(prompt, ChatPrompt)
    return [dict(message) for message in prompt.messages]


@pytest.mark.parametrize("is_in_prefill", [True, False])
def test_escape_stops_at_once_and_keeps_the_text(make_desk: MakeDesk, is_in_prefill: bool) -> None:
    script = replace(LONG, prefill_chunks=20_000, prefill_s=0.01) if is_in_prefill else LONG
    desk = make_desk(script)
    desk.load()
    desk.send("go")
    wanted = ReplyState.READING if is_in_prefill else ReplyState.WRITING
    desk.qtbot.waitUntil(lambda: desk.items.message(1).state is wanted)
    if is_in_prefill:
        assert "Reading the prompt" in desk.items.message(1).status_words()
    QTest.keyClick(desk.composer.edit, Qt.Key.Key_Escape)
    assert desk.items.message(1).state is ReplyState.STOPPED
    assert not desk.chat.is_busy
    text = desk.items.message(1).text
    desk.qtbot.waitUntil(lambda: desk.items.message(1).facts is not None)
    assert desk.items.message(1).text == text
    assert bool(text) is not is_in_prefill


def test_a_stopped_reply_is_followed_by_the_next_one(make_desk: MakeDesk) -> None:
    desk = make_desk(replace(LONG, prefill_chunks=20_000, prefill_s=0.01))
    desk.load()
    desk.send("one")
    desk.qtbot.waitUntil(lambda: desk.items.message(1).state is ReplyState.READING)
    desk.chat.stop()
    desk.engine.script = Script(text="Second.")
    desk.send("two")
    desk.wait_for_reply()
    assert desk.items.message(3).text == "Second."
    # The empty reply is not sent, and its two neighbours are one message.
    assert prompt_of(desk) == [{"role": "user", "content": "one\n\ntwo"}]


def test_a_device_error_keeps_the_text_and_says_why(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(text="one two three four " * 9, failure="The device stopped.", failure_after=2))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    reply = desk.items.message(1)
    assert reply.state is ReplyState.FAILED
    assert reply.error == "The device stopped."
    assert reply.text.startswith("one")
    desk.engine.script = Script(text="Again.")
    desk.page.view.again_clicked.emit(reply)
    desk.wait_for_reply()
    assert desk.items.message(1).text == "Again."


def test_a_refused_message_comes_back_to_the_composer_above_what_was_begun(make_desk: MakeDesk) -> None:
    reason = "The prompt has 9,001 tokens, the context holds 8,192."
    desk = make_desk(Script(failure=reason, failure_kind="context_exceeded"))
    desk.load()
    desk.send("much too long")
    desk.composer.set_text("and more")
    desk.wait_for_reply()
    assert desk.items.rowCount() == 0
    assert desk.composer.text() == "much too long\n\nand more"
    assert desk.page.notice.text() == reason


def test_a_new_chat_can_be_taken_back(desk: Desk) -> None:
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    QTest.mouseClick(desk.page.new_button, Qt.MouseButton.LeftButton)
    assert desk.items.rowCount() == 0
    QTest.mouseClick(desk.page.notice._button, Qt.MouseButton.LeftButton)
    assert [m.text for m in desk.items.messages()] == ["go", "Hello, world."]


def test_clearing_while_a_reply_is_written_ends_it(make_desk: MakeDesk) -> None:
    desk = make_desk(LONG)
    desk.load()
    for _ in range(5):
        desk.send("go")
        desk.qtbot.waitUntil(lambda: desk.items.rowCount() > 1 and bool(desk.items.message(1).text))
        desk.page.on_new_clicked()
        assert desk.items.rowCount() == 0
    desk.engine.script = Script(text="Calm.")
    desk.send("last")
    desk.wait_for_reply()
    assert desk.items.message(1).text == "Calm."


def test_settings_of_the_panel_reach_the_engine(desk: Desk) -> None:
    desk.load()
    panel = desk.page.panel
    desk.page.settings_button.click()
    assert panel.isVisible()
    panel.system_prompt.setPlainText("Be brief.")
    panel.temperature.set_value(1.25)
    panel.top_k.setValue(7)
    panel.seed.setValue(42)
    panel.max_tokens.setValue(99)
    desk.send("go")
    desk.wait_for_reply()
    asked = desk.engine.generations()[-1]
    assert (asked.sampling.temperature, asked.sampling.top_k, asked.sampling.seed, asked.max_tokens) == (
        1.25,
        7,
        42,
        99,
    )
    assert prompt_of(desk)[0] == {"role": "system", "content": "Be brief."}


def test_a_suggestion_is_sent_with_one_click(desk: Desk) -> None:
    desk.load()
    desk.page.start.prompt_chosen.emit("Explain photosynthesis in simple terms.")
    desk.wait_for_reply()
    assert desk.items.message(0).text == "Explain photosynthesis in simple terms."


def test_every_action_in_the_middle_of_a_reply_is_survived(make_desk: MakeDesk) -> None:
    desk = make_desk(replace(LONG, step_s=0.001))
    desk.load()
    actions = [
        desk.page.on_new_clicked,
        desk.window.pair_state.unload,
        lambda: desk.window.show_page("engine"),
        lambda: desk.window.show_page("chat"),
        lambda: desk.window.theme_menu.actions()[1].trigger(),
        desk.chat.regenerate,
        desk.chat.stop,
        desk.page.settings_button.toggle,
        desk.window.load_starter,
    ]
    for action in actions:
        if desk.window.pair_state.phase is Phase.EMPTY:
            desk.load()
        if not desk.chat.is_busy:
            desk.send("go")
        desk.qtbot.wait(30)
        action()
        desk.qtbot.wait(15)
    desk.chat.stop()


def test_unloading_ends_the_reply_that_runs(make_desk: MakeDesk) -> None:
    desk = make_desk(LONG)
    desk.load()
    desk.send("go")
    desk.qtbot.waitUntil(lambda: bool(desk.items.message(1).text))
    QTest.mouseClick(desk.window.model_bar.unload_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.EMPTY)
    assert desk.items.message(1).state is ReplyState.STOPPED
    assert desk.window.model_bar.start_button.isVisible()


def test_copying_the_code_of_a_reply(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(text="Look:\n\n```python\nprint(1)\n```\n"))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    actions = {action.text(): action for action in desk.page.view.menu_for(1).actions()}
    actions["Copy code 1 (python)"].trigger()
    assert QGuiApplication.clipboard().text() == "print(1)"
    actions["Copy message"].trigger()
    assert QGuiApplication.clipboard().text().startswith("Look:")


@in_time(4)  # the promise is 2 s, on cores of its own
def test_closing_while_a_reply_is_written_ends_within_two_seconds(make_desk: MakeDesk, within_s: float) -> None:
    """B140."""
    desk = make_desk(LONG)
    desk.load()
    desk.send("go")
    desk.qtbot.waitUntil(lambda: bool(desk.items.message(1).text))
    begin = time.monotonic()
    desk.window.close()
    desk.bridge.close()
    assert time.monotonic() - begin < within_s
    assert "scripted-lane" not in {thread.name for thread in threading.enumerate()}
