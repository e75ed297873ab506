"""Arithmetic on replies; what cannot be told is None (B139)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflash_desktop.engine import metrics
from dflash_desktop.engine.events import GenerationDone, StepDone

STEP = StepDone(
    job_id=1, step_index=0, text="", token_ids=(), logprobs=(), n_drafted=7, n_accepted=3, n_committed=4,
    n_reply_tokens=4, n_context_tokens=10, reason="fixed", draft_us=1, verify_us=1, commit_us=1, host_us=1,
    expected_committed=0.0, elapsed_s=1.0, tree=None,
)  # fmt: skip
DONE = GenerationDone(
    job_id=1, text="", token_ids=(), finish_reason="stop", stop_string=None, n_prompt_tokens=101, n_reused_tokens=50,
    n_steps=4, n_drafted=28, n_accepted=7, n_committed=10, queue_s=0.0, ttft_s=0.5, prefill_s=0.25, decode_s=2.0,
    n_plain_steps=0, draft_s=0.1, verify_s=0.1, n_first_committed=2,
)  # fmt: skip


def test_acceptance_length_is_committed_tokens_per_step_the_cut_last_one_too() -> None:
    steps = [replace(STEP, n_committed=n) for n in (4, 1, 3, 2)]
    assert metrics.acceptance_length(steps) == 2.5 == metrics.acceptance_length(DONE)


def test_decode_speed_leaves_out_the_first_step_whose_tokens_came_with_the_ttft() -> None:
    assert metrics.decode_tps(DONE) == 4.0
    steps = [replace(STEP, n_committed=2, elapsed_s=0.5), replace(STEP, n_committed=8, elapsed_s=2.5)]
    assert metrics.decode_tps(steps) == 4.0


def test_prefill_speed_counts_only_what_was_computed() -> None:
    assert metrics.prefill_tps(DONE) == 200.0
    assert metrics.ttft(DONE) == 0.5


def test_what_cannot_be_told_is_none() -> None:
    nothing = replace(DONE, n_steps=0, n_committed=0, n_first_committed=0, n_drafted=0, n_accepted=0, decode_s=0.0,
                      prefill_s=0.0, ttft_s=0.0)  # fmt: skip
    one_step = replace(DONE, n_steps=1, n_committed=1, n_first_committed=1, decode_s=0.0)
    cached = replace(DONE, n_reused_tokens=100, prefill_s=1e-9)
    instant = replace(DONE, decode_s=1e-12, prefill_s=0.0)
    for figure in (
        metrics.acceptance_length,
        metrics.decode_tps,
        metrics.prefill_tps,
        metrics.ttft,
    ):
        assert figure(nothing) is None
    assert metrics.decode_tps(one_step) is None
    assert metrics.prefill_tps(cached) is None
    assert metrics.decode_tps(instant) is None
    assert metrics.prefill_tps(instant) is None
    assert metrics.acceptance_length([]) is None
    assert metrics.decode_tps([STEP]) is None


def test_a_moving_mean_is_as_long_as_its_values() -> None:
    assert metrics.moving_mean([1, 3, 5, 7], 2) == [1, 2, 4, 6]
    assert metrics.moving_mean([], 3) == []
    assert metrics.moving_mean([2, 4], 10) == [2, 3]
    with pytest.raises(ValueError, match="at least 1"):
        metrics.moving_mean([1], 0)
