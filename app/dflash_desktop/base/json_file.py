"""JSON files that a crash cannot halve, and that are put aside, never overwritten, when they cannot be read.

What was put aside is told at every start until the person has dealt with it: its name says which files those are.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_BROKEN = ".broken-"
_KNOWN = ".kept-"  # put aside as well, and the person wants to hear of it no more


class BrokenFile(AppError):
    """The file is there and is not what was written. `moved_to` is where it was put, None where that failed."""

    def __init__(self, message: str, path: Path, moved_to: Path | None) -> None:
        aside = moved_to.name if moved_to is not None else ""
        super().__init__(message, cause=Cause("state_broken", {"file": path.name, "aside": aside}))
        self.moved_to = moved_to


def read_json(path: Path, fits: Callable[[dict[str, Any]], bool] = lambda _values: True) -> dict[str, Any] | None:
    """The object in `path`; None when there is no such file.

    Raises BrokenFile when the content is no JSON object, or one that `fits` denies: the file is moved aside first, so
    that nothing is lost. Raises AppError when the system refuses to read it; then the file stays where it is.
    """
    try:
        return parsed(path, fits)
    except NotAsWritten as error:
        raise put_aside(path, str(error)) from error


class NotAsWritten(AppError):
    """Why the content of a file is of no use."""


def parsed(path: Path, fits: Callable[[dict[str, Any]], bool] = lambda _values: True) -> dict[str, Any] | None:
    """As read_json, but a damaged file stays where it is. Raises NotAsWritten, or AppError when it cannot be read."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror or error}. Check who may read it."
        raise AppError(words, cause=Cause("state_unreadable", {"file": str(path)})) from error
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotAsWritten(str(error)) from error
    if not isinstance(values, dict):
        raise NotAsWritten("it holds no object")
    if not fits(values):
        raise NotAsWritten("it holds something else")
    return values


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Replace `path` as a whole: after a crash it is the old file or the new one. Raises OSError.

    A file that nobody could read is put aside first: what is in it was never taken in.
    """
    text = json.dumps(values, indent=1)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    keep_unreadable(path)
    try:
        with temporary.open("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def keep_unreadable(path: Path) -> None:
    """Put `path` aside if the system does not let us read it. Raises OSError where it cannot be moved either."""
    try:
        path.open("rb").close()
    except FileNotFoundError:
        return
    except OSError:
        path.replace(_aside(path))


def put_aside(path: Path, why: str) -> BrokenFile:
    """Move a damaged file out of the way. Returns what to raise or tell."""
    aside = _aside(path)
    try:
        path.replace(aside)
    except OSError:
        words = f"{path} is damaged ({why}) and cannot be moved aside. Defaults are used."
        return BrokenFile(words, path, None)
    words = f"{path.name} was damaged ({why}). It was kept as {aside}; defaults are used instead."
    return BrokenFile(words, path, aside)


def _aside(path: Path) -> Path:
    """A free name beside it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{path.stem}{_BROKEN}{stamp}{f'-{n}' if n else ''}{path.suffix}" for n in count())
    return next(aside for name in names if not os.path.lexists(aside := path.with_name(name)))


# ---- what lies aside


def files_aside(folder: Path) -> list[Path]:
    """The damaged files in `folder` that the person has not dealt with yet, oldest first."""
    with suppress(OSError):
        # Chats are put aside as well, by their own room, which reads out of them what can be read.
        found = [path for path in folder.iterdir() if _BROKEN in path.name and path.suffix != ".part"]
        return sorted(found, key=lambda path: path.name.partition(_BROKEN)[2])
    return []


def original_name(aside: Path) -> str:
    """What a file was called before it was put aside."""
    stem, _, rest = aside.name.partition(_BROKEN)
    return stem + (f".{rest.partition('.')[2]}" if "." in rest else "")


def take_as_known(aside: Path) -> None:
    """Tell of that file no more. It stays, under a name that says so. Raises OSError."""
    aside.replace(aside.with_name(aside.name.replace(_BROKEN, _KNOWN, 1)))
