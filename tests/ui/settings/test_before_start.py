"""Before the window: a data folder on a drive that is not there, and one that shall move."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from dflash_desktop.base.instance import InstanceLock
from dflash_desktop.base.paths import LOCATION_FILE, app_paths, left_location, set_location
from dflash_desktop.base.relocation import folder_wish, read_wish, write_wish
from dflash_desktop.ui.settings.before_start import (
    MissingFolderDialog,
    MoveDialog,
    UnknownFolderDialog,
    settle_data_folder,
)
from ui.conftest import RESOURCES


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))


def answer_next(kind: type, do: Callable[[object], None]) -> None:
    """Act on the next dialog of that kind, once it is shown."""

    def look() -> None:
        found = [w for w in QApplication.topLevelWidgets() if isinstance(w, kind) and w.isVisible()]
        if found:
            do(found[0])
        else:
            QTimer.singleShot(10, look)

    QTimer.singleShot(10, look)


def test_where_all_is_in_place_nothing_is_asked(app: QApplication, tmp_path: Path) -> None:
    assert settle_data_folder(RESOURCES, tmp_path)


def test_a_missing_drive_can_be_waited_for(app: QApplication, tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    set_location(app_paths(tmp_path), data=drive)

    def connect_and_try_again(dialog: object) -> None:
        assert isinstance(dialog, MissingFolderDialog)
        drive.mkdir()
        dialog._choose("again")

    answer_next(MissingFolderDialog, connect_and_try_again)
    assert settle_data_folder(RESOURCES, tmp_path)
    assert app_paths(tmp_path).data == drive


def test_one_can_go_on_without_it_and_come_back_later(app: QApplication, tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    set_location(app_paths(tmp_path), data=drive)
    answer_next(MissingFolderDialog, lambda dialog: dialog._choose("standard"))  # type: ignore[attr-defined]
    assert settle_data_folder(RESOURCES, tmp_path)
    paths = app_paths(tmp_path)
    assert paths.data != drive
    assert left_location(paths) == drive


def test_one_can_leave(app: QApplication, tmp_path: Path) -> None:
    set_location(app_paths(tmp_path), data=tmp_path / "drive")
    answer_next(MissingFolderDialog, lambda dialog: dialog.reject())  # type: ignore[attr-defined]
    assert not settle_data_folder(RESOURCES, tmp_path)


def damage_location(beside: Path) -> Path:
    """The data was moved, and the file that says where to is damaged. Returns where."""
    paths = app_paths(beside)
    drive = beside / "drive"
    drive.mkdir()
    set_location(paths, data=drive)
    (paths.config / LOCATION_FILE).write_bytes(b'{"data": "/mn')
    return drive


def test_a_damaged_location_is_asked_about_at_every_start(app: QApplication, tmp_path: Path) -> None:
    damage_location(tmp_path)
    for _ in range(3):
        answer_next(UnknownFolderDialog, lambda dialog: dialog.reject())  # type: ignore[attr-defined]
        assert not settle_data_folder(RESOURCES, tmp_path)


def test_a_damaged_location_is_chosen_anew(app: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = damage_location(tmp_path)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(drive))
    answer_next(UnknownFolderDialog, lambda dialog: dialog._choose("choose"))  # type: ignore[attr-defined]
    assert settle_data_folder(RESOURCES, tmp_path)
    paths = app_paths(tmp_path)
    assert paths.data == drive
    assert b'{"data": "/mn' in [path.read_bytes() for path in paths.config.iterdir()]
    assert settle_data_folder(RESOURCES, tmp_path)  # and is not asked about any more


def test_no_folder_chosen_asks_on(app: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage_location(tmp_path)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")

    def choose_nothing_then_leave(dialog: object) -> None:
        assert isinstance(dialog, UnknownFolderDialog)
        dialog._choose("choose")
        assert dialog.isVisible()
        dialog._choose("leave")

    answer_next(UnknownFolderDialog, choose_nothing_then_leave)
    assert not settle_data_folder(RESOURCES, tmp_path)


def test_the_usual_folder_can_be_used_instead(app: QApplication, tmp_path: Path) -> None:
    drive = damage_location(tmp_path)
    answer_next(UnknownFolderDialog, lambda dialog: dialog._choose("standard"))  # type: ignore[attr-defined]
    assert settle_data_folder(RESOURCES, tmp_path)
    assert app_paths(tmp_path).data != drive


def test_a_move_that_was_wished_for_is_done(app: QApplication, tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    paths.data.mkdir(parents=True)
    (paths.data / "chats.db").write_bytes(os.urandom(1000))
    write_wish(paths, folder_wish(tmp_path / "new"))
    assert settle_data_folder(RESOURCES, tmp_path)
    assert app_paths(tmp_path).data == tmp_path / "new"
    assert (tmp_path / "new" / "chats.db").stat().st_size == 1000


def test_a_move_that_fails_says_why_and_goes_on_as_before(app: QApplication, tmp_path: Path, qtbot: QtBot) -> None:
    paths = app_paths(tmp_path)
    paths.data.mkdir(parents=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    write_wish(paths, folder_wish(tmp_path / "full"))
    told = []

    def read_and_go_on(dialog: object) -> None:
        assert isinstance(dialog, MoveDialog)
        if not dialog._is_done:
            QTimer.singleShot(10, lambda: read_and_go_on(dialog))
            return
        told.append(dialog.words.text())
        dialog.button.click()

    answer_next(MoveDialog, read_and_go_on)
    assert settle_data_folder(RESOURCES, tmp_path)
    assert "not empty" in told[0]
    assert app_paths(tmp_path).data == paths.data
    assert read_wish(paths) is None


def test_nothing_moves_while_another_window_is_open(app: QApplication, tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    paths.data.mkdir(parents=True)
    write_wish(paths, folder_wish(tmp_path / "new"))
    lock = InstanceLock(paths.config)
    assert lock.acquire()
    assert settle_data_folder(RESOURCES, tmp_path)
    lock.release()
    assert app_paths(tmp_path).data == paths.data
    assert read_wish(paths) is not None
