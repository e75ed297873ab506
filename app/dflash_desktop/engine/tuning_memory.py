"""What was learnt of a pair on a device, kept in the cache folder from one load to the next.

The key is what the files hold and not where they lie, with everything that changes times: device, threads, types of the
KV cache, ggml's version. Whatever is wrong with a file, a load goes on without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.json_file import write_json
from dflash_desktop.binding import abi
from dflash_desktop.engine.events import DraftProbe

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.binding.native import Library, NativeSession
    from dflash_desktop.engine.devices import Device
    from dflash_desktop.engine.requests import LoadPair

log = logging.getLogger(__name__)

TUNING_FOLDER = "tuning"
"""In the cache folder."""

_FORMAT = 1
_MOST_BYTES = 1 << 20  # of a file; ours have a few ten thousand
_MOST_FILES = 100
_HEAD_BYTES = 1 << 20  # of a model file: its header, or the most of it
_SAMPLE_BYTES = 1 << 16
_N_SAMPLES = 16  # spread over the weights
_KEEP_WAIT_S = 300.0  # between two times that a pair in use is kept


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a session knew in the end: the engine's own numbers, and how the draft did on the fixed prompt."""

    tuning: tuple[float, ...]
    probe: DraftProbe | None


class TuningMemory:
    """The folder of such files. Used from the lane's thread only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def recall(self, key: dict[str, Any]) -> Learnt | None:
        """What was kept under `key`; None when there is nothing usable."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.info("what was learnt of this pair cannot be read: %s", error)
            return None
        try:
            return _read(content, key)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            log.info("what was learnt of this pair is not usable and is ignored: %s (%s)", path.name, error)
            return None

    def keep(self, key: dict[str, Any], learnt: Learnt) -> None:
        """Keep it for the next load. A full or read-only disk is no failure of the program's."""
        probe = learnt.probe
        values: dict[str, Any] = {"format": _FORMAT, "key": key, "tuning": list(learnt.tuning)}
        if probe is not None:
            values["probe"] = {"acceptance_length": probe.acceptance_length, "n_steps": probe.n_steps}
        try:
            write_json(self._path(key), values)
            self._prune()
        except (OSError, ValueError) as error:
            log.info("what was learnt of this pair cannot be kept: %s", error)

    def _path(self, key: dict[str, Any]) -> Path:
        written = json.dumps(key, sort_keys=True).encode()
        return self._folder / f"{hashlib.sha256(written).hexdigest()[:32]}.json"

    def _prune(self) -> None:
        files = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[:-_MOST_FILES]:
            with suppress(OSError):
                path.unlink()


class TuningKeeper:
    """Keeps what one loaded pair learns: when it is loaded, now and then in between, and when it is let go."""

    def __init__(
        self, memory: TuningMemory, key: dict[str, Any], session: NativeSession, probe: DraftProbe | None
    ) -> None:
        self._memory = memory
        self._key = key
        self._session = session
        self._probe = probe
        self._kept_at = -math.inf

    def keep(self) -> None:
        """Write down what the session knows now."""
        self._memory.keep(self._key, Learnt(tuple(self._session.tuning()), self._probe))
        self._kept_at = time.monotonic()

    def keep_if_due(self) -> None:
        """The same, unless it was done within the last minutes."""
        if time.monotonic() - self._kept_at >= _KEEP_WAIT_S:
            self.keep()


def tuning_key(request: LoadPair, device: Device, library: Library) -> dict[str, Any] | None:
    """What times and acceptance depend on; None when a file cannot be read, which the load itself will tell."""
    options = request.options
    try:
        target = content_identity(request.target)
        draft = content_identity(request.draft) if request.draft is not None else None
    except OSError:
        return None
    return {
        "target": target,
        "draft": draft,
        "device": [device.id, device.description, device.backend],
        "threads": options.n_threads or os.cpu_count(),
        "kv": [options.kv_k, options.kv_v],
        "window": options.window_tokens,
        **({"draft_device": options.draft_device} if options.draft_device else {}),
        "engine": [abi.ABI_VERSION, library.ggml_version()],
    }


def _read(content: bytes, key: dict[str, Any]) -> Learnt:
    if len(content) > _MOST_BYTES:
        raise ValueError("it is too large")
    values = json.loads(content)
    if values["format"] != _FORMAT or values["key"] != key:
        raise ValueError("it is of another version or pair")
    tuning = tuple(float(number) for number in values["tuning"])
    if not all(map(math.isfinite, tuning)):
        raise ValueError("it holds numbers that are none")
    probe = None
    if "probe" in values:
        length, n_steps = float(values["probe"]["acceptance_length"]), values["probe"]["n_steps"]
        if not (1 <= length <= 1000 and type(n_steps) is int and 1 <= n_steps <= 1000):
            raise ValueError("its probe is impossible")
        probe = DraftProbe(length, n_steps, is_remembered=True)
    return Learnt(tuning, probe)


def content_identity(path: Path) -> str:
    """A model file by what it holds: its size, its header, samples of its weights. A folder: all of a model in it.

    Raises OSError.
    """
    digest = hashlib.sha256()
    if path.is_dir():
        for each in sorted(path.iterdir()):
            if each.suffix in (".json", ".safetensors", ".gguf"):
                digest.update(f"{each.name} {content_identity(each)}".encode())
        return digest.hexdigest()
    n_bytes = path.stat().st_size
    digest.update(str(n_bytes).encode())
    with path.open("rb") as file:
        digest.update(file.read(_HEAD_BYTES))
        for index in range(_N_SAMPLES):
            file.seek(max(0, (n_bytes - _SAMPLE_BYTES) * index // (_N_SAMPLES - 1)))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()
