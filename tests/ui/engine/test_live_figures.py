"""Figures from steps: never a division by zero, never an invented speed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication

from dflash_desktop.engine.events import GenerationDone, PairUnloaded, PrefillProgress, PromptReady, StepDone
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.live_figures import LiveFigures

STEP = StepDone(1, 0, "a", (1,), (), 5, 2, 3, 3, 3, "best", 0, 0, 0, 0, 0.0, 0.5, None)
DONE = GenerationDone(1, "", (), "stop", None, 100, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0)


class Silent:
    def submit(self, job: object) -> int:
        return 1

    def cancel(self, job_id: int) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def figures(app: QApplication) -> LiveFigures:
    made = LiveFigures(EngineBridge(Silent(), list))
    made.on_engine_event(PromptReady(1, 100, 0, 8192, 100))
    return made


def test_before_the_first_step_nothing_is_known(figures: LiveFigures) -> None:
    assert (figures.acceptance_length(), figures.current_tps(), figures.ttft_s) == (None, None, None)
    figures.on_engine_event(PrefillProgress(1, 0, 100, 0.0))
    assert figures.prefill_tps is None


def test_figures_of_a_few_steps(figures: LiveFigures) -> None:
    for index, elapsed_s in enumerate((0.5, 0.6, 0.7, 0.8)):
        figures.on_engine_event(replace(STEP, step_index=index, elapsed_s=elapsed_s))
    assert figures.acceptance_length() == 3.0
    assert figures.ttft_s == 0.5
    assert figures.mean_tps == pytest.approx(30.0)
    assert figures.current_tps() == pytest.approx(30.0)
    assert (figures.n_drafted, figures.n_accepted, figures.n_committed) == (20, 8, 12)
    assert [step.moving_mean for step in figures.steps] == [3.0] * 4


def test_steps_in_no_time_have_no_speed(figures: LiveFigures) -> None:
    for index in range(3):
        figures.on_engine_event(replace(STEP, step_index=index, elapsed_s=0.5))
    assert figures.current_tps() is None
    figures.on_engine_event(replace(DONE, n_committed=9, n_steps=3, n_first_committed=3))
    assert figures.mean_tps is None


def test_current_speed_forgets_what_is_older_than_a_second(figures: LiveFigures) -> None:
    for index in range(10):
        figures.on_engine_event(replace(STEP, step_index=index, elapsed_s=0.1 * (index + 1)))
    for index in range(30):
        figures.on_engine_event(replace(STEP, step_index=index, n_committed=1, elapsed_s=2.0 + 0.1 * index))
    assert figures.current_tps() == pytest.approx(10.0, rel=0.05)


def test_a_new_prompt_or_another_pair_starts_afresh(figures: LiveFigures) -> None:
    figures.on_engine_event(STEP)
    version = figures.version
    figures.on_engine_event(PairUnloaded(2))
    assert figures.version > version
    assert figures.n_steps == 0
