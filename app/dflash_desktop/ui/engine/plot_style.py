"""What all our plots have in common: no frame, quiet axes, nothing to drag, the theme's colours."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy

from dflash_desktop.ui.kit.theme import Theme


def plain_plot(theme: Theme) -> Any:
    """A PlotWidget that only shows: no mouse, no menu, no buttons."""
    plot = pg.PlotWidget(background=None)
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMouseEnabled(x=False, y=False)
    plot.setFrameShape(pg.PlotWidget.Shape.NoFrame)
    plot.setMinimumHeight(theme.px(150))
    # Its own wish is 640 x 480; here it takes what the page has.
    plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
    plot.setStyleSheet("background: transparent; border: 0;")
    plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    plot.showGrid(x=False, y=True, alpha=0.16)
    for name in ("left", "bottom"):
        axis = plot.getAxis(name)
        axis.enableAutoSIPrefix(False)
        axis.setStyle(tickLength=0, tickTextOffset=8)
    return plot


def restyle(plot: Any, theme: Theme) -> None:
    """Give a plot the theme's fonts and colours."""
    plot.setBackground(None)
    for name in ("left", "bottom"):
        axis = plot.getAxis(name)
        axis.setPen(pg.mkPen(theme.color("border")))
        axis.setTextPen(pg.mkPen(theme.color("muted")))
        axis.setTickFont(theme.figure_font("caption", weight=theme.font("caption").weight()))
        axis.label.setFont(theme.font("caption"))
        axis.label.setDefaultTextColor(theme.color("muted"))
