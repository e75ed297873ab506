"""One row of the download list while the program runs, and who keeps its numbers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dflash_desktop.hub.download_status import RUNNING, DownloadState, DownloadStatus, SpeedMeter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dflash_desktop.hub.problems import HubProblem
    from dflash_desktop.hub.wanted import WantedDownload


@dataclass(eq=False)
class Row:
    """Its state is changed under the list's lock only; its numbers by the thread that fetches it."""

    download_id: int
    wanted: WantedDownload
    paths: tuple[Path, ...]
    state: DownloadState = "queued"
    n_done: list[int] = field(default_factory=list)  # bytes per file
    file_index: int = -1
    problem: HubProblem | None = None
    retry_at: float = 0.0  # time.monotonic
    checked: tuple[int, int] = (0, 0)  # bytes read back, of how many

    @property
    def n_left_bytes(self) -> int:
        """What it still has to bring onto the disk."""
        return 0 if self.state == "done" else max(0, self.wanted.n_bytes - sum(self.n_done))

    def status(self, meter: SpeedMeter) -> DownloadStatus:
        """The row as a listener gets it."""
        is_loading = self.state == "downloading"
        name = self.wanted.files[self.file_index].name if self.state in RUNNING and self.file_index >= 0 else ""
        return DownloadStatus(
            download_id=self.download_id,
            wanted=self.wanted,
            state=self.state,
            n_done_bytes=self.wanted.n_bytes if self.state == "done" else sum(self.n_done),
            n_total_bytes=self.wanted.n_bytes,
            file_name=name,
            bytes_per_s=meter.bytes_per_s() if is_loading else None,
            silence_s=meter.silence_s() if is_loading else 0.0,
            checked_bytes=self.checked[0],
            check_total_bytes=self.checked[1],
            problem=self.problem,
            retry_in_s=max(0.0, self.retry_at - time.monotonic()) if self.state == "waiting" else None,
            paths=self.paths,
        )


class RowList(Protocol):
    """What the watcher needs of the list."""

    def update(self, row: Row, state: DownloadState, change: Callable[[Row], object] = ...) -> None: ...


class RowWatcher:
    """Keeps the numbers of one file of one row; a Watcher of its transfer."""

    def __init__(self, rows: RowList, row: Row, index: int, meter: SpeedMeter) -> None:
        self._rows, self._row, self._index, self._meter = rows, row, index, meter

    def on_connecting(self) -> None:
        self._meter.restart()
        self._rows.update(self._row, "connecting")

    def on_reached(self, n_bytes: int) -> None:
        self._row.n_done[self._index] = n_bytes

    def on_received(self, n_bytes: int) -> None:
        self._meter.add(n_bytes)
        self._row.n_done[self._index] += n_bytes
        if self._row.state != "downloading":
            self._rows.update(self._row, "downloading", _without_problem)

    def on_checking(self, n_bytes: int) -> None:
        if self._row.state != "checking":
            self._row.checked = (0, self._row.wanted.files[self._index].n_bytes)
            self._rows.update(self._row, "checking", _without_problem)
        self._row.checked = (self._row.checked[0] + n_bytes, self._row.checked[1])

    def on_problem(self, problem: HubProblem, retry_in_s: float) -> None:
        def change(row: Row) -> None:
            row.problem = problem
            row.retry_at = time.monotonic() + retry_in_s

        self._rows.update(self._row, "waiting", change)


def _without_problem(row: Row) -> None:
    row.problem = None
