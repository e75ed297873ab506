"""Messages one below the other: where each stands, and what is laid out of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF

from dflash_desktop.ui.chats.message_box import MessageBox
from dflash_desktop.ui.chats.message_parts import HotSpot
from dflash_desktop.ui.kit.palette import L

MESSAGE_GAP = 26.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """What stands at the view's top edge, and how far it is scrolled out of it."""

    row: int
    block_index: int
    offset: float


class MessageStack:
    """Geometry only; heights are the stack's own, scrolling is the view's."""

    def __init__(self) -> None:
        self.boxes: list[MessageBox] = []
        self.tops: list[float] = []
        self.height = 0.0
        self._width = 0.0
        self._first_moved = 0  # the first message whose height, or whose neighbour above, has changed

    def fill(self, boxes: Iterable[MessageBox]) -> None:
        """Other messages altogether."""
        self.boxes[:] = boxes  # the list stays the same one: others look at it
        self.moved(0)

    def insert(self, row: int, boxes: Sequence[MessageBox]) -> None:
        self.boxes[row:row] = boxes
        self.moved(row)

    def remove(self, start: int, end: int) -> None:
        """Take away those rows, the last one included."""
        del self.boxes[start : end + 1]
        self.moved(start)

    def moved(self, row: int) -> None:
        """That message may have another height now: `arrange` places it and all below it again."""
        self._first_moved = min(self._first_moved, row)

    def arrange(self, width: float) -> None:
        """Give every message its width and its place. Costs what changed: long chats stream as fast as short ones."""
        if width != self._width:
            self._width = width
            self._first_moved = 0
        for box in self.boxes[self._first_moved :]:
            box.set_width(width)
        self._stack()

    def _stack(self) -> None:
        first, self._first_moved = min(self._first_moved, len(self.tops)), len(self.boxes)
        y = self.tops[first - 1] + self.boxes[first - 1].height + MESSAGE_GAP if first else float(L)
        del self.tops[first:]
        for box in self.boxes[first:]:
            self.tops.append(y)
            y += box.height + MESSAGE_GAP
        self.height = y

    def row_at(self, y: float) -> int:
        """The message at that height, or the one above the gap it falls into."""
        return max(0, bisect_right(self.tops, y) - 1)

    def anchor_at(self, y: float) -> Anchor | None:
        if not self.tops or len(self.tops) != len(self.boxes):
            return None
        row = self.row_at(y)
        box = self.boxes[row]
        inner = y - self.tops[row]
        index = box.first_at(inner) if box.boxes else 0
        return Anchor(row, index, inner - (box.boxes[index].top if box.boxes else 0.0))

    def height_of(self, anchor: Anchor) -> float:
        """Where the anchor is now."""
        if anchor.row >= len(self.boxes):
            return self.height
        box = self.boxes[anchor.row]
        if box.settle_width():
            self.moved(anchor.row)
            self._stack()
        inner = box.boxes[anchor.block_index].top if anchor.block_index < len(box.boxes) else 0.0
        return self.tops[anchor.row] + inner + anchor.offset

    def realize(self, top: float, bottom: float) -> bool:
        """Lay out what shows between these heights. True when something got another height by that."""
        changed = False
        for row in range(self.row_at(top), len(self.boxes)):
            if self.tops[row] > bottom:
                break
            if self.boxes[row].realize(top - self.tops[row], bottom - self.tops[row]):
                self.moved(row)
                changed = True
        if changed:
            self._stack()
        return changed

    def hot_spot_at(self, row: int, inside: QPointF) -> HotSpot | None:
        spots = self.boxes[row].hot_spots(inside.y() - 1, inside.y() + 1)
        return next((spot for spot in spots if spot.rect.contains(inside)), None)
