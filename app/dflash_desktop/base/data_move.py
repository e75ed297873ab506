"""Moving the data folder: checked first, copied with progress, switched at one instant, undone when anything fails."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.sizes import disk_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHUNK_BYTES = 8 << 20
SPARE_BYTES = 64 << 20  # left free on the destination beside what is moved
UNFINISHED = ".dflash-unfinished-move"
"""In a destination that is being filled: whoever finds it may clear the folder."""


class MoveCancelled(AppError):
    """The person stopped the move; everything is where it was."""


@dataclass(frozen=True, slots=True)
class DataMove:
    """A move that was checked."""

    source: Path
    destination: Path
    n_files: int
    n_bytes: int


def plan_move(source: Path, destination: Path) -> DataMove:
    """Check a move. Raises BadInput or AppError with what stands in its way. Writes nothing but an empty folder."""
    source, destination = source.absolute(), destination.absolute()
    if destination == source or _real(destination) == _real(source):
        raise BadInput(f"The data already lies in {source}.")
    if _is_within(destination, source) or _is_within(source, destination):
        raise BadInput(f"{destination} and {source} lie one within the other. Choose a folder apart from it.")
    try:
        if (destination / UNFINISHED).is_file():
            shutil.rmtree(destination)  # what an interrupted move left
        destination.mkdir(parents=True, exist_ok=True)
        if any(destination.iterdir()):
            raise BadInput(f"{destination} is not empty. Choose an empty folder, so that nothing is mixed up.")
        probe = destination / UNFINISHED
        probe.write_bytes(b"")
        probe.unlink()
        free = shutil.disk_usage(destination).free
    except OSError as error:
        raise AppError(f"{destination} cannot be used: {error.strerror or error}.") from error
    sizes = [size for _, size in _files(source)]
    move = DataMove(source, destination, len(sizes), sum(sizes))
    if not _is_same_disk(source, destination) and free < move.n_bytes + SPARE_BYTES:
        facts: dict[str, str | int] = {
            "folder": str(destination),
            "needed_bytes": move.n_bytes + SPARE_BYTES,
            "free_bytes": free,
        }
        cause = Cause("disk_full", facts)
        needed = disk_text(move.n_bytes + SPARE_BYTES)
        raise AppError(f"{destination} has {disk_text(free)} free; the data needs {needed}.", cause=cause)
    return move


def run_move(
    move: DataMove,
    switch: Callable[[Path], object],
    progress: Callable[[int], object] = lambda _n: None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[Path]:
    """Carry it out. `switch(destination)` makes the new folder the one in force, between the copy and the clean-up.

    Raises MoveCancelled or AppError with everything as it was. Returns what could not be deleted at the old place.
    """
    try:
        # Within one disk a rename is instant. It cannot replace a folder on Windows, hence the rmdir.
        move.destination.rmdir()
        move.source.rename(move.destination)
    except OSError:
        _copy_all(move, progress, is_cancelled)
        has_renamed = False
    else:
        has_renamed = True
    try:
        switch(move.destination)
    except BaseException:
        if has_renamed:
            move.destination.rename(move.source)
        else:
            shutil.rmtree(move.destination, ignore_errors=True)
        raise
    progress(move.n_bytes)
    return [] if has_renamed else _delete(move.source)


def _copy_all(move: DataMove, progress: Callable[[int], object], is_cancelled: Callable[[], bool]) -> None:
    n_done = 0
    mark = move.destination / UNFINISHED
    try:
        move.destination.mkdir(parents=True, exist_ok=True)
        mark.write_bytes(b"")
        for path, size in _files(move.source):
            to = move.destination / path.relative_to(move.source)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                to.symlink_to(path.readlink())
                continue
            for n_bytes in _copy(path, to):
                if is_cancelled():
                    raise MoveCancelled("The move was cancelled; the data stays where it is.")
                progress(n_done + n_bytes)
            if to.stat().st_size != size:
                raise AppError(f"{path} changed while it was copied. Close other programs that use it and try again.")
            n_done += size
        mark.unlink()
    except OSError as error:
        shutil.rmtree(move.destination, ignore_errors=True)
        raise AppError(f"The data stays where it is: {error.strerror or error} ({error.filename}).") from error
    except AppError:
        shutil.rmtree(move.destination, ignore_errors=True)
        raise


def _copy(source: Path, destination: Path) -> Iterator[int]:
    """Copy in pieces, giving the bytes done so far. The copy is on the disk when this ends."""
    n_done = 0
    with source.open("rb") as reader, destination.open("wb") as writer:
        while piece := reader.read(CHUNK_BYTES):
            writer.write(piece)
            n_done += len(piece)
            yield n_done
        writer.flush()
        os.fsync(writer.fileno())
    with suppress(OSError):
        shutil.copystat(source, destination)
    yield n_done


def _delete(folder: Path) -> list[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    return [path for path, _ in _files(folder)] if folder.exists() else []


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Files and links in and below `folder`, with their sizes. Links count nothing."""
    for place, folders, names in os.walk(folder):
        here = folder.__class__(place)
        for name in sorted([*names, *(sub for sub in folders if (here / sub).is_symlink())]):
            path = here / name
            with suppress(FileNotFoundError):
                yield path, 0 if path.is_symlink() else path.stat().st_size


def _is_same_disk(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:
        return False


def _is_within(inner: Path, outer: Path) -> bool:
    return _real(inner).is_relative_to(_real(outer))


def _real(path: Path) -> Path:
    return path.resolve()
