"""The log, readable in the window: newest lines last, followed while it is open."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from dflash_desktop.base.log import log_tail
from dflash_desktop.ui.kit.palette import L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, SegmentedControl, label, push_button

REFRESH_MS = 1000
SHOWN_BYTES = 200_000
_LINE = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (\w+)")


def serious_lines(text: str) -> str:
    """Warnings and errors only, each with the lines that belong to it (tracebacks)."""
    kept = []
    is_kept = False
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is not None:
            is_kept = found.group(1) in ("WARNING", "ERROR", "CRITICAL")
        if is_kept:
            kept.append(line)
    return "\n".join(kept)


class LogDialog(QDialog):
    """Non-modal. Reads the file again every second while it is shown."""

    def __init__(self, theme: Theme, parent: QWidget, folder: Path) -> None:
        super().__init__(parent)
        self._folder = folder
        self._shown = ""
        self.setWindowTitle(self.tr("Log"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(theme.px(860), theme.px(560))
        column = QVBoxLayout(self)
        column.setContentsMargins(L, L, L, L)
        column.setSpacing(M)
        head = QHBoxLayout()
        head.addWidget(label(theme, self.tr("Log"), "title", weight=DEMI), 1)
        self.filter = SegmentedControl(
            theme,
            [("all", self.tr("Everything")), ("serious", self.tr("Warnings and errors"))],
            self.tr("Which lines to show"),
        )
        self.filter.chosen.connect(self._show)
        head.addWidget(self.filter)
        column.addLayout(head)
        words = self.tr("What you or the model wrote is never in here.")
        column.addWidget(label(theme, words, "caption", tone="muted", wraps=True))
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setProperty("kind", "field")
        self.text.setFont(theme.code_font("caption"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName(self.tr("Log lines"))
        self.text.setTabChangesFocus(True)
        column.addWidget(self.text, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        self.folder_button = push_button(theme, self.tr("Open the folder"), "secondary")
        self.copy_button = push_button(theme, self.tr("Copy"), "secondary")
        close = push_button(theme, self.tr("Close"), "primary")
        buttons.addWidget(self.folder_button)
        buttons.addWidget(self.copy_button)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column.addLayout(buttons)
        self.folder_button.clicked.connect(self.on_folder_clicked)
        self.copy_button.clicked.connect(self.on_copy_clicked)
        close.clicked.connect(self.accept)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self._show)
        self._timer.start()
        self._show()

    @Slot()
    def _show(self) -> None:
        text = log_tail(self._folder, SHOWN_BYTES)
        if self.filter.choice() == "serious":
            text = serious_lines(text)
        if text == self._shown:
            return
        self._shown = text
        bar = self.text.verticalScrollBar()
        is_at_end = bar.value() >= bar.maximum() - 4
        place = bar.value()
        self.text.setPlainText(text or self.tr("Nothing was logged."))
        bar.setValue(bar.maximum() if is_at_end else place)

    @Slot()
    def on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())

    @Slot()
    def on_folder_clicked(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder)))
