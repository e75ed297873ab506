"""Where the data shall lie from the next start on: another folder, or beside the program and back (portable mode).

The wish is written down while the program runs and carried out at the next start, before anything has a file open.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_desktop.base.data_move import DataMove, plan_move, run_move
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import read_json, write_json
from dflash_desktop.base.paths import (
    LOCATION_FILE,
    PORTABLE_MARKER,
    AppPaths,
    home_paths,
    portable_home,
    program_folder,
    set_location,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WISH_FILE = "move-wanted.json"
_SETTINGS = "*.json"


@dataclass(frozen=True, slots=True)
class Wish:
    """Where the data shall go. `is_portable`: everything, and beside the program."""

    destination: Path
    is_portable: bool = False


def folder_wish(destination: Path) -> Wish:
    """The data in another folder."""
    return Wish(destination.absolute())


def portable_wish(*, is_on: bool, beside: Path | None = None) -> Wish:
    """Portable mode switched on, or off again."""
    beside = program_folder() if beside is None else beside
    if is_on:
        return Wish(portable_home(beside), is_portable=True)
    return Wish(home_paths().data)


def check_wish(paths: AppPaths, wish: Wish) -> DataMove:
    """What carrying it out would move. Raises AppError with what stands in its way."""
    paths.data.mkdir(parents=True, exist_ok=True)
    return plan_move(paths.data, wish.destination)


def write_wish(paths: AppPaths, wish: Wish | None) -> None:
    """Keep it for the next start; None takes it back. Raises AppError."""
    path = paths.config / WISH_FILE
    try:
        if wish is None:
            path.unlink(missing_ok=True)
        else:
            write_json(path, {"destination": str(wish.destination), "is_portable": wish.is_portable})
    except OSError as error:
        raise AppError(f"{paths.config} cannot be written to: {error.strerror or error}.") from error


def read_wish(paths: AppPaths) -> Wish | None:
    """The wish of the last run; None when there is none, or an unreadable one."""
    with suppress(AppError):
        stored = read_json(paths.config / WISH_FILE) or {}
        destination = stored.get("destination")
        if isinstance(destination, str) and destination:
            return Wish(Path(destination), is_portable=stored.get("is_portable") is True)
    return None


def carry_out(
    paths: AppPaths,
    wish: Wish,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
    is_cancelled: Callable[[], bool] = lambda: False,
    beside: Path | None = None,
) -> list[Path]:
    """Move the data; progress(bytes done, all bytes). Returns what could not be deleted at the old place.

    The wish is gone afterwards, whether it worked or not: a move that fails at every start would lock the person out.
    """
    beside = program_folder() if beside is None else beside
    write_wish(paths, None)
    move = check_wish(paths, wish)
    return run_move(
        move, lambda _to: _switch(paths, wish, beside), lambda done: progress(done, move.n_bytes), is_cancelled
    )


def _switch(paths: AppPaths, wish: Wish, beside: Path) -> None:
    """Make the new place the one in force. The last step is a single file appearing or vanishing."""
    marker = beside / PORTABLE_MARKER
    try:
        if wish.is_portable:
            _copy_settings(paths.config, wish.destination / "config")
            marker.write_text("DFlash Desktop keeps its data in the folder `data` beside this file.\n", "utf-8")
            return
        standard = home_paths()
        if paths.is_portable:
            # The portable folder holds its settings too; they have moved with it.
            _copy_settings(wish.destination / "config", standard.config)
        set_location(standard, data=None if wish.destination == standard.data else wish.destination)
        if paths.is_portable:
            marker.unlink()
    except OSError as error:
        raise AppError(f"The new place cannot be set: {error.strerror or error} ({error.filename}).") from error


def _copy_settings(source: Path, destination: Path) -> None:
    destination.mkdir(parents=True, exist_ok=True)
    for path in source.glob(_SETTINGS):
        if path.name not in (LOCATION_FILE, WISH_FILE):
            shutil.copy2(path, destination / path.name)
