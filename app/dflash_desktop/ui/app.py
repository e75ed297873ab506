"""Starts Qt, shows the window, and leaves nothing behind: what startup.py calls."""

from __future__ import annotations

import gc
import locale
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType

import shiboken6
from PySide6.QtCore import QCoreApplication, QSocketNotifier
from PySide6.QtWidgets import QApplication

from dflash_desktop.engine.devices import Device
from dflash_desktop.settings.schema import Settings
from dflash_desktop.ui.bridge import EngineBridge, EngineLike
from dflash_desktop.ui.desks import Desks
from dflash_desktop.ui.engine.pair_state import StarterPair
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.language import apply_language
from dflash_desktop.ui.kit.theme import Theme, ThemeMode
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.launch import LaunchLink
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.rebuilding import ShownWindow
from dflash_desktop.ui.window import MainWindow

log = logging.getLogger(__name__)
STATE_FILE = "window.json"
RESTART = 75
"""The exit code of a window that wants everything below it built again: another data folder."""
_NO_PARTS = Parts()
THEMES: dict[str, ThemeMode] = {"light": "light", "dark": "dark"}


def run_window(
    engine: EngineLike,
    *,
    list_devices: Callable[[], Sequence[Device]],
    starter: StarterPair | None,
    state_folder: Path,
    resources: Path,
    parts: Parts = _NO_PARTS,
) -> int:
    """Show the window until it is closed; return the exit code, RESTART for a window that wants to be built again.

    Closes `engine` before it returns. list_devices runs in a thread of its own. `starter` is the built-in pair, None
    where the build has none.
    `resources` is the folder with icons/ and i18n/.
    """
    settings = parts.settings.values if parts.settings is not None else Settings()
    app = make_application(resources, settings.language)
    state_file = WindowStateFile(state_folder / STATE_FILE)
    theme = Theme(app, THEMES.get(settings.theme, "system"), font_percent=settings.font_percent)
    icons = Icons(resources / "icons", theme)
    app.setWindowIcon(icons.app_icon())
    bridge = EngineBridge(engine, list_devices)

    def make_window(desks: Desks | None) -> MainWindow:
        return MainWindow(bridge, theme, icons, starter, state_file, parts=parts, desks=desks)

    def put_in_force() -> None:
        if parts.settings is not None:
            apply_language(app, resources, parts.settings.values.language)
            theme.set_font_percent(parts.settings.values.font_percent)

    shown = ShownWindow(make_window, put_in_force)
    with _bugs_shown_in(shown), _signals_close(shown):
        shown.window.show()
        # What is built now lives as long as the window: the garbage collector need not look through it in the middle
        # of a frame, which takes it a twentieth of a second.
        gc.freeze()
        link = LaunchLink(shown.window, parts.launch) if parts.launch is not None else None
        if link is not None:
            shown.changed.connect(link.follow)
        code = app.exec()
    if link is not None:
        link.close()
    bridge.close()
    is_restart = shown.window.is_restart_wanted
    gc.unfreeze()
    take_down(app, shown.window, bridge)
    shiboken6.delete(shown)
    shiboken6.delete(icons)
    shiboken6.delete(theme)
    return RESTART if is_restart else code


def make_application(resources: Path, language: str = "system") -> QApplication:
    """The QApplication, with the C library's numbers put back to a decimal point.

    Creating it sets the C locale from the environment: with a German one, native code would read 0.7 as 0. Qt's own
    texts and the numbers that people read follow QLocale, which is not touched by that.
    """
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(sys.argv[:1])
    locale.setlocale(locale.LC_NUMERIC, "C")
    app.setApplicationName("dflash-desktop")
    app.setApplicationDisplayName("DFlash Desktop")
    app.setDesktopFileName("dflash-desktop")
    apply_language(app, resources, language)
    return app


def take_down(app: QApplication, window: MainWindow, bridge: EngineBridge) -> None:
    """Delete Qt's objects now and in order, while Python and Qt are both alive."""
    shiboken6.delete(window)
    app.processEvents()
    shiboken6.delete(bridge)
    gc.collect()
    app.processEvents()


@contextmanager
def _bugs_shown_in(shown: ShownWindow) -> Iterator[None]:
    """A failure in a slot is a bug: logged with its traceback, told in one sentence, and the window lives on."""
    before = sys.excepthook

    def on_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            shown.window.close()
            return
        log.critical("unexpected failure in the window", exc_info=(kind, error, trace))
        words = QCoreApplication.translate(
            "app", "Something went wrong in the program itself ({0}). Details are in the log file."
        )
        shown.window.chat_page.notice.show_error(words.format(kind.__name__))

    sys.excepthook = on_bug
    try:
        yield
    finally:
        sys.excepthook = before


@contextmanager
def _signals_close(shown: ShownWindow) -> Iterator[None]:
    """Ctrl+C in the terminal, or a polite kill, closes the window like its close button.

    Python runs a signal handler only between two of its own instructions, and while Qt waits there are none. So the
    signal's number is written to a socket that Qt watches.
    """
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    watched = [signal.SIGINT, signal.SIGTERM]

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        """Runs in the middle of anything, a repaint for example: the notifier below closes between two events."""

    try:
        before = {number: signal.signal(number, on_signal) for number in watched}
        before_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    except ValueError:  # not the main thread: whoever runs us there takes care of signals
        yield
        return
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(lambda: (reader.recv(64), shown.window.close()))
    try:
        yield
    finally:
        notifier.setEnabled(False)
        shiboken6.delete(notifier)
        signal.set_wakeup_fd(before_fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()
