"""Memory: what the pair takes by part, and what this process takes over time."""

from __future__ import annotations

import time
from collections import deque

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from dflash_desktop.engine.events import MemoryUse
from dflash_desktop.ui.engine.plot_style import plain_plot, restyle
from dflash_desktop.ui.engine.process_memory import resident_bytes
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.pace import MEMORY_SAMPLE_MS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI

KEPT_SAMPLES = 600
BAR_HEIGHT = 14
ROW_HEIGHT = 25
GIB = 2.0**30
MIB = 2.0**20


class MemoryBar(QWidget):
    """One stacked bar and a row with the number for each part."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._parts: list[tuple[str, int, int]] = []  # name, bytes, colour's number
        self._total = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.show_use(None)

    def show_use(self, use: MemoryUse | None) -> None:
        """Show these numbers; None: nothing is loaded."""
        named = []
        if use is not None:
            named = [
                (self.tr("Target weights"), use.target_weights_bytes, 0),
                (self.tr("Draft weights"), use.draft_weights_bytes, 1),
                (self.tr("KV cache"), use.kv_cache_bytes, 2),
                (self.tr("Draft KV cache"), use.draft_kv_bytes, 3),
                (self.tr("Recurrent state"), use.recurrent_bytes, 4),
                (self.tr("Compute"), use.compute_bytes, 5),
            ]
        self._parts = [part for part in named if part[1] > 0]
        self._total = use.total_bytes if use is not None else 0
        spoken = ", ".join(f"{name} {numbers.size(size)}" for name, size, _ in self._parts)
        self.setAccessibleName(self.tr("Memory by part: {0}").format(spoken or self.tr("nothing is loaded")))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        n_rows = max(1, len(self._parts)) + (1 if self._parts else 0)
        return QSize(240, BAR_HEIGHT + 14 + self._theme.px(ROW_HEIGHT) * n_rows)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bar = QRectF(0, 0, self.width(), BAR_HEIGHT)
        shape = QPainterPath()
        shape.addRoundedRect(bar, BAR_HEIGHT / 2, BAR_HEIGHT / 2)
        painter.fillPath(shape, self._theme.color("sunken"))
        painter.setFont(self._theme.font("body"))
        y = BAR_HEIGHT + 12.0
        if not self._parts:
            painter.setPen(self._theme.color("muted"))
            painter.drawText(
                QRectF(0, y, self.width(), 24), Qt.AlignmentFlag.AlignVCenter, self.tr("Nothing is loaded.")
            )
            painter.end()
            return
        painter.save()
        painter.setClipPath(shape)
        x = 0.0
        for _, size, shade in self._parts:
            width = max(2.0, bar.width() * size / self._total)
            painter.fillRect(QRectF(x, 0, width - 1, BAR_HEIGHT), self._shade(shade))
            x += width
        painter.restore()
        row_height = self._theme.px(ROW_HEIGHT)
        for name, size, shade in self._parts:
            self._row(painter, y, row_height, name, size, self._shade(shade))
            y += row_height
        painter.setFont(self._theme.font("body", weight=DEMI))
        self._row(painter, y, row_height, self.tr("Together"), self._total, None)
        painter.end()

    def _shade(self, number: int) -> QColor:
        return QColor(self._theme.palette.parts[number])

    def _row(self, painter: QPainter, y: float, height: int, name: str, size: int, shade: QColor | None) -> None:
        area = QRectF(0, y, self.width(), height)
        if shade is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(shade)
            painter.drawRoundedRect(QRectF(1, y + height / 2 - 5, 10, 10), 3, 3)
        painter.setPen(self._theme.color("text"))
        flags = Qt.AlignmentFlag.AlignVCenter
        metrics = QFontMetrics(painter.font())
        number = numbers.size(size)
        room = self.width() - metrics.horizontalAdvance(number) - 34
        painter.drawText(area.adjusted(20, 0, 0, 0), flags, metrics.elidedText(name, Qt.TextElideMode.ElideRight, room))
        painter.drawText(area, flags | Qt.AlignmentFlag.AlignRight, number)


class ProcessMemoryPlot(QWidget):
    """Resident memory of this process. Samples on its own clock, and only while somebody looks."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._times: deque[float] = deque(maxlen=KEPT_SAMPLES)
        self._values: deque[float] = deque(maxlen=KEPT_SAMPLES)
        self._begin = time.monotonic()
        self.plot = plain_plot(theme)
        self.plot.setAccessibleName(self.tr("Memory of this process over time"))
        self.plot.setLabel("bottom", self.tr("seconds ago"))
        self._line = pg.PlotCurveItem(antialias=True)
        self.plot.addItem(self._line)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.plot)
        theme.changed.connect(self.on_theme_changed)
        self.on_theme_changed()
        self._timer = QTimer(self)
        self._timer.setInterval(MEMORY_SAMPLE_MS)
        self._timer.timeout.connect(self._sample)
        self._timer.start()

    def now_bytes(self) -> int:
        return int(self._values[-1]) if self._values else resident_bytes()

    @Slot()
    def on_theme_changed(self) -> None:
        restyle(self.plot, self._theme)
        line = QColor(self._theme.palette.parts[2])
        below = QColor(line)
        below.setAlphaF(0.16)
        self._line.setPen(pg.mkPen(line, width=2))
        self._line.setBrush(below)
        self._line.setFillLevel(0.0)

    @Slot()
    def _sample(self) -> None:
        if not self.isVisible():
            return
        used = resident_bytes()
        if used <= 0:
            return
        self._times.append(time.monotonic() - self._begin)
        self._values.append(float(used))
        x = np.array(self._times) - self._times[-1]
        high = max(self._values)
        unit, name = (GIB, "GB") if high >= GIB else (MIB, "MB")
        self._line.setData(x, np.array(self._values) / unit)
        self.plot.getAxis("left").setLabel(name)
        self.plot.setXRange(min(-60.0, float(x[0])), 0, padding=0.0)
        self.plot.setYRange(0, high / unit * 1.15, padding=0.0)
