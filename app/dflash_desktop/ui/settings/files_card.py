"""Where the data lies: shown, opened, moved to another folder or beside the program."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QDir, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QVBoxLayout

from dflash_desktop.base.data_move import DataMove
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import home_paths, left_location, program_folder, set_location
from dflash_desktop.base.presence import has_folder
from dflash_desktop.base.relocation import Wish, check_wish, folder_wish, portable_wish, write_wish
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.cause_words import error_words
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.palette import XS, S
from dflash_desktop.ui.kit.switch import Switch
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.parts import Home


class FilesCard(Card):
    """Asks before anything moves; the move itself happens at the next start, before files are open."""

    restart_wanted = Signal()

    def __init__(self, theme: Theme, icons: Icons, home: Home, worker: Worker, notice: Notice) -> None:
        super().__init__(theme, self.tr("Files"))
        self._theme = theme
        self._home = home
        self._worker = worker
        self._notice = notice
        paths = home.paths
        self.folder_words = label(theme, QDir.toNativeSeparators(str(paths.data)), wraps=True)
        self.folder_words.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        words = self.tr("Chats, models and downloads:")
        self.body.addWidget(label(theme, words, "caption", tone="muted"))
        self.body.addWidget(self.folder_words)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        self.open_button = push_button(theme, self.tr("Open the folder"), "secondary")
        icons.put(self.open_button, "open", "muted", size=16)
        self.move_button = push_button(theme, self.tr("Move to another folder…"), "secondary")
        self.back_button = push_button(theme, self.tr("Back to the usual folder"), "secondary")
        self.left_button = push_button(theme, "", "secondary")
        for button in (self.open_button, self.move_button, self.back_button, self.left_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        self.body.addLayout(buttons)
        self._add_portable()
        self.open_button.clicked.connect(self.on_open_clicked)
        self.move_button.clicked.connect(self.on_move_clicked)
        self.back_button.clicked.connect(lambda: self.ask(folder_wish(home_paths().data)))
        self.left_button.clicked.connect(self.on_left_clicked)
        left = left_location(paths)
        self.left_button.setVisible(left is not None and has_folder(left))
        if left is not None:
            self.left_button.setText(self.tr("Use {0} again").format(left))
        self.move_button.setVisible(not paths.is_portable)
        self.back_button.setVisible(not paths.is_portable and paths.data != home_paths().data)

    def _add_portable(self) -> None:
        is_portable = self._home.paths.is_portable
        words = QVBoxLayout()
        words.setSpacing(XS // 2)
        title = self.tr("Portable")
        words.addWidget(label(self._theme, title, weight=DEMI))
        help_words = self.tr("Everything in a folder beside the program ({0}): for a memory stick.").format(
            QDir.toNativeSeparators(str(program_folder()))
        )
        words.addWidget(label(self._theme, help_words, "caption", tone="muted", wraps=True))
        self.portable_switch = Switch(self._theme, title)
        self.portable_switch.setAccessibleDescription(help_words)
        self.portable_switch.show_state(is_on=is_portable)
        self.portable_switch.clicked.connect(lambda: self.ask(portable_wish(is_on=not is_portable)))
        row = QHBoxLayout()
        row.addLayout(words, 1)
        row.addWidget(self.portable_switch)
        self.body.addSpacing(S)
        self.body.addLayout(row)

    def ask(self, wish: Wish) -> None:
        """Check the move, say what it takes, and offer to do it."""
        paths = self._home.paths
        self._worker.do(
            lambda: check_wish(paths, wish),
            lambda move: self._offer(wish, move),
            lambda error: self._notice.show_error(error_words(error)),
        )

    def _offer(self, wish: Wish, move: DataMove) -> None:
        words = self.tr("{0} files ({1}) will move to {2}. The window closes and comes back when that is done.").format(
            numbers.count(move.n_files), numbers.size(move.n_bytes), QDir.toNativeSeparators(str(move.destination))
        )
        self._notice.show_info(words, self.tr("Move now"), lambda: self._begin(wish))

    def _begin(self, wish: Wish) -> None:
        marker = self._home.marker
        if marker is not None and marker.others_running():
            self._notice.show_error(self.tr("Another DFlash Desktop is running with this data. Close it first."))
            return
        try:
            write_wish(self._home.paths, wish)
        except AppError as error:
            self._notice.show_error(str(error))
            return
        self.restart_wanted.emit()

    @Slot()
    def on_open_clicked(self) -> None:
        self._home.paths.data.mkdir(parents=True, exist_ok=True)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._home.paths.data)))

    @Slot()
    def on_move_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, self.tr("An empty folder for chats and models"))
        if chosen:
            self.ask(folder_wish(Path(chosen)))

    @Slot()
    def on_left_clicked(self) -> None:
        paths = self._home.paths
        left = left_location(paths)
        if left is None or not has_folder(left):
            self._notice.show_error(self.tr("The folder is not there now."))
            return
        try:
            set_location(paths, data=left)
        except OSError as error:
            self._notice.show_error(self.tr("The settings cannot be written: {0}").format(error.strerror or error))
            return
        self.restart_wanted.emit()
