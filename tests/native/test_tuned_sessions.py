"""A session under its tuner: what it drafts, what it leaves for later, what its records tell, what it remembers."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from ctypes import byref, c_double, c_int32
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadArgument
from dflash_desktop.binding.native import sized
from native.oracles import model_files
from native.oracles.prompts import PROMPTS, chat_ids
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.patience import LONG_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUTO, TREE, CHAIN, OFF = 0, 1, 2, 3
NOISE = chat_ids("q7 }v|K zR,&2 0x%f Lw9~ ^b{s ;Ue #1 mY<G p!8o (Dj ]n3 Xt/ 5h*C =i_W")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=768, n_threads=1) as rig:
        yield rig


@pytest.fixture(scope="module")
def exact_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The hybrid pair in F32: quantised products round their inputs, which hides small faults."""
    folder = tmp_path_factory.mktemp("f32")
    target = model_files.copy(QWEN35_MINI, folder / "target.gguf", dequantised=True)
    yield target, model_files.copy(QWEN35_MINI_DRAFT, folder / "draft.gguf", dequantised=True)
    target.unlink()


class Numbers:
    """What a session remembers, as far as these tests look into it: times in us by what is done, -1 where unknown."""

    def __init__(self, values: list[float]) -> None:
        self.values = list(values)
        n_rows, n_blocks = int(values[1]), int(values[2])
        at = 3 + n_rows + n_blocks + 1
        self.verify = slice(at, at + n_rows)  # in short contexts; row counts ascend from 1
        self.draft = slice(at + 2 * n_rows, at + 2 * n_rows + n_blocks)
        self.is_on = -2

    def with_costly_drafts(self) -> list[float]:
        """As of a session that has learnt that drafts do not pay here."""
        changed = list(self.values)
        changed[self.draft] = [1000 * max(us, 1000.0) for us in changed[self.draft]]
        changed[self.is_on] = 0
        return changed


@contextmanager
def session_that_believes(learnt: list[float], target: Path, draft: Path) -> Iterator[Rig]:
    """A session that opens with these numbers.

    It believes them where its own first step takes a third of what they say to three times as much. Other work may
    disturb that step: then the numbers are forgotten, rightly, and the session is opened again.
    """
    then = Numbers(learnt)
    least_us = min(us for us in learnt[then.verify] if us > 0)
    deadline = time.monotonic() + LONG_S
    while True:
        with Rig(target, draft, context=768, n_threads=1, tuning=learnt) as rig:
            if 1 / 3 < rig.session.tuning()[then.verify][0] / least_us < 3:
                yield rig
                return
        assert time.monotonic() < deadline, "no step took about as long as the steps before"


@pytest.fixture
def exact(exact_pair: tuple[Path, Path]) -> Iterator[Rig]:
    with Rig(*exact_pair, context=768, n_threads=1) as rig:
        yield rig


def same_draft(found: tuple[Any, ...], expected: tuple[Any, ...], where: str = "") -> None:
    np.testing.assert_array_equal(found[0][:, 0], expected[0][:, 0], err_msg=where)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-3, err_msg=where)


def steps_of(rig: Rig, prompt: list[int], **generation: float) -> list[abi.Step]:
    rig.begin(prompt, no_reuse=1, **generation)
    steps = []
    while True:
        steps.append(rig.session.step())
        if steps[-1].finish != abi.Finish.NONE:
            return steps


def test_what_plain_steps_leave_for_the_draft_is_made_up_for_exactly(exact: Rig, exact_pair: tuple[Path, Path]) -> None:
    # More plain steps than features are kept at a time, then a draft; beside a session that was fed the same rows.
    n_plain = 90
    exact.reset()
    reply = exact.generate(NOISE, max_tokens=n_plain, draft_mode=OFF, no_reuse=1).tokens
    exact.reset()
    exact.append([*NOISE, *reply[:-1]])
    expected = exact.draft(reply[-1])

    # A tuner that has learnt that drafts cost dearly decodes plainly, and keeps what a draft would need.
    with session_that_believes(Numbers(exact.session.tuning()).with_costly_drafts(), *exact_pair) as rig:
        steps = steps_of(rig, NOISE, max_tokens=n_plain, draft_mode=AUTO)
        said = [token for step in steps for token in step.tokens[: step.n_committed]]
        assert said == reply
        plain = [step for step in steps if step.block_size == 0]
        assert len(plain) > 80, "little was ever left for later: this test shows nothing"
        same_draft(rig.draft(reply[-1]), expected)


def test_every_mode_of_reply_in_turn_keeps_the_draft_informed(exact: Rig, exact_pair: tuple[Path, Path]) -> None:
    """Plain steps keep features, drafted ones compute context, replies without a draft do neither, reuse cuts back."""
    random = np.random.RandomState(1)
    history = chat_ids(PROMPTS[4])
    with Rig(*exact_pair, context=768, n_threads=1) as fresh:
        for turn in range(12):
            mode = int(random.choice([AUTO, AUTO, TREE, CHAIN, OFF]))
            if random.rand() < 0.4:
                history = history[: int(random.randint(20, len(history)))]
            reply = exact.generate(history, max_tokens=int(random.randint(1, 30)), draft_mode=mode, ignore_stop=1)
            history = history + reply.tokens
            if mode == OFF:
                continue
            fresh.reset()
            fresh.append(history[:-1])
            same_draft(exact.draft(history[-1]), fresh.draft(history[-1]), f"turn {turn}, mode {mode}")


def test_a_record_tells_what_was_chosen_and_why(rig: Rig) -> None:
    for mode, budget, block in ((AUTO, 0, 0), (TREE, 0, 0), (TREE, 5, 0), (CHAIN, 0, 0), (CHAIN, 0, 4), (OFF, 0, 0)):
        steps = steps_of(
            rig, chat_ids(PROMPTS[4]), max_tokens=40, draft_mode=mode, tree_budget=budget, block_size=block
        )
        for step in steps:
            reason = abi.Reason(step.reason)
            n_rows = step.n_drafted + 1
            parents = list(step.node_parents[:n_rows])
            path = list(step.path[: step.n_accepted + 1])
            assert step.plain_us > 0
            assert (step.block_size > 0) == (step.draft_us > 0)
            assert step.n_drafted == 0 or step.block_size > 0
            assert (step.expected_committed >= 1) == (step.expected_us > 0)
            # The tree: parents first, the accepted path from the root, probabilities that fall along it.
            assert parents[0] == -1
            assert all(0 <= parents[row] < row for row in range(1, n_rows))
            assert path[0] == 0
            assert all(parents[b] == a for a, b in itertools.pairwise(path))
            logprobs = step.node_logprobs[:n_rows]
            assert all(logprobs[row] <= logprobs[parents[row]] + 1e-5 for row in range(1, n_rows))
            accepted = [step.node_tokens[row] for row in path[1:]]
            assert list(step.tokens[: step.n_committed])[: len(accepted)] == accepted[: step.n_committed]
            if mode == AUTO:
                assert reason in (
                    *(abi.Reason.BEST, abi.Reason.PLAIN_FASTER, abi.Reason.PROBE, abi.Reason.MEASURE),
                    abi.Reason.NO_ROOM,
                )
                assert (reason is abi.Reason.PLAIN_FASTER) <= (step.block_size == 0)
            if mode == OFF:
                assert reason is abi.Reason.OFF
            if block and step.block_size:
                assert step.block_size == block
                assert reason is abi.Reason.FIXED
        assert any(step.block_size for step in steps) or mode in (OFF, AUTO)


def test_what_was_learnt_opens_the_next_session_without_measuring_again(rig: Rig) -> None:
    steps_of(rig, NOISE, max_tokens=60, draft_mode=AUTO)
    learnt = rig.session.tuning()
    assert len(learnt) > 400
    assert np.isfinite(learnt).all()
    with session_that_believes(learnt, QWEN35_MINI, QWEN35_MINI_DRAFT) as again:
        opened = again.session.tuning()
        assert len(opened) == len(learnt)
        # Times are scaled to this moment's speed, all by the same factor; what was never timed stays unknown.
        known = [(a, b) for a, b in zip(learnt, opened, strict=True) if a > 100 and b > 100]
        factors = np.array([b / a for a, b in known])
        assert len(known) > 5
        assert np.ptp(factors) < 1e-6 * factors.max()
        assert [a for a in learnt if a == -1] == [b for b in opened if b == -1]
        reply = again.generate(NOISE, max_tokens=20, draft_mode=AUTO)
        assert reply.tokens == rig.generate(NOISE, max_tokens=20, draft_mode=OFF, no_reuse=1).tokens


def test_numbers_of_another_kind_of_device_are_measured_anew(rig: Rig) -> None:
    learnt = rig.session.tuning()
    # Far slower than other work makes this machine while it is measured. Sizes that loading does not measure have times
    # too: whatever was not taken anew has to be unknown again.
    is_time = [number > 100 or number == -1 for number in learnt]
    slow = [max(number, 1e3) * 1e4 if known else number for number, known in zip(learnt, is_time, strict=True)]
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=768, n_threads=1, tuning=slow) as again:
        opened = again.session.tuning()
    assert len(opened) == len(learnt)
    now = [(b, a) for a, b, known in zip(slow, opened, is_time, strict=True) if known]
    assert any(b > 0 for b, _ in now)
    assert any(b == -1 for b, _ in now), "all sizes were measured at loading: this test shows nothing"
    assert all(b < 0.2 * a for b, a in now)


@pytest.mark.parametrize("change", [-1, 1 << 21])
def test_an_impossible_count_of_numbers_is_refused(rig: Rig, change: int) -> None:
    with pytest.raises(BadArgument, match="remembered numbers"):
        Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=64, n_threads=1, n_tuning=change)


def test_hostile_numbers_change_nothing_but_the_measuring() -> None:
    random = np.random.RandomState(2)
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=256, n_threads=1) as rig:
        learnt = rig.session.tuning()
        expected = rig.generate(NOISE, max_tokens=8, draft_mode=AUTO).tokens
    for case in range(6):
        numbers = list(learnt)
        for _ in range(1 + case * 3):
            at = int(random.randint(0, len(numbers)))
            numbers[at] = [np.nan, np.inf, -np.inf, -5.0, 1e308, 0.5][int(random.randint(0, 6))]
        with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=256, n_threads=1, tuning=numbers) as rig:
            assert rig.generate(NOISE, max_tokens=8, draft_mode=AUTO).tokens == expected
            assert np.isfinite(rig.session.tuning()).all()


def test_tuning_is_given_in_pieces_as_small_as_asked_for(rig: Rig) -> None:
    values = (c_double * 3)(7, 7, 7)
    n = c_int32()
    library = rig.session.library
    library.check(library.c.dflash_session_tuning(rig.session.handle, 2, values, byref(n)))
    assert n.value > 400
    assert values[2] == 7
    assert list(values[:2]) == rig.session.tuning()[:2]
    assert sized(abi.SessionParams).n_tuning == 0


def test_times_are_taken_again_where_the_context_has_grown() -> None:
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=1536, n_threads=1) as rig:
        before = rig.session.tuning()
        long_prompt = [int(i) for i in np.random.RandomState(3).randint(300, 20000, 1100)]
        steps = steps_of(rig, long_prompt, max_tokens=24, draft_mode=AUTO)
        after = rig.session.tuning()
        assert len(after) > len(before)  # a table of its own for such contexts
        # The first step there was measured plainly, or by a draft: its time is one of that context.
        assert steps[-1].plain_us > 0
        short = steps_of(rig, NOISE, max_tokens=4, draft_mode=AUTO)
        assert short[0].plain_us > 0
