"""Is there a screen to open the window on? Asked before Qt, which ends the process where there is none."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

from dflash_desktop.base.errors import AppError

_INSTEAD = "For a chat in this terminal run: dflash-desktop chat"

_FAMILIES = ("debian", "fedora", "arch")
"""Whose package names we know, as os-release spells them; Ubuntu and others say whom they are like."""

# What Qt loads, and the packages of it: Debian's, Fedora's, Arch's. Without the first ones Qt cannot even be imported;
# of the X11 ones it blames xcb-cursor0, whichever is missing.
_QT_LIBRARIES = {
    "libEGL.so.1": ("libegl1", "libglvnd-egl", "libglvnd"),
    "libGL.so.1": ("libgl1", "libglvnd-glx", "libglvnd"),
    "libX11.so.6": ("libx11-6", "libX11", "libx11"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype", "freetype2"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2", "glib2"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs", "dbus"),
}
_X11_LIBRARIES = {
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    "libxcb-randr.so.0": ("libxcb-randr0", "libxcb", "libxcb"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil", "xcb-util-renderutil"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb", "libxcb"),
    "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb", "libxcb"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libX11-xcb", "libx11"),
}
_WAYLAND_LIBRARIES = {
    "libwayland-client.so.0": ("libwayland-client0", "libwayland-client", "wayland"),
    "libwayland-cursor.so.0": ("libwayland-cursor0", "libwayland-cursor", "wayland"),
}


def require_display() -> None:
    """Raise AppError, with what to do, where no window can open. Windows and macOS always have a screen."""
    if not sys.platform.startswith("linux"):
        return
    _require(_QT_LIBRARIES)
    if os.environ.get("QT_QPA_PLATFORM"):
        return  # a platform chosen by hand (offscreen, vnc ...) is the chooser's business
    if _has_wayland() and not _missing(_WAYLAND_LIBRARIES):
        return
    display = os.environ.get("DISPLAY")
    if not display and _has_wayland():
        _require(_WAYLAND_LIBRARIES)
    if not display:
        raise AppError(f"There is no display to open the window on. {_INSTEAD}")
    _require(_X11_LIBRARIES)
    if not _answers(display):
        raise AppError(f"The display {display} does not answer. {_INSTEAD}")


def _has_wayland() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    return bool(name) and Path(os.environ.get("XDG_RUNTIME_DIR", ""), str(name)).is_socket()


def _missing(libraries: dict[str, tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The packages of those that cannot be loaded here."""
    missing = []
    for library, packages in libraries.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(packages)
    return missing


def _require(libraries: dict[str, tuple[str, str, str]]) -> None:
    missing = _missing(libraries)
    if not missing:
        return
    family = _family()
    index = _FAMILIES.index(family) if family else 0
    names = " ".join(dict.fromkeys(packages[index] for packages in missing))
    whose = "" if family else " (Debian's names)"
    raise AppError(f"Qt needs system packages that are missing: {names}{whose}. Install them. {_INSTEAD}")


def _family() -> str:
    """One of _FAMILIES; "" where this system is like none of them."""
    try:
        about = platform.freedesktop_os_release()
    except OSError:
        return ""
    known = [about.get("ID", ""), *about.get("ID_LIKE", "").split()]
    return next((name for name in known if name in _FAMILIES), "")


def _answers(display: str) -> bool:
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(os.fsencode(display), None)
    has_error = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not has_error
