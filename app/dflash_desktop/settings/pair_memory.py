"""What each pair was last loaded with, and what it really took: remembered per target file."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import read_json, write_json

log = logging.getLogger(__name__)
PAIRS_FILE = "pairs.json"
VERSION = 1
MOST_PAIRS = 200
"""Beyond this the pair that was not loaded for the longest time is forgotten."""


@dataclass(frozen=True, slots=True)
class PairLoad:
    """How a pair is loaded and drafted. Plain values: the engine's own types are made of them by the window."""

    draft: str = ""  # path; "" for none
    device: str = ""  # id; "" for the best one
    draft_device: str = ""  # id; "" beside the target
    context_tokens: int = 0
    kv_k: str = "auto"
    kv_v: str = "auto"
    n_threads: int = 0
    draft_method: str = "auto"  # auto, tree, chain, off
    tree_budget: int = 0
    block_size: int = 0
    pflash_mode: str = "off"  # off, auto, always
    pflash_scorer: str = ""  # path; "" for the one that comes with the program
    pflash_curve: str = ""  # keep ratio, or TOKENS:RATIO points; "" for the usual one
    pflash_threshold_tokens: int = 0  # 0: the usual one
    pflash_device: str = ""  # id; "" for the target's
    pflash_keeps_scorer: bool = False
    pflash_asks_first: bool = True
    planned_bytes: int = 0  # what the plan said at the last load
    measured_bytes: int = 0  # what the system then counted; 0: nobody measured

    @property
    def surplus_bytes(self) -> int:
        """How much more the last load took than planned; never below 0."""
        return max(0, self.measured_bytes - self.planned_bytes) if self.measured_bytes and self.planned_bytes else 0


class PairMemory:
    """Used from one thread. A file that cannot be read costs what was remembered, never the program."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stored: dict[str, Any] = {}
        self.last_target: Path | None = None
        self.problem = ""
        if path is not None:
            self._read(path)

    def recall(self, target: Path) -> PairLoad | None:
        """What `target` was last loaded with; None for one that was never loaded."""
        found = self._stored.get(_key(target))
        return _sound(found) if isinstance(found, dict) else None

    def remember(self, target: Path, load: PairLoad) -> None:
        """Keep this as the last load of `target`."""
        key = _key(target)
        before = self._stored.pop(key, None)
        unknown = before if isinstance(before, dict) else {}
        self._stored[key] = {**unknown, **asdict(load)}  # at the end: the newest
        while len(self._stored) > MOST_PAIRS:
            del self._stored[next(iter(self._stored))]
        self.last_target = target
        self._write()

    def forget_all(self) -> None:
        self._stored.clear()
        self.last_target = None
        self._write()

    def _read(self, path: Path) -> None:
        try:
            stored = read_json(path, lambda found: isinstance(found.get("pairs", {}), dict)) or {}
        except AppError as error:
            log.warning("remembered pairs: %s", error)
            self.problem = str(error)
            return
        self._stored = dict(stored.get("pairs", {}))
        last = stored.get("last")
        self.last_target = Path(last) if isinstance(last, str) and last else None

    def _write(self) -> None:
        if self._path is None:
            return
        last = str(self.last_target) if self.last_target is not None else ""
        try:
            write_json(self._path, {"version": VERSION, "last": last, "pairs": self._stored})
        except OSError as error:
            log.warning("the pair's settings could not be written: %s", error)


def _key(target: Path) -> str:
    return str(target.absolute())


def _sound(stored: dict[str, Any]) -> PairLoad:
    defaults = PairLoad()
    sound = {
        found.name: stored[found.name]
        for found in fields(PairLoad)
        if type(stored.get(found.name)) is type(getattr(defaults, found.name))
        and not (isinstance(stored[found.name], int) and stored[found.name] < 0)
    }
    return replace(defaults, **sound)
