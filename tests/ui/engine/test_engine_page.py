"""The engine page: numbers, plots, tree and devices follow a reply; nothing is painted that nobody sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from dflash_desktop.ui.engine.acceptance_plot import SHOWN_STEPS
from dflash_desktop.ui.engine.device_item_model import DeviceItemModel
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.engine.process_memory import resident_bytes
from dflash_desktop.ui.kit import numbers
from ui.conftest import Desk
from ui.scripted_engine import FAKE_DEVICES, Script

SCRIPT = Script(text="word " * 120, step_s=0.004)


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    made = make_desk(SCRIPT)
    made.load()
    return made


def page_of(desk: Desk) -> EnginePage:
    page = desk.window.page("engine")
    assert isinstance(page, EnginePage)
    desk.window.show_page("engine")
    return page


def test_devices_follow_the_rules_of_item_models(qtmodeltester: Any, desk: Desk) -> None:
    model = DeviceItemModel()
    qtmodeltester.check(model)
    model.show_devices(FAKE_DEVICES)
    model.mark_in_use("CPU")
    qtmodeltester.check(model)
    assert model.data(model.index(0, 0)) == "CPU  (in use)"
    assert model.data(model.index(1, 3)) == "20.0 GB"


def test_a_reply_fills_numbers_plot_and_tree(desk: Desk) -> None:
    page = page_of(desk)
    desk.send("go")
    desk.wait_for_reply()
    figures = desk.window.figures
    length = figures.acceptance_length()
    assert length is not None
    assert length > 1
    desk.qtbot.waitUntil(lambda: page.figures_row.value("length") == numbers.decimal(length, 2))
    desk.qtbot.waitUntil(lambda: page.figures_row.value("now") == numbers.rate(figures.mean_tps))
    assert page.figures_row.value("ttft") != numbers.DASH
    n_shown = min(figures.n_steps, SHOWN_STEPS)
    desk.qtbot.waitUntil(lambda: len(page.acceptance_plot._line.getData()[0]) == n_shown)
    desk.qtbot.waitUntil(lambda: page.tree_view._tree is figures.trees[-1].tree)
    assert page.devices.rowCount() == 2
    assert "Target weights" in page.memory_bar.accessibleName()


def test_a_step_can_be_held_and_gone_back_from(desk: Desk) -> None:
    page = page_of(desk)
    desk.send("go")
    desk.qtbot.waitUntil(lambda: len(desk.window.figures.trees) > 5 and page.hold_button.isEnabled())
    QTest.mouseClick(page.hold_button, Qt.MouseButton.LeftButton)
    held = page.tree_view._tree
    desk.wait_for_reply()
    assert page.tree_view._tree is held
    QTest.mouseClick(page.back_button, Qt.MouseButton.LeftButton)
    assert page.tree_view._tree is not held
    QTest.mouseClick(page.forward_button, Qt.MouseButton.LeftButton)
    assert page.tree_view._tree is held
    QTest.mouseClick(page.hold_button, Qt.MouseButton.LeftButton)
    assert page.tree_view._tree is desk.window.figures.trees[-1].tree


def test_nothing_is_painted_on_a_page_that_is_not_shown(desk: Desk) -> None:
    page = page_of(desk)
    desk.window.show_page("chat")
    before = page.acceptance_plot._painted_version
    desk.send("go")
    desk.wait_for_reply()
    desk.qtbot.wait(150)
    assert page.acceptance_plot._painted_version == before


def test_why_there_is_no_device_is_said_in_words(desk: Desk) -> None:
    page = page_of(desk)
    page.show_devices((), "The driver is too old: 535 is needed.")
    assert page._device_problem.text() == "The driver is too old: 535 is needed."
    assert page.devices.rowCount() == 0
    desk.bridge.refresh_devices()
    desk.qtbot.waitUntil(lambda: page.devices.rowCount() == 2)
    assert page._device_problem.isHidden()


def test_this_process_uses_memory() -> None:
    assert resident_bytes() > 10_000_000
