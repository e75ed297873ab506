"""Runs in the frozen program before anything of Qt is loaded, which the starter of PySide6 does even for --version."""

import sys

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.processor import require_processor

try:
    require_processor()
except AppError as error:
    if sys.stderr is not None:
        sys.stderr.write(f"dflash-desktop: {error}\n")
    elif sys.platform == "win32":  # a program with a window has no console
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, str(error), "DFlash Desktop", 0x10)
    sys.exit(1)
