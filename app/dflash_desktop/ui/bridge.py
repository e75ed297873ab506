"""The only thread crossing of the window: what the engine says, delivered in the GUI thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import Event, JobQueued
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import (
    CompressPrompt,
    DraftOptions,
    Generate,
    Job,
    LoadOptions,
    LoadPair,
    Prompt,
    Sampling,
    Subscriber,
    UnloadPair,
)

log = logging.getLogger(__name__)
DEVICES_JOIN_S = 1.0
_NOT_SHORTENED = PflashOptions()


class EngineLike(Protocol):
    """What the window needs of the engine lane."""

    def submit(self, job: Job) -> int: ...

    def cancel(self, job_id: int) -> None: ...

    def close(self) -> None: ...


class ServedLane:
    """The lane as the server is given it: the window follows the replies of other programs. Any thread."""

    def __init__(self, engine: EngineLike, also: Subscriber, draft: Callable[[], DraftOptions]) -> None:
        """`also` hears every event of a reply; `draft` is what the person chose for all replies."""
        self._engine = engine
        self._also = also
        self._draft = draft

    def submit(self, job: Job) -> int:
        if not isinstance(job, Generate):
            return self._engine.submit(job)
        subscriber = job.subscriber

        def hear(event: Event) -> None:
            subscriber(event)
            self._also(event)

        draft = self._draft() if job.draft == DraftOptions() else job.draft
        return self._engine.submit(replace(job, subscriber=hear, draft=draft))

    def cancel(self, job_id: int) -> None:
        self._engine.cancel(job_id)


class EngineBridge(QObject):
    """Lives in the GUI thread. Every event comes in a later turn of the event loop than the call that caused it."""

    engine_event = Signal(object)  # an engine.events.Event
    served_event = Signal(object)  # an Event of a reply that the server asked for
    load_adopted = Signal(object, object)  # job id, and the LoadPair or UnloadPair that a client asked the server for
    devices_listed = Signal(object, object)  # tuple of devices, and the sentence that says why there is none
    _event_arrived = Signal(object)
    _served_arrived = Signal(object)
    _adopted_arrived = Signal(object, object)
    _devices_arrived = Signal(object, object)

    def __init__(self, engine: EngineLike, list_devices: Callable[[], Sequence[Device]]) -> None:
        super().__init__()
        self._engine = engine
        self._list_devices = list_devices
        self._devices_thread: threading.Thread | None = None
        self._is_open = True
        self._load_listeners: list[Subscriber] = []
        self.served_draft = DraftOptions()  # for replies that clients ask for; whole values only, other threads read it
        queued = Qt.ConnectionType.QueuedConnection
        self._event_arrived.connect(self.on_event_arrived, queued)
        self._served_arrived.connect(self.on_served_arrived, queued)
        self._adopted_arrived.connect(self.on_adopted_arrived, queued)
        self._devices_arrived.connect(self.on_devices_arrived, queued)

    def load(self, target: Path, draft: Path | None, options: LoadOptions) -> int:
        return self._engine.submit(LoadPair(target, draft, options, self._hear_load))

    def unload(self) -> int:
        return self._engine.submit(UnloadPair(self._hear_load))

    def hear_loads(self, listener: Subscriber) -> None:
        """Call `listener` with the events of this window's loads, on the lane's thread and before anybody here."""
        self._load_listeners.append(listener)

    def submit_served_load(self, job: LoadPair | UnloadPair) -> int:
        """For the server: a load that a client asked for, which the window hears of too. Any thread."""

        def hear(event: Event) -> None:
            if isinstance(event, JobQueued):  # always the first: the window knows of the load before anything happens
                self._adopted_arrived.emit(event.job_id, job)
            job.subscriber(event)
            self._event_arrived.emit(event)

        return self._engine.submit(replace(job, subscriber=hear))

    def served_lane(self) -> ServedLane:
        """The engine as the server uses it."""
        return ServedLane(self._engine, self._served_arrived.emit, lambda: self.served_draft)

    def generate(
        self,
        prompt: Prompt,
        *,
        sampling: Sampling,
        draft: DraftOptions,
        max_tokens: int,
        pflash: PflashOptions = _NOT_SHORTENED,
    ) -> int:
        hear = self._event_arrived.emit
        return self._engine.submit(
            Generate(prompt, hear, sampling=sampling, draft=draft, max_tokens=max_tokens, pflash=pflash)
        )

    def compress(self, prompt: Prompt, pflash: PflashOptions) -> int:
        """Ask what would be kept of a prompt; ends with PromptCompressed, JobFailed or JobCancelled."""
        return self._engine.submit(CompressPrompt(prompt, pflash, self._event_arrived.emit))

    def cancel(self, job_id: int) -> None:
        self._engine.cancel(job_id)

    def refresh_devices(self) -> None:
        """Ask again which devices there are; `devices_listed` follows. In a thread: drivers may take seconds."""
        if self._devices_thread is None or not self._devices_thread.is_alive():
            self._devices_thread = threading.Thread(target=self._read_devices, name="list-devices", daemon=True)
            self._devices_thread.start()

    def close(self) -> None:
        """Close the engine, then stop listening. Nothing is delivered afterwards."""
        self._is_open = False
        self._engine.close()
        if self._devices_thread is not None:
            self._devices_thread.join(DEVICES_JOIN_S)

    @Slot(object)
    def on_event_arrived(self, event: object) -> None:
        if self._is_open:
            self.engine_event.emit(event)

    @Slot(object)
    def on_served_arrived(self, event: object) -> None:
        if self._is_open:
            self.served_event.emit(event)

    @Slot(object, object)
    def on_adopted_arrived(self, job_id: object, job: object) -> None:
        if self._is_open:
            self.load_adopted.emit(job_id, job)

    def _hear_load(self, event: Event) -> None:
        for listener in self._load_listeners:
            listener(event)
        self._event_arrived.emit(event)

    @Slot(object, object)
    def on_devices_arrived(self, devices: object, problem: object) -> None:
        if self._is_open:
            self.devices_listed.emit(devices, problem)

    def _read_devices(self) -> None:
        try:
            self._devices_arrived.emit(tuple(self._list_devices()), "")
        except Exception as error:  # a driver may fail in any way; the thread is this call's top
            log.exception("listing devices failed")
            self._devices_arrived.emit((), str(error))
