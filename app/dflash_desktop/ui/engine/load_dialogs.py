"""The one dialog for loading one's own files: opened, filled, and forgotten when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.open_pair_dialog import OpenPairDialog
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme


class LoadDialogs(QObject):
    """`folder` is where the person looked last."""

    def __init__(
        self, theme: Theme, icons: Icons, window: QWidget, pair_state: PairState, desk: LoadDesk, folder: str
    ) -> None:
        super().__init__()
        self._theme, self._icons, self._window = theme, icons, window
        self._pair_state = pair_state
        self._desk = desk
        self.folder = folder
        self.dialog: OpenPairDialog | None = None

    def open(self, files: Sequence[Path] = ()) -> OpenPairDialog:
        """Show the dialog with `files` in it; a second call brings the first one up."""
        if self.dialog is None:
            self.dialog = OpenPairDialog(self._theme, self._icons, self._window, self.folder, self._desk)
            self.dialog.pair_chosen.connect(self._pair_state.load)
            self.dialog.folder_used.connect(self.on_folder_used)
            self.dialog.finished.connect(self.on_dialog_finished)
        if files:
            self.dialog.take_files(files)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()
        return self.dialog

    def adjust(self, files: PairFiles) -> OpenPairDialog:
        """The dialog with exactly this pair in it."""
        dialog = self.open()
        dialog.show_pair(files)
        return dialog

    @Slot()
    def on_dialog_finished(self) -> None:
        self.dialog = None

    @Slot(object)
    def on_folder_used(self, folder: str) -> None:
        self.folder = folder
