"""The real engine on real pairs: requests leave nothing behind, limits and ends fall inside drafted blocks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import gguf
import pytest

from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    PairLoaded,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.requests import (
    ChatPrompt,
    DraftMode,
    DraftOptions,
    Generate,
    LoadOptions,
    RawPrompt,
    TokenPrompt,
)
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.patience import LONG_S, in_time
from support.real_engine import ask_for, load_files, running_engine, try_load
from support.scripted_session import Listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dflash_desktop.engine.engine import Engine

QUESTION = "Write a JavaScript function that checks whether a number is prime."


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The hybrid pair: its recurrent state is what requests most easily leave behind."""
    with running_engine() as engine:
        load_files(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, context=1024)
        yield engine


@pytest.fixture
def prompts() -> list[str]:
    topics = ["the sky", "bread", "rivers", "prime numbers", "a lighthouse", "Rome", "the moon", "cats", "rain", "tea"]
    return [f"{start} {topic}." for topic in topics for start in ("Explain", "Write a short poem about")]


# ---- B003, B005, B010, B021: nothing is left behind ------------------------------------------------------------


@pytest.mark.parametrize("mode", ["chain", "tree", "off"])
def test_a_request_after_twenty_others_gives_what_it_gave_first(
    engine: Engine, prompts: list[str], mode: DraftMode
) -> None:
    first = ask_for(engine, prompts[0], mode=mode, max_tokens=24)
    for prompt in prompts[1:]:
        assert ask_for(engine, prompt, mode=mode, max_tokens=8).text
    listener = Listener()
    job = engine.submit(Generate(RawPrompt("abc " * 100), listener))
    listener.wait_for(StepDone)
    engine.cancel(job)
    listener.wait_for_end()
    again = ask_for(engine, prompts[0], mode=mode, max_tokens=24)
    assert again.token_ids == first.token_ids


def test_the_same_request_three_times_gives_the_same_reply_mostly_from_the_cache(engine: Engine) -> None:
    replies = [ask_for(engine, QUESTION, mode="chain", max_tokens=24) for _ in range(3)]
    assert len({reply.token_ids for reply in replies}) == 1
    assert all(reply.n_drafted > 0 for reply in replies)  # B044: a hit does not switch the draft off


@pytest.mark.parametrize("mode", ["chain", "tree"])
def test_a_limit_inside_a_drafted_block_gives_the_beginning_of_the_long_reply(engine: Engine, mode: DraftMode) -> None:
    long = ask_for(engine, QUESTION, mode=mode, max_tokens=32)
    assert long.n_steps < long.n_committed, "nothing was ever accepted: this test shows nothing"
    for limit in range(1, 32, 3):
        short = ask_for(engine, QUESTION, mode=mode, max_tokens=limit)
        assert short.token_ids == long.token_ids[:limit]
        assert short.n_committed == limit
        assert short.finish_reason == "length"


def test_drafting_changes_nothing_that_is_said(engine: Engine) -> None:
    plain = ask_for(engine, QUESTION, mode="off", max_tokens=48)
    for mode in ("chain", "tree", "auto"):
        assert ask_for(engine, QUESTION, mode=mode, max_tokens=48).text == plain.text
    assert plain.n_drafted == 0
    assert plain.n_plain_steps == plain.n_steps


@pytest.mark.parametrize("budget", [1, 8, 32])
def test_prompts_shorter_than_a_block_work(engine: Engine, budget: int) -> None:
    for length in (1, 2, 3, 7, 8, 9, 20):
        done = ask_for(engine, TokenPrompt(tuple(range(300, 300 + length))), mode="tree", budget=budget, max_tokens=6)
        assert done.n_committed >= 1


def test_a_reply_with_a_draft_fills_the_context_and_not_more(engine: Engine) -> None:
    with running_engine() as small:
        load_files(small, QWEN35_MINI, QWEN35_MINI_DRAFT, context=64)
        for length in range(40, 64, 3):
            prompt = TokenPrompt(tuple(range(300, 300 + length)))
            done = ask_for(small, prompt, mode="tree", budget=16)
            assert done.finish_reason in ("context", "stop", "length")
            assert length + done.n_committed <= 65
            plain = ask_for(small, prompt, mode="off")
            assert plain.n_committed == done.n_committed


def test_seeds_decide_what_is_drawn_with_and_without_a_draft(engine: Engine) -> None:
    for mode in ("off", "chain", "tree"):
        texts = [
            ask_for(engine, QUESTION, mode=mode, temperature=1.2, seed=seed, max_tokens=16).text for seed in range(4)
        ]
        assert len(set(texts)) >= 3
        again = ask_for(engine, QUESTION, mode=mode, temperature=1.2, seed=2, max_tokens=16)
        assert again.text == texts[2]


# ---- B024: end tokens inside a block ---------------------------------------------------------------------------


def test_a_reply_ends_at_the_end_token_wherever_it_sits_in_a_block(tmp_path: Path) -> None:
    copy = tmp_path / "f2.gguf"
    copy.write_bytes(QWEN35_MINI.read_bytes())
    field = gguf.GGUFReader(copy, "r+").fields["tokenizer.ggml.eos_token_id"]
    with running_engine() as engine:
        load_files(engine, copy, QWEN35_MINI_DRAFT, context=256)
        full = ask_for(engine, QUESTION, mode="chain", max_tokens=24)
        for index in (1, 13):
            token = full.token_ids[index]
            field.parts[field.data[0]][0] = token
            load_files(engine, copy, QWEN35_MINI_DRAFT, context=256)
            done = ask_for(engine, QUESTION, mode="chain", max_tokens=24)
            end = full.token_ids.index(token)
            assert done.token_ids == full.token_ids[: end + 1]
            assert done.finish_reason == "stop"
            assert full.text.startswith(done.text)


# ---- cancelling, closing, many callers -------------------------------------------------------------------------


def test_a_long_prefill_is_cancelled_at_once(engine: Engine) -> None:
    listener = Listener()

    def cancel_soon(event: Event) -> None:
        listener(event)
        if isinstance(event, PrefillProgress):
            engine.cancel(event.job_id)

    engine.submit(Generate(RawPrompt("one two three " * 250), cancel_soon, reuse_prefix=False))
    done = listener.wait_for_end()
    assert len(listener.of(PrefillProgress)) == 1  # of several chunks
    assert isinstance(done, GenerationDone)
    assert (done.finish_reason, done.text) == ("cancelled", "")
    assert ask_for(engine, QUESTION, max_tokens=4).n_committed == 4


@in_time(1)
def test_closing_while_a_reply_runs_ends_within_a_second(within_s: float) -> None:
    with running_engine() as engine:
        load_files(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, context=1024)
        running, waiting = Listener(), Listener()
        is_closing = threading.Event()

        def hear(event: Event) -> None:
            running(event)
            if isinstance(event, StepDone):
                is_closing.wait(LONG_S)  # else the reply may be over before this thread has its turn

        engine.submit(Generate(RawPrompt("one two three"), hear, ignore_stop=True))
        engine.submit(Generate(RawPrompt("four"), waiting))
        running.wait_for(StepDone)
        began = time.perf_counter()
        is_closing.set()
        engine.close()
        assert time.perf_counter() - began < within_s
        done = running.wait_for_end()
        assert isinstance(done, GenerationDone)
        assert done.finish_reason == "cancelled"
        assert isinstance(waiting.wait_for_end(), JobCancelled)


def test_three_threads_ask_at_once_and_each_gets_its_own_reply(engine: Engine, prompts: list[str]) -> None:
    alone = [ask_for(engine, prompt, mode="chain", max_tokens=10).text for prompt in prompts[:3]]
    answers: dict[tuple[int, int], str] = {}

    def ask(which: int) -> None:
        for turn in range(4):
            answers[which, turn] = ask_for(engine, prompts[which], mode="chain", max_tokens=10).text

    threads = [threading.Thread(target=ask, args=(which,)) for which in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {(which, turn): alone[which] for which in range(3) for turn in range(4)}


# ---- pairs that do not fit --------------------------------------------------------------------------------------


def test_a_draft_for_another_target_is_refused_and_the_loaded_pair_stays(engine: Engine) -> None:
    """B141: for another target, the target itself, a missing file. What the window says of it: test_pair_state.py."""
    built_in = built_in_pairs()[0]
    assert built_in.draft is not None
    for target, draft in (
        (QWEN35_MINI, built_in.draft),
        (QWEN35_MINI, QWEN35_MINI),
        (QWEN35_MINI_DRAFT, None),
        (QWEN35_MINI, QWEN35_MINI.parent / "missing.gguf"),
    ):
        failed = try_load(engine, target, draft)
        assert isinstance(failed, JobFailed)
        assert failed.kind == "bad_request"
        assert failed.message
        assert ask_for(engine, QUESTION, mode="chain", max_tokens=4).n_drafted > 0


def test_the_built_in_pair_loads_answers_and_tells_its_sizes() -> None:
    built_in = built_in_pairs()[0]
    with running_engine() as engine:
        options = LoadOptions(context_tokens=512, n_threads=1)
        loaded = try_load(engine, built_in.target, built_in.draft, options)
        assert isinstance(loaded, PairLoaded)
        pair = loaded.pair
        assert (pair.target_architecture, pair.block_size, pair.n_vocab) == ("llama", 8, 49152)
        assert pair.can_template
        assert not pair.has_tools
        assert pair.memory.kv_cache_bytes > 0
        assert pair.memory.draft_weights_bytes > 10_000_000
        assert loaded.reader is not None
        listener = Listener()
        prompt = ChatPrompt([{"role": "user", "content": "Why is the sky blue?"}])
        engine.submit(Generate(prompt, listener, draft=DraftOptions("chain"), max_tokens=16, want_logprobs=True))
        done = listener.wait_for_end()
        assert isinstance(done, GenerationDone)
        ready = listener.of(PromptReady)[0]
        assert ready.n_prompt_tokens == len(loaded.reader.render(prompt).token_ids)
        assert done.n_committed == 16
        steps = listener.of(StepDone)
        assert all(len(step.logprobs) == step.n_committed for step in steps)
        assert all(logprob <= 0 for step in steps for logprob in step.logprobs)
        for step in steps:
            assert step.plain_us > 0
            assert step.block_size == (8 if step.draft_us else 0)
            if step.tree is not None:
                assert step.tree.parents[0] == -1
                assert len(step.tree.accepted_rows) == step.n_accepted + 1
                assert len(step.tree.tokens) == step.n_drafted + 1
