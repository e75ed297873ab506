"""Folders: the person's, the portable ones, and what was installed with the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import files_aside
from dflash_desktop.base.paths import (
    LOCATION_FILE,
    PORTABLE_MARKER,
    DataFolderUnknown,
    app_paths,
    left_location,
    library_folder,
    make_folder,
    program_folder,
    resource_path,
    set_location,
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


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))


DAMAGED_LOCATIONS = [
    b"",
    b"{",
    b'{"data": "/mnt/dri',
    b"[]",
    b'{"data": 5}',
    b'{"left": [], "data": "/x"}',
    b"\xff\xfe\x00",
]


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize("content", DAMAGED_LOCATIONS)
def test_a_damaged_location_is_told_at_every_start_until_it_is_mended(tmp_path: Path, content: bytes) -> None:
    """The usual folder would look as if all chats were gone."""
    moved = make_folder(tmp_path / "moved")
    paths = app_paths(tmp_path, ignores_moves=True)
    set_location(paths, data=moved)
    file = paths.config / LOCATION_FILE
    sound = file.read_bytes()
    file.write_bytes(content)
    for _ in range(3):
        with pytest.raises(DataFolderUnknown, match=r"location\.json"):
            app_paths(tmp_path)
        assert file.read_bytes() == content
    assert left_location(paths) is None
    file.write_bytes(sound)
    assert app_paths(tmp_path).data == moved


@pytest.mark.usefixtures("own_home")
def test_a_location_that_may_not_be_read_is_told_at_every_start(tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    (paths.config / LOCATION_FILE).mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(DataFolderUnknown, match="cannot be read"):
            app_paths(tmp_path)


@pytest.mark.usefixtures("own_home")
def test_whoever_chooses_the_folder_anew_is_asked_no_more_and_loses_no_file(tmp_path: Path) -> None:
    paths = app_paths(tmp_path)
    make_folder(paths.config)
    (paths.config / LOCATION_FILE).write_bytes(b'{"data": "/mnt/dri')
    moved = make_folder(tmp_path / "moved")
    set_location(paths, data=moved)
    assert app_paths(tmp_path).data == moved
    assert b'{"data": "/mnt/dri' in [path.read_bytes() for path in paths.config.iterdir()]
    assert files_aside(paths.config) == []
