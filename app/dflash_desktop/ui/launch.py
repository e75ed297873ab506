"""What this start, or a second one, was asked to show: the window, and model files to load in it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from PySide6.QtCore import QObject, Qt, QTimer, Slot

from dflash_desktop.engine.events import PairInfo
from dflash_desktop.ui.engine.opened_files import FindPair, OpenedFiles
from dflash_desktop.ui.instance_channel import InstanceChannel

if TYPE_CHECKING:
    from dflash_desktop.ui.window import MainWindow


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Launch:
    """How the program was started."""

    find_pair: FindPair
    files: tuple[Path, ...] = ()
    channel_name: str = ""  # where second starts call; "" where nobody is to reach this window


class LaunchLink(QObject):
    """Closed before the window."""

    def __init__(self, window: MainWindow, launch: Launch) -> None:
        super().__init__()
        self._window = window
        self._opened = OpenedFiles(launch.find_pair)
        self._opened.pair_found.connect(window.pair_state.load)
        self._opened.target_missing.connect(self.on_target_missing)
        self._opened.refused.connect(self.on_refused)
        self._channel = InstanceChannel(launch.channel_name) if launch.channel_name else None
        if self._channel is not None:
            self._channel.called.connect(self.on_called)
        window.pair_state.loaded.connect(self.on_loaded)
        QTimer.singleShot(0, self.on_up)
        self.open(launch.files)

    @Slot(object)
    def follow(self, window: MainWindow) -> None:
        """That one shows now, around the same desks."""
        self._window = window

    def open(self, files: Sequence[Path]) -> None:
        """Load these files, or say why not."""
        if files:
            self._opened.open(files)

    def close(self) -> None:
        """Hear of nothing any more."""
        if self._channel is not None:
            self._channel.close()
        self._opened.close()

    @Slot()
    def on_up(self) -> None:
        """The event loop runs and the window is drawn. What that took is measured from the birth of the process."""
        log.info("the window is up after %.2f s", process_age_s())

    @Slot(object)
    def on_loaded(self, pair: PairInfo) -> None:
        log.info("loaded: %s, draft: %s", pair.target, pair.draft)

    @Slot(object)
    def on_target_missing(self, drafts: list[Path]) -> None:
        self._window.open_dialog(drafts)

    @Slot(object)
    def on_refused(self, words: str) -> None:
        self._window.show_page("chat")
        self._window.chat_page.notice.show_error(words)

    @Slot(object)
    def on_called(self, files: tuple[Path, ...]) -> None:
        window = self._window
        state = window.windowState() & ~Qt.WindowState.WindowMinimized
        window.setWindowState(state | Qt.WindowState.WindowActive)
        window.show()
        window.raise_()
        window.activateWindow()
        self.open(files)


def process_age_s() -> float:
    """Seconds since this process was born."""
    if hasattr(time, "CLOCK_BOOTTIME"):  # Linux; psutil counts from the second in which the machine was started
        ticks = int(Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - psutil.Process().create_time()
