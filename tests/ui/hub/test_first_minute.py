"""The first minute: nothing asked, one screen, one button, the pair arrives, loads and answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.engine.devices import Device, list_devices
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.ui.app import take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.hub.desk import HubParts
from dflash_desktop.ui.hub.get_dialog import GetDialog
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.window import MainWindow
from support.hub_server import Fault, Hub
from support.patience import LONG_MS, NEVER_S, in_time
from ui.conftest import Desk
from ui.hub.conftest import DRAFT, DRAFT_REPO, MAKER, TARGET, ModelsRig

CARD = Device(1, "CUDA0", "0000:01:00.0", "gpu", "CUDA", "NVIDIA GeForce RTX 4090", 24 * 2**30, 23 * 2**30)


def click(button: object) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)  # type: ignore[call-overload]


def dialog_of(rig: ModelsRig) -> GetDialog:
    rig.wait(lambda: rig.page._dialog is not None)
    dialog = rig.page._dialog
    assert dialog is not None
    return dialog


def test_nothing_is_asked_of_the_network_before_a_button_is_pressed(rig: ModelsRig) -> None:
    for key in ("models", "engine", "chat"):
        rig.window.show_page(key)
    for tab in ("here", "search", "pairs"):
        rig.page.show_tab(tab)
    rig.models.scan()
    rig.page.show_network().reject()
    rig.qtbot.wait(300)
    assert rig.hub.asked == []


def test_the_first_screen_has_three_facts_and_one_first_button_on_a_card(rig: ModelsRig) -> None:
    rig.window.on_devices_listed([CARD], "")
    start, first = rig.start, rig.start.first_pair
    assert first is not None
    assert "RTX 4090" in start._device_name.text()
    assert "23.0 GiB of 24.0 GiB" in start._device_memory.text()
    assert first._name.text() == "Mini 1B with its DFlash draft"
    assert "49.5 MB to download" in first._words.text()
    assert "tok/s (estimated)" in first._words.text()
    assert first._badge.text() == "fits"
    assert "(estimated)" in first._fit.text()
    primary = [b for b in (start.get_button, start.start_button, start.open_button) if b.property("kind") == "primary"]
    assert primary == [start.get_button]
    assert start.start_button.text() == "Use the built-in model now"
    assert start.found_button.text() == "I already have models"


def test_on_a_processor_the_built_in_model_comes_first(rig: ModelsRig) -> None:
    assert rig.start.start_button.property("kind") == "primary"
    assert rig.start.get_button.text() == "Get Mini 1B…"
    assert rig.start.get_button.property("kind") == "secondary"


def test_what_is_on_the_machine_already_is_counted_and_one_click_away(
    make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub, home: Path
) -> None:
    place = home / ".lmstudio" / "models" / "maker" / "mini"
    place.mkdir(parents=True)
    (place / "mini.gguf").write_bytes(TARGET.read_bytes())
    rig = ModelsRig(make_desk(parts=Parts(hub=hub_parts)), hub)
    assert rig.start.found_button.text() == "I already have models (1 found)"
    click(rig.start.found_button)
    assert rig.page.here.isVisible()
    assert rig.page.here.chosen() is not None
    click(rig.page.here.load_button)
    rig.wait(lambda: rig.window.pair_state.phase is Phase.LOADED)
    assert rig.window.chat_page.isVisible()
    assert hub.asked == []


def test_a_pair_that_is_here_already_is_not_fetched_again(
    make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub, home: Path
) -> None:
    place = home / ".lmstudio" / "models" / MAKER
    place.mkdir(parents=True)
    (place / "mini-Q8_0.gguf").write_bytes(TARGET.read_bytes())
    rig = ModelsRig(make_desk(parts=Parts(hub=hub_parts)), hub)
    click(rig.start.get_button)
    dialog = dialog_of(rig)
    dialog.draft_box.setCurrentIndex(dialog.draft_box.findData(""))
    dialog.ask()
    rig.wait(lambda: dialog.get_button.text() == "Load it")
    assert "on this machine already" in dialog._files.text()
    click(dialog.get_button)
    rig.wait(lambda: rig.window.pair_state.phase is Phase.LOADED)
    assert hub.begins() == []


@pytest.fixture
def real_window(
    app: QApplication, theme: Theme, icons: Icons, tmp_path: Path, hub_parts: HubParts, qtbot: QtBot
) -> Iterator[MainWindow]:
    engine = Engine(PairLoader())
    engine.start()
    bridge = EngineBridge(engine, list_devices)
    made = MainWindow(bridge, theme, icons, None, WindowStateFile(tmp_path / "window.json"), parts=Parts(hub=hub_parts))
    with qtbot.waitSignal(bridge.devices_listed, timeout=LONG_MS):
        made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    yield made
    made.close()
    bridge.close()
    take_down(app, made, bridge)


@in_time(60, at_all_s=NEVER_S)
def test_get_it_fetches_loads_and_answers_with_the_real_engine(
    real_window: MainWindow, hub: Hub, qtbot: QtBot, within_s: float
) -> None:
    window, start = real_window, real_window.chat_page.start
    desk = window.models_desk
    assert desk is not None
    qtbot.waitUntil(lambda: bool(desk.recommended) and desk.shelf is not None, timeout=LONG_MS)
    begin = time.monotonic()
    click(start.get_button)
    page = window.models_entry.models_page()
    qtbot.waitUntil(lambda: page._dialog is not None and page._dialog.get_button.isEnabled(), timeout=LONG_MS)
    dialog = page._dialog
    assert dialog is not None
    dialog.draft_box.setCurrentIndex(0)  # on this processor the dialog proposes none
    dialog.ask()
    qtbot.waitUntil(lambda: "planned by the engine" in dialog._fit.text(), timeout=LONG_MS)
    qtbot.waitUntil(lambda: dialog.get_button.text().startswith("Download 28.5 MB"), timeout=LONG_MS)
    assert "Licence: apache-2.0" in dialog._licence.text()
    hub.asked.clear()
    hub.faults = [Fault(cut_after=5_000_000), Fault(status=503), Fault(cut_after=9_000_000)]
    click(dialog.get_button)
    assert window.chat_page.isVisible()
    # Nothing else is to be done: it arrives, is checked and loaded, and a message may be written meanwhile.
    qtbot.waitUntil(lambda: window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    assert window.pair_state.pair is not None
    assert window.pair_state.pair.draft is not None
    QTest.keyClicks(window.chat_page.composer.edit, "hello")
    window.chat_page.panel.max_tokens.setValue(8)
    QTest.keyClick(window.chat_page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window.chat.is_busy, timeout=LONG_MS)
    assert window.chat.items.message(1).state is ReplyState.DONE
    assert time.monotonic() - begin < within_s
    models = desk.models_folder
    assert (models / MAKER / "mini-Q8_0.gguf").read_bytes() == TARGET.read_bytes()
    assert (models / DRAFT_REPO / "mini-dflash.gguf").read_bytes() == DRAFT.read_bytes()
    assert [begin for begin in hub.begins() if begin] == [5_000_000, 5_000_000, 14_000_000]
