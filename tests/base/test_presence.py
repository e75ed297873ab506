"""Paths that a person named and that cannot be looked at: not there, in words, and never an exception."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.presence import has_file, has_folder, is_there, why_no_file

TOO_LONG = Path("a" * 300)  # for root too, whom no folder refuses


@pytest.mark.skipif(sys.platform == "win32", reason="Windows finds nothing there by itself")
def test_what_cannot_be_looked_at_is_not_there() -> None:
    with pytest.raises(OSError):
        TOO_LONG.is_file()
    assert (has_file(TOO_LONG), has_folder(TOO_LONG), is_there(TOO_LONG)) == (False, False, False)
    assert why_no_file(TOO_LONG) == f"The model file {TOO_LONG} cannot be opened: {os.strerror(errno.ENAMETOOLONG)}."


def test_what_is_there_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.touch()
    assert (has_file(file), has_folder(file), is_there(file)) == (True, False, True)
    assert (has_file(tmp_path), has_folder(tmp_path), is_there(tmp_path)) == (False, True, True)


def test_the_sentence_says_what_lies_there_instead(tmp_path: Path) -> None:
    assert why_no_file(tmp_path / "gone") == f"There is no model file {tmp_path / 'gone'}."
    assert why_no_file(tmp_path / "a\0b", "scorer").startswith("There is no scorer ")
    assert why_no_file(tmp_path) == f"{tmp_path} is a folder, not a file."
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert why_no_file(tmp_path / "pipe") == f"{tmp_path / 'pipe'} is not an ordinary file."
