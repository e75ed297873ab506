"""The probe at load: a draft that does not match its target is told, and nothing of the probe shows afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Progress, sized
from dflash_desktop.engine.draft_probe import LEAST_STEPS, N_STEPS, probe_draft
from dflash_desktop.engine.events import DraftProbe, LoadProgress, PairLoaded
from dflash_desktop.engine.requests import LoadOptions
from native.oracles import model_files
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.generators import finished
from support.misfits import misfit_draft
from support.real_engine import ask_for, running_engine, try_load
from support.scripted_session import PIECES, Listener, ScriptedSession

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class ProbedSession(ScriptedSession):
    """Accepts `n_accepted` drafted tokens in every step; a step takes `step_s` seconds of a clock that is not real."""

    def __init__(self, n_accepted: int, *, step_s: float = 0.0) -> None:
        super().__init__(PIECES, block=8, context=4096)
        self.n_accepted = n_accepted
        self.step_s = step_s
        self.now_s = 0.0
        self.n_stepped = self.n_resets = 0
        self.asked: list[abi.Generation] = []

    def begin(self, prompt: Sequence[int], generation: abi.Generation) -> abi.Begun:
        self.asked.append(generation)
        return super().begin(prompt, generation)

    def prefill(self) -> Progress:
        return Progress(1, 1, is_complete=True)

    def step(self) -> abi.Step:
        self.now_s += self.step_s
        self.n_stepped += 1
        return sized(abi.Step, n_drafted=7, n_accepted=self.n_accepted, n_committed=self.n_accepted + 1)

    def reset(self) -> None:
        self.n_resets += 1


def result_of(session: ProbedSession, context_tokens: int = 4096) -> DraftProbe | None:
    return finished(probe_draft(session, session.reader, context_tokens, lambda: session.now_s))


def test_a_draft_that_gains_nothing_is_tried_for_all_steps_before_it_is_blamed() -> None:
    session = ProbedSession(0)
    found = result_of(session)
    assert found == DraftProbe(1.0, N_STEPS)
    assert not found.is_match
    (asked,) = session.asked
    assert (asked.draft_mode, asked.ignore_stop, asked.no_reuse) == (abi.DraftModeCode.CHAIN, 1, 1)
    assert session.n_resets == 1


def test_a_draft_that_clearly_matches_costs_few_steps() -> None:
    session = ProbedSession(1)
    found = result_of(session)
    assert found == DraftProbe(2.0, LEAST_STEPS)
    assert found.is_match


def test_where_a_step_takes_long_the_probe_ends_in_time() -> None:
    for step_s, n_steps in ((0.25, 12), (0.5, 6), (10.0, 1)):
        session = ProbedSession(0, step_s=step_s)
        found = result_of(session)
        assert session.n_stepped == n_steps
        # Too few steps say nothing.
        assert found == (DraftProbe(1.0, n_steps) if n_steps >= LEAST_STEPS else None)
        assert session.n_resets == 1


def test_a_context_without_room_is_not_probed() -> None:
    session = ProbedSession(0)
    assert result_of(session, context_tokens=32) is None
    assert session.n_stepped == 0


def test_a_probe_that_is_given_up_leaves_nothing_in_the_session() -> None:
    session = ProbedSession(0)
    probing = probe_draft(session, session.reader, 4096)
    next(probing)
    probing.close()
    assert session.n_resets == 1


@pytest.mark.usefixtures("unhurried_probe")
@pytest.mark.parametrize("is_misfit", [False, True])
def test_the_event_says_whether_a_real_draft_matches(tmp_path: Path, *, is_misfit: bool) -> None:
    draft = misfit_draft(tmp_path / "draft.gguf") if is_misfit else QWEN35_MINI_DRAFT
    with running_engine() as engine:
        listener = Listener()
        loaded = try_load(engine, QWEN35_MINI, draft, LoadOptions(context_tokens=256, n_threads=1), listener)
        assert isinstance(loaded, PairLoaded)
        probe = loaded.pair.draft_probe
        assert probe is not None
        assert probe.is_match is not is_misfit
        warned = any("doesn't match" in notice for notice in loaded.pair.notices)
        assert warned is is_misfit
        # Only the load was ever heard of, and the session is as good as new.
        assert all(isinstance(event, LoadProgress | PairLoaded) for event in listener.events[1:])
        first = ask_for(engine, "Why is the sky blue?", mode="chain", max_tokens=8)
        assert first.n_reused_tokens == 0
        assert first.text == ask_for(engine, "Why is the sky blue?", mode="off", max_tokens=8).text


def test_without_a_draft_there_is_nothing_to_probe() -> None:
    with running_engine() as engine:
        loaded = try_load(engine, QWEN35_MINI, None, LoadOptions(context_tokens=256, n_threads=1))
        assert isinstance(loaded, PairLoaded)
        assert loaded.pair.draft_probe is None
        assert loaded.pair.notices == ()


def test_a_draft_that_does_not_match_costs_auto_next_to_nothing(tmp_path: Path) -> None:
    """B034: output as without it, acceptance length near 1 where it is forced.

    That Auto leaves it alone, on machines whose times are known: tests/native/test_tuner_recorded.py.
    """
    # In F32 every number of rows gives the same choices (tests/native/test_truth.py), whatever Auto tries just then.
    target = model_files.copy(QWEN35_MINI, tmp_path / "target.gguf", dequantised=True)
    with running_engine() as engine:
        draft = misfit_draft(tmp_path / "draft.gguf")
        loaded = try_load(engine, target, draft, LoadOptions(context_tokens=512, n_threads=1))
        assert isinstance(loaded, PairLoaded)
        question = "Write a short story about a lighthouse keeper."
        plain = ask_for(engine, question, mode="off", max_tokens=120)
        forced = ask_for(engine, question, mode="chain", max_tokens=120)
        auto = ask_for(engine, question, mode="auto", max_tokens=120)
        assert plain.text == forced.text == auto.text
        assert forced.n_committed / forced.n_steps < 1.2
