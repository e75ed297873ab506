"""Decimal points for the thread that drives the engine, whatever the person's locale.

Creating a QApplication calls setlocale for the whole process (measured on Qt 6.11.3): under de_DE C's strtod("0.7") is
then 0. Our own code parses and prints no numbers through the C locale, and neither should the native engine; but
drivers and libraries below it might. So the lane gives its own thread the C locale's numbers. The process keeps the
person's locale, and nobody can change ours from another thread. Python's own numbers never depend on the locale.
"""

from __future__ import annotations

import ctypes
import locale
import sys

# <locale.h> of glibc and musl, and of macOS
_LC_NUMERIC_MASK = {"linux": 1 << 1, "darwin": 1 << 4}


def use_decimal_points() -> None:
    """Make this thread's C library read and write numbers with a point. Call first thing on the thread."""
    mask = _LC_NUMERIC_MASK.get(sys.platform)
    if mask is None or not _set_thread_locale(mask):
        # Windows, and systems without thread locales: for the whole process. Whoever makes the window calls this
        # again afterwards, since Qt changes it.
        locale.setlocale(locale.LC_NUMERIC, "C")


def _set_thread_locale(mask: int) -> bool:
    try:
        libc = ctypes.CDLL(None)
        for name in ("newlocale", "duplocale", "uselocale"):
            getattr(libc, name).restype = ctypes.c_void_p
        libc.newlocale.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]
        libc.duplocale.argtypes = [ctypes.c_void_p]
        libc.uselocale.argtypes = [ctypes.c_void_p]
        # The new locale lives as long as the process: one per lane, some hundred bytes.
        ours = libc.newlocale(mask, b"C", libc.duplocale(libc.uselocale(None)))
        return bool(ours) and bool(libc.uselocale(ours))
    except (OSError, AttributeError):
        return False
