"""What has to be settled before anything opens a file: a data folder that is not there, or one that shall move."""

from __future__ import annotations

import threading
from pathlib import Path

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QDialog, QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout

from dflash_desktop.base.data_move import MoveCancelled
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.instance import InstanceLock
from dflash_desktop.base.paths import AppPaths, DataFolderMissing, app_paths, set_location
from dflash_desktop.base.relocation import Wish, carry_out, read_wish
from dflash_desktop.settings.store import SETTINGS_FILE, SettingsStore
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.cause_words import error_words
from dflash_desktop.ui.kit.palette import XL, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, label, push_button

PROGRESS_STEPS = 1000


def settle_data_folder(resources: Path, beside: Path | None = None) -> bool:
    """Make sure the data folder is there, and move it if that was wished for. False: the person wants to leave."""
    while True:
        try:
            paths = app_paths(beside)
        except DataFolderMissing as missing:
            answer = _ask_about(missing, app_paths(beside, ignores_moves=True), resources)
            if answer == "leave":
                return False
            continue
        wish = read_wish(paths)
        if wish is not None:
            _move(paths, wish, resources, beside)
        return True


def _ask_about(missing: DataFolderMissing, standard: AppPaths, resources: Path) -> str:
    with _Stage(standard, resources) as theme:
        dialog = MissingFolderDialog(theme, missing.folder)
        dialog.exec()
        answer = dialog.answer
        if answer == "standard":
            try:
                set_location(standard, data=None, left=missing.folder)
            except OSError:
                answer = "leave"
        shiboken6.delete(dialog)
    return answer


def _move(paths: AppPaths, wish: Wish, resources: Path, beside: Path | None) -> None:
    lock = InstanceLock(paths.config)
    if not lock.acquire():
        return  # another window works with the data now; the wish waits
    try:
        with _Stage(paths, resources) as theme:
            dialog = MoveDialog(theme, paths, wish, beside)
            dialog.exec()
            dialog.join()
            shiboken6.delete(dialog)
    finally:
        lock.release()


class _Stage:
    """An application with the person's theme and language, for a dialog before the window."""

    def __init__(self, paths: AppPaths, resources: Path) -> None:
        self._paths = paths
        self._resources = resources

    def __enter__(self) -> Theme:
        from dflash_desktop.ui.app import THEMES, make_application

        settings = SettingsStore(self._paths.config / SETTINGS_FILE).values
        app = make_application(self._resources, settings.language)
        self._theme = Theme(app, THEMES.get(settings.theme, "system"), font_percent=settings.font_percent)
        return self._theme

    def __exit__(self, *_: object) -> None:
        shiboken6.delete(self._theme)


class MissingFolderDialog(QDialog):
    """The drive with the data is not there. `answer`: again, standard (go on without it) or leave."""

    def __init__(self, theme: Theme, folder: Path) -> None:
        super().__init__()
        self.answer = "leave"
        self.setWindowTitle("DFlash Desktop")
        self.setMinimumWidth(theme.px(520))
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, XL, XL, L)
        column.setSpacing(M)
        column.addWidget(label(theme, self.tr("The data folder is not there"), "title", weight=DEMI, wraps=True))
        words = self.tr(
            "Chats and models were moved to {0}, and that folder cannot be found. If it lies on a drive, connect it "
            "and try again. Nothing was deleted."
        )
        column.addWidget(label(theme, words.format(folder), wraps=True))
        column.addSpacing(S)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        for answer, text, kind in (
            ("leave", self.tr("Quit"), "secondary"),
            ("standard", self.tr("Go on without it"), "secondary"),
            ("again", self.tr("Try again"), "primary"),
        ):
            button = push_button(theme, text, kind)
            button.clicked.connect(lambda _checked=False, chosen=answer: self._choose(chosen))
            buttons.addWidget(button)
            if answer == "leave":
                buttons.addStretch(1)
        column.addLayout(buttons)

    def _choose(self, answer: str) -> None:
        self.answer = answer
        self.accept()


class _MoveRelay(QObject):
    progressed = Signal(object, object)
    ended = Signal(object)  # "" or why not


class MoveDialog(QDialog):
    """Moves the data in a thread, shows how far it is, and can be cancelled; then everything is where it was."""

    def __init__(self, theme: Theme, paths: AppPaths, wish: Wish, beside: Path | None = None) -> None:
        super().__init__()
        self._paths, self._wish, self._beside = paths, wish, beside
        self._cancelled = threading.Event()
        self._is_done = False
        self._relay = _MoveRelay(self)
        queued = Qt.ConnectionType.QueuedConnection
        self._relay.progressed.connect(self.on_progressed, queued)
        self._relay.ended.connect(self.on_ended, queued)
        self.setWindowTitle("DFlash Desktop")
        self.setMinimumWidth(theme.px(520))
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, XL, XL, L)
        column.setSpacing(M)
        column.addWidget(label(theme, self.tr("Moving the data"), "title", weight=DEMI))
        self.words = label(theme, self.tr("From {0} to {1}.").format(paths.data, wish.destination), wraps=True)
        column.addWidget(self.words)
        self.bar = QProgressBar()
        self.bar.setRange(0, PROGRESS_STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the move"))
        column.addWidget(self.bar)
        self.amount = label(theme, "", "caption", tone="muted")
        column.addWidget(self.amount)
        self.button: QPushButton = push_button(theme, self.tr("Cancel"), "secondary")
        self.button.clicked.connect(self.on_button_clicked)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignRight)
        self._thread = threading.Thread(target=self._run, name="move-data")
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread; after this nothing of it is left."""
        self._cancelled.set()
        self._thread.join()

    def reject(self) -> None:
        """Escape and the close button cancel; what is half done is undone before the dialog goes."""
        self.on_button_clicked()

    @Slot()
    def on_button_clicked(self) -> None:
        if self._is_done:
            self.accept()
            return
        self._cancelled.set()
        self.button.setEnabled(False)
        self.amount.setText(self.tr("Putting everything back…"))

    @Slot(object, object)
    def on_progressed(self, n_done: int, n_total: int) -> None:
        self.bar.setValue(round(PROGRESS_STEPS * n_done / max(1, n_total)))
        if not self._cancelled.is_set():
            self.amount.setText(self.tr("{0} of {1}").format(numbers.size(n_done), numbers.size(n_total)))

    @Slot(object)
    def on_ended(self, problem: str) -> None:
        self._is_done = True
        if not problem:
            self.accept()
            return
        self.words.setText(problem)
        self.bar.hide()
        self.amount.setText(self.tr("The data stays where it was."))
        self.button.setText(self.tr("Go on"))
        self.button.setEnabled(True)

    def _run(self) -> None:
        try:
            carry_out(self._paths, self._wish, self._relay.progressed.emit, self._cancelled.is_set, beside=self._beside)
        except MoveCancelled:
            self._relay.ended.emit("")
        except AppError as error:
            self._relay.ended.emit(error_words(error))
        else:
            self._relay.ended.emit("")
