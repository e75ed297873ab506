"""Memory by part: one stacked bar, and below it a row with the number of each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from dflash_desktop.engine.events import MemoryUse
from dflash_desktop.engine.planning import LoadEstimate
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI

BAR_HEIGHT = 14
ROW_HEIGHT = 25
OTHERS = "thumb"
SURPLUS = "muted"
SCORER = 6

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Part:
    """`color`: a name of the palette, or the number of one of its colours for parts."""

    name: str
    n_bytes: int
    color: int | str


def pair_parts(use: MemoryUse | LoadEstimate) -> list[Part]:
    """The parts of a pair that take any memory; of a plan those on the target's device."""
    is_here = not (isinstance(use, LoadEstimate) and use.draft_device_name)
    draft_bytes, draft_kv_bytes = (use.draft_weights_bytes, use.draft_kv_bytes) if is_here else (0, 0)
    named = (
        Part(translate("memory", "Target weights"), use.target_weights_bytes, 0),
        Part(translate("memory", "Draft weights"), draft_bytes, 1),
        Part(translate("memory", "KV cache"), use.kv_cache_bytes, 2),
        Part(translate("memory", "Draft KV cache"), draft_kv_bytes, 3),
        Part(translate("memory", "Recurrent state"), use.recurrent_bytes, 4),
        Part(translate("memory", "Compute"), use.compute_bytes, 5),
    )
    return [part for part in named if part.n_bytes > 0]


def part_color(theme: Theme, part: Part) -> QColor:
    return QColor(theme.palette.parts[part.color]) if isinstance(part.color, int) else theme.color(part.color)


class PartsBar(QWidget):
    """With a capacity the bar stands for the whole device, and what does not fit is struck through."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._parts: list[Part] = []
        self._total_bytes = 0
        self._capacity_bytes = 0
        self._others_bytes = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.show_parts([])

    def show_parts(self, parts: Sequence[Part], *, capacity_bytes: int = 0, others_bytes: int = 0) -> None:
        """`parts` are ours; `others_bytes` of the device belong to other programs."""
        self._parts = list(parts)
        self._total_bytes = sum(part.n_bytes for part in parts)
        self._capacity_bytes = capacity_bytes
        self._others_bytes = others_bytes if capacity_bytes else 0
        spoken = ", ".join(f"{part.name} {numbers.memory(part.n_bytes)}" for part in self._parts)
        self.setAccessibleName(self.tr("Memory by part: {0}").format(spoken or self.tr("nothing is loaded")))
        self.updateGeometry()
        self.update()

    def show_use(self, use: MemoryUse | None) -> None:
        """A loaded pair's own numbers; None: nothing is loaded."""
        self.show_parts(pair_parts(use) if use is not None else [])

    def sizeHint(self) -> QSize:
        n_rows = max(1, len(self._parts)) + (1 if self._parts else 0) + (2 if self._capacity_bytes else 0)
        return QSize(240, BAR_HEIGHT + 14 + self._theme.px(ROW_HEIGHT) * n_rows)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("body"))
        y = BAR_HEIGHT + 12.0
        if not self._parts:
            self._bar(painter)
            painter.setPen(self._theme.color("muted"))
            area = QRectF(0, y, self.width(), self._theme.px(ROW_HEIGHT))
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, self.tr("Nothing is loaded."))
            painter.end()
            return
        self._bar(painter)
        height = self._theme.px(ROW_HEIGHT)
        for part in self._parts:
            self._row(painter, y, part.name, part.n_bytes, part_color(self._theme, part))
            y += height
        painter.setFont(self._theme.font("body", weight=DEMI))
        self._row(painter, y, self.tr("Together"), self._total_bytes, None)
        if self._capacity_bytes:
            painter.setFont(self._theme.font("body"))
            self._row(painter, y + height, self.tr("Other programs"), self._others_bytes, self._theme.color(OTHERS))
            left = self._capacity_bytes - self._others_bytes - self._total_bytes
            name = self.tr("Stays free") if left >= 0 else self.tr("Missing")
            self._row(painter, y + 2 * height, name, abs(left), None, is_bad=left < 0)
        painter.end()

    def _bar(self, painter: QPainter) -> None:
        bar = QRectF(0, 0, self.width(), BAR_HEIGHT)
        shape = QPainterPath()
        shape.addRoundedRect(bar, BAR_HEIGHT / 2, BAR_HEIGHT / 2)
        painter.fillPath(shape, self._theme.color("sunken"))
        whole = max(self._capacity_bytes, self._total_bytes + self._others_bytes)
        if whole <= 0:
            return
        painter.save()
        painter.setClipPath(shape)
        x = 0.0
        pieces = list(self._parts)
        if self._others_bytes:
            pieces.insert(0, Part("", self._others_bytes, OTHERS))
        for part in pieces:
            width = max(2.0, bar.width() * part.n_bytes / whole)
            painter.fillRect(QRectF(x, 0, max(1.0, width - 1), BAR_HEIGHT), part_color(self._theme, part))
            x += width
        if 0 < self._capacity_bytes < whole:
            self._strike(painter, bar.width() * self._capacity_bytes / whole)
        painter.restore()

    def _strike(self, painter: QPainter, begin: float) -> None:
        """What is beyond the device's end, hatched."""
        painter.setPen(QPen(self._theme.color("surface"), 2))
        x = begin
        while x < self.width() + BAR_HEIGHT:
            painter.drawLine(QPointF(x, BAR_HEIGHT), QPointF(x + BAR_HEIGHT, 0))
            x += 7
        painter.setPen(QPen(self._theme.color("bad"), 2))
        painter.drawLine(QPointF(begin, 0), QPointF(begin, BAR_HEIGHT))

    def _row(
        self, painter: QPainter, y: float, name: str, n_bytes: int, shade: QColor | None, *, is_bad: bool = False
    ) -> None:
        height = self._theme.px(ROW_HEIGHT)
        area = QRectF(0, y, self.width(), height)
        if shade is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(shade)
            painter.drawRoundedRect(QRectF(1, y + height / 2 - 5, 10, 10), 3, 3)
        painter.setPen(self._theme.color("bad" if is_bad else "text"))
        flags = Qt.AlignmentFlag.AlignVCenter
        metrics = QFontMetrics(painter.font())
        number = numbers.memory(n_bytes)
        room = self.width() - metrics.horizontalAdvance(number) - 34
        painter.drawText(area.adjusted(20, 0, 0, 0), flags, metrics.elidedText(name, Qt.TextElideMode.ElideRight, room))
        painter.drawText(area, flags | Qt.AlignmentFlag.AlignRight, number)
