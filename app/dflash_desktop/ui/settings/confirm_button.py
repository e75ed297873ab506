"""A button that asks once more, in its own place, before it does what cannot be undone."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QPushButton

from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import MEDIUM

ASKS_MS = 5000


class ConfirmButton(QPushButton):
    """`confirmed` comes with the second click, if it comes within five seconds."""

    confirmed = Signal()

    def __init__(self, theme: Theme, text: str, question: str) -> None:
        super().__init__(text)
        self._text, self._question = text, question
        self._is_asking = False
        self.setProperty("kind", "secondary")
        self.setFont(theme.font("body", weight=MEDIUM))
        self.setAutoDefault(False)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(ASKS_MS)
        self._timer.timeout.connect(self._calm_down)
        self.clicked.connect(self.on_clicked)
        self._calm_down()

    @Slot()
    def on_clicked(self) -> None:
        if self._is_asking:
            self._calm_down()
            self.confirmed.emit()
            return
        self._is_asking = True
        self.setText(self._question)
        self.setAccessibleName(self._question)
        self._timer.start()

    @Slot()
    def _calm_down(self) -> None:
        self._is_asking = False
        self._timer.stop()
        self.setText(self._text)
        self.setAccessibleName(self._text)
