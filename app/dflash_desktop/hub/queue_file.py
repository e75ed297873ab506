"""The download list on the disk, and which of several programs works on it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, get_args

import filelock
import msgspec

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import put_aside, read_json, write_json
from dflash_desktop.hub.download_row import Row
from dflash_desktop.hub.problems import HubProblem, ProblemKind
from dflash_desktop.hub.wanted import PART_SUFFIX, WantedDownload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dflash_desktop.hub.models_folder import ModelsFolder
    from dflash_desktop.hub.wanted import WantedFile

log = logging.getLogger(__name__)
QUEUE_FILE = "downloads.json"


class StoredDownload(msgspec.Struct, kw_only=True):
    """A row as it is kept. What arrived is not in here: the part files know."""

    download_id: int
    wanted: WantedDownload
    state: Literal["queued", "paused", "done", "failed"] = "queued"
    problem: tuple[str, str, str] | None = None  # kind, detail, where


class StoredQueue(msgspec.Struct, kw_only=True):
    """The whole file."""

    version: int = 1
    next_id: int = 1
    rows: list[StoredDownload] = msgspec.field(default_factory=list)


class QueueFile:
    """Replaced as a whole: a crash leaves the old list or the new one."""

    def __init__(self, folder: Path, models: ModelsFolder) -> None:
        self._path = folder / QUEUE_FILE
        self._models = models
        self._lock = filelock.FileLock(self._path.with_suffix(".lock"), timeout=0, thread_local=False)
        self.is_ours = False

    def take(self) -> bool:
        """Try to be the one program that works on the list. Goes with the process, whatever ends it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except filelock.Timeout:
            return False
        except (OSError, NotImplementedError) as error:  # no locks there, or nothing can be written: alone then
            log.info("the download list cannot be locked: %s", error)
        self.is_ours = True
        return True

    def release(self) -> None:
        """Let another program have it."""
        self.is_ours = False
        with suppress(OSError):
            self._lock.release()

    def read(self) -> tuple[int, list[Row]]:
        """The next free id, and the rows. A list that cannot be read is put aside and begins empty."""
        try:
            stored = msgspec.convert(read_json(self._path) or {}, StoredQueue)
        except msgspec.ValidationError as error:
            log.warning("the download list begins empty: %s", put_aside(self._path, str(error)))
            return 1, []
        except AppError as error:
            log.warning("the download list is unreadable and begins empty: %s", error)
            return 1, []
        rows = []
        for kept in stored.rows:
            try:
                paths = tuple(self._models.destination(file) for file in kept.wanted.files)
            except HubProblem as problem:
                log.warning("a download cannot be taken up again: %s", problem)
                continue
            n_done = [self._n_on_disk(path, file) for path, file in zip(paths, kept.wanted.files, strict=True)]
            rows.append(Row(kept.download_id, kept.wanted, paths, kept.state, n_done, problem=_problem(kept.problem)))
        return max([stored.next_id, *(row.download_id + 1 for row in stored.rows)]), rows

    def write(self, next_id: int, rows: Sequence[Row]) -> None:
        """Keep the list. A disk that refuses is logged: the list of before stays, and the part files with it."""
        if not self.is_ours:
            return
        stored = StoredQueue(next_id=next_id, rows=[_stored(row) for row in rows])
        try:
            write_json(self._path, msgspec.to_builtins(stored))
        except OSError as error:
            log.warning("the download list could not be written: %s", error)

    def _n_on_disk(self, path: Path, file: WantedFile) -> int:
        # A first guess at what is there already; the truth comes when it is read through.
        with suppress(OSError):
            if self._models.is_ready(path, file):
                return file.n_bytes
            return min(path.with_name(path.name + PART_SUFFIX).stat().st_size, file.n_bytes)
        return 0


def _stored(row: Row) -> StoredDownload:
    if row.state not in ("paused", "done", "failed"):
        return StoredDownload(download_id=row.download_id, wanted=row.wanted)
    problem = (row.problem.kind, row.problem.detail, row.problem.where) if row.problem is not None else None
    return StoredDownload(download_id=row.download_id, wanted=row.wanted, state=row.state, problem=problem)


def _problem(kept: tuple[str, str, str] | None) -> HubProblem | None:
    if kept is None:
        return None
    kind: ProblemKind = next((known for known in get_args(ProblemKind) if known == kept[0]), "other")
    return HubProblem(kind, kept[1], where=kept[2])
