"""The geometry of one message: its blocks, which of them are laid out, and how high it is."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QTextCursor

from dflash_desktop.ui.chats.accepted import accepted_ranges
from dflash_desktop.ui.chats.block_box import BlockBox, DocumentCache
from dflash_desktop.ui.chats.blocks import Block, Kind, MarkdownBlocks, plain_blocks
from dflash_desktop.ui.chats.documents import LINE_PERCENT, BlockDocument, Press
from dflash_desktop.ui.chats.message_parts import BUBBLE_BOTTOM, BUBBLE_TOP, BUBBLE_X, HotSpot, MessageParts
from dflash_desktop.ui.chats.messages import UNFINISHED, Message
from dflash_desktop.ui.kit.theme import Theme

BLOCK_GAP = 13.0
HEADING_GAP = 22.0
CODE_PADDING = 14.0
CODE_HEAD = 34.0
MATH_MARGIN = 6.0
QUOTE_INDENT = 18.0
RENDER_SHARE = 0.125
"""A growing block that is dear to lay out (a long table) is laid out less often: this share of the time at most."""
BUBBLE_SHARE = 0.86
FRAMED = (Kind.CODE, Kind.CALL)


@dataclass(frozen=True, slots=True)
class TextSizes:
    """For estimates; measured once for all messages."""

    char_width: float
    line_height: float

    @classmethod
    def of(cls, theme: Theme) -> TextSizes:
        metrics = QFontMetricsF(theme.zoomed(theme.font("reading")))
        return cls(metrics.averageCharWidth(), metrics.height() * LINE_PERCENT / 100)

    def height_of(self, n_lines: int, n_chars: int, width: float, *, is_code: bool = False) -> float:
        per_line = max(8.0, (width or 600.0) / self.char_width)
        return (n_lines + n_chars / per_line * (0.2 if is_code else 0.9)) * self.line_height


class MessageBox:
    """One message at one width.

    A message is read (cut into blocks) when it first shows or while it grows; only blocks asked for by `realize` are
    laid out. All other heights are estimates, so that a chat of any length opens at once.
    """

    def __init__(self, press: Press, cache: DocumentCache, sizes: TextSizes, message: Message) -> None:
        self._press = press
        self._cache = cache
        self._sizes = sizes
        self.message = message
        self.parts = MessageParts(press.theme, message)
        self.boxes: list[BlockBox] = []
        self._n_thoughts = 0
        self._reader = MarkdownBlocks()
        self._thoughts = MarkdownBlocks()
        self._n_read = 0
        self._n_thoughts_read = 0
        self._n_counted = self._n_lines = 0
        self._is_finished = False
        self._is_read = False
        self._knows_bubble = False
        self._is_new_width = False  # the blocks' heights are those of another width
        self.width = 0.0
        self.content_x = 0.0
        self.content_width = 0.0
        self.content_height = 0.0
        self.height = 0.0
        self.sync()

    @property
    def is_user(self) -> bool:
        return self.message.role == "user"

    # ---- reading

    def sync(self) -> None:
        """Take in what has changed in the message."""
        if self.message.state in UNFINISHED or self._is_read:
            self._read()
        else:
            self._estimate_all()

    def fold(self, *, is_open: bool) -> None:
        """Show or hide the thoughts."""
        self.parts.is_unfolded = is_open
        self._read()

    def _read(self) -> None:
        """Read what is new in the message's text."""
        self._is_read = True
        self.settle_width()
        if self.message.role in ("user", "system"):
            first = self._read_plain()
        else:
            first = min(self._read_thoughts(), self._read_markdown())
        self._settle(first)

    def _read_plain(self) -> int:
        text = self.message.text
        if self._n_read != len(text) or (not self.boxes and text):
            self.boxes = [BlockBox(block) for block in plain_blocks(text)] if text else []
            self._n_read = len(text)
            self._knows_bubble = False
        return 0

    def _read_markdown(self) -> int:
        text = self.message.text
        is_finished = self.message.state not in UNFINISHED
        if len(text) < self._n_read or (self._is_finished and len(text) != self._n_read):
            self._reader, self._n_read, self._is_finished = MarkdownBlocks(), 0, False
            del self.boxes[self._n_thoughts :]
        first = len(self._reader.blocks)
        if len(text) > self._n_read:
            first = min(first, self._reader.feed(text[self._n_read :]))
            self._n_read = len(text)
        if is_finished and not self._is_finished:
            first = min(first, self._reader.finish(), max(0, len(self._reader.blocks) - 1))
            self._is_finished = True
        return self._take(self._reader.blocks, first, is_thought=False)

    def _read_thoughts(self) -> int:
        wanted = self.message.reasoning if self.parts.is_unfolded else ""
        if len(wanted) < self._n_thoughts_read:
            self._thoughts, self._n_thoughts_read = MarkdownBlocks(), 0
            del self.boxes[: self._n_thoughts]
            self._n_thoughts = 0
            return 0
        if len(wanted) == self._n_thoughts_read:
            return len(self.boxes)
        first = self._thoughts.feed(wanted[self._n_thoughts_read :])
        self._n_thoughts_read = len(wanted)
        return self._take(self._thoughts.blocks, first, is_thought=True)

    def _take(self, blocks: list[Block], first: int, *, is_thought: bool) -> int:
        """Have a box for each of `blocks`, from `first` on afresh; return the first box that changed."""
        offset = 0 if is_thought else self._n_thoughts
        n_have = self._n_thoughts if is_thought else len(self.boxes) - self._n_thoughts
        del self.boxes[offset + len(blocks) : offset + n_have]
        for index in range(first, len(blocks)):
            place = offset + index
            if index >= n_have:
                self.boxes.insert(place, BlockBox(blocks[index], is_thought))
            elif self.boxes[place].block is not blocks[index]:
                self.boxes[place] = BlockBox(blocks[index], is_thought)
            box = self.boxes[place]
            box.is_stale = True
            if box.document is None:
                box.height, box.is_exact = self._estimate(box.block), False
        if is_thought:
            self._n_thoughts = len(blocks)
        return offset + min(first, len(blocks))

    # ---- heights

    def set_width(self, width: float) -> None:
        """Take a new width. Heights become estimates until the blocks are realized."""
        if width == self.width:
            return
        self.width = width
        self.renew()

    def renew(self) -> None:
        """Everything may have another size now: fonts, theme, width. The blocks follow when somebody looks."""
        self._knows_bubble = False
        self._is_new_width = self._is_read
        self.content_x, self.content_width = 0.0, self.width
        if self.is_user:
            self.content_width = self.width * BUBBLE_SHARE - 2 * BUBBLE_X
            self.content_x = self.width - self.content_width - BUBBLE_X
        self._estimate_all()

    def settle_width(self) -> bool:
        """Have heights of blocks for the width in force, be they estimates. True when there was something to do."""
        if not self._is_new_width:
            return False
        self._is_new_width = False
        for box in self.boxes:
            box.is_exact = False
            box.height = self._estimate(box.block)
        self._settle(0)
        return True

    def realize(self, top: float, bottom: float) -> bool:
        """Lay out what shows between these heights. True when heights changed by that."""
        changed, height = not self._is_read or self._is_new_width, self.height
        if not self._is_read:
            self._read()
        self.settle_width()
        if self.is_user and not self._knows_bubble:
            changed |= self._fit_bubble()
        index = self.first_at(top)
        while index < len(self.boxes) and self.boxes[index].top < bottom:
            box = self.boxes[index]
            before = box.height
            self._document(box)
            if abs(box.height - before) > 0.25:
                self._settle(index)
                changed = True
            index += 1
        return changed or self.height != height

    def _fit_bubble(self) -> bool:
        """Short messages get a short bubble."""
        self._knows_bubble = True
        before = self.content_width
        most = self.width * BUBBLE_SHARE - 2 * BUBBLE_X
        wanted = self.parts.attachments_width()
        if len(self.boxes) == 1:
            self._document(self.boxes[0])
            document = self.boxes[0].document
            wanted = max(wanted, document.natural_width() + 1 if document else most)
            self.boxes[0].is_exact = False
        elif self.boxes:
            wanted = most
        self.content_width = min(most, wanted)
        self.content_x = self.width - self.content_width - BUBBLE_X
        self._settle(0)
        return self.content_width != before

    def first_at(self, y: float) -> int:
        """The block at that height, or the one before the gap it falls into."""
        return max(0, bisect_right(self.boxes, y, key=lambda box: box.top) - 1)

    def _document(self, box: BlockBox) -> None:
        is_open = box is self.boxes[-1] and self.message.state in UNFINISHED
        now = time.perf_counter()
        if box.document is not None and box.is_stale and is_open and now - box.last_s < box.cost_s / RENDER_SHARE:
            self._cache.touch(box)
            return
        if box.document is None:
            box.document = BlockDocument(self._press, box.block, is_open=is_open, is_thought=box.is_thought)
            box.is_exact = False
        elif box.is_stale:
            box.document.update(box.block, is_open=is_open)
            box.is_exact = False
        box.is_stale = False
        if not box.is_exact:
            box.height = self._measure(box, box.document)
            box.is_exact = True
            box.last_s = time.perf_counter()
            box.cost_s = box.last_s - now
        self._cache.touch(box)

    def _measure(self, box: BlockBox, document: BlockDocument) -> float:
        width = self.content_width - (QUOTE_INDENT if box.is_thought else 0.0)
        match box.block.kind:
            case Kind.RULE:
                return 9.0
            case Kind.CODE | Kind.CALL:
                return document.set_width(width - 2 * CODE_PADDING) + CODE_HEAD + CODE_PADDING
            case Kind.QUOTE:
                return document.set_width(width - QUOTE_INDENT)
            case Kind.MATH:
                return document.set_width(width) + 2 * MATH_MARGIN
            case _:
                return document.set_width(width)

    def _estimate(self, block: Block) -> float:
        if block.kind is Kind.RULE:
            return 9.0
        is_code = block.kind in FRAMED
        n_lines = block.text.count("\n") + 1
        height = self._sizes.height_of(n_lines, len(block.text), self.content_width, is_code=is_code)
        return height + (CODE_HEAD + CODE_PADDING if is_code else 0)

    def _estimate_all(self) -> None:
        text = self.message.text
        if len(text) != self._n_counted:  # counted once: a window that is resized asks for all messages each time
            self._n_counted, self._n_lines = len(text), text.count("\n") + 1
        height = self._sizes.height_of(self._n_lines, len(text), self.content_width) if text else 0.0
        self.content_height = self.parts.head_height() + height + (BUBBLE_TOP + BUBBLE_BOTTOM if self.is_user else 0.0)
        self.height = self.content_height + self.parts.estimated_foot()

    def _settle(self, first: int) -> None:
        """Stack the blocks from `first` on, and the foot below them."""
        y = self.parts.head_height() + (BUBBLE_TOP if self.is_user else 0.0)
        if 0 < first <= len(self.boxes):
            above = self.boxes[first - 1]
            y = above.top + above.height
        for index in range(min(first, len(self.boxes)), len(self.boxes)):
            y += self._gap(index)
            self.boxes[index].top = y
            y += self.boxes[index].height
        self.content_height = y + (BUBBLE_BOTTOM if self.is_user else 0.0)
        self.height = self.content_height + self.parts.foot_height(self.width, has_content=self.content_height > 0)

    def _gap(self, index: int) -> float:
        block = self.boxes[index].block
        if index == 0:
            return 0.0
        if block.is_continuation:
            return 4.0 if block.kind is Kind.LIST else 0.0
        return HEADING_GAP if block.kind is Kind.HEADING else BLOCK_GAP

    # ---- what can be clicked

    def hot_spots(self, top: float, bottom: float) -> list[HotSpot]:
        """What can be clicked between two heights. Only there: an answer may hold a thousand code blocks."""
        spots = []
        index = self.first_at(top)
        while index < len(self.boxes) and self.boxes[index].top < bottom:
            box = self.boxes[index]
            if box.block.kind in FRAMED:
                right = self.content_x + self.content_width
                spots.append(HotSpot(QRectF(right - 74, box.top + 4, 70, 26), "copy_code", index))
            index += 1
        return spots + self.parts.spots(
            width=self.width, content_x=self.content_x, content_height=self.content_height, height=self.height
        )

    # ---- text positions

    def document_origin(self, index: int) -> QPointF:
        """Where the block's document stands, in the message's coordinates."""
        box = self.boxes[index]
        x = self.content_x + (QUOTE_INDENT if box.is_thought else 0.0)
        match box.block.kind:
            case Kind.CODE | Kind.CALL:
                return QPointF(x + CODE_PADDING, box.top + CODE_HEAD)
            case Kind.QUOTE:
                return QPointF(x + QUOTE_INDENT, box.top)
            case Kind.MATH:
                return QPointF(x, box.top + MATH_MARGIN)
            case _:
                return QPointF(x, box.top)

    def position_at(self, point: QPointF) -> tuple[int, int]:
        """Block and character nearest to a point."""
        if not self.boxes:
            return 0, 0
        index = self.first_at(point.y())
        self._document(self.boxes[index])
        document = self.boxes[index].document
        if document is None:
            return index, 0
        layout = document.document.documentLayout()
        offset = layout.hitTest(point - self.document_origin(index), Qt.HitTestAccuracy.FuzzyHit)
        return index, max(0, offset)

    def link_at(self, point: QPointF) -> str:
        if not self.boxes:
            return ""
        index = self.first_at(point.y())
        document = self.boxes[index].document
        if document is None:
            return ""
        return document.document.documentLayout().anchorAt(point - self.document_origin(index))

    def text_between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """What a person sees between two positions, without Markdown's marks; formulas as they were written."""
        if not self._is_read:
            self._read()
        parts = []
        for index in range(start[0], min(end[0], len(self.boxes) - 1) + 1):
            box = self.boxes[index]
            self._document(box)
            if box.document is None:
                continue
            document = box.document.document
            last = document.characterCount() - 1
            cursor = QTextCursor(document)
            cursor.setPosition(min(last, start[1] if index == start[0] else 0))
            before = cursor.position()
            stop = min(last, end[1]) if index == end[0] else last
            cursor.setPosition(stop, QTextCursor.MoveMode.KeepAnchor)
            sources = box.document.formula_sources
            n_before = document.toRawText()[:before].count(_PICTURE) if sources else 0
            parts.append(_plain(cursor.selectedText(), sources[n_before:]))
        return "\n\n".join(part for part in parts if part)

    def end_position(self) -> tuple[int, int]:
        return max(0, len(self.boxes) - 1), 1 << 30

    def accepted_ranges(self, index: int) -> list[tuple[int, int]]:
        """The characters of a block's document that the draft proposed and the target accepted."""
        return accepted_ranges(self.boxes, index, self.message) if self.message.accepted_runs else []


_PICTURE = "\ufffc"


def _plain(selected: str, formula_sources: list[str]) -> str:
    """QTextCursor's paragraph, line and frame marks as line breaks and tabs."""
    for source in formula_sources[: selected.count(_PICTURE)]:
        selected = selected.replace(_PICTURE, source, 1)
    table = {0x2029: "\n", 0x2028: "\n", 0xFDD0: "\n", 0xFDD1: "\n", 0xFFFC: "", 0xA0: " ", 0x2060: ""}
    return selected.translate(table).strip("\n")
