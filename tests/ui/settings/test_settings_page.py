"""The settings page: built from the declarations, changing what is in force, never what was not asked for."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QPushButton, QSpinBox

from dflash_desktop.base.log import start_logging, stop_logging
from dflash_desktop.base.paths import app_paths
from dflash_desktop.base.relocation import folder_wish, read_wish
from dflash_desktop.base.run_marker import RunMarker
from dflash_desktop.settings.pair_memory import PairLoad, PairMemory
from dflash_desktop.settings.schema import Settings
from dflash_desktop.settings.store import DECLARED, SettingsStore
from dflash_desktop.ui.kit.switch import Switch
from dflash_desktop.ui.kit.widgets import SegmentedControl
from dflash_desktop.ui.parts import Home, Parts
from dflash_desktop.ui.settings.log_dialog import serious_lines
from dflash_desktop.ui.settings.page import SettingsPage
from ui.conftest import Desk
from ui.scripted_engine import Script


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    return Home(app_paths(tmp_path))


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    return SettingsStore(tmp_path / "settings.json")


@pytest.fixture
def desk(make_desk: Callable[..., Desk], home: Home, store: SettingsStore) -> Desk:
    return make_desk(
        Script(text="A secret answer."), parts=Parts(settings=store, home=home, pair_memory=PairMemory(None))
    )


def page_of(desk: Desk) -> SettingsPage:
    page = desk.window.page("settings")
    assert isinstance(page, SettingsPage)
    desk.window.show_page("settings")
    return page


def test_every_declared_setting_has_a_control_that_shows_it(desk: Desk) -> None:
    page = page_of(desk)
    assert set(page.rows) == set(DECLARED)
    for row in page.rows.values():
        assert row.control.accessibleName()
        assert row.control.accessibleDescription()


def test_each_control_changes_its_setting_and_follows_it(desk: Desk, store: SettingsStore) -> None:
    page = page_of(desk)
    theme = page.rows["theme"].control
    assert isinstance(theme, SegmentedControl)
    QTest.mouseClick(theme.buttons()[2], Qt.MouseButton.LeftButton)
    assert store.values.theme == "dark"
    assert desk.window._theme.mode == "dark"
    assert [action.isChecked() for action in desk.window.theme_menu.actions()] == [False, False, True]
    desk.window.theme_menu.actions()[1].trigger()
    assert (store.values.theme, theme.choice()) == ("light", "light")
    switch = page.rows["loads_last_pair"].control
    assert isinstance(switch, Switch)
    QTest.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert store.values.loads_last_pair
    assert switch.isChecked()
    context = page.rows["default_context_tokens"].control
    assert isinstance(context, QSpinBox)
    context.setValue(16_384)
    assert store.values.default_context_tokens == 16_384
    draft = page.rows["draft_mode"].control
    assert isinstance(draft, SegmentedControl)
    draft.buttons()[2].click()
    assert desk.window.model_bar.draft_switch.choice() == "off"
    desk.window.model_bar.draft_switch.buttons()[0].click()
    assert draft.choice() == "auto"
    desk.window.pair_state.set_draft_mode("off")  # as a pair does that was last used without its draft
    desk.window.theme_menu.actions()[2].trigger()
    assert desk.window.model_bar.draft_switch.choice() == "off"


def test_another_language_or_text_size_asks_for_another_window(desk: Desk, store: SettingsStore) -> None:
    asked: list[bool] = []
    desk.window.rebuild_wanted.connect(lambda: asked.append(True))
    size = page_of(desk).rows["font_percent"].control
    assert isinstance(size, QComboBox)
    size.setCurrentIndex(size.findData(130))
    size.activated.emit(size.currentIndex())
    assert store.values.font_percent == 130
    assert asked == [True]
    assert not desk.window.is_restart_wanted
    assert desk.window.isVisible()


def test_reset_asks_first_and_then_resets_all(desk: Desk, store: SettingsStore) -> None:
    store.change(theme="dark", detailed_log=True)
    page = page_of(desk)
    QTest.mouseClick(page.reset_button, Qt.MouseButton.LeftButton)
    assert page.reset_button.text() == "Really reset all settings?"
    assert store.values.theme == "dark"
    QTest.mouseClick(page.reset_button, Qt.MouseButton.LeftButton)
    assert store.values == Settings()
    assert "defaults" in page.notice.text()


def test_a_question_that_nobody_answers_goes_away(desk: Desk) -> None:
    page = page_of(desk)
    page.reset_button._timer.setInterval(20)
    QTest.mouseClick(page.reset_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: page.reset_button.text() == "Reset all settings")


def test_how_models_were_loaded_can_be_forgotten(desk: Desk) -> None:
    memory = desk.window._parts.pair_memory
    assert memory is not None
    memory.remember(Path("/m/t.gguf"), PairLoad(context_tokens=5))
    page = page_of(desk)
    page.forget_button.click()
    page.forget_button.click()
    assert memory.recall(Path("/m/t.gguf")) is None


def test_the_report_holds_no_word_of_a_chat(desk: Desk, home: Home, tmp_path: Path) -> None:
    start_logging(home.paths.logs, level=logging.DEBUG)
    try:
        desk.load()
        desk.send("My deepest secret is 4711.")
        desk.wait_for_reply()
        page = page_of(desk)
        assert page.help_card is not None
        page.help_card.save_report(tmp_path / "report.zip")
        desk.qtbot.waitUntil(lambda: "report.zip" in page.notice.text())
    finally:
        stop_logging()
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        assert {"machine.json", "program.json", "settings.json", "dflash-desktop.log"} <= set(archive.namelist())
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"secret" not in everything
    assert b"4711" not in everything


def test_a_report_that_cannot_be_written_says_so(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    page = page_of(desk)
    assert page.help_card is not None
    page.help_card.save_report(tmp_path / "file" / "report.zip")
    desk.qtbot.waitUntil(lambda: "cannot be written" in page.notice.text())


def test_the_log_is_followed_and_can_be_narrowed(desk: Desk, home: Home) -> None:
    start_logging(home.paths.logs)
    log = logging.getLogger("dflash_desktop.test")
    try:
        log.info("all is well")
        page = page_of(desk)
        assert page.help_card is not None
        dialog = page.help_card.on_log_clicked()
        assert "all is well" in dialog.text.toPlainText()
        log.warning("not so well")
        desk.qtbot.waitUntil(lambda: "not so well" in dialog.text.toPlainText())
        dialog.filter.buttons()[1].click()
        assert "all is well" not in dialog.text.toPlainText()
        assert "not so well" in dialog.text.toPlainText()
        dialog.accept()
    finally:
        stop_logging()


def test_a_traceback_stays_with_its_error() -> None:
    log = (
        "2026-01-01 10:00:00,000 INFO    lane a: fine\n"
        "2026-01-01 10:00:01,000 ERROR   lane b: bad\nTraceback:\n  line 1\n"
        "2026-01-01 10:00:02,000 INFO    lane a: fine again\n"
    )
    assert serious_lines(log) == "2026-01-01 10:00:01,000 ERROR   lane b: bad\nTraceback:\n  line 1"


def test_moving_the_data_says_what_it_takes_and_waits_for_a_yes(desk: Desk, home: Home, tmp_path: Path) -> None:
    home.paths.data.mkdir(parents=True)
    (home.paths.data / "chats.db").write_bytes(b"x" * 3000)
    page = page_of(desk)
    card = page.files_card
    assert card is not None
    assert str(home.paths.data) in card.folder_words.text()
    assert card.back_button.isHidden()
    card.ask(folder_wish(tmp_path / "new"))
    desk.qtbot.waitUntil(lambda: "1 files" in page.notice.text())
    assert read_wish(home.paths) is None
    (yes,) = page.notice.buttons()
    QTest.mouseClick(yes, Qt.MouseButton.LeftButton)
    assert read_wish(home.paths) == folder_wish(tmp_path / "new")
    assert desk.window.is_restart_wanted
    assert (home.paths.data / "chats.db").exists()  # nothing moves while files are open


def test_a_place_that_cannot_be_used_is_refused_with_the_reason(desk: Desk, home: Home, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    page = page_of(desk)
    assert page.files_card is not None
    page.files_card.ask(folder_wish(tmp_path / "full"))
    desk.qtbot.waitUntil(lambda: "not empty" in page.notice.text())
    assert read_wish(home.paths) is None


def test_no_move_while_another_program_uses_the_data(
    make_desk: Callable[..., Desk], home: Home, tmp_path: Path
) -> None:
    class Busy(RunMarker):
        def others_running(self) -> int:
            return 1

    marker = Busy(home.paths.logs, "1")
    desk = make_desk(parts=Parts(home=Home(home.paths, marker)))
    page = page_of(desk)
    assert page.files_card is not None
    page.files_card._begin(folder_wish(tmp_path / "new"))
    assert "Another DFlash Desktop" in page.notice.text()
    assert read_wish(home.paths) is None


def test_a_settings_file_that_was_damaged_is_told(make_desk: Callable[..., Desk], tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(b"{")
    desk = make_desk(parts=Parts(settings=SettingsStore(tmp_path / "settings.json")))
    assert "damaged" in page_of(desk).notice.text()


def test_what_the_program_sends_is_said_on_the_page(desk: Desk) -> None:
    texts = [label.text() for label in page_of(desk).findChildren(type(page_of(desk).notice._text))]
    assert any("no telemetry" in text for text in texts)
    assert any("huggingface.co" in text for text in texts)


def test_the_buttons_of_the_page_are_real_buttons(desk: Desk) -> None:
    page = page_of(desk)
    assert all(button.accessibleName() for button in page.findChildren(QPushButton) if not button.isHidden())
