"""One window per person and data folder: a lock that the system itself lets go of when its holder ends in any way.

A file's mere existence says nothing (a killed program leaves it behind); whether it is locked does. The lock file names
the channel on which the holder takes messages; ui/instance_channel.py is that channel.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

LOCK_NAME = "window.lock"


class InstanceLock:
    """Held by the program whose window is open."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._file: IO[bytes] | None = None

    @property
    def channel_name(self) -> str:
        """Where the holder listens: the same for everybody who uses this folder, unlike anybody else's."""
        place = os.path.normcase(os.path.realpath(self._path))
        return "dflash-desktop-" + hashlib.sha256(os.fsencode(place)).hexdigest()[:16]

    def acquire(self) -> bool:
        """Take the lock; False when another window has it.

        Where no lock can be had (a read-only folder, a file system without locks) the answer is True: two windows are
        better than none.
        """
        if self._file is not None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("ab")
        except OSError as error:
            log.warning("no lock for a single window: %s", error)
            return True
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            file.close()
            return False
        except OSError as error:
            log.warning("no lock for a single window: %s", error)
        self._file = file
        return True

    def release(self) -> None:
        """Let the next start have it. The file stays: removing it could take it from under a newer holder."""
        if self._file is not None:
            self._file.close()
            self._file = None


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # PermissionError when another process has it

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
