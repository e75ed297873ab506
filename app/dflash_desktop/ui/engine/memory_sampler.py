"""Memory over time: ten samples a second from a thread of its own, and none while nobody looks."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import MemoryUse
from dflash_desktop.ui.engine.process_memory import resident_bytes
from dflash_desktop.ui.kit.pace import MEMORY_SAMPLE_MS

log = logging.getLogger(__name__)
KEPT_SAMPLES = 1200
"""Two minutes: memory stays flat however long the page is open."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is sampled: the loaded pair, and the device it is on, "" for the machine's own memory."""

    device_name: str = ""
    use: MemoryUse | None = None


@dataclass(frozen=True, slots=True)
class MemorySample:
    """One look. On a device of its own, `used_bytes` is the device's; else the machine's."""

    at_s: float  # time.monotonic
    process_bytes: int  # resident memory of this process
    used_bytes: int  # by everybody
    total_bytes: int
    watched: Watched


class MemorySampler:
    """`watch`, `start` and `pause` from the GUI thread; the samples are a deque that only the thread appends to."""

    def __init__(self, read_device: Callable[[str], Device] | None) -> None:
        self._read_device = read_device
        self._watched = Watched()
        self._silent_device = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.samples: deque[MemorySample] = deque(maxlen=KEPT_SAMPLES)

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def watch(self, watched: Watched) -> None:
        """What the next samples are of. A whole value: the thread reads it without a lock."""
        self._watched = watched

    def start(self) -> None:
        if self._thread is None:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="memory-sampler", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Stop sampling; returns when the thread has seen it, or after a second of a driver's silence."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            thread.join(1.0)

    def _run(self, stop: threading.Event) -> None:
        due = time.monotonic()
        while not stop.is_set():
            self.samples.append(self._sample(self._watched))
            # Its own clock: a sample that took long is not caught up on.
            due = max(due + MEMORY_SAMPLE_MS / 1000, time.monotonic())
            stop.wait(due - time.monotonic())

    def _sample(self, watched: Watched) -> MemorySample:
        process = resident_bytes()
        if self._read_device is not None and watched.device_name not in ("", self._silent_device):
            try:
                device = self._read_device(watched.device_name)
                used = device.total_bytes - device.free_bytes
                return MemorySample(time.monotonic(), process, used, device.total_bytes, watched)
            except AppError as error:
                log.warning("the memory of %s cannot be read: %s", watched.device_name, error)
                self._silent_device = watched.device_name  # once told is enough: the machine's own memory is shown
        memory = psutil.virtual_memory()
        return MemorySample(
            time.monotonic(), process, memory.total - memory.available, memory.total, Watched("", watched.use)
        )
