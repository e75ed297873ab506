"""What has to be settled before anything opens a file: a data folder that is not there or not known, or shall move."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import shiboken6
from PySide6.QtCore import QDir, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout

from dflash_desktop.base.data_move import MoveCancelled
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.instance import InstanceLock
from dflash_desktop.base.paths import AppPaths, DataFolderMissing, DataFolderUnknown, app_paths, set_location
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
        except DataFolderUnknown as unknown:
            if not _ask_where(unknown, app_paths(beside, ignores_moves=True), resources):
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


def _ask_where(unknown: DataFolderUnknown, standard: AppPaths, resources: Path) -> bool:
    """Have the person say where the data is. False: they want to leave."""
    with _Stage(standard, resources) as theme:
        dialog = UnknownFolderDialog(theme, unknown.file, standard.data)
        dialog.exec()
        answer, chosen = dialog.answer, dialog.chosen
        shiboken6.delete(dialog)
    if answer in ("standard", "choose"):
        try:
            set_location(standard, data=chosen)
        except OSError:
            return False
    return answer != "leave"


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
        words = self.tr(
            "Chats and models were moved to {0}, and that folder cannot be found. If it lies on a drive, connect it "
            "and try again. Nothing was deleted."
        )
        column = _told(theme, self, self.tr("The data folder is not there"), words.format(folder))
        ways = {"leave": self.tr("Quit"), "standard": self.tr("Go on without it"), "again": self.tr("Try again")}
        column.addLayout(_answers(theme, ways, self._choose))

    def _choose(self, answer: str) -> None:
        self.answer = answer
        self.accept()


class UnknownFolderDialog(QDialog):
    """Nobody knows where the data is. `answer`: again, standard (the usual folder), choose (`chosen`) or leave."""

    def __init__(self, theme: Theme, file: Path, usual: Path) -> None:
        super().__init__()
        self.answer = "leave"
        self.chosen: Path | None = None
        self.setWindowTitle("DFlash Desktop")
        self.setMinimumWidth(theme.px(560))
        words = self.tr(
            "The file {0} says where chats and models lie, and it is damaged or cannot be read. Choose their folder, "
            "or use the usual one ({1}). Nothing was deleted, and that file is kept as well."
        )
        words = words.format(QDir.toNativeSeparators(str(file)), QDir.toNativeSeparators(str(usual)))
        column = _told(theme, self, self.tr("Where your data lies is not known"), words)
        ways = {
            "leave": self.tr("Quit"),
            "again": self.tr("Try again"),
            "standard": self.tr("Use the usual folder"),
            "choose": self.tr("Choose the folder…"),
        }
        column.addLayout(_answers(theme, ways, self._choose))

    def _choose(self, answer: str) -> None:
        if answer == "choose":
            chosen = QFileDialog.getExistingDirectory(self, self.tr("The folder with your chats and models"))
            if not chosen:
                return
            self.chosen = Path(chosen)
        self.answer = answer
        self.accept()


def _told(theme: Theme, dialog: QDialog, title: str, words: str) -> QVBoxLayout:
    """The upper part of such a dialog."""
    column = QVBoxLayout(dialog)
    column.setContentsMargins(XL, XL, XL, L)
    column.setSpacing(M)
    column.addWidget(label(theme, title, "title", weight=DEMI, wraps=True))
    column.addWidget(label(theme, words, wraps=True))
    column.addSpacing(S)
    return column


def _answers(theme: Theme, ways: dict[str, str], choose: Callable[[str], object]) -> QHBoxLayout:
    """Its buttons: the first, which leaves, apart; the last one is what most people want."""
    buttons = QHBoxLayout()
    buttons.setSpacing(S)
    for answer, text in ways.items():
        button = push_button(theme, text, "primary" if answer == list(ways)[-1] else "secondary")
        button.clicked.connect(lambda _checked=False, chosen=answer: choose(chosen))
        buttons.addWidget(button)
        if answer == "leave":
            buttons.addStretch(1)
    return buttons


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
