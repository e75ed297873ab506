"""Whether something lies at a path that a person named. Path's own questions raise where a folder may not be entered or
a name is too long; for whoever asks here, what cannot be looked at is not there."""

from __future__ import annotations

import stat
from pathlib import Path


def has_file(path: Path) -> bool:
    """Whether `path` is an ordinary file, or leads to one. Never raises."""
    try:
        return path.is_file()
    except OSError:
        return False


def has_folder(path: Path) -> bool:
    """Whether `path` is a folder, or leads to one. Never raises."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Whether anything lies at `path`. Never raises."""
    try:
        return path.exists()
    except OSError:
        return False


def why_no_file(path: Path, kind: str = "model file") -> str:
    """The sentence for a `path` without has_file: it is not there, it is something else, or it may not be looked at."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a zero byte
        return f"There is no {kind} {path}."
    except OSError as error:
        return f"The {kind} {path} cannot be opened: {error.strerror}."
    return f"{path} is a folder, not a file." if stat.S_ISDIR(mode) else f"{path} is not an ordinary file."
