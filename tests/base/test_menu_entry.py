"""The menu entry that a person without root makes: valid, pointing at this installation, and gone when wished."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.menu_entry import exec_word, install_menu_entry, remove_menu_entry

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="menu entries are Linux'")


def keys(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text("utf-8").splitlines() if "=" in line)


def test_the_entry_starts_this_installation_with_files(tmp_path: Path) -> None:
    entry, mime, icon = install_menu_entry(tmp_path)
    assert keys(entry)["Exec"] == f"{exec_word(sys.executable)} -m dflash_desktop %F"
    assert "TryExec" not in keys(entry)
    assert keys(entry)["MimeType"] == "application/x-gguf;"
    assert "*.gguf" in mime.read_text("utf-8")
    assert icon.read_text("utf-8").startswith("<svg")


def test_removing_takes_exactly_what_was_written(tmp_path: Path) -> None:
    other = tmp_path / "applications" / "other.desktop"
    other.parent.mkdir()
    other.write_text("[Desktop Entry]\n")
    written = install_menu_entry(tmp_path)
    assert remove_menu_entry(tmp_path) == written
    assert not any(file.exists() for file in written)
    assert other.exists()
    assert remove_menu_entry(tmp_path) == []


def test_an_appimage_is_started_through_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "DFlash 100% $HOME.AppImage"
    program = tmp_path / "mounted" / "dflash-desktop"
    program.parent.mkdir()
    program.touch()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("APPIMAGE", str(image))
    monkeypatch.setenv("APPDIR", str(program.parent))
    entry = install_menu_entry(tmp_path / "share")[0]
    assert keys(entry)["Exec"] == f'"{tmp_path}/DFlash 100%% \\\\$HOME.AppImage" %F'
    monkeypatch.setenv("APPDIR", str(tmp_path / "elsewhere"))  # inherited from another AppImage that started us
    entry = install_menu_entry(tmp_path / "share")[0]
    assert keys(entry)["Exec"] == f"{program} %F"


def test_a_plain_path_stays_bare_for_desktops_that_read_no_quotes() -> None:
    assert exec_word("/home/anna/Apps/DFlash-0.1_x86+64.AppImage") == "/home/anna/Apps/DFlash-0.1_x86+64.AppImage"
    for word in ("", "a b", "~/x", "a;b", "x#", "a%f", "ü"):
        assert exec_word(word).startswith('"')


@pytest.mark.parametrize("word", ["a b", 'quo"te', "back\\slash", "dollar$", "per%cent", "tick`", "ü 田"])
def test_an_argument_survives_the_two_quotings(word: str) -> None:
    written = exec_word(word)
    inside = written[1:-1].replace("\\\\", "\\").replace("%%", "%")  # what the desktop does first: the file's escapes
    plain = ""
    letters = iter(inside)
    for letter in letters:
        plain += next(letters) if letter == "\\" else letter
    assert plain == word


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="desktop-file-utils is not installed")
def test_the_entry_is_valid(tmp_path: Path) -> None:
    done = subprocess.run(
        ["desktop-file-validate", str(install_menu_entry(tmp_path)[0])], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
