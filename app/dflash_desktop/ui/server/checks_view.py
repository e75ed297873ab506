"""The self-test as a row of ticks: what passed, what failed, what is still to come."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from dflash_desktop.server.self_test import SelfTestLine, check_names
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, L
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.server.serve_words import check_words

MARK = 14


class ChecksView(QWidget):
    """Paints the checks in as many lines as its width needs."""

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._names = check_names()
        self._lines: dict[str, SelfTestLine] = {}
        self._is_running = False
        self.setFont(theme.font("caption"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)
        self.show_checks((), is_running=False)

    def show_checks(self, lines: Sequence[SelfTestLine], *, is_running: bool) -> None:
        self._lines = {line.name: line for line in lines}
        self._is_running = is_running
        n_passed = sum(line.passed for line in lines)
        words = self.tr("Self-test: {0} of {1} checks passed").format(n_passed, len(self._names))
        bad = [f"{check_words(line.name)}: {line.reason}" for line in lines if not line.passed]
        self.setAccessibleName(words)
        self.setAccessibleDescription("; ".join(bad))
        self.setToolTip("\n".join(bad))
        self.update()

    def texts(self) -> list[str]:
        """Each check with its mark, for tests and screen readers."""
        return [f"{self._mark(name)} {check_words(name)}" for name in self._names]

    def sizeHint(self) -> QSize:
        return QSize(600, self._height(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self._line_height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        height = self._height(self.width())
        if height != self.height():
            self.setFixedHeight(height)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self.font())
        ratio = self.devicePixelRatioF()
        for name, box in self._boxes(self.width()):
            mark = self._mark(name)
            top = box.top() + (box.height() - MARK) / 2
            if mark == "\N{MIDDLE DOT}":
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(self._theme.color("flash" if self._is_next(name) else "border"))
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.drawEllipse(QRectF(box.left() + 4, top + 4, 6, 6))
            else:
                icon, color = ("check", "good") if mark == "\N{CHECK MARK}" else ("warning", "bad")
                painter.drawPixmap(round(box.left()), round(top), self._icons.pixmap(icon, color, MARK, ratio))
            known = name in self._lines
            painter.setPen(self._theme.color("text" if known or self._is_next(name) else "muted"))
            painter.drawText(box.adjusted(MARK + XS, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, check_words(name))
        painter.end()

    def _mark(self, name: str) -> str:
        line = self._lines.get(name)
        if line is None:
            return "\N{MIDDLE DOT}"
        return "\N{CHECK MARK}" if line.passed else "\N{BALLOT X}"

    def _is_next(self, name: str) -> bool:
        return self._is_running and name == next((each for each in self._names if each not in self._lines), "")

    def _line_height(self) -> int:
        return max(MARK, QFontMetrics(self.font()).height()) + 2 * XS

    def _height(self, width: int) -> int:
        boxes = self._boxes(width)
        return round(boxes[-1][1].bottom()) if boxes else self._line_height()

    def _boxes(self, width: int) -> list[tuple[str, QRectF]]:
        metrics = QFontMetrics(self.font())
        height = self._line_height()
        left, top = 0.0, 0.0
        boxes = []
        for name in self._names:
            wide = MARK + XS + metrics.horizontalAdvance(check_words(name)) + 2
            if left and left + wide > width:
                left, top = 0.0, top + height
            boxes.append((name, QRectF(left, top, wide, height)))
            left += wide + L
        return boxes
