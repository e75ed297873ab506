"""A switch that shows what is, not what was wished: it moves only when it is told to."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from dflash_desktop.ui.kit.theme import Theme

SMALL, LARGE = 22, 34
"""Heights in device-independent pixels."""


class Switch(QAbstractButton):
    """`clicked` says that the person wants a change; `show_state` says what became of it."""

    def __init__(self, theme: Theme, says: str, *, height: int = SMALL) -> None:
        super().__init__()
        self._theme = theme
        self._height = theme.px(height)
        self._place = 0.0
        self._tone = "outline"
        self.setCheckable(True)
        self.setAccessibleName(says)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_state(self, *, is_on: bool, is_moving: bool = False, tone: str = "accent") -> None:
        """`is_moving` puts the knob between off and on; `tone` is the palette's colour for on."""
        self._place = 0.5 if is_moving else 1.0 if is_on else 0.0
        self._tone = tone if is_on or is_moving else "outline"
        self.setChecked(is_on)
        self.update()

    def nextCheckState(self) -> None:
        """A click changes nothing by itself."""

    def sizeHint(self) -> QSize:
        return QSize(round(self._height * 1.8), self._height)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        round_by = track.height() / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(self._tone))
        painter.setOpacity(1.0 if self.isEnabled() else 0.45)
        painter.drawRoundedRect(track, round_by, round_by)
        gap = 3
        knob = track.height() - 2 * gap
        left = track.left() + gap + self._place * (track.width() - knob - 2 * gap)
        painter.setBrush(self._theme.color("surface"))
        painter.drawEllipse(QRectF(left, track.top() + gap, knob, knob))
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(self._theme.color("accent_text"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), round_by + 2, round_by + 2)
        painter.end()
