"""The engine page: numbers, plots, tree and devices follow a reply; nothing is painted that nobody sees."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from dflash_desktop.engine.device_users import DriverProblem
from dflash_desktop.engine.devices import DeviceUser
from dflash_desktop.ui.engine.acceptance_plot import SHOWN_STEPS
from dflash_desktop.ui.engine.device_item_model import DeviceItemModel
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.engine.process_memory import resident_bytes
from dflash_desktop.ui.kit import numbers
from ui.conftest import Desk
from ui.scripted_engine import FAKE_DEVICES, Script

SCRIPT = Script(text="word " * 120, step_s=0.01)


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
    used = replace(FAKE_DEVICES[1], users=(DeviceUser(77, "game", 3 << 30), DeviceUser(78, "", 0)))
    model.show_devices([FAKE_DEVICES[0], used])
    model.mark_in_use("CPU")
    qtmodeltester.check(model)
    assert model.data(model.index(0, 0)) == "CPU  (in use)"
    assert model.data(model.index(1, 3)) == "20.0 GiB"
    assert model.data(model.index(0, 5)) == numbers.DASH
    assert model.data(model.index(1, 5)) == "game (3.0 GiB), process 78"


def test_a_reply_fills_numbers_plot_and_tree(desk: Desk) -> None:
    page = page_of(desk)
    live = page.live
    desk.send("go")
    desk.wait_for_reply()
    figures = desk.window.figures
    length = figures.acceptance_length()
    assert length is not None
    assert length > 1
    desk.qtbot.waitUntil(lambda: live.figures_row.value("length") == numbers.decimal(length, 2))
    desk.qtbot.waitUntil(lambda: live.figures_row.value("now") == numbers.rate(figures.mean_tps))
    assert live.figures_row.value("ttft") != numbers.DASH
    assert live.figures_row.value("speed_up") == "1.83×"
    n_shown = min(figures.n_steps, SHOWN_STEPS)
    desk.qtbot.waitUntil(lambda: len(live.acceptance_plot._line.getData()[0]) == n_shown)
    desk.qtbot.waitUntil(lambda: live.step_card.tree_view._tree is figures.records[-1].tree)
    assert "Most tokens per second expected: 2.4" in live.step_card.reason.whole_text()
    assert live.step_card.times.whole_text() == "Draft 0.9 ms, verify 5.2 ms, commit 0.1 ms, rest 0.1 ms."
    assert page.loading.devices.rowCount() == 2
    assert "Target weights" in live.memory_bar.accessibleName()


def test_a_single_step_is_no_measurement_of_the_speed(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="Hi"))
    live = page_of(desk).live
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    assert desk.window.figures.n_steps == 1
    desk.qtbot.waitUntil(lambda: live.figures_row._values["length"][1].whole_text() == "1 step")
    assert live.figures_row.value("speed_up") == numbers.DASH


def test_a_step_can_be_held_and_gone_back_from(desk: Desk) -> None:
    page = page_of(desk)
    card = page.live.step_card
    desk.send("go")
    desk.qtbot.waitUntil(lambda: len(desk.window.figures.records) > 5 and card.hold_button.isEnabled())
    QTest.mouseClick(card.hold_button, Qt.MouseButton.LeftButton)
    held = card._shown
    assert held is not None
    desk.wait_for_reply()
    assert card._shown is held
    QTest.mouseClick(card.back_button, Qt.MouseButton.LeftButton)
    assert card._shown is not held
    assert card._shown.step_index == held.step_index - 1
    assert card.tree_view._tree is card._shown.tree
    QTest.mouseClick(card.forward_button, Qt.MouseButton.LeftButton)
    assert card._shown is held
    QTest.mouseClick(card.hold_button, Qt.MouseButton.LeftButton)
    assert card._shown is desk.window.figures.records[-1]


def test_the_last_200_steps_can_be_walked_through_and_no_more(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="word " * 700, max_committed=2))
    desk.load()
    page = page_of(desk)
    desk.send("go")
    desk.wait_for_reply()
    card = page.live.step_card
    assert desk.window.figures.n_steps > 250
    desk.qtbot.waitUntil(card.hold_button.isEnabled)
    card.on_hold_clicked()
    last = card._shown
    assert last is not None
    for _ in range(250):
        card.on_back_clicked()
    assert card._shown is not None
    assert last.step_index - card._shown.step_index == 199
    assert not card.back_button.isEnabled()


def test_a_step_without_nodes_says_why(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="word " * 5, reason="plain_faster"))
    desk.load()
    card = page_of(desk).live.step_card
    desk.send("go")
    desk.wait_for_reply()
    desk.qtbot.waitUntil(lambda: card._shown is not None)
    assert card.reason.whole_text() == "Plain decoding: measured to be faster here."
    assert card.tree_view._tree is None


def test_reading_the_prompt_shows_how_far_it_is_and_how_long_it_takes(make_desk: Callable[..., Desk]) -> None:
    gate = threading.Event()
    script = Script(text="word " * 5, prefill_chunks=60, prefill_s=0.02, n_prompt_tokens=6000, prefill_gate=gate)
    desk = make_desk(script)
    desk.load()
    page = page_of(desk)
    desk.send("go")
    desk.qtbot.waitUntil(lambda: "left" in page.prefill_words.text())
    assert page.prefill_words.text().startswith("Reading the prompt: ")
    assert numbers.tokens(6000) in page.prefill_words.text()
    assert page.prefill_bar.value() > 0
    gate.set()
    desk.chat.stop()
    desk.wait_for_reply()
    desk.qtbot.waitUntil(page.prefill_words.isHidden)


def test_nothing_is_painted_on_a_page_that_is_not_shown(desk: Desk) -> None:
    page = page_of(desk)
    desk.window.show_page("chat")
    before = page.live.acceptance_plot._painted_version
    desk.send("go")
    desk.wait_for_reply()
    desk.qtbot.wait(150)
    assert page.live.acceptance_plot._painted_version == before


def test_why_there_is_no_device_is_said_in_words(desk: Desk) -> None:
    page = page_of(desk)
    page.show_devices((), "The driver is too old: 535 is needed.")
    assert page.loading.problem_text() == "The driver is too old: 535 is needed."
    assert page.loading.devices.rowCount() == 0
    desk.bridge.refresh_devices()
    desk.qtbot.waitUntil(lambda: page.loading.devices.rowCount() == 2)
    assert page.loading.problem_text() == ""


def test_a_card_that_cannot_be_used_is_named_with_what_to_do(desk: Desk) -> None:
    page = page_of(desk)
    page.show_view("load")
    desk.window.load_desk._tell_problems([DriverProblem("driver_too_old", "NVIDIA RTX 4070", "535.104", "12.2")])
    words = page.loading.driver_text()
    assert "NVIDIA RTX 4070" in words
    assert "535.104 runs CUDA 12.2 at most. Install driver 580 or newer" in words


def test_this_process_uses_memory() -> None:
    assert resident_bytes() > 10_000_000
