"""Puts the program into the desktop's menu, for a person who has unpacked or pip-installed it: Linux, without root.

A package does the same for everybody. The files are those of resources/desktop, with the program's own place in them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import appimage_file, resource_path

NAME = "dflash-desktop"
_DESKTOP_FILE = Path("applications", f"{NAME}.desktop")
_MIME_FILE = Path("mime", "packages", f"{NAME}.xml")
_ICON_FILE = Path("icons", "hicolor", "scalable", "apps", f"{NAME}.svg")
_PLAIN = re.compile(r"[A-Za-z0-9/._+-]+")
_RESERVED = '"`$\\'


def start_command() -> list[str]:
    """How this very installation is started."""
    image = appimage_file()
    if image is not None:
        return [str(image)]
    if getattr(sys, "frozen", False):
        return [os.path.realpath(sys.executable)]
    return [sys.executable, "-m", "dflash_desktop"]


def install_menu_entry(share: Path | None = None) -> list[Path]:
    """Write entry, file type and icon below `share` (default: this person's) and return their paths."""
    share = _share(share)
    entry = resource_path("desktop", f"{NAME}.desktop").read_text("utf-8")
    lines = []
    for line in entry.splitlines():
        if line.startswith("Exec="):
            line = f"Exec={' '.join(map(exec_word, start_command()))} %F"
        if not line.startswith("TryExec="):
            lines.append(line)
    contents = {
        _DESKTOP_FILE: "\n".join(lines) + "\n",
        _MIME_FILE: resource_path("desktop", f"{NAME}.mime.xml").read_text("utf-8"),
        _ICON_FILE: resource_path("icons", f"{NAME}.svg").read_text("utf-8"),
    }
    try:
        for file, text in contents.items():
            (share / file).parent.mkdir(parents=True, exist_ok=True)
            (share / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise AppError(f"The menu entry cannot be written to {share}: {error.strerror or error}.") from error
    _tell_the_desktop(share)
    return [share / file for file in contents]


def remove_menu_entry(share: Path | None = None) -> list[Path]:
    """Take them away again; return those that were there."""
    share = _share(share)
    removed = []
    for file in (_DESKTOP_FILE, _MIME_FILE, _ICON_FILE):
        with suppress(FileNotFoundError):
            (share / file).unlink()
            removed.append(share / file)
    _tell_the_desktop(share)
    return removed


def exec_word(word: str) -> str:
    """One argument as the Exec key of a desktop entry wants it: its own quoting inside the file's own escapes.

    Plain words stay bare: where there is no desktop, xdg-open (1.1.3) takes the quotes for a part of the name.
    """
    if _PLAIN.fullmatch(word):
        return word
    quoted = "".join(f"\\{letter}" if letter in _RESERVED else letter for letter in word)
    return '"' + quoted.replace("\\", "\\\\").replace("%", "%%") + '"'


def _share(share: Path | None) -> Path:
    if not sys.platform.startswith("linux"):
        raise AppError("Menu entries are for Linux. On Windows the installer makes them.")
    return share or Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def _tell_the_desktop(share: Path) -> None:
    """Renew the indexes where the tools for it are installed; without them the desktop notices at the next login."""
    for tool, folder in (("update-desktop-database", "applications"), ("update-mime-database", "mime")):
        path = shutil.which(tool)
        if path is not None and (share / folder).is_dir():
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([path, str(share / folder)], capture_output=True, check=False, timeout=30)
