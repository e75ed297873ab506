"""The load panel and its dialog, on the engine's real plans and, for what no test machine has, on made-up ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItemModel
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QPushButton
from pytestqt.qtbot import QtBot

from dflash_desktop.base.paths import app_paths
from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.inspect import ModelFile, Role
from dflash_desktop.engine.pairs import Pair, built_in_pairs
from dflash_desktop.engine.planning import LoadEstimate
from dflash_desktop.engine.requests import DraftOptions, LoadOptions, LoadPair
from dflash_desktop.settings.pair_memory import PairLoad, PairMemory
from dflash_desktop.startup import engine_tools
from dflash_desktop.ui.engine.context_row import ContextRow
from dflash_desktop.ui.engine.load_fit import USUAL_CONTEXT
from dflash_desktop.ui.engine.load_panel import LoadPanel
from dflash_desktop.ui.engine.load_planner import LoadPlanner
from dflash_desktop.ui.engine.open_pair_dialog import OpenPairDialog
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.parts import EngineTools, Parts
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF
from support.patience import LONG_MS
from support.scripted_model import write_scripted
from ui.conftest import Desk
from ui.engine.test_load_fit import CARD, CPU, TRAINED, plan
from ui.scripted_engine import FAKE_DEVICES

REAL_CPU = Device(0, "CPU", "CPU", "cpu", "CPU", "This machine", 24 << 30, 20 << 30)


@pytest.fixture(scope="module")
def tools() -> EngineTools:
    return engine_tools(app_paths())


@pytest.fixture(scope="module")
def pair() -> Pair:
    pairs = built_in_pairs()
    if not pairs:
        pytest.skip("this build has no built-in pair")
    return pairs[0]


def facts(path: Path) -> ModelFile:
    block_size = 16 if path.name.startswith("d") else 0
    role: Role = "draft" if block_size else "target"
    return ModelFile(path, role, True, "", "llama", path.stem, "Q4_K", 7, 5, 4, 64, 100, TRAINED, block_size, None, ())


@pytest.fixture
def made_up() -> EngineTools:
    """A card with 8 GB free beside a processor with 30, and a pair of 6 GB: see test_load_fit."""
    return EngineTools(plan, facts, lambda target: [facts(target.with_name("d.gguf"))], lambda name: CARD)


@pytest.fixture
def make_panel(theme: Theme, qtbot: QtBot) -> Iterator[Callable[[EngineTools], LoadPanel]]:
    planners: list[LoadPlanner] = []

    def make(tools: EngineTools) -> LoadPanel:
        planner = LoadPlanner(tools)
        planners.append(planner)
        panel = LoadPanel(theme, planner)
        qtbot.addWidget(panel)
        panel.resize(900, 640)
        panel.show()
        return panel

    yield make
    for planner in planners:
        planner.close()


def wait_for_fit(panel: LoadPanel, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: panel.plan.fit is not None, timeout=LONG_MS)


def usable(box: QComboBox) -> set[str]:
    model = box.model()
    assert isinstance(model, QStandardItemModel)
    return {box.itemData(row) for row in range(box.count()) if model.item(row).isEnabled()}


def test_the_memory_moves_with_the_slider(
    make_panel: Callable[..., LoadPanel], tools: EngineTools, pair: Pair, qtbot: QtBot
) -> None:
    panel = make_panel(tools)
    panel.show_devices([REAL_CPU])
    panel.show_files(pair.target, pair.draft, None, 0)
    wait_for_fit(panel, qtbot)
    assert panel.plan.verdict_text() == "Fits"
    assert panel.context.tokens() == 8192
    whole = panel.plan.fit
    assert whole is not None
    assert "KV cache" in panel.plan.bar.accessibleName()
    panel.context.slider.setValue(panel.context.slider.minimum())
    qtbot.waitUntil(lambda: panel.plan.fit is not whole, timeout=LONG_MS)
    small = panel.plan.fit
    assert small is not None
    assert small.estimate.context_tokens == panel.context.tokens() == 512
    assert small.needed_bytes < whole.needed_bytes - 300 * 2**20
    QTest.mouseClick(panel.context.largest_button, Qt.MouseButton.LeftButton)
    assert panel.context.tokens() == 8192
    qtbot.waitUntil(lambda: panel.plan.fit is not small, timeout=LONG_MS)
    assert panel.options().context_tokens == 8192
    assert panel.drafting.block.maximum() == 16 or panel.drafting.block.maximum() == 8


def test_types_that_the_device_cannot_use_are_greyed_out(
    make_panel: Callable[..., LoadPanel], tools: EngineTools, tmp_path: Path, qtbot: QtBot
) -> None:
    # Nine heads of 32: rows of q8_0 are no whole 32-bit words, which no device can move.
    target = write_scripted(tmp_path / "odd.gguf", [b"ab", b"cd"])
    panel = make_panel(tools)
    panel.show_devices([REAL_CPU])
    panel.show_files(target, None, None, 0)
    wait_for_fit(panel, qtbot)
    qtbot.waitUntil(lambda: len(panel.kv._supported) == 8, timeout=LONG_MS)
    assert ("q8_0", "q8_0") not in panel.kv.supported_pairs()
    assert ("f16", "f16") in panel.kv.supported_pairs()
    assert "q8_0" not in usable(panel.kv.keys)
    assert {"auto", "f32", "f16"} <= usable(panel.kv.keys)
    assert "q8_0" not in usable(panel.kv.values)


def test_keys_take_values_along_that_do_not_go_with_them(
    make_panel: Callable[..., LoadPanel], made_up: EngineTools
) -> None:
    panel = make_panel(made_up)
    panel.kv.show_supported("f16", frozenset({"f16"}))
    panel.kv.show_supported("q8_0", frozenset({"q8_0"}))
    panel.kv.show_types("f16", "f16")
    panel.kv.keys.setCurrentIndex(panel.kv.keys.findData("q8_0"))
    panel.kv.on_keys_chosen()
    assert panel.kv.types() == ("q8_0", "q8_0")


def test_a_device_that_is_gone_is_said_and_no_other_is_taken(
    make_panel: Callable[..., LoadPanel], made_up: EngineTools, qtbot: QtBot
) -> None:
    """B145"""
    panel = make_panel(made_up)
    panel.show_devices([replace(CPU, index=0)])
    panel.show_files(Path("/m/t.gguf"), None, PairLoad(device=CARD.id, context_tokens=4096), 0)
    assert f"{CARD.id} is not there now" in panel.devices.problem()
    assert panel.devices.device() is None
    assert [row.isChecked() for row in panel.devices.rows()] == [False]
    assert panel.files() is None
    panel.show_devices([CARD, CPU])
    assert panel.devices.problem() == ""
    assert panel.options().device == CARD.id
    panel.show_devices([replace(CPU, index=0)])
    QTest.mouseClick(panel.devices.rows()[0], Qt.MouseButton.LeftButton)
    files = panel.files()
    assert files is not None
    assert files.options.device == "CPU"


def test_what_does_not_fit_offers_buttons_that_make_it_fit(
    make_panel: Callable[..., LoadPanel], made_up: EngineTools, qtbot: QtBot
) -> None:
    panel = make_panel(made_up)
    panel.show_devices([CARD, CPU])
    panel.show_files(Path("/m/t.gguf"), Path("/m/d.gguf"), PairLoad(device=CARD.id, context_tokens=60_000), 0)
    wait_for_fit(panel, qtbot)
    assert panel.plan.verdict_text() == "Does not fit"
    assert panel.is_too_big()
    words = [button.accessibleName() for button in panel.plan.way_buttons()]
    assert words == [
        "KV cache as q4_0: smaller, a little slower",
        f"Context of {numbers.tokens(17_408)}",
        "On CPU instead",
    ]
    button = panel.plan.way_buttons()[1]
    assert isinstance(button, QPushButton)
    before = panel.plan.fit
    button.click()
    qtbot.waitUntil(lambda: panel.plan.fit is not before, timeout=LONG_MS)
    assert panel.plan.verdict_text() == "Fits, but it is tight"
    assert panel.context.tokens() == 17_408


def test_a_new_pair_gets_a_sensible_context_and_a_known_one_its_own(
    make_panel: Callable[..., LoadPanel], made_up: EngineTools, qtbot: QtBot
) -> None:
    panel = make_panel(made_up)
    panel.show_devices([CPU])
    panel.show_files(Path("/m/t.gguf"), None, None, 0)
    wait_for_fit(panel, qtbot)
    assert panel.context.tokens() == 32_768
    panel.show_files(Path("/m/t2.gguf"), None, None, 65_536)
    qtbot.waitUntil(lambda: panel.context.tokens() == 65_536, timeout=LONG_MS)
    panel.show_files(Path("/m/t3.gguf"), None, PairLoad(context_tokens=1280, kv_k="q8_0", n_threads=1), 0)
    wait_for_fit(panel, qtbot)
    assert panel.context.tokens() == 1280
    assert panel.options() == LoadOptions(device="CPU", context_tokens=1280, kv_k="q8_0", n_threads=1)


def test_a_bad_file_says_why_it_cannot_be_loaded(
    make_panel: Callable[..., LoadPanel], tools: EngineTools, tmp_path: Path, qtbot: QtBot
) -> None:
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03")
    panel = make_panel(tools)
    panel.show_devices([REAL_CPU])
    panel.show_files(tmp_path / "cut.gguf", None, None, 0)
    qtbot.waitUntil(lambda: panel.plan.verdict_text() == "Cannot be loaded", timeout=LONG_MS)
    assert "cut.gguf" in panel.plan._words.text()


def dialog_of(desk: Desk) -> OpenPairDialog:
    return desk.window.open_dialog()


def test_the_dialog_finds_the_draft_and_loads_with_what_is_shown(
    make_desk: Callable[..., Desk], tools: EngineTools, pair: Pair
) -> None:
    memory = PairMemory(None)
    desk = make_desk(parts=Parts(engine_tools=tools, pair_memory=memory))
    dialog = dialog_of(desk)
    dialog.take_files([pair.target])
    desk.qtbot.waitUntil(lambda: dialog.draft.text() == str(pair.draft), timeout=LONG_MS)
    wait_for_fit(dialog.panel, desk.qtbot)
    dialog.panel.context.spin.setValue(2048)
    dialog.panel.kv.show_types("f16", "f16")
    dialog.panel.drafting.show_options(DraftOptions("chain", 5, 4))
    QTest.mouseClick(dialog.load_button, Qt.MouseButton.LeftButton)
    asked = desk.engine.jobs[-1]
    assert isinstance(asked, LoadPair)
    assert asked.options == LoadOptions(device="CPU", context_tokens=2048, kv_k="f16", kv_v="f16")
    desk.qtbot.waitUntil(lambda: memory.recall(pair.target) is not None)
    desk.send("go")
    desk.wait_for_reply()
    assert desk.engine.generations()[-1].draft == DraftOptions("chain", 5, 4)
    # The same pair again, from anywhere: with the settings it had.
    desk.window.pair_state.load(PairFiles(pair.target, pair.draft))
    again = desk.engine.jobs[-1]
    assert isinstance(again, LoadPair)
    assert (again.options.kv_k, again.options.device) == ("f16", "CPU")


def test_drafts_that_fit_are_offered_and_published_ones_called_by_their_folder(
    make_desk: Callable[..., Desk], tools: EngineTools
) -> None:
    desk = make_desk(parts=Parts(engine_tools=tools))
    dialog = dialog_of(desk)
    dialog.take_files([QWEN35_MINI])
    names = [QWEN35_MINI_DRAFT.name, QWEN35_MINI_DRAFT_HF.name]
    desk.qtbot.waitUntil(lambda: [button.text() for button in dialog._found] == names, timeout=LONG_MS)
    QTest.mouseClick(dialog._found[1], Qt.MouseButton.LeftButton)
    assert Path(dialog.draft.text()) == QWEN35_MINI_DRAFT_HF / "model.safetensors"


def test_without_a_file_nothing_is_said_of_one_and_no_box_is_empty(
    make_desk: Callable[..., Desk], tools: EngineTools
) -> None:
    panel = dialog_of(make_desk(parts=Parts(engine_tools=tools))).panel
    assert [box.currentText() for box in (panel.kv.keys, panel.kv.values)] == ["automatic (f32)"] * 2
    assert panel.context._trained_words.text() == ""
    assert panel.context.tokens() == USUAL_CONTEXT


def test_a_draft_that_was_emptied_by_hand_is_not_filled_in_again(
    make_desk: Callable[..., Desk], tools: EngineTools, pair: Pair
) -> None:
    desk = make_desk(parts=Parts(engine_tools=tools))
    dialog = dialog_of(desk)
    dialog.take_files([pair.target])
    desk.qtbot.waitUntil(lambda: bool(dialog.draft.text()), timeout=LONG_MS)
    dialog.draft.selectAll()
    QTest.keyClick(dialog.draft, Qt.Key.Key_Delete)
    wait_for_fit(dialog.panel, desk.qtbot)
    assert dialog.draft.text() == ""
    files = dialog.panel.files()
    assert files is not None
    assert files.draft is None
    assert not dialog.panel.drafting.isEnabled()
    dialog.reject()


def test_the_panel_of_the_engine_page_is_about_the_loaded_pair(
    make_desk: Callable[..., Desk], tools: EngineTools, pair: Pair
) -> None:
    desk = make_desk(parts=Parts(engine_tools=tools, pair_memory=PairMemory(None)))
    page = desk.window.page("engine")
    assert isinstance(page, EnginePage)
    desk.window.show_page("engine")
    page.show_view("load")
    assert not page.loading.load_button.isEnabled()
    desk.window.pair_state.load(PairFiles(pair.target, pair.draft))
    panel = page.loading.panel
    wait_for_fit(panel, desk.qtbot)
    desk.qtbot.waitUntil(page.loading.load_button.isEnabled, timeout=LONG_MS)
    assert panel.plan.fit is not None
    assert panel.plan.fit.freed_bytes > 0  # what the loaded pair takes is free for its successor
    panel.drafting.method.buttons()[1].click()
    assert desk.window.model_bar.draft_switch.choice() == "on"
    desk.window.model_bar.draft_switch.buttons()[2].click()
    assert panel.drafting.method.choice() == "off"
    panel.context.spin.setValue(1024)
    QTest.mouseClick(page.loading.load_button, Qt.MouseButton.LeftButton)
    asked = desk.engine.jobs[-1]
    assert isinstance(asked, LoadPair)
    assert asked.options.context_tokens == 1024


def test_devices_come_and_go_without_losing_the_choice(
    make_panel: Callable[..., LoadPanel], made_up: EngineTools
) -> None:
    panel = make_panel(made_up)
    panel.show_devices(FAKE_DEVICES)
    assert panel.devices.device() is FAKE_DEVICES[0]  # the software renderer is no card
    assert "Recommended" in panel.devices.rows()[0].accessibleDescription()
    QTest.mouseClick(panel.devices.rows()[1], Qt.MouseButton.LeftButton)
    panel.show_devices(FAKE_DEVICES)
    assert panel.options().device == FAKE_DEVICES[1].id


def test_what_the_plan_says_is_what_the_plan_command_says(tools: EngineTools, pair: Pair) -> None:
    estimate = tools.plan(pair.target, pair.draft, LoadOptions(device="CPU", context_tokens=2048))
    assert isinstance(estimate, LoadEstimate)
    assert estimate.total_bytes == sum((
        estimate.target_weights_bytes, estimate.draft_weights_bytes, estimate.kv_cache_bytes,
        estimate.recurrent_bytes, estimate.draft_kv_bytes, estimate.compute_bytes,
    ))  # fmt: skip


def test_a_draft_may_go_to_another_card(
    make_panel: Callable[..., LoadPanel], made_up: EngineTools, qtbot: QtBot
) -> None:
    asked: list[LoadOptions] = []

    def plan_apart(target: Path, draft: Path | None, options: LoadOptions, *more: object) -> LoadEstimate:
        asked.append(options)
        estimate = made_up.plan(target, draft, options)
        if options.draft_device is None:
            return estimate
        return replace(estimate, draft_device_name="Vulkan0", draft_total_bytes=3 << 30, draft_free_bytes=2 << 30)

    panel = make_panel(replace(made_up, plan=plan_apart))
    other = replace(CARD, index=7, name="CUDA7", id="card 7", description="Second card")
    panel.show_devices([CARD, CPU])
    assert panel.draft_place.isHidden()
    panel.show_devices([CARD, other, CPU])
    assert not panel.draft_place.isHidden()
    assert [panel.draft_place.box.itemData(n) for n in range(panel.draft_place.box.count())] == ["", other.id]
    panel.show_files(Path("t.gguf"), Path("d.gguf"), None, 0)
    wait_for_fit(panel, qtbot)
    panel.draft_place.box.setCurrentIndex(1)
    panel.draft_place.box.activated.emit(1)
    qtbot.waitUntil(lambda: bool(asked) and asked[-1].draft_device == other.id, timeout=LONG_MS)
    qtbot.waitUntil(lambda: "Vulkan0" in panel.plan._words.text(), timeout=LONG_MS)
    assert panel.is_too_big()  # the card of the draft is too small, whatever the target's has
    assert panel.options().draft_device == other.id
    QTest.mouseClick(panel.devices.rows()[1], Qt.MouseButton.LeftButton)  # the target goes there: both on one card
    assert panel.options().draft_device is None


def test_a_context_typed_above_the_maximum_becomes_the_maximum(theme: Theme, qtbot: QtBot) -> None:
    row = ContextRow(theme)
    qtbot.addWidget(row)
    row.show_trained(8192)
    for typed, tokens in {"16384": 8192, "4096": 4096, "99999": 8192, "x": 8192}.items():
        row.spin.selectAll()
        QTest.keyClicks(row.spin, typed)
        QTest.keyClick(row.spin, Qt.Key.Key_Return)
        assert row.tokens() == tokens
