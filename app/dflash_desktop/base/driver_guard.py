"""Graphics drivers run inside this process: one that ends it does so once, and not at every start.

While they are started a small file lies in the cache folder. A start that finds one whose process is gone leaves the
drivers out and says so; the start after that tries them again.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dflash_desktop.base.run_marker import is_alive, read_note, this_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

_PREFIX = "drivers-"
_NO_DRIVERS = {
    # Vulkan's loader, old and new, is told of a driver that does not exist, and to leave layers alone.
    "VK_ICD_FILENAMES": "none.json",
    "VK_DRIVER_FILES": "none.json",
    "VK_LOADER_LAYERS_DISABLE": "~implicit~",
    "CUDA_VISIBLE_DEVICES": "-1",
    "HIP_VISIBLE_DEVICES": "-1",
}


@contextmanager
def starting_drivers(folder: Path) -> Iterator[None]:
    """Around whatever starts graphics drivers. `folder` holds the notes; one that cannot be written guards nothing."""
    note = folder / f"{_PREFIX}{os.getpid()}.json"
    leaves_out = _collect(folder)
    if leaves_out:
        log.warning("the last start ended while the graphics drivers were started: they are left out this time")
    _write(note, leaves_out=leaves_out)
    before = {name: os.environ.get(name) for name in _NO_DRIVERS}
    try:
        if leaves_out:
            os.environ.update(_NO_DRIVERS)
        yield
    finally:
        if leaves_out:
            for name, value in before.items():  # programs that we start are to have their drivers
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        else:
            with suppress(OSError):
                note.unlink()


def are_drivers_left_out(folder: Path) -> bool:
    """Whether this process does without graphics drivers."""
    stored = read_note(folder / f"{_PREFIX}{os.getpid()}.json")
    return stored.get("leaves_out") is True and is_alive(stored)


def _write(note: Path, *, leaves_out: bool) -> None:
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({**this_process(), "leaves_out": leaves_out}), encoding="ascii")


def _collect(folder: Path) -> bool:
    """Whether a process ended while it started the drivers. Notes of processes that are gone are forgotten."""
    has_ended = False
    with suppress(OSError):
        for note in folder.glob(f"{_PREFIX}*.json"):
            stored = read_note(note)
            if not is_alive(stored):
                has_ended = has_ended or stored.get("leaves_out") is False
                with suppress(OSError):
                    note.unlink()
    return has_ended
