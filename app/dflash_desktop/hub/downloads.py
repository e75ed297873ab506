"""The download list: one file after the other, in the order that the person wants, across restarts and crashes."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from dflash_desktop.hub.abort import Abort
from dflash_desktop.hub.download_row import Row, RowWatcher
from dflash_desktop.hub.download_status import (
    RUNNING,
    UNFINISHED,
    DownloadDone,
    DownloadEvent,
    DownloadMoved,
    DownloadState,
    DownloadStatus,
    QueueChanged,
    SpeedMeter,
)
from dflash_desktop.hub.part_file import PartFile
from dflash_desktop.hub.problems import Aborted, HubProblem
from dflash_desktop.hub.queue_file import QueueFile
from dflash_desktop.hub.transfer import DEFAULT_PACE, Pace, Transfer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dflash_desktop.hub.models_folder import ModelsFolder
    from dflash_desktop.hub.network import Network
    from dflash_desktop.hub.wanted import WantedDownload

log = logging.getLogger(__name__)
TICK_S = 0.1
_CLOSE_S = 2.0
_TAKE_OVER_S = 2.0


class Downloads:
    """Methods may be called from any thread and wait for the disk at most; events come from threads of ours.

    Nothing is asked of the network before `add`, unless an earlier run left something unfinished.
    """

    def __init__(
        self, state_folder: Path, network: Network, folder: ModelsFolder, *, pace: Pace = DEFAULT_PACE
    ) -> None:
        self._kept = QueueFile(state_folder, folder)
        self._network = network
        self._folder = folder
        self._pace = pace
        self._changed = threading.Condition()
        self._rows: list[Row] = []
        self._next_id = 1
        self._listeners: list[Callable[[DownloadEvent], object]] = []
        self._abort: Abort | None = None  # of the row that runs
        self._running: Row | None = None
        self._meter = SpeedMeter()
        self._is_open = False
        self._threads: list[threading.Thread] = []
        self._trash: list[Row] = []  # taken off the list; their partial files are deleted when nobody holds them

    # ---- life

    def start(self) -> None:
        """Read what an earlier run left, and go on with it."""
        with self._changed:
            self._is_open = True
            self._take_over()
            self._threads = [
                threading.Thread(target=self._work, name="downloads", daemon=True),
                threading.Thread(target=self._tick, name="download-news", daemon=True),
            ]
        for thread in self._threads:
            thread.start()
        self._tell_queue()

    def close(self) -> None:
        """Stop where it is: the next start goes on from there. Returns within seconds, whatever the network does."""
        with self._changed:
            self._is_open = False
            if self._abort is not None:
                self._abort.set()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_CLOSE_S)
        self._kept.release()

    def subscribe(self, listener: Callable[[DownloadEvent], object]) -> None:
        """Be told of everything from now on. Called on our threads; must be quick and never raise."""
        self._listeners.append(listener)

    def rows(self) -> tuple[DownloadStatus, ...]:
        """The list as it is now."""
        with self._changed:
            return tuple(row.status(self._meter) for row in self._rows)

    # ---- what the person wants

    def add(self, wanted: WantedDownload) -> int:
        """Queue it and return its id; the id of the row that fetches the same files where there is one.

        Raises HubProblem when the disk has no room for all that is queued, or a name cannot be used.
        """
        paths = tuple(self._folder.destination(file) for file in wanted.files)
        with self._changed:
            for row in self._rows:
                if row.paths == paths and row.state != "done":
                    self._resume(row)
                    return row.download_id
            self._check_room(wanted)
            self._rows = [row for row in self._rows if row.paths != paths]
            row = Row(self._next_id, wanted, paths, n_done=[0] * len(paths))
            self._next_id += 1
            self._rows.append(row)
            self._save()
            self._changed.notify_all()
        self._tell_queue()
        return row.download_id

    def needed_bytes(self) -> int:
        """What the unfinished rows still have to bring onto the disk."""
        with self._changed:
            return sum(row.n_left_bytes for row in self._rows)

    def pause(self, download_id: int) -> None:
        """Stop it until `resume`; what arrived is kept."""
        with self._changed:
            row = self._find(download_id)
            if row is None or row.state not in UNFINISHED:
                return
            self._set_state(row, "paused")
            self._save()
        self._tell_queue()

    def resume(self, download_id: int) -> None:
        """Go on with a paused or failed row; a waiting one tries again at once."""
        with self._changed:
            row = self._find(download_id)
            if row is None:
                return
            self._resume(row)
        self._tell_queue()

    def move(self, download_id: int, index: int) -> None:
        """Put the row at that place of the list. An unfinished row at the top is fetched first."""
        with self._changed:
            row = self._find(download_id)
            if row is None:
                return
            self._rows.remove(row)
            self._rows.insert(max(0, min(index, len(self._rows))), row)
            running = self._running
            first = next((known for known in self._rows if known.state in UNFINISHED), None)
            if running is not None and first is not running and self._abort is not None:
                running.state = "queued"
                self._abort.set()
            self._save()
            self._changed.notify_all()
        self._tell_queue()

    def remove(self, download_id: int) -> None:
        """Take the row off the list. What arrived of unfinished files is deleted soon after; finished files stay."""
        with self._changed:
            row = self._find(download_id)
            if row is None:
                return
            if row.state != "done":
                self._trash.append(row)
            self._set_state(row, "paused")
            self._rows.remove(row)
            self._save()
            self._changed.notify_all()
        self._tell_queue()

    def clear_done(self) -> None:
        """Drop the finished rows from the list; the files stay."""
        with self._changed:
            self._rows = [row for row in self._rows if row.state != "done"]
            self._save()
        self._tell_queue()

    def network_changed(self) -> None:
        """Mirror, proxy or token are others now: what runs or waits goes that way from the next byte on."""
        with self._changed:
            if self._abort is not None:
                self._abort.reconnect()

    # ---- under the lock

    def _find(self, download_id: int) -> Row | None:
        return next((row for row in self._rows if row.download_id == download_id), None)

    def _resume(self, row: Row) -> None:
        if row is self._running and row.state in RUNNING:
            if self._abort is not None:
                self._abort.nudge()
            return
        if row.state in ("paused", "failed"):
            row.state = "queued"
            row.problem = None
            self._save()
            self._changed.notify_all()

    def _set_state(self, row: Row, state: DownloadState) -> None:
        row.state = state
        row.problem = None
        if row is self._running and self._abort is not None:
            self._abort.set()

    def _check_room(self, wanted: WantedDownload) -> None:
        needed = wanted.n_bytes + sum(row.n_left_bytes for row in self._rows)
        free = self._folder.free_bytes()
        if free < needed + self._pace.reserve_bytes:
            raise HubProblem("disk_full", where=str(self._folder.path), needed_bytes=needed, free_bytes=free)

    # ---- what is kept

    def _take_over(self) -> None:
        """Begin with what is kept, once no other program works on it; with what was added here meanwhile."""
        if not self._kept.take():
            return
        added = self._rows
        self._next_id, self._rows = self._kept.read()
        for row in added:
            if all(row.paths != known.paths for known in self._rows):
                row.download_id, self._next_id = self._next_id, self._next_id + 1
                self._rows.append(row)
        if added:
            self._save()

    def _save(self) -> None:
        self._kept.write(self._next_id, self._rows)

    def _empty_trash(self) -> None:
        with self._changed:
            rows = [row for row in self._trash if row is not self._running]
            self._trash = [row for row in self._trash if row is self._running]
        for row in rows:
            for path, file in zip(row.paths, row.wanted.files, strict=True):
                try:
                    with self._folder.writing(path):
                        PartFile(path, file.n_bytes, "").discard()
                except HubProblem as problem:  # another program goes on with it, or its drive is gone
                    log.info("a partial file is kept: %s", problem)
                self._folder.forget_empty(path)

    # ---- the worker

    def _work(self) -> None:
        while True:
            with self._changed:
                row = self._next_row()
                if not self._is_open:
                    return
                if row is None:
                    self._changed.wait(None if self._kept.is_ours else _TAKE_OVER_S)
                    continue
                self._running, self._abort = row, Abort()
                row.state = "connecting"
                abort = self._abort
                self._changed.notify_all()  # the news begin
            self._tell_queue()
            try:
                self._fetch(row, abort)
                ended: DownloadState | None = "done"
                problem = None
            except Aborted:
                ended = problem = None
            except HubProblem as failure:
                ended, problem = "failed", failure
                log.warning("download of %s failed: %s", row.wanted.title, failure)
            except Exception:
                # The top of this thread: a bug costs one download, not the list.
                log.exception("download of %s failed", row.wanted.title)
                ended, problem = "failed", HubProblem("other")
            with self._changed:
                self._running = self._abort = None
                if ended is not None and row in self._rows:
                    row.state, row.problem = ended, problem
                elif row.state in RUNNING:
                    row.state = "queued"
                row.file_index = -1
                self._save()
                self._changed.notify_all()
                status = row.status(self._meter)
            self._tell_queue()
            if ended == "done":
                self._tell(DownloadDone(status))

    def _next_row(self) -> Row | None:
        if not self._kept.is_ours:
            self._take_over()
        if not self._kept.is_ours:
            return None
        return next((row for row in self._rows if row.state in UNFINISHED), None)

    def _fetch(self, row: Row, abort: Abort) -> None:
        for index, file in enumerate(row.wanted.files):
            abort.check()
            with self._changed:
                row.file_index = index
            if self._folder.is_present() and self._folder.is_ready(row.paths[index], file):
                with self._changed:
                    row.n_done[index] = file.n_bytes
                continue
            watcher = RowWatcher(self, row, index, self._meter)
            Transfer(self._network, self._folder, file, watcher, self._pace).run(abort)

    def _tick(self) -> None:
        """Tell the numbers of the running row, ten times a second and only when they changed."""
        told: DownloadStatus | None = None
        while True:
            self._empty_trash()
            with self._changed:
                if not self._is_open:
                    return
                if self._running is None:
                    self._changed.wait_for(lambda: not self._is_open or self._running or self._trash, 1.0)
                    continue
                status = self._running.status(self._meter)
            if status != told:
                told = status
                self._tell(DownloadMoved(status))
            with self._changed:
                self._changed.wait_for(lambda: not self._is_open, TICK_S)

    def _tell_queue(self) -> None:
        self._tell(QueueChanged(self.rows()))

    def _tell(self, event: DownloadEvent) -> None:
        for listener in list(self._listeners):
            listener(event)

    def update(self, row: Row, state: DownloadState, change: Callable[[Row], object] = lambda _row: None) -> None:
        """For the transfer's watcher: what it saw counts only while its row runs and nobody has stopped it."""
        with self._changed:
            if row is not self._running or row.state not in RUNNING:
                return
            is_new = row.state != state
            row.state = state
            change(row)
        if is_new:
            self._tell_queue()
