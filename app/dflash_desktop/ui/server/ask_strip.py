"""A question or a message inside a card, with as many answers as it takes. Never a modal box."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label, push_button

Answers = Sequence[tuple[str, Callable[[], object]]]


class AskStrip(QFrame):
    """Hidden until it has something to say. The same words a second time change nothing."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._text = label(theme, wraps=True)
        self._asked: tuple[str, tuple[str, ...]] = ("", ())
        self._buttons: list[QPushButton] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(M, S, S, S)
        self._row.setSpacing(S)
        self._row.addWidget(self._text, 1)
        self.hide()

    def text(self) -> str:
        return "" if self.isHidden() else self._text.text()

    def buttons(self) -> list[QPushButton]:
        return [] if self.isHidden() else list(self._buttons)

    def ask(self, text: str, answers: Answers = (), *, is_bad: bool = False) -> None:
        """Show `text` with a button for each answer; the first is the advised one."""
        asked = (text, tuple(words for words, _ in answers))
        if asked == self._asked and not self.isHidden():
            return
        self._asked = asked
        self._text.setText(text)
        self.setAccessibleName(text)
        self.setProperty("kind", "error" if is_bad else "info")
        self.style().unpolish(self)
        self.style().polish(self)
        for button in self._buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self._buttons = []
        for words, do in answers:
            button = push_button(self._theme, words, "secondary")
            button.clicked.connect(lambda _checked=False, do=do: do())
            self._row.addWidget(button)
            self._buttons.append(button)
        self.show()

    def clear(self) -> None:
        self._asked = ("", ())
        self.hide()
