"""PFlash on the lane: a real scorer shortens a real prompt, and whatever goes wrong costs no reply."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pytest

from dflash_desktop.engine.events import GenerationDone, JobCancelled, JobFailed, LoadProgress, PromptReady
from dflash_desktop.engine.pflash.compress import choose_anew
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed, ScoreProgress
from dflash_desktop.engine.pflash.rating import NEUTRAL
from dflash_desktop.engine.requests import ChatPrompt, CompressPrompt, Generate, RawPrompt
from support.fixtures import QWEN35_MINI
from support.real_engine import load_files, running_engine
from support.scripted_session import Listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dflash_desktop.engine.engine import Engine
    from dflash_desktop.engine.events import Event
    from dflash_desktop.engine.requests import Prompt

NEEDLE = "The secret code for the blue vault is 7391."
QUESTION = "What is the secret code for the blue vault?"
FILLER = "\n\n".join(
    f"In the year {1900 + i} the town council met {i % 7 + 1} times and spoke about roads and the price of bread."
    for i in range(60)
)
PASTE = FILLER.replace("\n\nIn the year 1930", f"\n\n{NEEDLE}\n\nIn the year 1930")
CHAT = ChatPrompt([{"role": "user", "content": f"{PASTE}\n\n{QUESTION}"}])
ALWAYS = PflashOptions("always", QWEN35_MINI, "0.2")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        load_files(engine, QWEN35_MINI, None, context=4096)
        yield engine


E = TypeVar("E", bound="Event")


def only(listener: Listener, kind: type[E]) -> E:
    (event,) = listener.of(kind)
    return event


def ask(engine: Engine, pflash: PflashOptions, prompt: Prompt = CHAT) -> Listener:
    listener = Listener()
    engine.submit(Generate(prompt, listener, max_tokens=4, pflash=pflash))
    listener.wait_for_end()
    return listener


def too_long(question: str) -> ChatPrompt:
    """For the context of these tests."""
    texts = [PASTE, *(FILLER.replace("town", place) for place in ("city", "village", "county", "harbour"))]
    return ChatPrompt([{"role": "user", "content": "\n\n".join([*texts, question])}])


def prompt_tokens(listener: Listener) -> int:
    return only(listener, PromptReady).n_prompt_tokens


def test_a_long_prompt_is_shortened_and_what_was_asked_for_stays(engine: Engine) -> None:
    whole = ask(engine, PflashOptions())
    short = ask(engine, ALWAYS)
    compressed = only(short, PromptCompressed)
    assert compressed.compression is not None
    assert NEEDLE in compressed.compression.messages[0]["content"]
    assert compressed.compression.messages[0]["content"].endswith(QUESTION)
    assert compressed.compression.n_kept <= 0.2 * compressed.compression.n_droppable
    assert prompt_tokens(short) < 0.4 * prompt_tokens(whole)
    assert short.of(LoadProgress)[-1].part == "scorer"
    assert short.of(ScoreProgress)
    assert compressed.score_s > 0
    assert short.events[-1] == only(short, GenerationDone)


def test_a_question_about_the_whole_is_not_asked_of_nothing(engine: Engine) -> None:
    """It is the question that scores are compared with, so none is above it."""
    asked = ask(engine, ALWAYS, ChatPrompt([{"role": "user", "content": f"{PASTE}\n\n{NEUTRAL}"}]))
    found = only(asked, PromptCompressed).compression
    assert found is not None
    assert 0.15 * found.n_droppable < found.n_kept <= 0.2 * found.n_droppable


def test_a_text_without_a_piece_that_is_small_enough_goes_in_whole(engine: Engine) -> None:
    sentence = " ".join(str(number) for number in range(300))  # a single unit
    chat = ChatPrompt([{"role": "user", "content": f"{sentence}\n\n{QUESTION}"}])
    asked = ask(engine, ALWAYS, chat)
    assert "as small as" in only(asked, PromptCompressed).why_not
    assert prompt_tokens(asked) == prompt_tokens(ask(engine, PflashOptions(), chat))
    # A person who has seen that in the preview may have it so.
    chosen = only(ask(engine, replace(ALWAYS, chosen=((0, 0.2),)), chat), PromptCompressed)
    assert chosen.compression is not None
    assert chosen.compression.n_kept == 0


def test_switched_off_nothing_is_different_and_nothing_is_said(engine: Engine) -> None:
    first, second = ask(engine, PflashOptions()), ask(engine, PflashOptions("off", QWEN35_MINI))
    assert prompt_tokens(first) == prompt_tokens(second)
    assert only(first, GenerationDone).token_ids == only(second, GenerationDone).token_ids
    assert not second.of(PromptCompressed)


def test_the_same_chat_goes_on_with_the_same_beginning(engine: Engine) -> None:
    options = PflashOptions("always", QWEN35_MINI, "0.2", keep_loaded=True)
    chat = ChatPrompt([{"role": "user", "content": f"{PASTE}\n\nIn one word: {QUESTION}"}])
    ask(engine, options, chat)
    longer = ChatPrompt(
        [*chat.messages, {"role": "assistant", "content": "7391."}, {"role": "user", "content": "Thanks."}]
    )
    again = ask(engine, options, longer)
    ready = only(again, PromptReady)
    assert ready.n_reused_tokens > 0.8 * ready.n_prompt_tokens
    assert not again.of(LoadProgress)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (PflashOptions("always"), "No scorer"),
        (PflashOptions("auto", QWEN35_MINI, threshold_tokens=100_000), "from 100000 on"),
    ],
)
def test_what_is_not_shortened_goes_in_whole_and_says_why(engine: Engine, options: PflashOptions, words: str) -> None:
    asked = ask(engine, options)
    assert words in only(asked, PromptCompressed).why_not
    assert prompt_tokens(asked) == prompt_tokens(ask(engine, PflashOptions()))


def test_tools_and_text_without_a_conversation_are_left_alone(engine: Engine) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for prompt in (ChatPrompt(CHAT.messages, tools=(tool,)), RawPrompt(PASTE)):
        asked = ask(engine, ALWAYS, prompt)
        assert only(asked, PromptCompressed).compression is None
        assert only(asked, GenerationDone).token_ids


def test_a_scorer_that_cannot_be_loaded_costs_no_reply(engine: Engine, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(QWEN35_MINI.read_bytes()[:5000])
    asked = ask(engine, PflashOptions("always", broken))
    assert "broken.gguf" in only(asked, PromptCompressed).why_not
    assert prompt_tokens(asked) == prompt_tokens(ask(engine, PflashOptions()))


def test_a_curve_that_makes_no_sense_is_refused(engine: Engine) -> None:
    asked = ask(engine, PflashOptions("always", QWEN35_MINI, "2"))
    assert "ratio" in only(asked, JobFailed).message


def test_a_cancel_while_the_scorer_reads_ends_the_reply(engine: Engine) -> None:
    listener = Listener()
    job = engine.submit(Generate(CHAT, listener, pflash=ALWAYS))
    listener.wait_for(ScoreProgress)
    engine.cancel(job)
    listener.wait_for_end()
    assert listener.of(JobCancelled)
    assert not listener.of(PromptReady)


def test_a_cancel_of_what_would_not_fit_whole_is_no_failure(engine: Engine) -> None:
    listener = Listener()
    job = engine.submit(Generate(too_long("Stop?"), listener, pflash=ALWAYS))
    listener.wait_for(ScoreProgress)
    engine.cancel(job)
    listener.wait_for_end()
    assert listener.of(JobCancelled)
    assert not listener.of(JobFailed)


def test_auto_shortens_what_does_not_fit_the_context_and_says_nothing_of_the_rest(engine: Engine) -> None:
    auto = replace(ALWAYS, mode="auto")
    found = only(ask(engine, auto, too_long(QUESTION)), PromptCompressed).compression
    assert found is not None
    assert NEEDLE in found.messages[0]["content"]
    assert only(ask(engine, auto), PromptCompressed).compression is None


def test_what_a_person_chose_holds_below_the_threshold_and_a_new_question_waits_for_no_scorer(engine: Engine) -> None:
    auto = replace(ALWAYS, mode="auto", chosen=((0, 0.3),))
    chat = ChatPrompt([{"role": "user", "content": f"{PASTE}\n\nOnly this: {QUESTION}"}])
    first = only(ask(engine, auto, chat), PromptCompressed).compression
    assert first is not None
    more = [{"role": "assistant", "content": "7391."}, {"role": "user", "content": "What was the price of bread?"}]
    longer = ChatPrompt([*chat.messages, *more])
    for options in (auto, replace(auto, mode="always", recalls=False)):
        asked = ask(engine, options, longer)
        assert not asked.of(ScoreProgress)
        again = only(asked, PromptCompressed).compression
        assert again is not None
        assert again.messages[0] == first.messages[0]
    assert ask(engine, replace(auto, mode="always"), longer).of(ScoreProgress)


def test_a_preview_says_what_would_be_kept_and_another_ratio_needs_no_rating(engine: Engine) -> None:
    listener = Listener()
    chat = ChatPrompt([{"role": "user", "content": f"{PASTE}\n\nAnd now: {QUESTION}"}])
    engine.submit(CompressPrompt(chat, ALWAYS, listener))
    listener.wait_for(PromptCompressed)
    found = only(listener, PromptCompressed).compression
    assert found is not None
    (view,) = found.shortened
    assert {unit.why for unit in view.units} >= {"dropped", "pinned"}
    expected = choose_anew(view.text, view.units, found.question, 0.5)
    asked = ask(engine, replace(ALWAYS, chosen=((0, 0.5),)), chat)
    assert not asked.of(ScoreProgress)
    assert not asked.of(LoadProgress)
    chosen = only(asked, PromptCompressed).compression
    assert chosen is not None
    assert list(chosen.shortened[0].units) == expected
    assert 0.4 * found.n_droppable < chosen.n_kept <= 0.5 * found.n_droppable
    longer = ChatPrompt(
        [*chat.messages, {"role": "assistant", "content": "7391."}, {"role": "user", "content": "Thanks."}]
    )
    on = only(ask(engine, replace(ALWAYS, chosen=((0, 0.5),)), longer), PromptCompressed).compression
    assert on is not None
    assert on.messages[0] == chosen.messages[0]
    cut = ChatPrompt([*chat.messages, {"role": "assistant", "content": "It is"}], continue_last=True)
    continued = ask(engine, replace(ALWAYS, chosen=((0, 0.5),)), cut)
    assert prompt_tokens(continued) < prompt_tokens(asked) + 8
    new = ChatPrompt([{"role": "user", "content": f"{PASTE}\n\nWho?"}, cut.messages[1]], continue_last=True)
    assert "keeps its prompt" in only(ask(engine, ALWAYS, new), PromptCompressed).why_not


def test_a_message_that_shall_stay_whole_does(engine: Engine) -> None:
    asked = ask(engine, replace(ALWAYS, chosen=((0, 1.0),)))
    assert only(asked, PromptCompressed).compression is None
    assert prompt_tokens(asked) == prompt_tokens(ask(engine, PflashOptions()))


def test_without_a_pair_the_scorers_own_tokens_count() -> None:
    with running_engine() as empty:
        listener = Listener()
        empty.submit(CompressPrompt(CHAT, ALWAYS, listener, counts_by_scorer=True))
        listener.wait_for(PromptCompressed)
        found = only(listener, PromptCompressed).compression
        assert found is not None
        assert NEEDLE in found.messages[0]["content"]
        empty.submit(CompressPrompt(CHAT, ALWAYS, listener))
        assert "No model is loaded" in listener.wait_for(JobFailed).message
