"""The draft tree of one step, drawn: nodes, their probabilities, and the path that the target accepted, lit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen, QRadialGradient
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from dflash_desktop.engine.events import DraftTree
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme

MARGIN_X, MARGIN_Y = 44.0, 20.0
MAX_LEVEL_WIDTH = 136.0
MAX_ROW_HEIGHT = 44.0
LABEL_HEIGHT = 26.0  # lanes closer than this have no room for labels
LABEL_GAP = 5.0


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """Row of the tree, and where it stands: depth across, lane down (both from 0)."""

    row: int
    depth: int
    lane: float


def place_nodes(tree: DraftTree) -> list[PlacedNode]:
    """Parents left of their children and half-way between them; leaves one lane each, the accepted path on top."""
    children: list[list[int]] = [[] for _ in tree.parents]
    for row, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append(row)
    accepted = set(tree.accepted_rows)
    for below in children:
        below.sort(key=lambda row: (row not in accepted, -tree.path_logprobs[row]))
    lanes = [0.0] * len(tree.parents)
    depths = [0] * len(tree.parents)
    next_lane = 0
    # Depth first without recursion: trees are hostile input no less than files are.
    pending = [(0, False)] if tree.parents else []
    while pending:
        row, is_done = pending.pop()
        if is_done:
            lanes[row] = lanes[children[row][0]]
        elif children[row]:
            pending.append((row, True))
            for child in reversed(children[row]):
                depths[child] = depths[row] + 1
                pending.append((child, False))
        else:
            lanes[row] = next_lane
            next_lane += 1
    return [PlacedNode(row, depths[row], lanes[row]) for row in range(len(tree.parents))]


def node_share(tree: DraftTree, row: int) -> float:
    """The draft's probability of the node after its parent, 0 to 1."""
    parent = tree.parents[row]
    if parent < 0:
        return 1.0
    return min(1.0, math.exp(min(0.0, tree.path_logprobs[row] - tree.path_logprobs[parent])))


def shown_token(text: str) -> str:
    """A token's text on one line, with its blanks made visible where there is nothing else."""
    if text and not text.strip(" "):
        return "\N{OPEN BOX}"
    return (
        text.strip(" ")
        .replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}")
        .replace("\t", "\N{RIGHTWARDS ARROW TO BAR}")
    )


class DraftTreeView(QWidget):
    """Paints one tree; whoever owns it decides which and when."""

    def __init__(self, theme: Theme, token_text: Callable[[int], str]) -> None:
        super().__init__()
        self._theme = theme
        self._token_text = token_text
        self._tree: DraftTree | None = None
        self._had_step = False
        self._placed: list[PlacedNode] = []
        self._points: list[QPointF] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(theme.px(200))
        self.setAccessibleName(self.tr("Draft tree of the last step"))
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(420, 220)

    def show_tree(self, tree: DraftTree | None, *, had_step: bool = False) -> None:
        """`had_step`: there was a step, and it verified no node."""
        if tree is self._tree and had_step is self._had_step:
            return
        self._had_step = had_step
        self._tree = tree
        self._placed = place_nodes(tree) if tree is not None else []
        if tree is not None:
            self.setAccessibleDescription(
                self.tr("{0} nodes drafted, {1} accepted").format(
                    len(tree.parents) - 1, max(0, len(tree.accepted_rows) - 1)
                )
            )
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        tree = self._tree
        if tree is None or not self._placed:
            painter.setFont(self._theme.font("body"))
            painter.setPen(self._theme.color("muted"))
            words = self.tr("The draft's tree appears here when a step was drafted.")
            if self._had_step:
                words = self.tr("This step verified no nodes: the target's own token only.")
            painter.drawText(
                self.rect(), int(Qt.AlignmentFlag.AlignCenter.value) | int(Qt.TextFlag.TextWordWrap.value), words
            )
            painter.end()
            return
        level, row_height = self._place()
        accepted = set(tree.accepted_rows)
        order = sorted(range(1, len(self._placed)), key=lambda row: row in accepted)
        for row in order:
            self._edge(painter, tree, row, is_lit=row in accepted)
        self._bonus(painter, tree, level)
        for row in [0, *order]:
            self._node(painter, tree, row, is_lit=row in accepted)
            if row_height >= LABEL_HEIGHT:
                self._label(painter, tree, row, level - LABEL_GAP, is_lit=row in accepted)
        painter.end()

    def _place(self) -> tuple[float, float]:
        """Compute the points; return the distance between levels and between lanes."""
        n_levels = max(node.depth for node in self._placed) + 2  # one more for the bonus
        n_lanes = max(node.lane for node in self._placed) + 1
        level = min(MAX_LEVEL_WIDTH, (self.width() - 2 * MARGIN_X) / max(1, n_levels - 1))
        row_height = min(MAX_ROW_HEIGHT, (self.height() - 2 * MARGIN_Y) / max(1.0, n_lanes - 1)) if n_lanes > 1 else 0.0
        top = (self.height() - row_height * (n_lanes - 1)) / 2
        left = max(MARGIN_X, (self.width() - level * (n_levels - 1)) / 2)
        self._points = [QPointF(left + node.depth * level, top + node.lane * row_height) for node in self._placed]
        return level, row_height if n_lanes > 1 else MAX_ROW_HEIGHT

    def _edge(self, painter: QPainter, tree: DraftTree, row: int, *, is_lit: bool) -> None:
        begin, end = self._points[tree.parents[row]], self._points[row]
        path = QPainterPath(begin)
        middle = (begin.x() + end.x()) / 2
        path.cubicTo(QPointF(middle, begin.y()), QPointF(middle, end.y()), end)
        share = node_share(tree, row)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if is_lit:
            glow = QColor(self._theme.color("flash"))
            glow.setAlphaF(0.22)
            painter.setPen(QPen(glow, 9, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            painter.drawPath(path)
            painter.setPen(QPen(self._theme.color("flash"), 2.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        else:
            color = QColor(self._theme.color("outline"))
            color.setAlphaF(0.35 + 0.5 * share)
            painter.setPen(QPen(color, 0.8 + 1.2 * share))
        painter.drawPath(path)

    def _bonus(self, painter: QPainter, tree: DraftTree, level: float) -> None:
        """The target's own token after the accepted path: a ring, reached by a dotted line."""
        last = self._points[tree.accepted_rows[-1]] if tree.accepted_rows else self._points[0]
        ring = QPointF(last.x() + level, last.y() - (0 if self._is_free(last, level) else 14))
        painter.setPen(QPen(self._theme.color("flash"), 1.8, Qt.PenStyle.DotLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(last, ring)
        painter.setPen(QPen(self._theme.color("flash"), 1.8))
        painter.setBrush(self._theme.color("surface"))
        painter.drawEllipse(ring, 5.5, 5.5)

    def _is_free(self, last: QPointF, level: float) -> bool:
        ring = QPointF(last.x() + level, last.y())
        return all(abs(p.x() - ring.x()) > 8 or abs(p.y() - ring.y()) > 10 for p in self._points)

    def _node(self, painter: QPainter, tree: DraftTree, row: int, *, is_lit: bool) -> None:
        point = self._points[row]
        share = node_share(tree, row)
        radius = 4.0 + 3.0 * share if row else 7.0
        if is_lit:
            flash = self._theme.color("flash")
            glow = QRadialGradient(point, radius * 2.6)
            inner, outer = QColor(flash), QColor(flash)
            inner.setAlphaF(0.5)
            outer.setAlphaF(0.0)
            glow.setColorAt(0, inner)
            glow.setColorAt(1, outer)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(glow)
            painter.drawEllipse(point, radius * 2.6, radius * 2.6)
            painter.setBrush(flash)
        else:
            painter.setPen(QPen(self._theme.color("outline"), 1.2))
            painter.setBrush(self._theme.color("sunken"))
        painter.drawEllipse(point, radius, radius)

    def _label(self, painter: QPainter, tree: DraftTree, row: int, room: float, *, is_lit: bool) -> None:
        """Below the node: what the token says and how likely the draft held it."""
        point = self._points[row]
        words = shown_token(self._token_text(tree.tokens[row]))
        share = numbers.percent(node_share(tree, row)) if row else ""
        metrics = QFontMetricsF(self._theme.font("caption"))
        share_width = metrics.horizontalAdvance(share)
        words = metrics.elidedText(words, Qt.TextElideMode.ElideRight, max(0.0, room - share_width - LABEL_GAP))
        words_width = metrics.horizontalAdvance(words)
        if room < share_width:
            return
        gap = LABEL_GAP if words and share else 0.0
        left = point.x() - (words_width + gap + share_width) / 2
        area = QRectF(left, point.y() + 8, room + share_width, metrics.height())
        painter.setFont(self._theme.font("caption"))
        painter.setPen(self._theme.color("flash_text" if is_lit else "text"))
        painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft.value), words)
        painter.setPen(self._theme.color("muted"))
        painter.drawText(area.translated(words_width + gap, 0), int(Qt.AlignmentFlag.AlignLeft.value), share)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self._words_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def _words_at(self, at: QPointF) -> str:
        tree = self._tree
        if tree is None or len(self._points) != len(tree.tokens):
            return ""
        near = [row for row, point in enumerate(self._points) if (point - at).manhattanLength() < 14]
        if not near:
            return ""
        row = near[0]
        if row == 0:
            return self.tr("Root: the last token that is certain")
        state = self.tr("accepted") if row in tree.accepted_rows else self.tr("not accepted")
        return self.tr("{0}: {1} after its parent, {2} for the whole path; {3}").format(
            self._token_text(tree.tokens[row]).strip() or tree.tokens[row],
            numbers.percent(node_share(tree, row)),
            numbers.percent(math.exp(min(0.0, tree.path_logprobs[row]))),
            state,
        )
