"""The row of big numbers: a figure is of the whole reply, never of its last step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.events import PromptReady, StepDone, StepReason
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.figures_row import FiguresRow
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme
from ui.engine.test_live_figures import STEP, Silent

PLAIN = replace(STEP, n_drafted=0, n_accepted=0, n_committed=1, speed_up=0.59)


@pytest.mark.parametrize(("last", "reason"), [("plain_faster", "plain_faster"), ("no_room", "plain_faster")])
def test_a_reply_without_a_draft_has_no_speed_up(
    app: QApplication, theme: Theme, qtbot: QtBot, last: StepReason, reason: StepReason
) -> None:
    """What the engine measured of the draft before is no figure of a reply that it had no part in."""
    row = shown(app, theme, qtbot, [replace(PLAIN, reason=reason)] * 20 + [replace(PLAIN, reason=last)])
    assert row.value("speed_up") == numbers.DASH
    assert row._values["speed_up"][1].whole_text() == "plain decoding"


def test_a_reply_of_a_target_alone_says_that_there_is_no_draft(app: QApplication, theme: Theme, qtbot: QtBot) -> None:
    steps = [replace(PLAIN, reason="no_draft", speed_up=0.0)] * 20 + [replace(PLAIN, reason="no_room", speed_up=0.0)]
    assert shown(app, theme, qtbot, steps)._values["speed_up"][1].whole_text() == "no draft"


def test_a_drafted_reply_keeps_its_speed_up_when_its_last_step_had_no_room(
    app: QApplication, theme: Theme, qtbot: QtBot
) -> None:
    steps = [replace(STEP, speed_up=1.83)] * 20 + [replace(PLAIN, reason="no_room", speed_up=1.83)]
    assert shown(app, theme, qtbot, steps).value("speed_up") == "1.83×"


def shown(app: QApplication, theme: Theme, qtbot: QtBot, steps: list[StepDone]) -> FiguresRow:
    figures = LiveFigures(EngineBridge(Silent(), list))
    row = FiguresRow(theme, figures)
    qtbot.addWidget(row)
    row.show()
    figures.on_engine_event(PromptReady(1, 39, 0, 8192, 100))
    for index, step in enumerate(steps):
        figures.on_engine_event(replace(step, step_index=index, elapsed_s=0.1 * (index + 1)))
    row._say()
    return row
