"""A glance at the engine beside the chat: acceptance length as a sparkline, and tokens per second."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QLinearGradient, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QWidget

from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.pace import NUMBERS_MS, PLOT_MS
from dflash_desktop.ui.kit.palette import XS, L, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label

SHOWN_STEPS = 64


class LiveStrip(QWidget):
    """Click it for the engine page. Hidden until the first reply has something to show."""

    clicked = Signal()

    def __init__(self, theme: Theme, figures: LiveFigures) -> None:
        super().__init__()
        self._theme = theme
        self._figures = figures
        self._painted_version = -1
        self._said_version = -1
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(
            self.tr("Acceptance length (AL): tokens gained per step of the target. Click for the engine page.")
        )
        self._spark = Sparkline(theme, figures)
        self._length_words = label(theme, self.tr("AL"), "caption", tone="muted")
        self._length = label(theme, numbers.DASH, "body", tone="flash")
        self._rate = label(theme, numbers.DASH, "body")
        self._rate_words = label(theme, self.tr("tok/s"), "caption", tone="muted")
        for figure in (self._length, self._rate):
            figure.setFont(theme.figure_font("body"))
            figure.setMinimumWidth(theme.px(34))
            figure.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(S, 0, S, 0)
        row.setSpacing(XS)
        row.addWidget(self._spark)
        row.addSpacing(S)
        row.addWidget(self._length_words)
        row.addWidget(self._length)
        row.addSpacing(L)
        row.addWidget(self._rate)
        row.addWidget(self._rate_words)
        self._paint_timer = QTimer(self)
        self._paint_timer.setInterval(PLOT_MS)
        self._paint_timer.timeout.connect(self._repaint)
        self._paint_timer.start()
        self._number_timer = QTimer(self)
        self._number_timer.setInterval(NUMBERS_MS)
        self._number_timer.timeout.connect(self._say)
        self._number_timer.start()
        self.hide()

    @Slot()
    def _repaint(self) -> None:
        if self._figures.version != self._painted_version:
            self._painted_version = self._figures.version
            self.setVisible(self._figures.n_steps > 0)
            self._spark.update()

    @Slot()
    def _say(self) -> None:
        if not self.isVisible() or self._figures.version == self._said_version:
            return
        self._said_version = self._figures.version
        length = self._figures.acceptance_length()
        # Without a draft each step commits one token by definition: a figure would only look like news.
        is_drafted = self._figures.is_drafting
        self._length.setText(numbers.decimal(length, 2) if length and is_drafted else "")
        self._length_words.setText(self.tr("AL") if is_drafted else self.tr("plain decoding"))
        self._length.setVisible(is_drafted)
        self._spark.setVisible(is_drafted)
        self._rate.setText(numbers.rate(self._figures.current_tps()))
        rate = self._rate.text()
        self.setAccessibleName(
            self.tr("Acceptance length {0}, {1} tokens per second").format(self._length.text(), rate)
            if is_drafted
            else self.tr("Plain decoding, {0} tokens per second").format(rate)
        )

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.clicked.emit()


class Sparkline(QWidget):
    """Tokens per step of the last steps, and their moving mean."""

    def __init__(self, theme: Theme, figures: LiveFigures) -> None:
        super().__init__()
        self._theme = theme
        self._figures = figures
        self.setFixedSize(self.sizeHint())
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(132, 30)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        steps = list(self._figures.steps)[-SHOWN_STEPS:]
        area = QRectF(self.rect()).adjusted(1, 3, -1, -3)
        base = QPen(self._theme.color("border"), 1)
        painter.setPen(base)
        painter.drawLine(QPointF(area.left(), area.bottom() + 1), QPointF(area.right(), area.bottom() + 1))
        if len(steps) >= 2:
            self._draw(painter, area, [s.moving_mean for s in steps], [float(s.n_committed) for s in steps])
        painter.end()

    def _draw(self, painter: QPainter, area: QRectF, means: list[float], values: list[float]) -> None:
        high = max(4.0, *means, *values)
        step = area.width() / (SHOWN_STEPS - 1)
        left = area.right() - step * (len(means) - 1)

        def place(index: int, value: float) -> QPointF:
            return QPointF(left + step * index, area.bottom() - area.height() * value / high)

        flash = self._theme.color("flash")
        faint = QColor(flash)
        faint.setAlphaF(0.38)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(faint)
        for index, value in enumerate(values):
            painter.drawEllipse(place(index, value), 1.2, 1.2)
        line = QPainterPath(place(0, means[0]))
        for index, value in enumerate(means[1:], 1):
            line.lineTo(place(index, value))
        below = QPainterPath(line)
        below.lineTo(area.right(), area.bottom())
        below.lineTo(left, area.bottom())
        below.closeSubpath()
        glow = QLinearGradient(0, area.top(), 0, area.bottom())
        bright, none = QColor(flash), QColor(flash)
        bright.setAlphaF(0.32)
        none.setAlphaF(0.0)
        glow.setColorAt(0, bright)
        glow.setColorAt(1, none)
        painter.fillPath(below, glow)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(flash, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
        painter.drawPath(line)
