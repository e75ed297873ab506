"""A text to copy, or a change to look at, in a sunken box as high as it needs to be."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QFontMetrics, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QSizePolicy, QVBoxLayout

from dflash_desktop.ui.kit.copy_button import CopyButton
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, ElidedLabel

MOST_LINES = 14


class CodeWell(QFrame):
    """A titled text in the code font, with a copy button. What is copied may be more than what is shown."""

    def __init__(
        self, theme: Theme, icons: Icons, title: str, text: str, *, copied: str = "", is_diff: bool = False
    ) -> None:
        """`copied` is the text for the clipboard where it differs from the one that is shown: a key is not shown."""
        super().__init__()
        self.setProperty("kind", "well")
        self._title = ElidedLabel(theme, "caption", weight=DEMI)
        self._title.setText(title)
        self.copy = CopyButton(icons, self.tr("Copy: {0}").format(title), lambda: copied or text)
        self.view = _Text(theme)
        self.view.setPlainText(text)
        self.view.setAccessibleName(title)
        if is_diff:
            self._colors = _DiffColors(theme, self.view.document())
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        if not is_diff:
            head.addWidget(self.copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(S + XS, XS, XS, S)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self.view)


class _Text(QPlainTextEdit):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setProperty("kind", "bare")
        self.setFont(theme.code_font("caption"))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        n_lines = min(MOST_LINES, max(1, self.blockCount()))
        height = QFontMetrics(self.font()).lineSpacing() * n_lines + 2 * round(self.document().documentMargin())
        widest = max((len(line) for line in self.toPlainText().split("\n")), default=0)
        if QFontMetrics(self.font()).horizontalAdvance("0") * widest > self.width() - 2 * S:
            height += self.horizontalScrollBar().sizeHint().height()
        return QSize(300, height + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.sizeHint().height())


class _DiffColors(QSyntaxHighlighter):
    """Lines that come in one colour, lines that go in another; their first sign says the same."""

    def __init__(self, theme: Theme, document: QTextDocument) -> None:
        super().__init__(document)
        self._theme = theme
        theme.changed.connect(self.rehighlight)

    def highlightBlock(self, text: str) -> None:
        color = "good" if text.startswith("+") else "bad" if text.startswith("-") else "muted"
        shape = QTextCharFormat()
        shape.setForeground(self._theme.color(color))
        self.setFormat(0, len(text), shape)
