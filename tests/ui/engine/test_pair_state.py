"""The state of the pair, from real events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from dflash_desktop.engine.events import DraftProbe, JobCancelled, JobFailed, LoadProgress, PairLoaded, StepDone
from dflash_desktop.engine.requests import Job, LoadPair
from dflash_desktop.settings.pair_memory import PairLoad, PairMemory
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase
from ui.conftest import STARTER
from ui.scripted_engine import pair_info

FILES = PairFiles(Path("/m/t.gguf"), Path("/m/d.gguf"))


class Recorder:
    """An engine that only notes what it was asked."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.cancelled: list[int] = []

    def submit(self, job: Job) -> int:
        self.jobs.append(job)
        return len(self.jobs)

    def cancel(self, job_id: int) -> None:
        self.cancelled.append(job_id)

    def close(self) -> None: ...


@pytest.fixture
def engine() -> Recorder:
    return Recorder()


@pytest.fixture
def state(engine: Recorder, app: QApplication) -> PairState:
    return PairState(EngineBridge(engine, list), STARTER)


def loaded(state: PairState, job_id: int = 1) -> None:
    state.on_engine_event(PairLoaded(job_id, pair_info(FILES.target, FILES.draft), 0.1))


def step(reason: Any, n_drafted: int = 0) -> StepDone:
    return StepDone(9, 0, "a", (1,), (), n_drafted, 0, 1, 1, 1, reason, 0, 0, 0, 0, 0.0, 0.1, None)


def test_a_second_load_cancels_the_first_and_ignores_its_end(state: PairState, engine: Recorder) -> None:
    state.load(FILES)
    state.load(replace(FILES, target=Path("/m/other.gguf")))
    assert engine.cancelled == [1]
    state.on_engine_event(JobCancelled(1))
    assert state.phase.value == "loading"
    loaded(state, 2)
    assert state.phase.value == "loaded"


def test_progress_is_a_share_of_the_bytes(state: PairState) -> None:
    state.load(FILES)
    assert state.loading_share() is None
    state.on_engine_event(LoadProgress(1, "target", 0, 0))
    assert state.loading_share() is None
    state.on_engine_event(LoadProgress(1, "target", 3_000_000_000, 6_000_000_000))
    assert state.loading_share() == 0.5


@pytest.mark.parametrize(
    ("has_progress", "kind", "is_kept"),
    [(False, "bad_request", True), (True, "bad_request", False), (False, "out_of_memory", False)],
)
def test_the_old_pair_stays_exactly_where_the_engine_kept_it(
    state: PairState, has_progress: bool, kind: Any, is_kept: bool
) -> None:
    """B141: a refused draft takes nothing away that the engine kept."""
    state.load(FILES)
    loaded(state)
    state.load(FILES)
    if has_progress:
        state.on_engine_event(LoadProgress(2, "target", 1, 2))
    state.on_engine_event(JobFailed(2, "No.", kind))
    assert state.phase is (Phase.LOADED if is_kept else Phase.EMPTY)


def test_a_reply_that_finds_no_pair_corrects_the_state(state: PairState) -> None:
    state.load(FILES)
    loaded(state)
    state.on_engine_event(JobFailed(7, "No model is loaded.", "no_pair"))
    assert state.phase is Phase.EMPTY


def test_the_sentence_follows_mode_and_measurement(state: PairState) -> None:
    """B141."""
    assert state.draft_sentence() == ""
    state.load(FILES)
    loaded(state)
    assert state.draft_sentence() == "Draft loaded: Auto uses it where it is faster."
    state.on_engine_event(step("best", 5))
    assert state.draft_sentence() == "Draft loaded: Auto is using it, it is faster here."
    state.on_engine_event(step("plain_faster"))
    assert "slower than plain decoding" in state.draft_sentence()
    state.set_draft_mode("on")
    assert state.draft_sentence() == "Draft on: it proposes up to 7 tokens per step."
    state.set_draft_mode("off")
    assert "switched off" in state.draft_sentence()


@pytest.mark.parametrize(("length", "is_told"), [(1.0, True), (1.19, True), (1.2, False), (3.5, False)])
def test_a_draft_that_does_not_match_its_target_is_told_before_all_else(
    state: PairState, length: float, *, is_told: bool
) -> None:
    """B141."""
    state.load(FILES)
    pair = replace(pair_info(FILES.target, FILES.draft), draft_probe=DraftProbe(length, 32))
    state.on_engine_event(PairLoaded(1, pair, 0.1))
    assert state.draft_sentence().startswith("This draft doesn't match this target") is is_told
    state.on_engine_event(step("plain_faster"))
    assert ("doesn't match" in state.draft_sentence()) is is_told
    state.set_draft_mode("off")
    assert "doesn't match" not in state.draft_sentence()  # it does no harm then


def test_a_step_that_only_measures_says_nothing_about_speed(state: PairState) -> None:
    state.load(FILES)
    loaded(state)
    state.on_engine_event(step("best", 5))
    state.on_engine_event(step("measure"))
    assert state.draft_sentence() == "Draft loaded: Auto is using it, it is faster here."


def test_without_a_draft_it_says_so(state: PairState, engine: Recorder) -> None:
    """B141."""
    state.load(replace(FILES, draft=None))
    state.on_engine_event(PairLoaded(1, pair_info(FILES.target, None), 0.1))
    assert state.draft_sentence() == "No draft is loaded: the target decodes alone."
    job = engine.jobs[0]
    assert isinstance(job, LoadPair)
    assert job.draft is None


def test_the_built_in_pair_has_its_own_name(state: PairState) -> None:
    state.load(PairFiles(STARTER.target, STARTER.draft))
    assert state.title() == "SmolLM2 135M Instruct"
    state.load(FILES)
    assert state.title() == "t"
    state.on_engine_event(PairLoaded(2, pair_info(FILES.target, FILES.draft), 0.1))
    assert state.title() == "SmolLM2-135M-Instruct"


def test_a_mode_that_was_chosen_is_not_undone_by_the_next_load(engine: Recorder, app: QApplication) -> None:
    memory = PairMemory(None)
    memory.remember(FILES.target, PairLoad(draft=str(FILES.draft), draft_method="auto"))
    state = PairState(EngineBridge(engine, list), None, "auto", memory)
    state.load(FILES)
    loaded(state)
    state.set_draft_mode("off")  # while it is loaded: remembered for this pair
    state.load(FILES)
    assert state.draft_mode == "off"
    other = PairState(EngineBridge(Recorder(), list), None, "auto", memory)
    other.set_draft_mode("on")  # while nothing is: it counts for what is loaded next
    other.load(FILES)
    assert other.draft_mode == "on"
    third = PairState(EngineBridge(Recorder(), list), None, "on", memory)
    third.load(FILES)  # nothing chosen since the start: as this pair was used last
    assert third.draft_mode == "off"


def test_an_unknown_mode_in_the_state_file_is_auto(engine: Recorder, app: QApplication) -> None:
    assert PairState(EngineBridge(engine, list), None, "tree").draft_mode == "auto"


def test_half_a_character_is_shown_by_its_bytes(state: PairState) -> None:
    """B051: the text of one token need not be whole characters."""

    class Halves:
        def detokenize(self, token_ids: list[int]) -> bytes:
            return [" 家".encode(), b"\xe5\xae"][token_ids[0]]

    state.reader = Halves()  # type: ignore[assignment]
    assert [state.token_text(token) for token in (0, 1)] == [" 家", "\\xe5\\xae"]
