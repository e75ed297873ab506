"""The live graph of acceptance length: a bar per step and the moving mean over it."""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from dflash_desktop.ui.engine.live_figures import MEAN_STEPS, LiveFigures
from dflash_desktop.ui.engine.plot_style import plain_plot, restyle
from dflash_desktop.ui.kit.pace import PLOT_MS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label

SHOWN_STEPS = 160
MOST_TICKS = 9


class AcceptancePlot(QWidget):
    """Repaints at PLOT_MS while it is visible and something changed."""

    def __init__(self, theme: Theme, figures: LiveFigures) -> None:
        super().__init__()
        self._theme = theme
        self._figures = figures
        self._painted_version = -1
        self.plot = plain_plot(theme)
        self.plot.setAccessibleName(self.tr("Acceptance length per step"))
        self._bars = pg.BarGraphItem(x=[], height=[], width=0.72)
        self._line = pg.PlotCurveItem(antialias=True)
        self.plot.addItem(self._bars)
        self.plot.addItem(self._line)
        self.setToolTip(
            self.tr("Bars: tokens gained in each step. Line: mean of the last {0} steps.").format(MEAN_STEPS)
        )
        self.hint = label(theme, self.tr("Each step of a reply appears here as a bar."), tone="muted")
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setParent(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.plot)
        theme.changed.connect(self.on_theme_changed)
        self.on_theme_changed()
        self._timer = QTimer(self)
        self._timer.setInterval(PLOT_MS)
        self._timer.timeout.connect(self._repaint)
        self._timer.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.hint.setGeometry(self.rect())
        self.hint.raise_()

    @Slot()
    def on_theme_changed(self) -> None:
        restyle(self.plot, self._theme)
        flash = self._theme.color("flash")
        faint = QColor(flash)
        faint.setAlphaF(0.34)
        self._bars.setOpts(brush=faint, pen=pg.mkPen(None))
        self._line.setPen(pg.mkPen(flash, width=2))
        self._painted_version = -1

    @Slot()
    def _repaint(self) -> None:
        if not self.isVisible() or self._figures.version == self._painted_version:
            return
        self._painted_version = self._figures.version
        steps = list(self._figures.steps)[-SHOWN_STEPS:]
        self.hint.setVisible(not steps)
        first = self._figures.n_steps - len(steps) + 1
        x = np.arange(first, first + len(steps), dtype=float)
        heights = np.array([s.n_committed for s in steps], dtype=float)
        means = np.array([s.moving_mean for s in steps], dtype=float)
        self._bars.setOpts(x=x, height=heights)
        self._line.setData(x, means)
        right = max(first + len(steps), first + SHOWN_STEPS // 2)
        self.plot.setXRange(first - 1, right, padding=0.0)
        top = max(4.0, float(heights.max(initial=0.0)) + 0.5)
        tick = math.ceil(top / MOST_TICKS)
        self.plot.getAxis("left").setTickSpacing(major=tick, minor=tick)  # whole tokens only, on a large screen too
        self.plot.setYRange(0, top, padding=0.0)
