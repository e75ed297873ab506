"""Moving the data: all of it or none of it, and never into something that is in use."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dflash_desktop.base import data_move
from dflash_desktop.base.data_move import UNFINISHED, MoveCancelled, plan_move, run_move
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import PORTABLE_MARKER, DataFolderMissing, app_paths
from dflash_desktop.base.relocation import (
    carry_out,
    check_wish,
    folder_wish,
    portable_wish,
    read_wish,
    write_wish,
)

FILES = {"chats.db": b"c" * 5000, "models/maker/模型 😀.gguf": os.urandom(70_000), "models/empty.bin": b""}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "old place"
    fill(folder)
    return folder


def fill(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("chats.db")


def held(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}


@pytest.fixture
def another_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(data_move, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(Path, "rename", refuse)


def test_on_one_disk_it_is_a_rename(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "new" / "place"
    switched: list[Path] = []
    assert run_move(plan_move(source, to), switched.append) == []
    assert switched == [to]
    assert held(to) == FILES
    assert not source.exists()


@pytest.mark.usefixtures("another_disk")
def test_onto_another_disk_everything_is_copied_then_deleted(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "new"
    seen: list[int] = []
    move = plan_move(source, to)
    assert (move.n_files, move.n_bytes) == (4, 75_000)
    assert run_move(move, lambda _to: None, seen.append) == []
    assert held(to) == FILES
    assert (to / "link").is_symlink()
    assert not (to / UNFINISHED).exists()
    assert not source.exists()
    assert seen == sorted(seen)
    assert seen[-1] == 75_000
    assert len(seen) > 50


@pytest.mark.usefixtures("another_disk")
@pytest.mark.parametrize("failure", ["cancelled", "disk full", "switch"])
def test_whatever_fails_everything_is_where_it_was(
    source: Path, tmp_path: Path, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, n_seen = tmp_path / "new", 0

    def progress(_n: int) -> None:
        nonlocal n_seen
        n_seen += 1
        if failure == "disk full" and n_seen == 20:
            raise OSError(errno.ENOSPC, "No space left on device", str(to))

    def switch(_to: Path) -> None:
        raise AppError("the settings cannot be written")

    expected = MoveCancelled if failure == "cancelled" else AppError
    with pytest.raises(expected):
        run_move(
            plan_move(source, to),
            switch if failure == "switch" else lambda _to: None,
            progress,
            lambda: failure == "cancelled" and n_seen > 10,
        )
    assert held(source) == FILES
    assert not to.exists() or not list(to.iterdir())


def test_a_switch_that_fails_renames_back(source: Path, tmp_path: Path) -> None:
    def switch(_to: Path) -> None:
        raise AppError("no")

    with pytest.raises(AppError, match="no"):
        run_move(plan_move(source, tmp_path / "new"), switch)
    assert held(source) == FILES


def test_what_an_interrupted_move_left_is_cleared(source: Path, tmp_path: Path) -> None:
    to = tmp_path / "new"
    to.mkdir()
    (to / UNFINISHED).touch()
    (to / "half.gguf").write_bytes(b"x")
    run_move(plan_move(source, to), lambda _to: None)
    assert held(to) == FILES
    assert not (to / "half.gguf").exists()


def test_places_that_make_no_sense_are_refused(source: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "somebody's.txt").touch()
    (tmp_path / "same").symlink_to(source)
    for to, words in (
        (source, "already"),
        (tmp_path / "same", "already"),
        (source / "below", "within"),
        (tmp_path, "within"),
        (full, "not empty"),
        (full / "somebody's.txt" / "x", "cannot be used"),
    ):
        with pytest.raises(AppError, match=words):
            plan_move(source, to)
    assert (full / "somebody's.txt").exists()


def test_too_small_a_disk_is_told_before_anything_moves(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_move, "_is_same_disk", lambda *_: False)
    monkeypatch.setattr(data_move, "SPARE_BYTES", 1 << 60)
    with pytest.raises(AppError, match=r"GB free; the data needs"):
        plan_move(source, tmp_path / "new")


def test_a_moved_data_folder_is_used_from_the_next_start_on(tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    fill(paths.data)
    to = tmp_path / "elsewhere"
    write_wish(paths, folder_wish(to))
    assert check_wish(paths, folder_wish(to)).n_bytes == 75_000
    wish = read_wish(paths)
    assert wish == folder_wish(to)
    assert carry_out(paths, wish, beside=tmp_path) == []
    assert read_wish(paths) is None
    moved = app_paths(tmp_path)
    assert moved.data == to
    assert moved.models == to / "models"
    assert moved.config == paths.config
    assert held(to) == FILES
    to.rename(tmp_path / "drive pulled out")
    with pytest.raises(DataFolderMissing, match="Connect the drive"):
        app_paths(tmp_path)
    assert app_paths(tmp_path, ignores_moves=True).data == paths.data
    (tmp_path / "drive pulled out").rename(to)
    back = carry_out(app_paths(tmp_path), folder_wish(paths.data), beside=tmp_path)
    assert back == []
    assert app_paths(tmp_path).data == paths.data
    assert held(paths.data) == FILES


def test_portable_mode_takes_everything_along_and_back(tmp_path: Path) -> None:
    beside = tmp_path / "program"
    beside.mkdir()
    paths = app_paths(beside)
    fill(paths.data)
    paths.config.mkdir(parents=True, exist_ok=True)
    (paths.config / "settings.json").write_text("{}", "utf-8")
    carry_out(paths, portable_wish(is_on=True, beside=beside), beside=beside)
    portable = app_paths(beside)
    assert portable.is_portable
    assert (beside / PORTABLE_MARKER).is_file()
    assert held(portable.data) == FILES
    (portable.config / "settings.json").write_text('{"a": 1}', "utf-8")
    carry_out(portable, portable_wish(is_on=False), beside=beside)
    home = app_paths(beside)
    assert not home.is_portable
    assert home.data == paths.data
    assert held(home.data) == FILES
    assert (home.config / "settings.json").read_text("utf-8") == '{"a": 1}'


def test_a_wish_that_cannot_come_true_is_not_tried_again(tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    fill(paths.data)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    write_wish(paths, folder_wish(tmp_path / "full"))
    wish = read_wish(paths)
    assert wish is not None
    with pytest.raises(AppError, match="not empty"):
        carry_out(paths, wish, beside=tmp_path)
    assert read_wish(paths) is None
    assert held(paths.data) == FILES
