"""A line to write in that never takes the Enter of an input method for its own."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit

from dflash_desktop.ui.kit.theme import Theme


def is_escape_shortcut(event: QEvent) -> bool:
    """Whether the window is about to take Escape for itself; whoever accepts that event gets the key instead."""
    return (
        event.type() == QEvent.Type.ShortcutOverride
        and isinstance(event, QKeyEvent)
        and event.key() == Qt.Key.Key_Escape
    )


class CalmLineEdit(QLineEdit):
    """Says `entered` for Enter and `left` for Escape; what they mean is the owner's business."""

    entered = Signal()
    left = Signal()

    def __init__(self, theme: Theme, says: str) -> None:
        super().__init__()
        self._is_composing = False
        self.setAccessibleName(says)
        self.setFont(theme.font("body"))
        self.setTextMargins(4, 0, 4, 0)
        self.setMinimumHeight(theme.px(30))

    @property
    def is_composing(self) -> bool:
        return self._is_composing

    def event(self, event: QEvent) -> bool:
        if is_escape_shortcut(event):
            event.accept()
            return True
        return super().event(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._is_composing = False
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if not self._is_composing:
                self.entered.emit()
            event.accept()
        elif event.key() == Qt.Key.Key_Escape and not self._is_composing:
            self.left.emit()
            event.accept()
        else:
            super().keyPressEvent(event)
