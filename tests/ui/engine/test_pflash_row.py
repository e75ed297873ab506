"""PFlash in the load panel: what is chosen, what it takes, and that it is remembered for the pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton
from pytestqt.qtbot import QtBot

from dflash_desktop.base.paths import app_paths
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.startup import engine_tools
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.engine.pflash_choice import PflashChoice
from dflash_desktop.ui.engine.pflash_row import PflashRow
from dflash_desktop.ui.engine.scorer_box import ScorerFile, ScorerFinder
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.parts import Parts
from support.fixtures import QWEN35_MINI
from support.patience import LONG_MS
from ui.conftest import STARTER, Desk


@pytest.fixture
def row(theme: Theme, qtbot: QtBot) -> PflashRow:
    made = PflashRow(theme, has_built_in=True)
    qtbot.addWidget(made)
    made.show()
    return made


def click(button: QAbstractButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def mode_of(desk: Desk) -> str:
    return desk.window.pair_state.pflash.mode


def test_it_is_off_and_shows_no_more_than_that(row: PflashRow) -> None:
    assert row.choice() == PflashChoice()
    assert not row.keep.isVisible()
    assert not row.threshold.isVisible()


def test_the_slider_is_one_ratio_and_the_curve_under_more_is_many(row: PflashRow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(row.changed):
        click(row.mode.buttons()[1])
    assert row.choice().mode == "auto"
    assert row.threshold.isVisible()
    assert not row.curve.isVisible()
    row.keep.setValue(15)
    assert row.choice().curve == "0.15"
    click(row.more_button)
    assert row.curve.isVisible()
    assert row.curve.text() == "0.15"
    row.curve.setText("1000:0.5, 2000:0.25")
    row.curve.editingFinished.emit()
    assert row.choice().ratio(1500) == pytest.approx(0.375)
    row.curve.setText("2000:0.25,1000:0.5")
    row.curve.editingFinished.emit()
    assert row._curve_problem.isVisible()
    assert "ascend" in row._curve_problem.text()
    assert row.choice().ratio(1500) == pytest.approx(0.375)
    click(row.mode.buttons()[2])
    assert not row.threshold.isVisible()


def test_a_scorer_is_one_of_this_machines_or_a_file_that_can_rate(row: PflashRow, theme: Theme, qtbot: QtBot) -> None:
    files = [ScorerFile(Path("/m/s.gguf"), "s", is_made_for_it=True), ScorerFile(Path("/m/t.gguf"), "t")]
    row.show_scorers(files)
    names = [row.scorer.itemText(i) for i in range(row.scorer.count())]
    assert names == ["Built-in: SmolLM2 135M", "s (made for this pair)", "t", "Another file…"]
    row.scorer.setCurrentIndex(1)
    row.scorer.activated.emit(1)
    assert row.choice().scorer == Path("/m/s.gguf")

    def inspect(path: Path, then: Callable[[ModelFile], object], failed: Callable[[Exception], object]) -> None:
        family = "gemma4" if "gemma" in path.name else "qwen35"
        then(ModelFile(path, "target", True, "", family, path.stem, "Q8_0", 7, 5, 4, 64, 100, 8192, 0, None, ()))

    finder = ScorerFinder(row, inspect)
    finder.found.connect(row.on_scorer_found)
    finder.refused.connect(row.on_scorer_refused)
    finder.look_at(Path("/m/gemma.gguf"))
    assert "gemma4" in row._scorer_problem.text()
    assert row.choice().scorer == Path("/m/s.gguf")
    finder.look_at(Path("/m/other.gguf"))
    assert row.choice().scorer == Path("/m/other.gguf")
    assert row.scorer.currentText() == "other"
    assert row._scorer_problem.isHidden()


def test_the_scorer_stands_in_the_memory_bar_and_the_choice_is_the_pairs(
    make_desk: Callable[..., Desk],
) -> None:
    pairs = built_in_pairs()
    if not pairs:
        pytest.skip("this build has no built-in pair")
    starter = replace(STARTER, target=pairs[0].target, draft=pairs[0].draft)
    memory = PairMemory(None)
    desk = make_desk(starter=starter, parts=Parts(engine_tools=engine_tools(app_paths()), pair_memory=memory))
    desk.load()
    desk.window.chat_page.pflash_page_wanted.emit()
    page = desk.window.page("engine")
    assert isinstance(page, EnginePage)
    panel = page.loading.panel
    assert panel.pflash.isVisible()
    desk.qtbot.waitUntil(lambda: panel.plan.fit is not None, timeout=LONG_MS)
    assert "PFlash" not in panel.plan.bar.accessibleName()
    click(panel.pflash.mode.buttons()[1])
    desk.qtbot.waitUntil(lambda: "PFlash" in panel.plan.bar.accessibleName(), timeout=LONG_MS)
    assert panel.plan.fit is not None
    assert panel.plan.fit.scorer is not None
    assert panel.plan.fit.scorer.total_bytes > 50 << 20
    assert mode_of(desk) == "auto"
    assert "auto" in desk.page.shortening.switch.text()

    desk.page.shortening.on_mode_chosen("always")
    assert panel.pflash.choice().mode == "always"
    load = memory.recall(starter.target)
    assert load is not None
    assert load.pflash_mode == "always"
    desk.window.pair_state.load(PairFiles(QWEN35_MINI, None))
    assert mode_of(desk) == "off"
    desk.window.load_starter()
    assert mode_of(desk) == "always"


def test_the_switch_is_reached_and_opened_by_keyboard(desk: Desk) -> None:
    desk.load()
    switch = desk.page.shortening.switch
    assert switch.isVisible()
    assert switch.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert switch.accessibleName() == "PFlash off"
    assert not desk.page.shortening.switch.preview.isEnabled()
    switch.modes["auto"].trigger()
    assert desk.window.pair_state.pflash.mode == "auto"
    assert switch.accessibleName() == "PFlash auto"
