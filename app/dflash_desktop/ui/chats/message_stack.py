"""Messages one below the other: where each stands, and what is laid out of them."""

from __future__ import annotations

from bisect import bisect_right
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

    def set_width(self, width: float) -> None:
        for box in self.boxes:
            box.set_width(width)
        self.stack()

    def stack(self) -> None:
        """Give every message its place."""
        y = float(L)
        self.tops.clear()
        for box in self.boxes:
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
            self.stack()
        inner = box.boxes[anchor.block_index].top if anchor.block_index < len(box.boxes) else 0.0
        return self.tops[anchor.row] + inner + anchor.offset

    def realize(self, top: float, bottom: float) -> bool:
        """Lay out what shows between these heights. True when something got another height by that."""
        changed = False
        for row in range(self.row_at(top), len(self.boxes)):
            if self.tops[row] > bottom:
                break
            changed |= self.boxes[row].realize(top - self.tops[row], bottom - self.tops[row])
        if changed:
            self.stack()
        return changed

    def hot_spot_at(self, row: int, inside: QPointF) -> HotSpot | None:
        spots = self.boxes[row].hot_spots(inside.y() - 1, inside.y() + 1)
        return next((spot for spot in spots if spot.rect.contains(inside)), None)
