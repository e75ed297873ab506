"""Pages with a button that floats above their lower edge."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from dflash_desktop.ui.kit.palette import M


class FloatingStack(QStackedWidget):
    """The button keeps its place whatever takes room below: the composer grows, messages come and go."""

    def __init__(self, button: QWidget) -> None:
        super().__init__()
        self._button = button
        button.setParent(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place()

    def place(self) -> None:
        """In the middle of the lower edge, above the page."""
        self._button.move((self.width() - self._button.width()) // 2, self.height() - self._button.height() - M)
        self._button.raise_()
