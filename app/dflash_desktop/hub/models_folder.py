"""Our own models folder: where files go, what is recorded of them, and how we know that its drive is there."""

from __future__ import annotations

import hashlib
import shutil
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import filelock
import msgspec

from dflash_desktop.base.json_file import write_json
from dflash_desktop.base.presence import has_folder, is_there
from dflash_desktop.hub.failures import disk_problem
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.wanted import destination

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dflash_desktop.hub.wanted import WantedFile

OWN_FOLDER = ".dflash"
"""Holds records and locks. It also marks the folder: an empty mount point has none, so nothing is written there."""


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished file was when its hash was right."""

    repo_id: str
    revision: str
    name: str
    n_bytes: int
    sha256: str = ""
    git_sha1: str = ""
    block_bytes: int = 0
    digests: tuple[str, ...] = ()  # blake2b of each block: which part of a damaged file has to be fetched again


class ModelsFolder:
    """A folder that we fill. Methods may be called from any thread."""

    def __init__(self, path: Path, *, is_made_when_missing: bool = True) -> None:
        """`is_made_when_missing` False: the person chose it, and without it its drive is not there."""
        self.path = path
        self._is_made = is_made_when_missing
        self._lock = threading.Lock()

    @property
    def own(self) -> Path:
        return self.path / OWN_FOLDER

    def is_present(self) -> bool:
        """Whether it can be used now. False: a drive that is not mounted."""
        return has_folder(self.own) or (self._is_made and not self.path.is_symlink())

    def prepare(self) -> None:
        """Make sure that files can be written. Raises HubProblem."""
        if not self.is_present():
            raise HubProblem("folder_missing", where=str(self.path))
        try:
            self.own.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_problem(error, self.path) from error

    def claim(self) -> None:
        """The person chose this folder: mark it as ours. Raises HubProblem."""
        try:
            self.own.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_problem(error, self.path) from error

    def free_bytes(self) -> int:
        """Room on its disk; of the nearest parent that exists."""
        place = self.path
        while not is_there(place) and place != place.parent:
            place = place.parent
        try:
            return shutil.disk_usage(place).free
        except OSError as error:
            raise disk_problem(error, self.path) from error

    def destination(self, file: WantedFile) -> Path:
        return destination(self.path, file)

    # ---- records

    def record(self, path: Path) -> FileRecord | None:
        """What is known of a finished file; None for a file that we did not fetch."""
        try:
            return msgspec.json.decode(self._record_path(path).read_bytes(), type=FileRecord)
        except (OSError, ValueError):
            return None

    def write_record(self, path: Path, record: FileRecord) -> None:
        """Raises HubProblem."""
        try:
            write_json(self._record_path(path), msgspec.to_builtins(record))
        except OSError as error:
            raise disk_problem(error, self.path) from error

    def is_ready(self, path: Path, file: WantedFile) -> bool:
        """Whether `file` lies at `path`, with the hash that it had on the hub."""
        record = self.record(path)
        if record is None or (record.sha256, record.git_sha1) != (file.sha256, file.git_sha1):
            return False
        with suppress(OSError):
            return path.stat().st_size == record.n_bytes
        return False

    def forget(self, path: Path) -> None:
        """Drop the record of a file that is gone."""
        with suppress(OSError):
            self._record_path(path).unlink()
        self.forget_empty(path)

    def forget_empty(self, path: Path) -> None:
        """Remove the folders of `path` that nothing is in any more."""
        for folder in path.parents:
            if folder == self.path or self.path not in folder.parents:
                break
            with suppress(OSError):
                folder.rmdir()

    def _record_path(self, path: Path) -> Path:
        return self.own / "records" / f"{self._key(path)}.json"

    # ---- locks

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Be the only one on this machine who writes `path`. Raises HubProblem when another program does.

        The lock goes with its process, whatever ends it. A file system without locks does without.
        """
        file = self.own / "locks" / f"{self._key(path)}.lock"
        lock = filelock.FileLock(file, timeout=0)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except filelock.Timeout as error:
            raise HubProblem("busy", where=str(path)) from error
        except NotImplementedError:
            pass
        except OSError as error:
            raise disk_problem(error, self.path) from error
        try:
            yield
        finally:
            lock.release()

    def _key(self, path: Path) -> str:
        name = path.relative_to(self.path).as_posix()
        return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
