"""Streams that cannot fail on a character, and what reaches a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest

from dflash_desktop.cli import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_model_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    console.write("red \x1b[31m bell \x07 c1 \x9b ok\t家庭 😀\n")
    assert terminal.getvalue() == "red \ufffd[31m bell \ufffd c1 \ufffd ok\t家庭 😀\n"


def test_a_file_gets_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console.write("red \x1b[31m\n")
    assert capsys.readouterr().out == "red \x1b[31m\n"


def test_json_is_utf8_and_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    console.write_json({"text": "über 家庭 😀", "x": 0.5})
    out = capsys.readouterr().out
    assert "über 家庭 😀" in out
    assert json.loads(out)["x"] == 0.5
    with pytest.raises(ValueError, match="not JSON compliant"):
        console.write_json({"x": float("nan")})


def test_a_complaint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.complain("The file\nis   broken.")
    assert capsys.readouterr().err == "dflash-desktop: The file is broken.\n"


def test_a_table_is_aligned_without_trailing_blanks() -> None:
    assert console.table([("a", "bb"), ("ccc", "d")]) == "a    bb\nccc  d"
    assert console.table([]) == ""


def test_bytes_hidden_by_an_ascii_locale_are_found_again() -> None:
    assert console.argument_text("f\udcc3\udcbcr") == "für"
    assert console.argument_text("家庭 😀") == "家庭 😀"
    assert console.argument_text("\udcff") == "\ufffd"
