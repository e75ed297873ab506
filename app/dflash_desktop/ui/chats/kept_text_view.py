"""The text that PFlash shortens: what is kept bright, what is left out dim, and each unit's score in the margin.

Only what shows is coloured, and long texts come in over several turns of the event loop: nobody waits for 100,000
tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QToolTip, QWidget

from dflash_desktop.engine.pflash.selection import Unit
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme

FILL_CHARS = 12_000
"""Added to the document in one turn."""
LONGEST_LINE = 1500
"""Longer lines are broken for show: Qt lays a line out as a whole."""
MARGIN = 34
translate = QCoreApplication.translate


def why_words(unit: Unit) -> str:
    """Why a unit is kept or not."""
    match unit.why:
        case "pinned":
            return translate("pflash", "Your own words: always kept")
        case "anchor":
            return translate("pflash", "Kept: the question names it")
        case "header":
            return translate("pflash", "Kept: it heads something that is kept")
        case "score":
            return translate("pflash", "Kept for its score")
        case "dropped":
            return translate("pflash", "Left out")


def broken_lines(text: str, line: int) -> tuple[str, int]:
    """`text` with overlong lines broken. `line`: characters in the line that it goes on with; its own last line's come
    back."""
    own: list[str] = []
    for row in text.splitlines(keepends=True):
        for begin in range(0, len(row), LONGEST_LINE):
            part = row[begin : begin + LONGEST_LINE]
            if line and line + len(part) > LONGEST_LINE:
                own.append("\n")
                line = 0
            own.append(part)
            line = 0 if part.endswith("\n") else line + len(part)
    # Other ends of lines would be counted twice by Qt, or not at all.
    return "".join(own).replace("\r\n", "\n").replace("\r", "\n"), line


class KeptTextView(QPlainTextEdit):
    """Read-only. `show_text` once, then `show_choice` as often as the slider moves."""

    filled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._units: Sequence[Unit] = ()
        self._text = ""
        self._starts: list[int] = []  # of the units that are in the document, in its positions
        self._end = 0  # of what is in the document
        self._line = 0  # characters in its last line
        self._best = 1e-9
        self._version = 0
        self._formats: dict[bool, QTextCharFormat] = {}
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("kind", "bare")
        self.setFont(theme.font("body"))
        self.setAccessibleName(self.tr("What is kept and what is left out"))
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.margin = _Margin(self)
        self.setViewportMargins(MARGIN, 0, 0, 0)
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._fill_more)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._color_visible)
        self.updateRequest.connect(self.on_update_request)
        theme.changed.connect(self.on_theme_changed)
        self.on_theme_changed()

    @property
    def is_filled(self) -> bool:
        return len(self._starts) == len(self._units)

    def show_text(self, text: str, units: Sequence[Unit]) -> None:
        """Another text, with the first choice."""
        self.clear()
        self._text, self._starts = text, []
        self._end = self._line = 0
        self.show_choice(units)
        self._fill_more()
        self._timer.start()

    def show_choice(self, units: Sequence[Unit]) -> None:
        """The same units, chosen anew."""
        self._units = units
        self._best = max((unit.score for unit in units), default=0.0) or 1e-9
        self._version += 1
        self._color_visible()
        self.margin.update()

    def unit_at(self, position: int) -> int:
        """The unit that holds that character of the document; -1 for none."""
        return bisect_right(self._starts, position) - 1 if self._starts else -1

    def unit(self, index: int) -> Unit:
        return self._units[index]

    def score_share(self, index: int) -> float:
        """A unit's score, of the best one's."""
        return self._units[index].score / self._best

    def is_bright(self, position: int) -> bool:
        """Whether the character there is painted as kept."""
        block = self.document().findBlock(position)
        within = position - block.position()
        return not any(
            span.start <= within < span.start + span.length and span.format == self._formats[False]
            for span in block.layout().formats()
        )

    def tip_for(self, index: int) -> str:
        unit = self._units[index]
        if unit.why == "pinned":
            return why_words(unit)
        words = self.tr("{0}\nScore: {1} of the best\nTokens: {2}")
        return words.format(why_words(unit), numbers.percent(self.score_share(index)), numbers.count(unit.n_tokens))

    # ---- filling and colouring

    @Slot()
    def _fill_more(self) -> None:
        parts: list[str] = []
        n_chars = 0
        while not self.is_filled and n_chars < FILL_CHARS:
            unit = self._units[len(self._starts)]
            piece, self._line = broken_lines(self._text[unit.segment.start : unit.segment.end], self._line)
            self._starts.append(self._end)
            self._end += len(piece) + sum(char > "\uffff" for char in piece)  # Qt counts in UTF-16
            n_chars += len(piece)
            parts.append(piece)
        self.document().lastBlock().setUserState(-1)  # it grows: its colours are not complete any more
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText("".join(parts))
        self._color_visible()
        if self.is_filled:
            self._timer.stop()
            self.filled.emit()

    @Slot()
    def _color_visible(self) -> None:
        """The lines that show, unless they have their colours already."""
        block = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while block.isValid() and self.blockBoundingGeometry(block).translated(self.contentOffset()).top() <= bottom:
            if block.userState() != self._version:
                self._color(block)
            block = block.next()
        self.margin.update()

    def _color(self, block: QTextBlock) -> None:
        begin, end = block.position(), block.position() + block.length()
        spans = []
        index = max(0, self.unit_at(begin))
        while index < len(self._starts) and self._starts[index] < end:
            start = max(begin, self._starts[index])
            stop = min(end, self._starts[index + 1]) if index + 1 < len(self._starts) else end
            if stop > start:
                span = QTextLayout.FormatRange()
                span.start, span.length = start - begin, stop - start
                span.format = self._formats[self._units[index].is_kept]
                spans.append(span)
            index += 1
        block.layout().setFormats(spans)
        block.setUserState(self._version)
        self.document().markContentsDirty(begin, block.length())

    @Slot(QRect, int)
    def on_update_request(self, _rect: QRect, _dy: int) -> None:
        """Something scrolled or was laid out anew: there may be lines without colours."""
        block = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while block.isValid() and self.blockBoundingGeometry(block).translated(self.contentOffset()).top() <= bottom:
            if block.userState() != self._version:
                self._soon.start()
                break
            block = block.next()
        self.margin.update()

    @Slot()
    def on_theme_changed(self) -> None:
        kept, dropped = QTextCharFormat(), QTextCharFormat()
        kept.setForeground(self._theme.color("text"))
        dropped.setForeground(self._theme.color("outline"))
        self._formats = {True: kept, False: dropped}
        self._version += 1
        self._color_visible()

    # ---- the margin

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        area = self.contentsRect()
        self.margin.setGeometry(area.left(), area.top(), MARGIN, area.height())
        self._soon.start()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.unit_at(self.cursorForPosition(event.pos()).position())
            if index >= 0 and self._units:
                QToolTip.showText(event.globalPos(), self.tip_for(index), self)
            return True
        return super().viewportEvent(event)

    def unit_bands(self) -> list[tuple[int, QRectF]]:
        """The units that show, and where, in the viewport's coordinates."""
        bands: list[tuple[int, QRectF]] = []
        block = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while block.isValid():
            area = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if area.top() > bottom:
                break
            index = self.unit_at(block.position())
            if index >= 0 and index < len(self._units):
                if bands and bands[-1][0] == index:
                    bands[-1] = (index, bands[-1][1].united(area))
                else:
                    bands.append((index, area))
            block = block.next()
        return bands


class _Margin(QWidget):
    """A bar per unit: as long as its score, strong when it is kept."""

    def __init__(self, view: KeptTextView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(MARGIN, 0)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        theme = self._view._theme  # noqa: SLF001  a part of that view
        for index, area in self._view.unit_bands():
            unit = self._view.unit(index)
            color = "accent" if unit.why == "pinned" else "flash" if unit.is_kept else "thumb"
            share = 1.0 if unit.why == "pinned" else self._view.score_share(index)
            painter.setBrush(theme.color(color))
            width = max(3.0, (MARGIN - 12) * share)
            height = max(3.0, area.height() - 4)
            painter.drawRoundedRect(QRectF(MARGIN - 8 - width, area.top() + 2, width, height), 2, 2)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            point = QPoint(4, event.pos().y())
            index = self._view.unit_at(self._view.cursorForPosition(point).position())
            if index >= 0:
                QToolTip.showText(event.globalPos(), self._view.tip_for(index), self)
            return True
        return super().event(event)
