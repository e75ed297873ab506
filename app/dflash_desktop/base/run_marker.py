"""Whether the last run ended as it should: a small file that lives exactly as long as the program does.

A process that dies in native code, is killed or loses its power leaves its file behind. The next start finds it and
can say what the program was doing. Several programs may run at once: each has a file of its own.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal

import psutil

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

Activity = Literal["idle", "load", "reply"]
"""What the engine was asked to do when the program ended."""

_PREFIX = "run-"
_CLOCK_SLACK_S = 3.0
_CRASH_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run that did not end by itself."""

    activity: Activity
    details: dict[str, str] = field(default_factory=dict)  # target, draft, device: what was known
    started_at: float = 0.0  # seconds since 1970
    version: str = ""
    trace: str = ""  # where each thread was, if native code crashed; "" when it was killed from outside

    @property
    def has_crashed(self) -> bool:
        """Native code or Python itself crashed. Else the process was ended from outside, or the machine stopped."""
        return bool(self.trace)


class RunMarker:
    """One per process. Nothing in here ever raises: a full disk must not keep the program from running."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        self._path = folder / f"{_PREFIX}{os.getpid()}.json"
        self._trace_path = folder / f"{_PREFIX}{os.getpid()}.crash.txt"
        self._version = version
        self._started_at = time.time()
        self._trace_file: IO[bytes] | None = None

    def begin(self) -> list[LostRun]:
        """Mark this run as running and return the lost ones, newest first; they are forgotten then."""
        lost = self._collect()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._trace_path.unlink(missing_ok=True)
            self._trace_file = self._trace_path.open("ab")  # native code adds its own last words to the file
            faulthandler.enable(self._trace_file, all_threads=True)
        except (OSError, RuntimeError) as error:
            log.warning("crashes will leave no trace: %s", error)
        self.note("idle")
        return lost

    @property
    def trace_path(self) -> Path:
        """Where a crash leaves its trace. Whatever else is known then may be added to the file's end."""
        return self._trace_path

    def note(self, activity: Activity, **details: str) -> None:
        """Write down what the engine is asked to do now."""
        stored = {
            **this_process(),
            "started_at": self._started_at,
            "version": self._version,
            "activity": activity,
            "details": details,
        }
        temporary = self._path.with_suffix(".part")
        with suppress(OSError):
            # Not synced: it has to survive the process, not the machine, and this runs in the window's thread.
            temporary.write_text(json.dumps(stored), encoding="ascii")
            temporary.replace(self._path)

    def end(self) -> None:
        """This run ended as it should."""
        if self._trace_file is not None:
            faulthandler.disable()
            self._trace_file.close()
            self._trace_file = None
        for path in (self._path, self._trace_path):
            with suppress(OSError):
                path.unlink()

    def others_running(self) -> int:
        """How many other programs of ours use the same folder now."""
        return sum(path != self._path and is_alive(read_note(path)) for path in self._markers())

    def _markers(self) -> list[Path]:
        with suppress(OSError):
            return sorted(path for path in self._folder.glob(f"{_PREFIX}*.json") if path.is_file())
        return []

    def _collect(self) -> list[LostRun]:
        lost = []
        for path in self._markers():
            stored = read_note(path)
            if is_alive(stored):
                continue
            trace_path = path.with_suffix(".crash.txt")
            trace = ""
            with suppress(OSError):
                trace = trace_path.read_bytes()[:_CRASH_BYTES].decode("utf-8", errors="replace")
            for done in (path, trace_path):
                with suppress(OSError):
                    done.unlink()
            lost.append(_lost(stored, trace))
            log.error("a run ended unexpectedly while: %s %s\n%s", lost[-1].activity, lost[-1].details, trace)
        return sorted(lost, key=lambda run: -run.started_at)


def read_note(path: Path) -> dict[str, Any]:
    """What a process wrote down about itself; nothing where it cannot be read."""
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def this_process() -> dict[str, Any]:
    """What is_alive asks of a note."""
    return {"pid": os.getpid(), "process_started_at": psutil.Process().create_time()}


def is_alive(stored: dict[str, Any]) -> bool:
    """Whether the process that wrote this still runs; its number alone may belong to another one by now."""
    pid, began = stored.get("pid"), stored.get("process_started_at")
    if not isinstance(pid, int) or not isinstance(began, (int, float)):
        return False
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - began) < _CLOCK_SLACK_S and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):
        return False


def _lost(stored: dict[str, Any], trace: str) -> LostRun:
    activity = stored.get("activity")
    details = stored.get("details")
    started_at = stored.get("started_at")
    return LostRun(
        activity=activity if activity in ("load", "reply") else "idle",
        details={str(k): str(v) for k, v in details.items()} if isinstance(details, dict) else {},
        started_at=float(started_at) if isinstance(started_at, (int, float)) else 0.0,
        version=str(stored.get("version", "")),
        trace=trace,
    )
