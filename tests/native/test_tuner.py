"""The tuner in simulation: against every fixed size and against plain decoding, on machines and texts of several kinds.

A text is a stream of positions; at each the right tokens are drawn from the probabilities that the draft claims, or for
an over-confident draft, from flatter ones. Fixed sizes decode the same stream.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from native.oracles.tuner_rig import (
    BUCKETS,
    CPU_BUCKETS,
    EASY,
    FLAT,
    HOPELESS,
    IDS,
    MEDIUM,
    STEEP,
    TEXTS,
    Machine,
    Text,
    committed_by_size,
    fixed_rates,
    rates_of,
    run,
    seeded,
    stream,
)
from support.native_probe import Ints, Probe, ProbeTuner

if TYPE_CHECKING:
    from collections.abc import Callable

# ---- against fixed sizes and against plain decoding ---------------------------------------------------------------


@pytest.mark.parametrize("sharpness", [1.0, 2.0], ids=["honest", "over-confident"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("machine", [FLAT, STEEP], ids=["flat", "steep"])
def test_it_comes_within_3_percent_of_the_best_fixed_size_and_within_2_of_plain(
    probe: Probe, machine: Machine, text: Text, sharpness: float
) -> None:
    data = stream([text], 3000, seed=3, sharpness=sharpness)
    result = run(seeded(probe, machine), machine, data)
    assert result.over_plain > 0.98
    committed = committed_of(probe, text, sharpness)
    assert result.rate > 0.97 * max(rates_of(committed, machine, BUCKETS).max(), 1 / machine.table(BUCKETS)[1])


@functools.cache
def committed_of(probe: Probe, text: Text, sharpness: float) -> Ints:
    """Of the stream above; both machines decode it."""
    return committed_by_size(probe, stream([text], 3000, seed=3, sharpness=sharpness))


@pytest.mark.parametrize("machine", [FLAT, STEEP], ids=["flat", "steep"])
def test_on_changing_text_it_beats_every_fixed_size(probe: Probe, machine: Machine) -> None:
    texts = [EASY, HOPELESS, MEDIUM]
    data = stream(texts, 9000, seed=4)
    result = run(seeded(probe, machine), machine, data)
    # A fixed size needs its own time for each third of the tokens.
    us_per_token = np.zeros(len(BUCKETS))
    for i in range(len(texts)):
        part = slice(i * 3000, i * 3000 + 700)
        us_per_token += 1 / fixed_rates(probe, machine, BUCKETS, (data[0][part], data[1][part]))
    assert result.rate > len(texts) / us_per_token.min()
    assert result.over_plain > 1.3


def test_drafting_goes_off_where_it_loses_and_comes_back_where_it_wins(probe: Probe) -> None:
    hopeless, easy = stream([HOPELESS], 3000, seed=5), stream([EASY], 4000, seed=6)
    tuner = seeded(probe, FLAT)
    first = run(tuner, FLAT, hopeless)
    assert first.decisions[-200:].count(ProbeTuner.PLAIN) > 180
    assert first.over_plain > 0.98
    assert tuner.measured_speed_up() < 1
    second = run(tuner, FLAT, easy)
    assert second.decisions[-200:].count(ProbeTuner.PLAIN) < 10
    assert second.decisions.index(ProbeTuner.PROBE) < 520
    assert tuner.measured_speed_up() > 2


def test_probes_become_rare_on_hopeless_text(probe: Probe) -> None:
    result = run(seeded(probe, STEEP), STEEP, stream([HOPELESS], 5000, seed=7))
    probes = [i for i, decision in enumerate(result.decisions) if decision == ProbeTuner.PROBE]
    first = result.decisions.index(ProbeTuner.PLAIN, 20)
    assert result.decisions[first:].count(ProbeTuner.PLAIN) > 0.96 * len(result.decisions[first:])
    assert probes[-1] - probes[0] > 1000  # rare, but not given up


def test_plain_steps_and_other_sizes_are_tried_for_less_than_2_percent_of_the_time(probe: Probe) -> None:
    for text in (EASY, MEDIUM):
        result = run(seeded(probe, FLAT), FLAT, stream([text], 6000, seed=8))
        table = FLAT.table(BUCKETS)
        plain_us = result.decisions.count(ProbeTuner.MEASURE) * table[1]
        unusual = {n: result.rows.count(n) for n in set(result.rows) if result.rows.count(n) < 0.02 * len(result.rows)}
        explored_us = sum(n_steps * (table[n] - table[8]) for n, n_steps in unusual.items() if n > 16)
        assert plain_us < 0.01 * result.us
        assert explored_us < 0.02 * result.us


def test_short_replies_lose_little_on_hopeless_text(probe: Probe) -> None:
    for machine in (FLAT, STEEP):
        assert run(seeded(probe, machine), machine, stream([HOPELESS], 300, seed=9)).over_plain > 0.96


# ---- bad measurements -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 16, 64])
@pytest.mark.parametrize("factor", [10, 0.2])
def test_a_wrong_first_time_is_found_out(probe: Probe, size: int, factor: float) -> None:
    right = run(seeded(probe, FLAT), FLAT, stream([MEDIUM], 3000, seed=10))
    wrong = run(seeded(probe, FLAT, wrong={size: factor}), FLAT, stream([MEDIUM], 3000, seed=10))
    assert wrong.rate > 0.95 * right.rate


def test_without_first_times_it_learns_them(probe: Probe) -> None:
    data = stream([MEDIUM], 3000, seed=10)
    tuner = ProbeTuner(probe, BUCKETS)
    assert tuner.verify_us(1) == tuner.verify_us(64) == tuner.draft_us() == tuner.measured_speed_up() == 0
    assert tuner.decide() == ProbeTuner.MEASURE  # the time to beat comes first
    assert run(tuner, FLAT, data).rate > 0.95 * run(seeded(probe, FLAT), FLAT, data).rate


@pytest.mark.parametrize("machine", [FLAT, STEEP], ids=["flat", "steep"])
def test_slow_steps_by_accident_do_not_switch_drafting_off(probe: Probe, machine: Machine) -> None:
    data = stream([MEDIUM], 4000, seed=11)
    calm = run(seeded(probe, machine), machine, data)
    rough = run(seeded(probe, machine), machine, data, outliers=0.01)
    assert rough.rate > 0.95 * calm.rate
    assert rough.decisions.count(ProbeTuner.PLAIN) < 0.05 * len(rough.decisions)


def test_one_slow_step_changes_nothing(probe: Probe) -> None:
    tuner = seeded(probe, FLAT)
    run(tuner, FLAT, stream([EASY], 1000, seed=12))
    before = [tuner.verify_us(n) for n in BUCKETS]
    logprobs, truth = stream([EASY], 10, seed=13)
    slow = 10 * FLAT.table(BUCKETS)
    tuner.draft_step(IDS, logprobs[0], truth[0], draft_us=60_000, verify_us=slow)
    assert [tuner.verify_us(n) for n in BUCKETS] == pytest.approx(before, rel=0.04)
    assert tuner.decide() == ProbeTuner.DRAFT


@pytest.mark.parametrize("slowness", [lambda x: 1 + 2 * x, lambda x: 1 + 2 * (x > 0.5)], ids=["grows", "jumps"])
def test_times_follow_a_context_that_grows(probe: Probe, slowness: Callable[[float], float]) -> None:
    tuner = seeded(probe, FLAT)
    result = run(tuner, FLAT, stream([MEDIUM], 6000, seed=14), slowness=slowness)
    for n in (1, 8, 12, 16, 24):
        assert tuner.verify_us(n) == pytest.approx(3 * FLAT.verify_us(n), rel=0.15)
    assert result.decisions.count(ProbeTuner.PLAIN) < 0.05 * len(result.decisions)
    hopeless = run(seeded(probe, FLAT), FLAT, stream([HOPELESS], 6000, seed=15), slowness=slowness)
    assert hopeless.over_plain > 0.98


# ---- tables and calibration -------------------------------------------------------------------------------------


def test_times_are_interpolated_padded_to_buckets_and_never_fall(probe: Probe) -> None:
    tuner = ProbeTuner(probe, BUCKETS)
    for n, us in ((1, 100), (8, 170), (16, 250)):
        tuner.set_verify_us(n, us)
    assert [tuner.verify_us(n) for n in (1, 4, 8, 12, 16)] == pytest.approx([100, 130, 170, 210, 250])
    assert tuner.verify_us(9) == tuner.verify_us(12)  # 9 rows run as 12
    assert tuner.verify_us(32) == pytest.approx(250 + 80 * 16 / 8)
    tuner.set_verify_us(8, 5000)  # a hiccup: 8 rows cannot cost more than 16
    times = [tuner.verify_us(n) for n in range(1, 65)]
    assert times == sorted(times)
    assert tuner.verify_us(8) == 250


@pytest.mark.parametrize("us", [0, -1, float("nan"), float("inf")])
def test_impossible_times_are_ignored(probe: Probe, us: float) -> None:
    tuner = seeded(probe, FLAT)
    before = [tuner.verify_us(n) for n in BUCKETS] + [tuner.draft_us()]
    tuner.set_verify_us(8, us)
    tuner.set_draft_us(us)
    tuner.plain_step(us)
    assert [tuner.verify_us(n) for n in BUCKETS] + [tuner.draft_us()] == before


def test_calibration_finds_how_far_the_draft_is_off(probe: Probe) -> None:
    tuner = seeded(probe, FLAT)
    data = stream([MEDIUM], 6000, seed=16, sharpness=2.0)
    run(tuner, FLAT, data)
    logprobs, truth = stream([MEDIUM], 1500, seed=17, sharpness=2.0)
    claimed = actual = calibrated = 0.0
    for row, right in zip(logprobs, truth, strict=True):
        ids, corrected = tuner.calibrate(IDS, row)
        assert (np.diff(corrected, axis=1) <= 1e-6).all()
        assert sorted(ids[0].tolist()) == IDS[0].tolist()
        assert np.exp(corrected.astype(float)).sum(1).max() < 1.0001
        claimed += float(np.exp(row[0, 0]))
        calibrated += float(np.exp(corrected[0, list(ids[0]).index(1)]))
        actual += float(right[0] == 1)
    assert claimed > 1.15 * actual  # the draft of this test boasts
    assert calibrated == pytest.approx(actual, rel=0.12)


def test_an_untried_tuner_leaves_the_draft_s_numbers_alone(probe: Probe) -> None:
    logprobs, _ = stream([MEDIUM], 1, seed=18)
    ids, corrected = ProbeTuner(probe, BUCKETS).calibrate(IDS, logprobs[0])
    assert (ids == IDS).all()
    assert corrected == pytest.approx(logprobs[0], abs=1e-5)


def test_expected_tokens_are_what_comes(probe: Probe) -> None:
    tuner = seeded(probe, FLAT)
    logprobs, truth = stream([MEDIUM], 3000, seed=19, sharpness=1.5)
    table = FLAT.table(BUCKETS)
    steps = [
        tuner.draft_step(IDS, logprobs[i], truth[i], draft_us=6000, verify_us=table) for i in range(len(logprobs))
    ][500:]
    assert sum(step.expected for step in steps) == pytest.approx(sum(step.n_committed for step in steps), rel=0.06)
    assert all(1 <= step.n_rows <= 64 for step in steps)


def test_it_learns_from_verified_rows_alone_when_the_target_s_tokens_are_not_told(probe: Probe) -> None:
    data = stream([MEDIUM], 4000, seed=21, sharpness=1.5)
    told = run(seeded(probe, FLAT), FLAT, data)
    mute = run(seeded(probe, FLAT), FLAT, data, is_mute=True)
    assert mute.rate > 0.95 * told.rate


def test_a_fine_table_of_row_counts_does_as_well(probe: Probe) -> None:
    data = stream([MEDIUM], 4000, seed=20)
    coarse, fine = (run(seeded(probe, STEEP, buckets), STEEP, data).rate for buckets in (BUCKETS, CPU_BUCKETS))
    assert fine > 0.97 * coarse


# ---- contexts, blocks, repetition, memory ------------------------------------------------------------------------


def test_each_doubling_of_the_context_has_times_of_its_own(probe: Probe) -> None:
    tuner = seeded(probe, FLAT)
    short = [tuner.verify_us(n) for n in BUCKETS]
    assert not tuner.set_context(511)
    assert tuner.set_context(512)  # another range: what was known is a guess there
    assert [tuner.verify_us(n) for n in BUCKETS] == short
    tuner.plain_step(2 * short[0])
    assert [tuner.verify_us(n) for n in BUCKETS] == pytest.approx(
        [2 * us for us in short]
    )  # the first sample takes all along
    assert tuner.draft_us() == pytest.approx(2 * FLAT.draft_us)
    assert not tuner.set_context(40)
    assert [tuner.verify_us(n) for n in BUCKETS] == short  # and the short context's are as they were
    assert not tuner.set_context(700)
    assert tuner.verify_us(1) == pytest.approx(2 * short[0])
    assert tuner.set_context(1 << 24)  # no end of the tables


def test_a_wild_first_sample_of_a_context_is_not_believed_whole(probe: Probe) -> None:
    tuner = seeded(probe, FLAT)
    before = tuner.verify_us(8)
    tuner.set_context(5000)
    tuner.plain_step(1000 * tuner.verify_us(1))
    assert tuner.verify_us(8) <= 4 * before


def test_draft_times_of_blocks_between_the_measured_ones_are_interpolated(probe: Probe) -> None:
    tuner = ProbeTuner(probe, BUCKETS, (4, 8, 16))
    tuner.set_draft_us(1000, 4)
    assert tuner.draft_us(16) == 1000
    tuner.set_draft_us(2600, 16)
    assert tuner.draft_us(8) == pytest.approx(1000 + 1600 / 3)
    tuner.set_draft_us(1800, 8)
    assert tuner.draft_us(8) == 1800


def test_the_largest_block_is_drafted_first_and_never_more_than_the_room_allows(probe: Probe) -> None:
    tuner = ProbeTuner(probe, BUCKETS, (4, 8, 16))
    assert tuner.choose_block(16) == 16
    assert tuner.choose_block(15) == 8
    assert tuner.choose_block(2) == 4  # the smallest there is


def test_a_text_that_begins_to_repeat_itself_is_probed_soon(probe: Probe) -> None:
    """Hopeless text that turns into a loop: the wait until the next probe does not depend on how long it was off."""
    waits = []
    for repeats in (False, True):
        tuner = seeded(probe, STEEP)
        logprobs, truth = stream([HOPELESS], 400, seed=22)
        tuner.begin_reply(range(50))
        for at in range(300):
            if tuner.decide() >= ProbeTuner.PLAIN:
                tuner.plain_step(STEEP.verify_us(1))
            else:
                tuner.draft_step(IDS, logprobs[at], truth[at], draft_us=STEEP.draft_us, verify_us=STEEP.table(BUCKETS))
            tuner.hear([100 + at])
        n_waited = 0
        while tuner.decide() != ProbeTuner.PROBE and n_waited < 400:
            tuner.plain_step(STEEP.verify_us(1))
            tuner.hear([7 + n_waited % 3] if repeats else [1000 + n_waited])
            n_waited += 1
        waits.append(n_waited)
    assert waits[1] < 20 < waits[0]


def test_what_is_remembered_is_the_whole_state(probe: Probe) -> None:
    data = stream([MEDIUM], 3000, seed=23, sharpness=1.5)
    first = seeded(probe, FLAT)
    run(first, FLAT, data)
    second = ProbeTuner(probe, BUCKETS)
    assert second.remember(first.remembered())
    assert [second.verify_us(n) for n in BUCKETS] == pytest.approx([first.verify_us(n) for n in BUCKETS])
    assert second.draft_us() == pytest.approx(first.draft_us())
    assert second.measured_speed_up() == pytest.approx(first.measured_speed_up(), rel=1e-6)
    ids, logprobs = first.calibrate(IDS, data[0][0])
    again_ids, again = second.calibrate(IDS, data[0][0])
    np.testing.assert_array_equal(again_ids, ids)
    np.testing.assert_allclose(again, logprobs, atol=1e-6)
    third = ProbeTuner(probe, BUCKETS)
    assert third.remember(second.remembered())
    np.testing.assert_allclose(third.remembered(), second.remembered())


def test_no_number_that_is_unsound_is_taken_over(probe: Probe) -> None:
    tuner = seeded(probe, FLAT)
    run(tuner, FLAT, stream([MEDIUM], 500, seed=24))
    sound = tuner.remembered()
    other = ProbeTuner(probe, BUCKETS)
    untouched = other.remembered()
    random = np.random.default_rng(25)
    for _ in range(300):
        numbers = sound.copy()
        at = int(random.integers(0, len(numbers)))
        numbers[at] = random.choice([np.nan, np.inf, -np.inf, 1e300, -7.5])
        assert not other.remember(numbers), (at, numbers[at])
    for wrong in (sound[:-1], np.append(sound, 1.0), sound[:1], np.zeros(0), np.zeros(10_000), -sound):
        assert not other.remember(wrong)
    assert not ProbeTuner(probe, CPU_BUCKETS).remember(sound)
    assert not ProbeTuner(probe, BUCKETS, (4, 8)).remember(sound)
    np.testing.assert_array_equal(other.remembered(), untouched)
    assert other.remember(sound)
