"""The thread crossing of the server: it is driven from a thread of its own, and its events arrive in the GUI thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Qt, Signal, Slot

from dflash_desktop.clients.endpoint import Machine
from dflash_desktop.engine.events import Event, JobCancelled, JobFailed, LoadProgress, PairLoaded, PairUnloaded
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import Job, LoadOptions, LoadPair, UnloadPair
from dflash_desktop.server.events import ServerFailed, ServerSubscriber
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.self_test import SelfTestLine
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.kit.worker import Worker

log = logging.getLogger(__name__)
SELF_TEST_S = 900.0
"""A check waits for its turn behind replies that run, and those may be long."""
CLOSE_S = 12.0  # the server's own limits end everything well before


class ServerLike(Protocol):
    """What the window needs of the server; ApiServer fits."""

    def on_engine_event(self, event: Event) -> None: ...

    def start(self, options: ServerOptions) -> bool: ...

    def stop(self) -> None: ...

    def use_pflash(self, pflash: PflashOptions) -> None: ...

    def self_test_lines(self, *, timeout_s: float = ...) -> Iterator[SelfTestLine]: ...


class Lane(Protocol):
    """The engine as the server is given it."""

    def submit(self, job: Job) -> int: ...

    def cancel(self, job_id: int) -> None: ...


MakeServer = Callable[[Lane, ServerSubscriber, Callable[[LoadPair | UnloadPair], int]], ServerLike]
"""Called once, in the control thread: importing a web server takes longer than a frame."""


LargestContext = Callable[[Path, Path | None, LoadOptions], int]


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What startup.py hands to the window for serving."""

    make_server: MakeServer
    machine: Machine  # whose programs the cards are about
    backups: Path  # what was there before settings of other programs were written
    key_file: Path
    largest_context: LargestContext
    """The largest context of a pair that fits now; runs in a thread, raises AppError."""


class ServerBridge(QObject):
    """Lives in the GUI thread. What is asked for here is done in order; the events tell how it went."""

    server_event = Signal(object)  # a server.events.ServerEvent
    self_tested = Signal(object)  # SelfTestLine, as each check ends
    self_test_ended = Signal()
    _event_arrived = Signal(object)
    _line_arrived = Signal(object, object)

    def __init__(self, make_server: MakeServer, engine_bridge: EngineBridge) -> None:
        super().__init__()
        self._make_server = make_server
        self._engine_bridge = engine_bridge
        self._server: ServerLike | None = None
        self._lock = threading.Lock()  # around _server and _heard: the lane's thread and the control thread meet here
        self._heard: list[Event] = []
        self._control = Worker("server-control")
        self._tester = Worker("server-self-test")
        self._test_number = 0  # of the test whose lines count; any thread may read it
        self._is_open = True
        queued = Qt.ConnectionType.QueuedConnection
        self._event_arrived.connect(self.on_event_arrived, queued)
        self._line_arrived.connect(self.on_line_arrived, queued)
        engine_bridge.hear_loads(self._hear_load)

    def start(self, options: ServerOptions) -> None:
        """Open the sockets. ServerStarted or ServerFailed follows."""

        def work() -> None:
            self._made_server().start(options)

        self._control.do(work, failed=lambda error: self._failed(error, options))

    def use_pflash(self, options: PflashOptions) -> None:
        """For later requests that say nothing about it."""

        def work() -> None:
            if self._server is not None:
                self._server.use_pflash(options)

        self._control.do(work)

    def stop(self) -> None:
        """Cancel what clients asked for and close the sockets. ServerStopped follows if they were open."""
        self._test_number += 1

        def work() -> None:
            if self._server is not None:
                self._server.stop()

        self._control.do(work)

    def self_test(self) -> None:
        """Try every dialect; `self_tested` follows for each check and `self_test_ended` in the end."""
        self._test_number += 1
        number = self._test_number
        self._tester.do(lambda: self._test(number))

    def stop_test(self) -> None:
        """After the check that runs; nothing more is told of it."""
        self._test_number += 1

    def close(self) -> None:
        """Stop the server and both threads. Nothing is delivered afterwards."""
        self.stop()
        self._is_open = False
        # The server first: a check that waits for an answer ends when its connection closes.
        if not self._control.close(CLOSE_S) or not self._tester.close(CLOSE_S):
            log.error("the server did not stop in time")

    def _made_server(self) -> ServerLike:
        if self._server is None:
            bridge = self._engine_bridge
            server = self._make_server(bridge.served_lane(), self._event_arrived.emit, bridge.submit_served_load)
            with self._lock:
                for event in self._heard:
                    server.on_engine_event(event)
                self._heard.clear()
                self._server = server
        return self._server

    def _hear_load(self, event: Event) -> None:
        """On the lane's thread: the events of every load, kept until there is a server to hear them."""
        with self._lock:
            if self._server is not None:
                self._server.on_engine_event(event)
                return
            last = self._heard[-1] if self._heard else None
            match event:
                case PairLoaded() | PairUnloaded():
                    self._heard = [event]
                case LoadProgress() if isinstance(last, LoadProgress):
                    self._heard[-1] = event
                case LoadProgress():
                    self._heard.append(event)
                case JobFailed() | JobCancelled() if isinstance(last, LoadProgress):
                    self._heard.append(event)
                case _:
                    pass

    def _test(self, number: int) -> None:
        server = self._server
        if server is not None and number == self._test_number:
            for line in server.self_test_lines(timeout_s=SELF_TEST_S):
                if number != self._test_number:
                    return
                self._line_arrived.emit(number, line)
        self._line_arrived.emit(number, None)

    def _failed(self, error: Exception, options: ServerOptions) -> None:
        log.error("the server could not be started", exc_info=error)
        words = self.tr("The server could not be started: {0}. Details are in the log file.")
        self.server_event.emit(ServerFailed(words.format(str(error).rstrip(".")), options.port, None, None))

    @Slot(object)
    def on_event_arrived(self, event: object) -> None:
        if self._is_open:
            self.server_event.emit(event)

    @Slot(object, object)
    def on_line_arrived(self, number: int, line: SelfTestLine | None) -> None:
        if not self._is_open or number != self._test_number:
            return
        if line is None:
            self.self_test_ended.emit()
        else:
            self.self_tested.emit(line)
