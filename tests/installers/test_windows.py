"""The Windows installer: compiles without a warning; under wine it installs, and takes away what it brought."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = shutil.which("x86_64-w64-mingw32-gcc")
MAKENSIS = shutil.which("makensis")
WINE = next((path for path in ("/usr/lib/wine/wine64", shutil.which("wine64")) if path and Path(path).exists()), None)
LIMIT_S = 170

needs_makensis = pytest.mark.skipif(MAKENSIS is None, reason="nsis is not installed")
needs_wine = pytest.mark.skipif(None in (MAKENSIS, WINE, COMPILER), reason="needs nsis, wine64 and mingw-w64")


def make_installer(root: Path, payload: Path, version: str) -> Path:
    out = payload.with_suffix(".exe")
    defines = {"PAYLOAD": payload, "VERSION": version, "OUT": out, "LICENSE": root / "resources/licences/LICENSE.txt"}
    command = [
        "makensis",
        "-V2",
        "-WX",
        "-INPUTCHARSET",
        "UTF8",
        *(f"-D{name}={value}" for name, value in defines.items()),
    ]
    done = subprocess.run(
        [*command, str(root / "installers/windows/dflash.nsi")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    folder = tmp_path / "payload"
    (folder / "_internal" / "lib").mkdir(parents=True)
    (folder / "_internal" / "lib" / "模型.txt").write_text("inside")
    (folder / "dflash-desktop.exe").write_bytes(b"MZ")
    return folder


@needs_makensis
def test_the_script_compiles_without_a_warning(root: Path, payload: Path, version: str) -> None:
    assert make_installer(root, payload, version).stat().st_size > 50_000


class Wine:
    """A Windows of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.drive = folder / "drive_c"
        self.environment = {
            **os.environ,
            "WINEPREFIX": str(folder),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "HOME": str(folder),
        }

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(WINE), *map(str, command)],
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )

    def registry(self, key: str, value: str = "") -> str:
        named = ["/v", value] if value else ["/ve"]
        return self.run("reg", "query", rf"HKCU\{key}", *named).stdout

    def find(self, name: str) -> list[Path]:
        return sorted(self.drive.parent.rglob(name))  # the desktop is the home folder


@pytest.fixture
def wine(tmp_path: Path) -> Wine:
    made = Wine(tmp_path / "wine")
    made.run("winecfg", "-v", "win10")
    return made


@needs_wine
@pytest.mark.slow
def test_a_silent_installation_is_complete_and_a_silent_removal_leaves_nothing(
    root: Path, payload: Path, version: str, wine: Wine
) -> None:
    build_starters(root, payload)
    assert wine.run(make_installer(root, payload, version), "/S").returncode == 0
    (program,) = wine.find("dflash-desktop.exe")
    folder = program.parent
    assert folder.name == "DFlash Desktop" and folder.parent.name == "Programs"
    assert (folder / "_internal" / "lib" / "模型.txt").read_text() == "inside"
    assert len(wine.find("DFlash Desktop.lnk")) == 2  # Start menu and desktop
    assert "DFlashDesktop.gguf" in wine.registry(r"Software\Classes\.gguf")
    assert '"%1"' in wine.registry(r"Software\Classes\DFlashDesktop.gguf\shell\open\command")
    uninstall = r"Software\Microsoft\Windows\CurrentVersion\Uninstall\dflash-desktop"
    assert version in wine.registry(uninstall, "DisplayVersion")

    # Without Python in it, the terminal's starter says so.
    started = wine.run(folder / "dflash.exe", "--version")
    assert (started.returncode, "Install it again" in started.stderr) == (1, True)

    own = folder / "data"
    own.mkdir()
    (own / "mine.txt").write_text("mine")
    # _?= keeps the uninstaller from copying itself away and returning at once; it cannot delete itself then.
    windows_folder = "C:\\" + str(folder.relative_to(wine.drive)).replace("/", "\\")
    wine.run(folder / "uninstall.exe", "/S", f"_?={windows_folder}")
    assert {path.name for path in folder.iterdir()} - {"uninstall.exe"} == {"data"}
    assert (own / "mine.txt").read_text() == "mine"
    assert wine.find("DFlash Desktop.lnk") == []
    assert "DFlashDesktop" not in wine.registry(r"Software\Classes\.gguf")
    assert version not in wine.registry(uninstall, "DisplayVersion")


@needs_wine
@pytest.mark.slow
def test_a_folder_with_other_files_is_refused(root: Path, payload: Path, version: str, wine: Wine) -> None:
    other = wine.drive / "papers"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    assert wine.run(make_installer(root, payload, version), "/S", "/D=C:\\papers").returncode == 4
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


@needs_wine
@pytest.mark.slow
def test_an_old_windows_is_refused(root: Path, payload: Path, version: str, wine: Wine) -> None:
    wine.run("winecfg", "-v", "win7")
    assert wine.run(make_installer(root, payload, version), "/S").returncode == 2
    assert wine.find("dflash-desktop.exe") == []


def build_starters(root: Path, payload: Path) -> None:
    common = ["-municode", "-O2", "-s", "-Wall", "-Wextra", "-Werror", str(root / "installers/windows/launcher.c")]
    for name, more in (("dflash-desktop", ["-DWINDOW", "-mwindows"]), ("dflash", [])):
        subprocess.run([str(COMPILER), *more, *common, "-o", str(payload / f"{name}.exe")], check=True)
