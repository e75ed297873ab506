"""Without a screen the window command says so, and Qt is never asked."""

from __future__ import annotations

import platform
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.cli import display
from dflash_desktop.cli.display import require_display

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a screen")


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_display_it_names_the_terminal_twin() -> None:
    with pytest.raises(AppError, match=r"no display .* dflash-desktop chat"):
        require_display()


def test_a_dead_display_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":4711")
    with pytest.raises(AppError, match=r":4711 does not answer.*dflash-desktop chat"):
        require_display()


def test_a_wayland_name_without_its_socket_is_no_display(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(AppError, match="no display"):
        require_display()


def test_a_platform_chosen_by_hand_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    require_display()


@pytest.mark.parametrize(
    ("about", "names"),
    [
        ({"ID": "debian"}, "libegl1 libxcb-none0."),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "libegl1 libxcb-none0."),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "libglvnd-egl xcb-util-none."),
        ({"ID": "manjaro", "ID_LIKE": "arch"}, "libglvnd."),
        ({"ID": "nixos"}, r"libegl1 libxcb-none0 \(Debian's names\)."),
    ],
)
def test_b151_a_missing_library_is_named_by_its_package_before_qt_is_asked(
    monkeypatch: pytest.MonkeyPatch, about: dict[str, str], names: str
) -> None:
    lacking = {
        "libEGL-none.so.1": ("libegl1", "libglvnd-egl", "libglvnd"),
        "libxcb-none.so.0": ("libxcb-none0", "xcb-util-none", "libglvnd"),
    }
    monkeypatch.setattr(display, "_QT_LIBRARIES", lacking)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: about)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")  # Qt cannot be imported without them at all
    with pytest.raises(AppError, match=f"packages that are missing: {names} Install them.*dflash-desktop chat"):
        require_display()


def test_b151_wayland_only_and_without_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "w")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("w")
        monkeypatch.setattr(display, "_WAYLAND_LIBRARIES", {})
        require_display()
        monkeypatch.setattr(display, "_WAYLAND_LIBRARIES", {"libnone.so.0": ("libnone0", "none", "none")})
        with pytest.raises(AppError, match=r"missing: (libnone0|none)"):
            require_display()


def test_b151_all_that_qt_takes_from_the_system_is_asked_for() -> None:
    """Were one left out, Qt would end the process and blame another."""
    if shutil.which("readelf") is None:
        pytest.skip("binutils is not installed")
    import PySide6

    qt = Path(PySide6.__file__).parent / "Qt"
    files = [
        *(qt / "plugins" / "platforms").glob("libqxcb.so"),
        *(qt / "plugins" / "platforms").glob("libqwayland*.so"),
    ]
    files += [qt / "lib" / f"libQt6{name}.so.6" for name in ("Core", "Gui", "Widgets", "DBus", "Svg", "XcbQpa")]
    listing = subprocess.run(["readelf", "-d", *map(str, files)], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", listing))
    asked_for = {*display._QT_LIBRARIES, *display._X11_LIBRARIES, *display._WAYLAND_LIBRARIES}
    # what every system has, what comes with Qt, and what the libraries that are asked for bring along
    had = re.compile(
        r"ld-linux|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z|Qt6\w+|icu\w+|zstd|gthread-2\.0|xcb|xcb-util|xcb-render|xcb-shm"
        r"|xcb-sync|xcb-xfixes)\.so"
    )
    assert {name for name in needed - asked_for if not had.match(name)} == set()
