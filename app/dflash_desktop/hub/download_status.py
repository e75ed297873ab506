"""What the download list says of itself: frozen, complete, from any thread."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.wanted import WantedDownload

DownloadState = Literal[
    "queued",  # waits for its turn
    "connecting",
    "downloading",
    "checking",  # reads what is on the disk
    "waiting",  # something is wrong that passes by itself: `problem`, and `retry_in_s`
    "paused",  # by the person
    "done",
    "failed",  # `problem` needs the person
]

RUNNING: tuple[DownloadState, ...] = ("connecting", "downloading", "checking", "waiting")
UNFINISHED: tuple[DownloadState, ...] = ("queued", *RUNNING)
_SPEED_WINDOW_S = 4.0


@dataclass(frozen=True, slots=True)
class DownloadStatus:
    """One row of the list."""

    download_id: int
    wanted: WantedDownload
    state: DownloadState
    n_done_bytes: int  # on the disk
    n_total_bytes: int
    file_name: str  # the one that is fetched or checked now, "" otherwise
    bytes_per_s: float | None  # None while nothing comes
    silence_s: float  # since the last byte, while downloading
    checked_bytes: int  # of `check_total_bytes`, while checking
    check_total_bytes: int
    problem: HubProblem | None
    retry_in_s: float | None
    paths: tuple[Path, ...]  # of `wanted.files`, in their order


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """Rows came, went, moved or changed their state: the whole list, in order."""

    rows: tuple[DownloadStatus, ...]


@dataclass(frozen=True, slots=True)
class DownloadMoved:
    """Numbers of one row moved; at most ten times a second."""

    row: DownloadStatus


@dataclass(frozen=True, slots=True)
class DownloadDone:
    """All files of it are in their place, and their hashes are right."""

    row: DownloadStatus


DownloadEvent = QueueChanged | DownloadMoved | DownloadDone


class SpeedMeter:
    """Bytes per second over the last seconds: falls to nothing when nothing comes."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()
        self._n_bytes = 0
        self._last = time.monotonic()

    def add(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self._last = now = time.monotonic()
        if not self._points or now - self._points[-1][0] > 0.05:
            self._points.append((now, self._n_bytes))

    def restart(self) -> None:
        """A new connection: silence counts from now."""
        self._points.clear()
        self._n_bytes = 0
        self._last = time.monotonic()
        self._points.append((self._last, 0))

    def bytes_per_s(self) -> float | None:
        now = time.monotonic()
        while len(self._points) > 1 and now - self._points[1][0] > _SPEED_WINDOW_S:
            self._points.popleft()
        if not self._points:
            return None
        begin, n_before = self._points[0]
        if now - begin < 0.2:
            return None
        return (self._n_bytes - n_before) / (now - begin)

    def silence_s(self) -> float:
        return time.monotonic() - self._last
