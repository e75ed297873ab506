"""Is there a screen to open the window on? Asked before Qt, which ends the process where there is none."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from dflash_desktop.base.errors import AppError

_INSTEAD = "For a chat in this terminal run: dflash-desktop chat"

# What Qt's X11 plugin loads, and the Debian packages of it. Qt blames xcb-cursor0 whichever is missing.
_X11_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}


def require_display() -> None:
    """Raise AppError, with what to do, where no window can open. Windows and macOS always have a screen."""
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return  # a platform chosen by hand (offscreen, vnc ...) is the chooser's business
    if _has_wayland():
        return
    display = os.environ.get("DISPLAY")
    if not display:
        raise AppError(f"There is no display to open the window on. {_INSTEAD}")
    _require_x11_libraries()
    if not _answers(display):
        raise AppError(f"The display {display} does not answer. {_INSTEAD}")


def _has_wayland() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    return bool(name) and Path(os.environ.get("XDG_RUNTIME_DIR", ""), str(name)).is_socket()


def _require_x11_libraries() -> None:
    missing = []
    for library, package in _X11_LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            missing.append(package)
    if missing:
        raise AppError(f"Qt needs system packages that are missing: {' '.join(missing)} (Debian's names). {_INSTEAD}")


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
