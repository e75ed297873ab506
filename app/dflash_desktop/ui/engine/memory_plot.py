"""Memory over time, stacked: weights, caches, compute, the rest of this program, other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QColor, QHideEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import MemoryUse
from dflash_desktop.ui.engine.memory_sampler import MemorySample, MemorySampler, Watched
from dflash_desktop.ui.engine.plot_style import plain_plot, restyle
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.pace import NUMBERS_MS, PLOT_MS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import ElidedLabel

GIB, MIB = 2.0**30, 2.0**20
SHOWN_S = 60.0
BANDS = ("weights", "caches", "compute", "rest", "others")
_COLORS: dict[str, int | str] = {"weights": 0, "caches": 2, "compute": 5, "rest": 3, "others": "thumb"}


def bands(samples: Sequence[MemorySample]) -> dict[str, npt.NDArray[np.float64]]:
    """Bytes per band and sample. On a card the others are everybody else; on the processor they are left out: there
    they would dwarf this program, and its own resident memory is what counts."""
    rows = {name: np.zeros(len(samples)) for name in BANDS}
    for number, sample in enumerate(samples):
        own = _own(sample.watched.use)
        is_device = bool(sample.watched.device_name)
        room = float(sample.used_bytes if is_device else sample.process_bytes)
        for name in ("weights", "caches", "compute"):
            rows[name][number] = min(own[name], room)  # mapped weights count only as far as they are in memory
            room -= rows[name][number]
        rows["others" if is_device else "rest"][number] = room
    return rows


def _own(use: MemoryUse | None) -> dict[str, float]:
    if use is None:
        return {"weights": 0.0, "caches": 0.0, "compute": 0.0}
    return {
        "weights": float(use.target_weights_bytes + use.draft_weights_bytes),
        "caches": float(use.kv_cache_bytes + use.draft_kv_bytes + use.recurrent_bytes),
        "compute": float(use.compute_bytes),
    }


class MemoryPlot(QWidget):
    """Samples only while it is visible."""

    def __init__(self, theme: Theme, read_device: Callable[[str], Device] | None) -> None:
        super().__init__()
        self._theme = theme
        self.sampler = MemorySampler(read_device)
        self.plot = plain_plot(theme)
        self.plot.setAccessibleName(self.tr("Memory over time"))
        self.plot.setLabel("bottom", self.tr("seconds ago"))
        self._curves = {name: pg.PlotCurveItem(antialias=False) for name in BANDS}
        for name in reversed(BANDS):  # the highest sum first, so that lower bands lie over it
            self.plot.addItem(self._curves[name])
        self.words = ElidedLabel(theme, "caption", tone="muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.words)
        column.addWidget(self.plot, 1)
        theme.changed.connect(self.on_theme_changed)
        self.on_theme_changed()
        self._timer = QTimer(self)
        self._timer.setInterval(PLOT_MS)
        self._timer.timeout.connect(self._repaint)
        self._slow_timer = QTimer(self)
        self._slow_timer.setInterval(NUMBERS_MS)
        self._slow_timer.timeout.connect(self._say)

    def watch(self, watched: Watched) -> None:
        self.sampler.watch(watched)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.sampler.start()
        self._timer.start()
        self._slow_timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()
        self._slow_timer.stop()
        self.sampler.pause()

    @Slot()
    def on_theme_changed(self) -> None:
        restyle(self.plot, self._theme)
        for name, curve in self._curves.items():
            key = _COLORS[name]
            color = QColor(self._theme.palette.parts[key]) if isinstance(key, int) else self._theme.color(key)
            curve.setPen(pg.mkPen(color, width=1))
            below = QColor(color)
            below.setAlphaF(0.55 if name != "others" else 0.35)
            curve.setBrush(below)
            curve.setFillLevel(0.0)

    @Slot()
    def _repaint(self) -> None:
        samples = list(self.sampler.samples)
        while samples and samples[-1].at_s - samples[0].at_s > SHOWN_S:
            del samples[: max(1, int((samples[-1].at_s - samples[0].at_s - SHOWN_S) * 5))]
        if not samples:
            return
        x = np.array([sample.at_s for sample in samples]) - samples[-1].at_s
        rows = bands(samples)
        stacked = np.cumsum([rows[name] for name in BANDS], axis=0)
        high = float(stacked[-1].max(initial=0.0))
        unit, unit_name = (GIB, "GiB") if high >= GIB else (MIB, "MiB")
        below = np.zeros(len(samples))
        for name, top in zip(BANDS, stacked, strict=True):
            curve = self._curves[name]
            is_empty = not rows[name].any()
            curve.setVisible(not is_empty)
            if not is_empty:
                curve.setData(x, top / unit)
            below = top
        self.plot.getAxis("left").setLabel(unit_name)
        self.plot.setXRange(-SHOWN_S, 0, padding=0.0)
        self.plot.setYRange(0, max(float(below.max(initial=0.0)) / unit, 0.01) * 1.12, padding=0.0)

    @Slot()
    def _say(self) -> None:
        samples = self.sampler.samples
        if not samples:
            return
        last = samples[-1]
        if last.watched.device_name:
            own = sum(_own(last.watched.use).values())
            words = self.tr("{0}: this program {1}, others {2}, free {3}").format(
                last.watched.device_name,
                numbers.memory(int(own)),
                numbers.memory(max(0, last.used_bytes - int(own))),
                numbers.memory(last.total_bytes - last.used_bytes),
            )
        else:
            words = self.tr("This program {0}, others {1}, free {2}").format(
                numbers.memory(last.process_bytes),
                numbers.memory(max(0, last.used_bytes - last.process_bytes)),
                numbers.memory(last.total_bytes - last.used_bytes),
            )
        self.words.setText(words)
