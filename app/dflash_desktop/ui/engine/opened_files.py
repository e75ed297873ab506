"""Model files given from outside (a double click, the command line, a second start) become a pair to load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from dflash_desktop.base.errors import AppError
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.kit.cause_words import error_words
from dflash_desktop.ui.kit.worker import Worker

log = logging.getLogger(__name__)

FindPair = Callable[[Sequence[Path]], PairFiles | None]
"""The pair that `files` make: a target among them and its draft; None when they are drafts only. Raises AppError."""


class OpenedFiles(QObject):
    """Looks at files in a thread of its own, for headers may lie on a slow drive."""

    pair_found = Signal(object)  # PairFiles
    target_missing = Signal(object)  # list of Path: drafts without a target
    refused = Signal(object)  # str: why, for the person

    def __init__(self, find_pair: FindPair) -> None:
        super().__init__()
        self._find_pair = find_pair
        self._worker = Worker("opened-files")

    def open(self, files: Sequence[Path]) -> None:
        """Say by a signal what `files` are."""
        wanted = list(files)
        self._worker.do(lambda: self._find_pair(wanted), lambda pair: self._on_found(pair, wanted), self._on_failed)

    def close(self) -> None:
        """No more answers."""
        self._worker.close(timeout_s=1.0)

    def _on_found(self, pair: PairFiles | None, files: list[Path]) -> None:
        if pair is None:
            self.target_missing.emit(files)
        else:
            self.pair_found.emit(pair)

    def _on_failed(self, error: Exception) -> None:
        if isinstance(error, AppError):
            self.refused.emit(error_words(error))
            return
        log.error("looking at opened files failed", exc_info=error)
        words = self.tr("The file could not be opened because of an error in the program. Details are in the log file.")
        self.refused.emit(words)
