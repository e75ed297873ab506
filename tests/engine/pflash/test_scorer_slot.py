"""The scorer's slot: room for the text as the scorer counts it, and nothing read or asked twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.devices import list_devices, reserve_bytes
from dflash_desktop.engine.pflash import scorer as scorer_module
from dflash_desktop.engine.pflash.chat import ChatPlan, plan_chat
from dflash_desktop.engine.pflash.compress import Compressor
from dflash_desktop.engine.pflash.rating import NEUTRAL, Question, Usual, question_tokens, rate
from dflash_desktop.engine.pflash.remembered import Remembered
from dflash_desktop.engine.pflash.scorer import CHATML_TAIL, TEXT_STEP, ScorerSlot, plan_memory
from dflash_desktop.engine.pflash.selection import Curve
from support.fixtures import QWEN35_MINI
from support.generators import finished
from support.native_library import load_library

QUESTION = "What is the secret code for the blue vault?"
ENGLISH = "In the year 1930 the town council met seven times and spoke about roads and the price of bread."
CHINESE = "在一九三零年，市议会一共开了七次会，谈到了道路、面包的价格以及镇上的新学校。"


def planned(paragraph: str, n_paragraphs: int, count: Callable[[str], int]) -> tuple[list[dict[str, str]], ChatPlan]:
    text = "\n\n".join(f"{i}. {paragraph}" for i in range(n_paragraphs))
    chat = [{"role": "user", "content": f"{text}\n\n{QUESTION}"}]
    return chat, plan_chat(chat, has_tools=False, count=count)


@pytest.fixture
def slot() -> Iterator[ScorerSlot]:
    slot = ScorerSlot(load_library(), n_threads=1)
    yield slot
    slot.release()


def opened(slot: ScorerSlot, plan: ChatPlan) -> Compressor:
    return finished(slot.compressor(QWEN35_MINI, "cpu", plan))


def test_chinese_that_is_three_times_as_long_for_the_scorer_as_for_the_target_has_room(slot: ScorerSlot) -> None:
    """The tokenizer of the scorer was made for English: two tokens a character, where those for Chinese take less."""
    chat, plan = planned(CHINESE, 130, lambda text: len(text) * 2 // 3)
    assert plan.n_text * 3 // 2 < TEXT_STEP, "that much would be made room for"
    running = opened(slot, plan).compress(chat, plan, Curve.parse("0.2"))
    assert next(running).n_total > TEXT_STEP


@pytest.mark.parametrize(("n_steps", "fits"), [(2.5, True), (1.5, True), (0.5, False)])
def test_it_is_opened_for_what_is_needed_where_more_does_not_fit_and_refused_with_numbers_where_that_does_not(
    slot: ScorerSlot, monkeypatch: pytest.MonkeyPatch, n_steps: float, fits: bool
) -> None:
    _, plan = planned(ENGLISH, 240, lambda text: len(text) // 4)  # half as much again is more than one step
    library = load_library()
    one, two = (plan_memory(library, QWEN35_MINI, device=0, n_text_tokens=n * TEXT_STEP) for n in (1, 2))
    assert plan.n_text < TEXT_STEP < plan.n_text * 3 // 2
    spare = one.total_bytes - one.target_weights_bytes + int((n_steps - 1) * (two.total_bytes - one.total_bytes))
    cpu = next(device for device in list_devices(library) if device.kind == "cpu")
    full = replace(cpu, free_bytes=reserve_bytes(cpu) + spare)
    monkeypatch.setattr(scorer_module, "list_devices", lambda library: [full])
    if fits:
        opened(slot, plan)
        return
    with pytest.raises(
        AppError, match=r"The text has \d+ tokens of the scorer .* MiB to rate them; .* to spare\. Choose"
    ):
        opened(slot, plan)


def test_a_chat_that_grows_within_the_room_is_not_read_from_its_beginning_again(slot: ScorerSlot) -> None:
    def count(text: str) -> int:
        return len(text) // 4

    _, short = planned(ENGLISH, 150, count)
    _, longer = planned(ENGLISH, 230, count)
    first = opened(slot, short)
    assert longer.n_text * 3 // 2 > TEXT_STEP, "a chat that begins with it would be given more room"
    assert opened(slot, longer) is first
    _, much_longer = planned(ENGLISH, 400, count)
    assert opened(slot, much_longer) is not first


def test_tokens_of_a_text_are_worked_out_once_while_each_request_holds_it() -> None:
    asked: list[str] = []

    def work_out(text: str) -> int:
        asked.append(text)
        return len(text)

    remembered = Remembered(work_out)
    for texts in (["a", "bb", "a"], ["a", "bb", "ccc"], ["ccc"], ["a"]):
        remembered.begin()
        assert [remembered(text) for text in texts] == [len(text) for text in texts]
    assert asked == ["a", "bb", "ccc", "a"]


def test_a_follow_up_asks_its_own_question_only_and_scores_as_if_all_were_asked_anew() -> None:
    """With a real scorer: what the neutral question saw of the text holds for every other one."""
    library = load_library()
    slot = ScorerSlot(library)
    tokenizer = slot.reader(QWEN35_MINI).tokenizer
    units = [f"{i}. {ENGLISH}\n\n" for i in range(30)]
    units[11] = "The secret code for the blue vault is 7391.\n\n"
    neutral = question_tokens(tokenizer, [(NEUTRAL, 1.0)], CHATML_TAIL)
    begun: list[Question] = []

    class Heard(NativeScorer):
        def begin(self, text: Any, question: Any, weights: Any = None) -> None:
            begun.append((question, weights))
            super().begin(text, question, weights)

    with NativeTarget(library, QWEN35_MINI, device=0, n_threads=1) as target:
        while not target.load_piece().is_complete:
            pass
        with Heard(target, sized(abi.ScorerParams, text_tokens=2048)) as scorer:
            usual = Usual()
            for question, n_asked in (("Who met?", 2), (QUESTION, 1)):
                begun.clear()
                asking = question_tokens(tokenizer, [(question, 1.0)], CHATML_TAIL)
                kept = finished(rate(scorer, tokenizer.encode, units, asking, neutral, usual))
                assert len(begun) == n_asked
                assert kept == finished(rate(scorer, tokenizer.encode, units, asking, neutral))
            begun.clear()
            finished(rate(scorer, tokenizer.encode, units[:20], asking, neutral, usual))
            assert begun == [neutral, asking]
