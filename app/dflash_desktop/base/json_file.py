"""JSON files that a crash cannot halve, and that are put aside, never overwritten, when they cannot be read."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.errors import AppError

if TYPE_CHECKING:
    from pathlib import Path


class BrokenFile(AppError):
    """The file is there and is not what was written. `moved_to` is where it was put, None where that failed."""

    def __init__(self, message: str, moved_to: Path | None) -> None:
        super().__init__(message)
        self.moved_to = moved_to


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in `path`; None when there is no such file.

    Raises BrokenFile when the content is no JSON object: the file is moved aside first, so that nothing is lost.
    Raises AppError when the system refuses to read it; then the file stays where it is.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AppError(f"{path} cannot be read: {error.strerror or error}. Check who may read it.") from error
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _put_aside(path, str(error)) from error
    if not isinstance(values, dict):
        raise _put_aside(path, "it holds no object")
    return values


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Replace `path` as a whole: after a crash it is the old file or the new one. Raises OSError."""
    text = json.dumps(values, indent=1)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
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


def _put_aside(path: Path, why: str) -> BrokenFile:
    aside = path.with_name(f"{path.stem}.broken-{time.strftime('%Y%m%d-%H%M%S')}{path.suffix}")
    try:
        path.replace(aside)
    except OSError:
        return BrokenFile(f"{path} is damaged ({why}) and cannot be moved aside. Defaults are used.", None)
    return BrokenFile(f"{path.name} was damaged ({why}). It was kept as {aside}; defaults are used instead.", aside)
