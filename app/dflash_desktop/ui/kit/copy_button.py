"""A button that puts a text on the clipboard and says so for a moment."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import CONTROL_HEIGHT

SAYS_SO_MS = 1600


class CopyButton(QToolButton):
    """`text` is asked at the click: what is copied is what is true then."""

    def __init__(self, icons: Icons, says: str, text: Callable[[], str]) -> None:
        super().__init__()
        self._icons = icons
        self._says = says
        self._text = text
        self.setProperty("kind", "icon")
        self.setFixedSize(icons.px(CONTROL_HEIGHT), icons.px(CONTROL_HEIGHT))
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAYS_SO_MS)
        self._timer.timeout.connect(self._show_copy)
        self.clicked.connect(self.on_clicked)
        self._show_copy()

    @Slot()
    def on_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self._text())
        self._icons.put(self, "check", "muted", size=16)
        self.setToolTip(self.tr("Copied"))
        self._timer.start()

    @Slot()
    def _show_copy(self) -> None:
        self._icons.put(self, "copy", "muted", size=16)
        self.setToolTip(self._says)
        self.setAccessibleName(self._says)
