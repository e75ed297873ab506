"""The tab "On this machine": added by dropping, used in place, checked, repaired, deleted; and the search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from dflash_desktop.hub.library import LibraryFile
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.hub.library_item_model import LibraryItemModel
from dflash_desktop.ui.kit.language import apply_language
from ui.conftest import RESOURCES
from ui.hub.conftest import DRAFT, MAKER, MODELS, TARGET, ModelsRig
from ui.hub.test_first_minute import click
from ui.hub.test_models_page import begin_download, drop


@pytest.fixture
def chinese(app: QApplication) -> Iterator[None]:
    apply_language(app, RESOURCES, "zh_CN")
    yield
    apply_language(app, RESOURCES, "system")


def content_of(path: Path) -> bytes:
    """What lies there now; a repair takes the file away for a while."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def row_of(rig: ModelsRig, name: str) -> int:
    model = rig.page.here.model
    rows = {file.name: row for row in range(model.rowCount()) if (file := model.file(row))}
    return rows.get(name, -1)


def test_files_and_folders_are_added_by_dropping_them_and_used_in_place(rig: ModelsRig, tmp_path: Path) -> None:
    rig.window.show_page("models")
    drop(rig, TARGET)
    rig.wait(lambda: row_of(rig, TARGET.name) >= 0)
    assert rig.page.here.isVisible()
    drop(rig, MODELS)
    rig.wait(lambda: row_of(rig, DRAFT.name) >= 0)
    file = rig.page.here.model.file(row_of(rig, TARGET.name))
    assert file is not None
    assert file.path == TARGET
    assert DRAFT in file.drafts
    assert not (tmp_path / "models" / TARGET.name).exists()


def test_our_own_file_is_checked_repaired_and_deleted_with_what_it_frees(rig: ModelsRig) -> None:
    begin_download(rig)
    rig.wait(lambda: rig.models.rows[0].state == "done")
    rig.wait(lambda: row_of(rig, "mini-Q8_0.gguf") >= 0)
    here = rig.page.here
    rig.page.show_tab("here")
    here.table.selectRow(row_of(rig, "mini-Q8_0.gguf"))
    click(here.check_button)
    rig.wait(lambda: "is sound" in rig.page.notice.text())
    path = rig.models.models_folder / MAKER / "mini-Q8_0.gguf"
    content = bytearray(path.read_bytes())
    content[-5000] ^= 0xFF
    path.write_bytes(content)
    click(here.check_button)
    rig.wait(lambda: "is damaged" in rig.page.notice.text())
    rig.hub.asked.clear()
    click(here.repair_button)
    rig.wait(lambda: content_of(path) == TARGET.read_bytes())
    assert [begin for begin in rig.hub.begins() if begin == 0] == []
    rig.wait(lambda: row_of(rig, "mini-Q8_0.gguf") >= 0 and not rig.models._is_scanning)
    here.table.selectRow(row_of(rig, "mini-Q8_0.gguf"))
    click(here.delete_button)
    assert path.exists(), "it asks once more"
    click(here.delete_button)
    rig.wait(lambda: "24.7 MB are free again" in rig.page.notice.text())
    assert not path.exists()


def test_a_loaded_file_cannot_be_deleted(rig: ModelsRig) -> None:
    begin_download(rig)
    rig.wait(lambda: rig.models.rows[0].state == "done")
    files = rig.models.row_files(rig.models.rows[0])
    assert files is not None
    rig.window.models_entry.load(files)
    rig.wait(lambda: rig.window.pair_state.phase is Phase.LOADED)
    rig.window.show_page("models")
    rig.page.show_tab("here")
    rig.wait(lambda: row_of(rig, "mini-Q8_0.gguf") >= 0)
    rig.page.here.table.selectRow(row_of(rig, "mini-Q8_0.gguf"))
    assert not rig.page.here.delete_button.isEnabled()


def test_b121_an_absent_folder_is_named_and_kept(rig: ModelsRig, tmp_path: Path) -> None:
    rig.window.show_page("models")
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / "m.gguf").write_bytes(TARGET.read_bytes())
    drop(rig, drive)
    rig.wait(lambda: row_of(rig, "m.gguf") >= 0)
    drive.rename(tmp_path / "unplugged")
    click(rig.page.here.again_button)
    rig.wait(lambda: row_of(rig, "m.gguf") < 0)
    assert rig.models.shelf is not None
    place = next(place for place in rig.models.shelf.places if place.place.path == drive)
    assert not place.is_present
    (tmp_path / "unplugged").rename(drive)
    click(rig.page.here.again_button)
    rig.wait(lambda: row_of(rig, "m.gguf") >= 0)


def test_library_rows(rig: ModelsRig, qtmodeltester: object) -> None:
    model = LibraryItemModel(rig.page)
    drop(rig, MODELS)
    rig.wait(lambda: rig.models.shelf is not None and len(rig.models.shelf.files) > 3)
    assert rig.models.shelf is not None
    model.show_files(rig.models.shelf.files)
    qtmodeltester.check(model)  # type: ignore[attr-defined]
    first = model.file(0)
    assert isinstance(first, LibraryFile)
    assert first.is_target


def test_a_search_lists_repositories_their_models_and_whether_one_fits(rig: ModelsRig) -> None:
    rig.window.show_page("models")
    rig.page.show_tab("search")
    search = rig.page.search
    QTest.keyClicks(search.edit, "mini")
    assert rig.hub.asked == []
    QTest.keyClick(search.edit, Qt.Key.Key_Return)
    rig.wait(lambda: search.results.rowCount() == 2)
    search.result_table.selectRow(0)
    rig.wait(lambda: search.files.rowCount() == 1)
    search.file_table.selectRow(0)
    click(search.fit_button)
    rig.wait(lambda: search._fit.text().startswith(("Fits", "Tight")))
    click(search.get_button)
    rig.wait(lambda: rig.page._dialog is not None and rig.page._dialog.get_button.isEnabled())
    assert rig.models.rows == ()


def test_a_search_that_finds_nothing_says_so(rig: ModelsRig) -> None:
    rig.page.search.edit.setText("no such thing")
    rig.page.search.on_search_clicked()
    rig.wait(lambda: "no GGUF model" in rig.page.search._state.text())


@pytest.mark.usefixtures("chinese")
def test_why_a_file_cannot_run_is_told_in_the_windows_language(rig: ModelsRig, tmp_path: Path) -> None:
    """With the engine's own sentence as the detail, as loads that fail have it."""
    (tmp_path / "mine").mkdir()
    content = TARGET.read_bytes()
    (tmp_path / "mine" / "cut.gguf").write_bytes(content[:5000])
    (tmp_path / "mine" / "other.gguf").write_bytes(content.replace(b"qwen35", b"mamba2"))
    rig.window.show_page("models")
    drop(rig, tmp_path / "mine")
    rig.wait(lambda: row_of(rig, "other.gguf") >= 0)
    here = rig.page.here
    rig.page.show_tab("here")
    for name, words in (("cut.gguf", "已损坏"), ("other.gguf", "架构是 mamba2")):
        row = row_of(rig, name)
        here.table.selectRow(row)
        file = here.model.file(row)
        assert file is not None
        assert words in here._about.text()
        assert file.why_not[0] not in here._about.text()
        tip = here.model.data(here.model.index(row, 0), Qt.ItemDataRole.ToolTipRole)
        assert words in str(tip)
        assert here._details.isHidden()
        click(here.details_button)
        assert here._details.isVisible()
        assert here._details.text() == file.why_not[0]
        click(here.details_button)
    drop(rig, TARGET)
    rig.wait(lambda: row_of(rig, TARGET.name) >= 0)
    here.table.selectRow(row_of(rig, TARGET.name))
    assert here.details_button.isHidden()
