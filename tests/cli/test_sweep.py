"""`bench --sweep`: what is compared with what, and the real thing on a real pair."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.cli.prompts import KINDS
from dflash_desktop.cli.sweep import AUTO, PLAIN, Answer, Explored, Sweep, run_sweep, settings
from dflash_desktop.engine.events import GenerationDone, StepDone
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.misfits import misfit_draft
from support.program import UNHURRIED, run_for_json, run_program

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.requests import DraftOptions

MINI = ("--target", QWEN35_MINI, "--threads", "1")
SPEEDS = {"off": 100.0, "chain": 50.0, "tree": 80.0, "auto": 99.0}


def done(tokens_per_s: float, n_tokens: int = 101) -> GenerationDone:
    return GenerationDone(
        job_id=1,
        text="",
        token_ids=tuple(range(n_tokens)),
        finish_reason="length",
        stop_string=None,
        n_prompt_tokens=5,
        n_reused_tokens=0,
        n_steps=n_tokens,
        n_drafted=0,
        n_accepted=0,
        n_committed=n_tokens,
        queue_s=0.0,
        ttft_s=0.1,
        prefill_s=0.1,
        decode_s=(n_tokens - 1) / tokens_per_s,
        n_plain_steps=n_tokens,
        draft_s=0.0,
        verify_s=0.0,
        n_first_committed=1,
    )


class Machine:
    """Answers at the speeds above; everything takes `slowness` times as long from one round to the next."""

    def __init__(self, slowness: float = 1.0) -> None:
        self.asked: list[tuple[str, DraftOptions]] = []
        self.slowness = slowness
        self.n_per_round = 0

    def __call__(self, prompt: str, draft: DraftOptions) -> Answer:
        number = len(self.asked) // self.n_per_round if self.n_per_round else 0
        self.asked.append((prompt, draft))
        return Answer(done(SPEEDS[draft.mode] / self.slowness**number), explored_s=0.01)


def sweep_of(machine: Machine, n_rounds: int = 1, n_prompts: int = 2) -> Sweep:
    chosen = settings(0, (2, 4))
    machine.n_per_round = len(chosen) * n_prompts
    return run_sweep([f"prompt {index}" for index in range(n_prompts)], chosen, machine, n_rounds)


def test_auto_is_held_against_the_best_fixed_setting_and_against_plain_decoding() -> None:
    sweep = sweep_of(Machine())
    assert [row.name for row in sweep.rows] == [PLAIN, "chain", "tree 2", "tree 4", AUTO]
    assert sweep.best_fixed == PLAIN
    assert sweep.auto_of_best == sweep.auto_of_plain == pytest.approx(0.99)
    assert [row.speed_up for row in sweep.rows] == pytest.approx([1, 0.5, 0.8, 0.8, 0.99])
    assert sweep.rows[0].decode_tps == pytest.approx(100)
    assert sweep.rows[0].explored_share == pytest.approx(0.01)
    assert sweep.rows[-1].n_identical == sweep.rows[-1].n_replies == 2


def test_a_machine_that_slows_down_changes_no_ratio() -> None:
    sweep = sweep_of(Machine(slowness=2.0), n_rounds=3)
    assert sweep.auto_of_best == pytest.approx(0.99)
    assert sweep.rows[0].decode_tps == pytest.approx(50)  # the middle one of 100, 50, 25
    assert sweep.rows[0].n_replies == 6


def test_settings_take_turns_and_the_order_moves_on() -> None:
    machine = Machine()
    sweep_of(machine, n_rounds=2)
    firsts = [machine.asked[at][1].mode for at in range(0, 20, 5)]
    assert firsts == ["off", "chain", "chain", "tree"]
    for at in range(0, 20, 5):
        turn = machine.asked[at : at + 5]
        assert len({prompt for prompt, _ in turn}) == 1
        assert len({(draft.mode, draft.tree_budget) for _, draft in turn}) == 5


def test_what_exploring_cost_is_counted_beyond_plain_decoding() -> None:
    step = StepDone(9, 0, "a", (1,), (), 5, 1, 2, 1, 1, "probe", 3000, 5000, 500, 500, 1.5, 0.1, None, plain_us=2000.0)
    explored = Explored()
    explored.watch(step)
    assert explored.seconds == pytest.approx(5e-3)  # 9 ms for two tokens that take 4 ms
    for other in ("best", "plain_faster", "fixed"):
        explored.watch(replace(step, reason=other))
    explored.watch(replace(step, n_committed=8))  # it paid
    assert explored.seconds == pytest.approx(5e-3)


def test_there_are_texts_of_every_kind() -> None:
    assert list(KINDS) == ["chat", "code", "story", "noise"]
    assert all(len(prompts) >= 3 for prompts in KINDS.values())


# ---- the program -------------------------------------------------------------------------------------------------


def test_a_real_sweep_by_kinds() -> None:
    told = run_for_json(
        *("bench", *MINI, "--draft", QWEN35_MINI_DRAFT, "--sweep", "--kinds", "code,noise"),
        *("--budgets", "3", "--max-tokens", "10", "--rounds", "2"),
    )
    assert list(told) == ["code", "noise"]
    for sweep in told.values():
        assert [row["name"] for row in sweep["rows"]] == ["plain", "chain", "tree 3", "auto"]
        assert sweep["best_fixed"] in ("plain", "chain", "tree 3")
        assert sweep["auto_of_best"] > 0
        assert sweep["auto_of_plain"] > 0
        assert all(row["n_replies"] == 6 for row in sweep["rows"])
        assert 0 < sweep["rows"][2]["drafted_per_step"] <= 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kinds", "prose"), "chat, code, story, noise"),
        (("--budgets", "4,64"), "64"),
        (("--rounds", "0"), "0"),
    ],
)
def test_a_sweep_of_nothing_known_is_refused(arguments: tuple[str, ...], said: str) -> None:
    refused = run_program("bench", *MINI, "--sweep", *arguments)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_a_context_chosen_for_the_person_is_told_with_its_number() -> None:
    done = run_program("chat", *MINI, "--context", "auto", "--prompt", "Hi", "--max-tokens", "2")
    assert done.returncode == 0
    assert "2048 tokens" in done.stderr  # as trained: this machine has room for it
    given = run_program("chat", *MINI, "--context", "300", "--prompt", "Hi", "--max-tokens", "2")
    assert given.stderr == ""


def test_a_context_that_cannot_fit_is_refused_with_numbers() -> None:
    refused = run_program("chat", *MINI, "--context", "16000000", "--prompt", "Hi")
    assert refused.returncode == 1
    assert "GiB" in refused.stderr
    assert "2048" in refused.stderr


def test_a_window_is_part_of_the_target() -> None:
    asked = ("chat", *MINI, "--prompt", "Write a short story about a lighthouse keeper.", "--max-tokens", "24")
    whole, windowed, other_mode = (
        run_for_json(*asked, *more)["token_ids"]
        for more in ((), ("--window", "12"), ("--window", "12", "--draft-mode", "chain"))
    )
    assert windowed != whole
    assert windowed == other_mode


def test_a_draft_that_does_not_match_is_told_on_stderr(tmp_path: Path) -> None:
    draft = misfit_draft(tmp_path / "draft.gguf")
    for _ in range(2):  # what is remembered is told again
        done = run_program("chat", *MINI, "--draft", draft, "--prompt", "Hi", "--max-tokens", "2", program=UNHURRIED)
        assert done.returncode == 0
        assert "doesn't match this target" in done.stderr
