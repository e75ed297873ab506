"""Asks as what a chat is exported."""

from __future__ import annotations

from typing import Literal, cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QVBoxLayout, QWidget

from dflash_desktop.ui.kit.palette import L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, SegmentedControl, label, push_button


class ExportDialog(QDialog):
    """Deletes itself when closed."""

    def __init__(self, theme: Theme, parent: QWidget, title: str, *, is_all: bool) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        words = self.tr("Export all chats") if is_all else self.tr("Export this chat")
        self.setWindowTitle(words)
        self._format = SegmentedControl(
            theme,
            [("md", "Markdown"), ("html", "HTML"), ("json", "JSON"), ("pdf", "PDF")],
            self.tr("Format"),
        )
        self._all_branches = QCheckBox(self.tr("All versions of messages, not only those that show"))
        self._all_branches.setFont(theme.font("body"))
        help_words = self.tr("Only JSON can be imported again.")
        if is_all:
            help_words = self.tr("Only JSON can be imported again; it is one file. The others are one file per chat.")
        column = QVBoxLayout(self)
        column.setContentsMargins(L, L, L, L)
        column.setSpacing(M)
        column.addWidget(label(theme, title or words, "heading", weight=DEMI, wraps=True))
        column.addWidget(self._format)
        column.addWidget(self._all_branches)
        column.addWidget(label(theme, help_words, "caption", tone="muted", wraps=True))
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addStretch(1)
        cancel = push_button(theme, self.tr("Cancel"), "secondary")
        save = push_button(theme, self.tr("Save…"), "primary")
        save.setDefault(True)
        row.addWidget(cancel)
        row.addWidget(save)
        column.addLayout(row)
        cancel.clicked.connect(self.reject)
        save.clicked.connect(self.accept)
        self.setMinimumWidth(theme.px(420))

    def format(self) -> Literal["md", "html", "json", "pdf"]:
        return cast('Literal["md", "html", "json", "pdf"]', self._format.choice())

    def choose(self, name: str) -> None:
        self._format.choose(name)

    def all_branches(self) -> bool:
        return self._all_branches.isChecked()
