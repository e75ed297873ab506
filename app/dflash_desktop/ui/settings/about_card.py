"""Which version this is, whether there is a newer one, and the licences of everything in it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from dflash_desktop import __version__
from dflash_desktop.base.paths import resource_path
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.kit.palette import L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button
from dflash_desktop.ui.settings.updates_row import UpdatesRow

COLLECTED = "third-party.txt"
"""What a packed program carries: every part with its licence text, collected when it was built."""


def licence_text(folder: Path) -> str:
    """Our own licence, then the parts' own: collected in a packed program, else the files that came with the source."""
    collected = folder / COLLECTED
    files = [folder / "LICENSE.txt"]
    files += [collected] if collected.is_file() else [folder / "README.md", folder / "ggml.txt"]
    files += sorted(file for file in folder.glob("*.txt") if not collected.is_file() and file not in files)
    return "\n\n\n".join(file.read_text("utf-8").strip() for file in files if file.is_file()) + "\n"


class AboutCard(Card):
    """At the end of the settings."""

    def __init__(self, theme: Theme, licences: Path | None = None) -> None:
        super().__init__(theme, self.tr("About"))
        self._theme = theme
        self._licences = licences
        words = self.tr("DFlash Desktop {0}. Free software under the Apache License 2.0.").format(__version__)
        self.body.addWidget(label(theme, words, wraps=True))
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        self.licences_button = push_button(theme, self.tr("Licences…"), "secondary")
        self.licences_button.clicked.connect(self.on_licences_clicked)
        buttons.addWidget(self.licences_button)
        buttons.addStretch(1)
        self.body.addLayout(buttons)
        self._buttons = buttons
        self.updates: UpdatesRow | None = None

    def add_updates(self, models_desk: ModelsDesk) -> None:
        """The button that looks for a newer version, and under it what came of that."""
        self.updates = UpdatesRow(self._theme, models_desk)
        self._buttons.insertWidget(0, self.updates.button)
        self.body.addWidget(self.updates)

    @Slot()
    def on_licences_clicked(self) -> LicencesDialog:
        folder = self._licences or resource_path("licences")
        dialog = LicencesDialog(self._theme, self.window(), licence_text(folder))
        dialog.show()
        return dialog


class LicencesDialog(QDialog):
    """Non-modal; half a megabyte of text that nobody edits."""

    def __init__(self, theme: Theme, parent: QWidget, text: str) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Licences"))
        self.resize(theme.px(860), theme.px(560))
        column = QVBoxLayout(self)
        column.setContentsMargins(L, L, L, L)
        column.setSpacing(M)
        column.addWidget(label(theme, self.tr("Licences"), "title", weight=DEMI))
        self.text = QPlainTextEdit(text)
        self.text.setReadOnly(True)
        self.text.setProperty("kind", "field")
        self.text.setFont(theme.code_font("caption"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName(self.tr("Licence texts"))
        self.text.setTabChangesFocus(True)
        column.addWidget(self.text, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        self.copy_button = push_button(theme, self.tr("Copy"), "secondary")
        close = push_button(theme, self.tr("Close"), "primary")
        buttons.addWidget(self.copy_button)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column.addLayout(buttons)
        self.copy_button.clicked.connect(self.on_copy_clicked)
        close.clicked.connect(self.accept)

    @Slot()
    def on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
