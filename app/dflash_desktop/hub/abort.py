"""Stopping a transfer that another thread waits in, even where the other side is silent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dflash_desktop.hub.problems import Aborted

_current = threading.local()


class Abort:
    """Set from any thread; the thread that works under `watching(abort)` then ends its read at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_set = False
        self._is_nudged = False
        self._sockets: list[socket.socket] = []

    @property
    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Stop. A read that hangs returns, because its socket is shut down under it."""
        with self._changed:
            self._is_set = True
            sockets, self._sockets = self._sockets, []
            self._changed.notify_all()
        for found in sockets:
            _shut(found)

    def reconnect(self) -> None:
        """Drop the connections and try again at once: the way to the hub is another one now."""
        with self._changed:
            sockets, self._sockets = self._sockets, []
        self.nudge()
        for found in sockets:
            _shut(found)

    def nudge(self) -> None:
        """End the wait that is going on, or the next one: the person does not want to wait for the next try."""
        with self._changed:
            self._is_nudged = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Aborted once it is set."""
        if self._is_set:
            raise Aborted

    def wait(self, seconds: float) -> None:
        """Sleep until the time is over or somebody nudges. Raises Aborted when it is set meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_set or self._is_nudged, seconds)
            self._is_nudged = False
        self.check()

    def watch(self, opened: socket.socket) -> None:
        """A connection was opened on behalf of this work."""
        with self._changed:
            self._sockets = [known for known in self._sockets if known.fileno() >= 0]
            self._sockets.append(opened)
        if self._is_set:
            _shut(opened)


@contextmanager
def watching(abort: Abort) -> Iterator[None]:
    """Everything that this thread asks of the network in here ends when `abort` is set."""
    before = getattr(_current, "abort", None)
    _current.abort = abort
    try:
        yield
    finally:
        _current.abort = before


def trace_for_this_thread() -> Callable[[str, dict[str, Any]], None] | None:
    """What the HTTP client calls as connections come up; None where nobody may want to stop them."""
    abort: Abort | None = getattr(_current, "abort", None)
    if abort is None:
        return None

    def on_step(name: str, info: dict[str, Any]) -> None:
        if name.endswith((".connect_tcp.complete", ".start_tls.complete")):
            opened = info["return_value"].get_extra_info("socket")
            if isinstance(opened, socket.socket):
                abort.watch(opened)

    return on_step


def _shut(opened: socket.socket) -> None:
    # The base class on purpose: SSLSocket.shutdown would drop the TLS state under the reading thread.
    with suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)
