"""The window that shows now, and how another one takes its place when the words or the letters change."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from dflash_desktop.ui.desks import Desks
from dflash_desktop.ui.window import MainWindow

log = logging.getLogger(__name__)


class ShownWindow(QObject):
    """Texts are put into widgets when these are built. So another language means other widgets, around the same desks:
    the engine, replies, the server and downloads hear nothing of it."""

    changed = Signal(object)  # the MainWindow that shows from now on

    def __init__(self, make: Callable[[Desks | None], MainWindow], prepare: Callable[[], None]) -> None:
        """`make` builds a window around desks, or with new ones; `prepare` puts language and letters in force."""
        super().__init__()
        self._make = make
        self._prepare = prepare
        self._is_asked = False
        self.window = self._made(None)

    def _made(self, desks: Desks | None) -> MainWindow:
        window = self._make(desks)
        # Not at once: the control that was used to ask for it is in the middle of its own work.
        window.rebuild_wanted.connect(self.on_rebuild_wanted, Qt.ConnectionType.QueuedConnection)
        return window

    @Slot()
    def on_rebuild_wanted(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            QTimer.singleShot(0, self._rebuild)

    @Slot()
    def _rebuild(self) -> None:
        self._is_asked = False
        old = self.window
        if old.is_closing:
            return
        carried = old.leave()
        self._prepare()
        self.window = self._made(old.desks)
        self.window.show()
        self.window.go_on(carried)
        self.changed.emit(self.window)
        shiboken6.delete(old)
        del old
        gc.unfreeze()  # the old widgets were frozen with everything else when they were built (see app.py)
        gc.collect()
        gc.freeze()
        log.info("the window was built again")
