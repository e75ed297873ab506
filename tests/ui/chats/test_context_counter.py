"""The context meter counts what the engine will read, and agrees with the figures of the reply beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.events import PromptReady
from dflash_desktop.engine.loaded import open_reader
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.ui.chats.context_counter import ContextCounter
from dflash_desktop.ui.chats.messages import Message, prompt_messages
from support.native_library import load_library
from ui.conftest import Desk, installed_pair
from ui.scripted_engine import Script

REPLIES = json.loads((Path(__file__).parents[2] / "engine" / "starter_replies.json").read_text("utf-8"))
BORDER_TOKENS = 3
"""Words may join at the borders between what is counted apart."""


@pytest.fixture(scope="module")
def reader() -> PromptReader:
    return open_reader(load_library(), installed_pair().target)


@pytest.fixture
def counter(qtbot: QtBot, reader: PromptReader) -> Iterator[ContextCounter]:
    made = ContextCounter()
    made.use_reader(reader)
    yield made
    made.close()


def talk(*texts: str) -> list[Message]:
    return [Message("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)]


TALKS: dict[str, list[Message]] = {
    **{one["prompt"]: talk(one["prompt"], one["text"]) for one in REPLIES[::3]},
    "long": talk(*["A question about the sea.", "An answer about the sea."] * 12),
    "an empty answer": [Message("user", "one"), Message("assistant", ""), Message("user", "two")],
    "two questions": [Message("user", "one"), Message("user", "two"), Message("assistant", "three")],
}


@pytest.mark.parametrize("system_prompt", ["", "You are a pirate, and speak like one."])
@pytest.mark.parametrize("name", TALKS)
def test_what_is_counted_is_what_the_next_prompt_has(
    counter: ContextCounter, qtbot: QtBot, reader: PromptReader, name: str, system_prompt: str
) -> None:
    unsent = "And what comes after that?"
    messages = [*TALKS[name], Message("user", unsent)]
    rows = prompt_messages(messages, system_prompt)
    true = len(reader.render(ChatPrompt(rows)).token_ids)
    with qtbot.waitSignal(counter.counted) as counted:
        counter.count(TALKS[name], system_prompt, [unsent])
    assert abs(counted.args[0] - true) <= BORDER_TOKENS


def test_nothing_written_is_nothing_read(counter: ContextCounter, qtbot: QtBot) -> None:
    with qtbot.waitSignal(counter.counted) as counted:
        counter.count([], "", ["", " \n"])
    assert counted.args == [0]


def test_a_reader_that_fails_once_is_asked_again(counter: ContextCounter, qtbot: QtBot, reader: PromptReader) -> None:
    class Failing:
        def __init__(self) -> None:
            self.n_calls = 0

        def tokenize(self, text: str, *, has_control_tokens: bool) -> Sequence[int]:
            self.n_calls += 1
            if self.n_calls == 1:
                counter.count([], "", ["changed meanwhile"])
                raise OSError("for once")
            return reader.tokenize(text, has_control_tokens=has_control_tokens)

        def render(self, prompt: ChatPrompt) -> object:
            return reader.render(prompt)

    counter.use_reader(Failing())  # type: ignore[arg-type]
    with qtbot.waitSignal(counter.counted) as counted:
        counter.count([], "", ["anything"])
    assert counted.args[0] > 0


def test_the_meter_agrees_with_the_figures_as_soon_as_they_stand_there(make_desk: Callable[..., Desk]) -> None:
    """It used to show what the reply had a moment before its end, until all was counted anew."""
    desk = make_desk(Script(text="A word and another. " * 60))
    desk.load()
    shown: list[int] = []
    desk.chat.replied.connect(lambda _done: shown.append(desk.composer.meter.n_tokens))
    desk.send("go")
    desk.wait_for_reply()
    facts = desk.items.message(1).facts
    assert facts is not None
    desk.qtbot.waitUntil(lambda: bool(shown))
    assert desk.composer.meter.n_tokens == facts.n_prompt_tokens + facts.n_tokens
    assert shown == [facts.n_prompt_tokens + facts.n_tokens]


def test_a_reply_of_another_program_does_not_fill_this_chats_context(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="Hello.", wait_for=(gate := threading.Event())))
    desk.load()
    desk.send("go")
    desk.qtbot.waitUntil(lambda: desk.window.figures.is_running)
    before = desk.composer.meter.n_tokens
    desk.bridge.served_event.emit(PromptReady(4711, 5000, 4000, 8192, 0))
    assert desk.window.figures.n_context_tokens == 4000
    desk.page.context.show_running()
    assert desk.composer.meter.n_tokens == before
    gate.set()
    desk.wait_for_reply()
