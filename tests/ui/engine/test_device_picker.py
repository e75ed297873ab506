"""A card that two backends list: shown as one card, either of them chosen, and kept when the list comes again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.device_users import DriverProblem
from dflash_desktop.engine.devices import Device, with_same_cards
from dflash_desktop.ui.engine.device_item_model import DeviceItemModel
from dflash_desktop.ui.engine.device_picker import DevicePicker
from dflash_desktop.ui.engine.device_words import problem_words, reason_words
from dflash_desktop.ui.engine.draft_place import DraftPlace
from dflash_desktop.ui.kit.theme import Theme

CUDA = Device(0, "CUDA0", "0000:01:00.0", "gpu", "CUDA", "NVIDIA GeForce RTX 4090", 24 << 30, 20 << 30)
VULKAN = replace(CUDA, index=1, name="Vulkan0", backend="Vulkan", free_bytes=21 << 30)
CPU = Device(2, "CPU", "CPU", "cpu", "CPU", "Processor", 64 << 30, 60 << 30)
DEVICES = with_same_cards([CUDA, VULKAN, CPU])


@pytest.fixture
def picker(theme: Theme, qtbot: QtBot) -> DevicePicker:
    made = DevicePicker(theme)
    qtbot.addWidget(made)
    made.show_devices(DEVICES)
    return made


def checked(picker: DevicePicker) -> list[str]:
    return [row.device.name for row in picker.rows() if row.isChecked()]


def test_the_maker_s_backend_is_recommended_and_the_other_says_that_it_is_the_same_card(picker: DevicePicker) -> None:
    first, second, third = picker.rows()
    assert checked(picker) == ["CUDA0"]
    assert first.accessibleDescription() == "Recommended: a graphics card of its own"  # one card, not two
    assert second.accessibleDescription() == "The same card as CUDA0, driven by Vulkan"
    assert third.accessibleDescription() == ""


@pytest.mark.parametrize("number", [1, 0, 2])
def test_either_may_be_chosen_and_stays_so(picker: DevicePicker, qtbot: QtBot, number: int) -> None:
    with qtbot.waitSignal(picker.chosen) as told:
        QTest.mouseClick(picker.rows()[number], Qt.MouseButton.LeftButton)
    assert told.args == [DEVICES[number]]
    picker.show_devices(DEVICES)
    assert checked(picker) == [DEVICES[number].name]
    assert picker.device() == DEVICES[number]
    assert picker.problem() == ""


def test_a_kept_choice_is_found_when_its_card_is_listed_once(picker: DevicePicker) -> None:
    picker.want(DEVICES[1].id)
    picker.show_devices(with_same_cards([replace(VULKAN, index=0), replace(CPU, index=1)]))
    assert checked(picker) == ["Vulkan0"]
    assert picker.problem() == ""


def test_the_draft_is_not_offered_the_target_s_own_card_under_another_name(theme: Theme, qtbot: QtBot) -> None:
    place = DraftPlace(theme)
    qtbot.addWidget(place)
    place.show_devices(DEVICES, DEVICES[0])
    assert place.isHidden()
    place.show_devices(DEVICES, DEVICES[1])
    assert place.isHidden()


def test_the_table_says_it_too(qtbot: QtBot) -> None:
    table = DeviceItemModel()
    table.show_devices(DEVICES)
    assert [table.index(row, 2).data() for row in range(3)] == [
        "NVIDIA GeForce RTX 4090",
        "The same card as CUDA0, driven by Vulkan",
        "Processor",
    ]


def test_two_cards_are_still_two() -> None:
    other = replace(CUDA, index=3, name="CUDA1", id="0000:02:00.0")
    devices = with_same_cards([CUDA, VULKAN, CPU, other])
    assert reason_words(devices[0], devices) == "the card with the most free memory"


def test_a_missing_vulkan_driver_is_worded() -> None:
    assert problem_words(DriverProblem("no_vulkan", "AMD")) == str(DriverProblem("no_vulkan", "AMD"))
