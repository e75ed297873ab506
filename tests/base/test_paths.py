"""Folders: the person's, the portable ones, and what was installed with the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import (
    PORTABLE_MARKER,
    app_paths,
    library_folder,
    make_folder,
    program_folder,
    resource_path,
)

HARD_NAMES = ["田中　太郎", "Jürgen Ö", 'it\'s 100% "fine" #1', "-dash", "😀", "x" * 200]


def test_every_folder_lies_below_the_persons_home(home_folder: Path, tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    assert not paths.is_portable
    for folder in (paths.data, paths.config, paths.cache, paths.logs, paths.models):
        assert folder.is_relative_to(home_folder)
        assert "dflash-desktop" in folder.parts


@pytest.mark.parametrize("name", HARD_NAMES)
def test_a_marker_beside_the_program_keeps_everything_there(tmp_path: Path, name: str) -> None:
    beside = make_folder(tmp_path / name)
    (beside / PORTABLE_MARKER).touch()
    paths = app_paths(beside)
    assert paths.is_portable
    for folder in (paths.data, paths.config, paths.cache, paths.logs, paths.models):
        assert folder.is_relative_to(beside / "data")
        make_folder(folder)
        (folder / "größe 家庭.txt").write_text("ü", encoding="utf-8")


@pytest.mark.parametrize("name", HARD_NAMES)
def test_a_home_of_any_name_works(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name))
    folder = make_folder(app_paths(tmp_path).models)
    assert folder.is_dir()


def test_a_folder_that_cannot_be_made_says_which_and_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AppError, match=r"file.deeper cannot be created: Not a directory|cannot be created"):
        make_folder(tmp_path / "file" / "deeper")


def test_the_program_lies_where_python_does() -> None:
    assert program_folder().is_dir()


def test_resources_and_libraries_are_found_as_plain_files() -> None:
    assert resource_path("models", "pairs.json").is_file()
    assert resource_path("licences", "LICENSE.txt").is_file()
    assert list(library_folder().glob("*dflash.*"))
    assert list(library_folder().glob("*ggml-cpu*"))
