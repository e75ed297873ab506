"""A thread for what would block the window: files of other programs, sockets that open and close."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

Result = TypeVar("Result")
log = logging.getLogger(__name__)


def _is_there(call: Callable[[], object]) -> bool:
    """Whether whom it goes to still exists: a window that is built again deletes widgets that were waiting."""
    told = call.func if isinstance(call, partial) else call
    owner = getattr(told, "__self__", None)
    return not isinstance(owner, QObject) or shiboken6.isValid(owner)


class Worker(QObject):
    """Lives in the GUI thread. What it is given runs in order, elsewhere; answers come back here."""

    _came_back = Signal(object)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_open = True
        self._came_back.connect(self.on_came_back, Qt.ConnectionType.QueuedConnection)

    def do(
        self,
        work: Callable[[], Result],
        then: Callable[[Result], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> None:
        """Run `work` in the thread; `then` or `failed` is called in the GUI thread, unless we are closed by then."""
        if not self._is_open:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put(partial(self._do, work, then, failed))

    def close(self, timeout_s: float | None = None) -> bool:
        """No more answers. Returns when what was given is done, or False when that takes longer than `timeout_s`."""
        self._is_open = False
        self._queue.put(None)
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @Slot(object)
    def on_came_back(self, call: Callable[[], object]) -> None:
        if self._is_open and _is_there(call):
            call()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()

    def _do(
        self,
        work: Callable[[], Result],
        then: Callable[[Result], object] | None,
        failed: Callable[[Exception], object] | None,
    ) -> None:
        try:
            result = work()
        except Exception as error:  # the top of this thread: whoever asked is told
            log.info("%s: %s", self._name, error, exc_info=failed is None)
            if failed is not None:
                self._came_back.emit(partial(failed, error))
            return
        if then is not None:
            self._came_back.emit(partial(then, result))
