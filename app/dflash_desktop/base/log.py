"""The log file, and what happens to a failure that nobody expected."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

LOG_NAME = "dflash-desktop.log"
LOG_BYTES = 1_000_000
LOG_FILES = 4  # the current one and three older ones

_log = logging.getLogger(__name__)


def start_logging(folder: Path, *, level: int = logging.INFO) -> Path | None:
    """Send all log lines to a file in `folder` and return its path, or None where no file can be written.

    A full disk or a read-only home must not keep the program from running, so there the lines are dropped.
    """
    root = logging.getLogger("dflash_desktop")
    root.setLevel(level)
    path = folder / LOG_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = _LogFile(
            path, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(threadName)s %(name)s: %(message)s"))
    stop_logging()
    root.addHandler(handler)
    root.propagate = False
    return path if isinstance(handler, RotatingFileHandler) else None


class _LogFile(RotatingFileHandler):
    """Drops lines that the disk refuses: the standard handler would print a traceback for each of them."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's own name
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def log_details(*, wanted: bool) -> None:
    """Whether debug lines are written too."""
    logging.getLogger("dflash_desktop").setLevel(logging.DEBUG if wanted else logging.INFO)


def log_tail(folder: Path, n_bytes: int = 200_000) -> str:
    """The last lines of the log, whole ones; "" where there is none."""
    try:
        with (folder / LOG_NAME).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - n_bytes))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return text if size <= n_bytes else text.partition("\n")[2]


def stop_logging() -> None:
    """Close the log file. Later lines go nowhere."""
    root = logging.getLogger("dflash_desktop")
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    root.propagate = True


def log_bugs(path: Path | None) -> None:
    """Give every failure that nobody caught a traceback in the log and one plain sentence on stderr."""

    def on_bug(kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        _log.critical("unexpected failure", exc_info=(kind, error or kind(), traceback))
        where = f" Details are in {path}." if path is not None else ""
        print(f"dflash-desktop: an error in the program itself: {kind.__name__}: {error}.{where}", file=sys.stderr)

    def on_thread_bug(args: threading.ExceptHookArgs) -> None:
        on_bug(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = on_bug
    threading.excepthook = on_thread_bug
