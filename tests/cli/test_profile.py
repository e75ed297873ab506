"""`bench --profile`: what is measured of which steps, and the real thing on a real pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dflash_desktop.cli.profile import ROWS, curve
from dflash_desktop.engine.events import StepDone
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.program import run_for_json, run_program

if TYPE_CHECKING:
    from typing import Any

MINI = ("--target", QWEN35_MINI, "--threads", "1")


def step(n_rows: int, draft_us: int, verify_us: int, commit_us: int, host_us: int) -> StepDone:
    return StepDone(
        job_id=1,
        step_index=0,
        text="",
        token_ids=(1,),
        logprobs=(),
        n_drafted=n_rows - 1,
        n_accepted=0,
        n_committed=1,
        n_reply_tokens=1,
        n_context_tokens=1,
        reason="fixed",
        draft_us=draft_us,
        verify_us=verify_us,
        commit_us=commit_us,
        host_us=host_us,
        expected_committed=0.0,
        elapsed_s=0.0,
        tree=None,
    )


def test_a_line_has_the_medians_of_its_steps_and_its_time_over_a_plain_one() -> None:
    plain = [step(1, 0, us, 4, 6) for us in (90, 900, 80)]
    tree = [step(8, 50, 240, 7, 3), step(8, 20, 260, 9, 1), step(8, 40, 9000, 8, 2)]
    one, eight = curve({1: plain, 4: [], 8: tree})
    assert (one.n_rows, one.n_steps, one.step_us, one.verify_us, one.over_plain) == (1, 3, 100, 90, 1)
    # 50 + 240 + 7 + 3, 20 + 260 + 9 + 1 and one that something held up
    assert (eight.n_rows, eight.n_steps, eight.step_us, eight.over_plain) == (8, 3, 300, 3)
    assert (eight.draft_us, eight.verify_us, eight.commit_us, eight.host_us) == (40, 260, 8, 2)


def test_a_real_profile_has_every_size_and_its_parts() -> None:
    told = run_for_json("bench", *MINI, "--draft", QWEN35_MINI_DRAFT, "--profile")
    lines: list[dict[str, Any]] = told["lines"]
    assert [line["n_rows"] for line in lines] == list(ROWS)
    assert lines[0]["draft_us"] == 0
    assert all(line["draft_us"] > 0 for line in lines[1:])
    assert all(line["n_steps"] >= 3 and line["verify_us"] > 0 for line in lines)
    assert told["weight_bytes"] > 20e6
    assert told["weight_bytes_per_s"] == pytest.approx(told["weight_bytes"] / lines[0]["verify_us"] * 1e6)


def test_without_a_draft_plain_steps_alone_are_timed() -> None:
    done = run_program("bench", *MINI, "--draft", "none", "--profile")
    assert done.returncode == 0
    assert "GB/s" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["rows", "1"]


def test_a_sweep_and_a_profile_are_two_things() -> None:
    refused = run_program("bench", *MINI, "--profile", "--sweep")
    assert refused.returncode == 2
    assert "not allowed with" in refused.stderr
