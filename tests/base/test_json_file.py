"""Files of the program's own that somebody damaged: nothing is lost, and nobody forgets to tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import (
    BrokenFile,
    files_aside,
    original_name,
    put_aside,
    read_json,
    take_as_known,
    write_json,
)

DAMAGED = [b"", b"{", b'{"a": 1', b"[1]", b"null", b"\x00\xff\xfe", b"[" * 100_000, '{"a": "ü"}'.encode("utf-16")[:9]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.json"


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_lies_aside_byte_for_byte_until_the_person_has_dealt_with_it(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(BrokenFile):
        read_json(path)
    for _ in range(3):  # every start
        assert read_json(path) is None
        write_json(path, {"new": True})
        (aside,) = files_aside(path.parent)
        assert aside.read_bytes() == content
        assert original_name(aside) == "some.json"
        path.unlink()
    take_as_known(aside)
    assert files_aside(path.parent) == []
    (kept,) = path.parent.iterdir()
    assert kept.read_bytes() == content


def test_damaged_twice_in_a_second_both_are_kept(path: Path) -> None:
    for content in (b"one", b"two", b"three"):
        path.write_bytes(content)
        with pytest.raises(BrokenFile):
            read_json(path)
    assert {aside.read_bytes() for aside in files_aside(path.parent)} == {b"one", b"two", b"three"}


def test_json_that_is_something_else_is_damaged_too(path: Path) -> None:
    path.write_text('{"added": 5}', "utf-8")
    with pytest.raises(BrokenFile, match="something else"):
        read_json(path, lambda values: isinstance(values.get("added"), list))
    assert [json.loads(aside.read_text("utf-8")) for aside in files_aside(path.parent)] == [{"added": 5}]


def test_what_the_system_does_not_let_us_read_is_not_overwritten(path: Path) -> None:
    path.mkdir()  # for everybody, root among them: a folder is no file that can be read
    (path / "inside").write_text("kept", "utf-8")
    for _ in range(2):
        with pytest.raises(AppError, match="cannot be read"):
            read_json(path)
    write_json(path, {"new": True})
    assert read_json(path) == {"new": True}
    (aside,) = files_aside(path.parent)
    assert (aside / "inside").read_text("utf-8") == "kept"


def test_a_name_without_an_ending_is_kept_as_well(tmp_path: Path) -> None:
    key = tmp_path / "server-key"
    key.write_bytes(b"\xff")
    put_aside(key, "no text")
    (aside,) = files_aside(tmp_path)
    assert original_name(aside) == "server-key"


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert files_aside(tmp_path / "none") == []
