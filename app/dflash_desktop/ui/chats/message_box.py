"""The geometry of one message: its blocks, which of them are laid out, and how high it is."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QTextCursor

from dflash_desktop.ui.chats.blocks import Block, Kind, MarkdownBlocks, plain_blocks
from dflash_desktop.ui.chats.documents import LINE_PERCENT, BlockDocument
from dflash_desktop.ui.chats.messages import UNFINISHED, Message, ReplyState
from dflash_desktop.ui.kit.theme import Theme

BLOCK_GAP = 13.0
HEADING_GAP = 22.0
CODE_PADDING = 14.0
CODE_HEAD = 34.0
QUOTE_INDENT = 18.0
BUBBLE_X, BUBBLE_TOP, BUBBLE_BOTTOM = 16.0, 12.0, 8.0  # lines are higher than their text: it looks centred so
FOOT_GAP = 10.0
BUTTON = 28.0
KEPT_DOCUMENTS = 240
"""Laid-out blocks kept in memory over all messages; the rest is laid out again when it comes into view."""
RENDER_SHARE = 0.125
"""A growing block that is dear to lay out (a long table) is laid out less often: this share of the time at most."""

Action = Literal["copy", "copy_code", "again"]


@dataclass(frozen=True, slots=True)
class HotSpot:
    """Something to click, in the message's own coordinates."""

    rect: QRectF
    action: Action
    block_index: int = -1


@dataclass(slots=True, eq=False)
class BlockBox:
    block: Block
    top: float = 0.0
    height: float = 0.0
    is_exact: bool = False
    is_stale: bool = True  # the text grew since the document was made
    document: BlockDocument | None = None
    last_s: float = 0.0
    cost_s: float = 0.0


@dataclass(slots=True)
class DocumentCache:
    """The most recently shown documents; the others are dropped, their heights kept."""

    recent: OrderedDict[BlockBox, None] = field(default_factory=OrderedDict)

    def touch(self, box: BlockBox) -> None:
        self.recent[box] = None
        self.recent.move_to_end(box)
        while len(self.recent) > KEPT_DOCUMENTS:
            old, _ = self.recent.popitem(last=False)
            old.document = None
            old.is_stale = True

    def clear(self) -> None:
        for box in self.recent:
            box.document = None
            box.is_stale = True
        self.recent.clear()


class MessageBox:
    """One message at one width. Only blocks asked for by `realize` are laid out; the others have estimated heights."""

    def __init__(self, theme: Theme, cache: DocumentCache, message: Message) -> None:
        self._theme = theme
        self._cache = cache
        self.message = message
        self.boxes: list[BlockBox] = []
        self._reader = MarkdownBlocks()
        self._n_read = 0
        self._is_finished = False
        self.is_last = True
        self.width = 0.0
        self.content_x = 0.0
        self.content_width = 0.0
        self.content_height = 0.0
        self.height = 0.0
        self._char_width = QFontMetricsF(theme.font("reading")).averageCharWidth()
        self._line_height = QFontMetricsF(theme.font("reading")).height() * LINE_PERCENT / 100
        self.sync()

    @property
    def is_user(self) -> bool:
        return self.message.role == "user"

    @property
    def has_foot(self) -> bool:
        return not self.is_user and self.message.state not in UNFINISHED

    def sync(self) -> None:
        """Read what is new in the message's text."""
        text = self.message.text
        if self.is_user:
            if self._n_read != len(text) or not self.boxes:
                self.boxes = [BlockBox(block) for block in plain_blocks(text)]
                self._n_read = len(text)
                self._settle(0)
            return
        is_finished = self.message.state not in UNFINISHED
        if len(text) < self._n_read or (self._is_finished and len(text) != self._n_read):
            self._reader, self.boxes, self._n_read, self._is_finished = MarkdownBlocks(), [], 0, False
        first = len(self.boxes)
        if len(text) > self._n_read:
            first = min(first, self._reader.feed(text[self._n_read :]))
            self._n_read = len(text)
        if is_finished and not self._is_finished:
            first = min(first, self._reader.finish(), max(0, len(self.boxes) - 1))
            self._is_finished = True
        self._take_blocks(first)
        self._settle(first)

    def _take_blocks(self, first: int) -> None:
        blocks = self._reader.blocks
        del self.boxes[len(blocks) :]
        for index in range(first, len(blocks)):
            if index == len(self.boxes):
                self.boxes.append(BlockBox(blocks[index]))
            elif self.boxes[index].block is not blocks[index]:
                self.boxes[index] = BlockBox(blocks[index])
            box = self.boxes[index]
            box.is_stale = True
            if box.document is None:
                box.height, box.is_exact = self._estimate(box.block), False

    def set_width(self, width: float) -> None:
        """Take a new width. Heights become estimates until the blocks are realized."""
        if width == self.width:
            return
        self.width = width
        self.content_x, self.content_width = 0.0, width
        if self.is_user:
            most = width * 0.86 - 2 * BUBBLE_X
            if len(self.boxes) == 1:
                box = self.boxes[0]
                self._document(box)
                self.content_width = min(most, (box.document.natural_width() if box.document else most) + 1)
            else:
                self.content_width = most
            self.content_x = width - self.content_width - BUBBLE_X
        for box in self.boxes:
            box.is_exact = False
            box.height = self._estimate(box.block)
        self._settle(0)

    def realize(self, top: float, bottom: float) -> bool:
        """Lay out what shows between these heights. True when heights changed by that."""
        changed = False
        index = self.first_at(top)
        while index < len(self.boxes) and self.boxes[index].top < bottom:
            box = self.boxes[index]
            before = box.height
            self._document(box)
            if abs(box.height - before) > 0.25:
                self._settle(index)
                changed = True
            index += 1
        return changed

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
            box.document = BlockDocument(self._theme, box.block, is_open=is_open)
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
        match box.block.kind:
            case Kind.RULE:
                return 9.0
            case Kind.CODE:
                return document.set_width(self.content_width - 2 * CODE_PADDING) + CODE_HEAD + CODE_PADDING
            case Kind.QUOTE:
                return document.set_width(self.content_width - QUOTE_INDENT)
            case _:
                return document.set_width(self.content_width)

    def _estimate(self, block: Block) -> float:
        if block.kind is Kind.RULE:
            return 9.0
        per_line = max(8.0, (self.content_width or 600.0) / self._char_width)
        n_lines = block.text.count("\n") + 1 + len(block.text) / per_line * (0.2 if block.kind is Kind.CODE else 0.9)
        return n_lines * self._line_height + (CODE_HEAD + CODE_PADDING if block.kind is Kind.CODE else 0)

    def _settle(self, first: int) -> None:
        """Stack the blocks from `first` on, and the foot below them."""
        y = BUBBLE_TOP if self.is_user else 0.0
        if first > 0:
            above = self.boxes[first - 1]
            y = above.top + above.height
        for index in range(first, len(self.boxes)):
            y += self._gap(index)
            self.boxes[index].top = y
            y += self.boxes[index].height
        self.content_height = y + (BUBBLE_BOTTOM if self.is_user else 0.0)
        self.height = self.content_height + self.foot_height()

    def _gap(self, index: int) -> float:
        block = self.boxes[index].block
        if index == 0:
            return 0.0
        if block.is_continuation:
            return 4.0 if block.kind is Kind.LIST else 0.0
        return HEADING_GAP if block.kind is Kind.HEADING else BLOCK_GAP

    # ---- foot: status, error, facts

    def foot_height(self) -> float:
        height = 0.0
        gap = FOOT_GAP if self.content_height else 0.0
        if self.message.status_words():
            height += gap + self.status_rect_height()
        if self.message.error:
            height += gap + self.error_height()
        if self.has_foot:
            height += FOOT_GAP + max(BUTTON, self.facts_height())
        return height

    def status_rect_height(self) -> float:
        bar = 14.0 if self.message.state is ReplyState.READING else 0.0
        return QFontMetricsF(self._theme.font("body")).height() + bar + 4

    def error_height(self) -> float:
        return self._text_height("body", self.message.error, self.width - 56) + 24

    def facts_x(self) -> float:
        return (2 if self.is_last else 1) * BUTTON + 10

    def facts_height(self) -> float:
        facts = self.message.facts
        return self._text_height("caption", facts.line(), self.width - self.facts_x()) if facts else 0.0

    def _text_height(self, role: Literal["caption", "body"], text: str, width: float) -> float:
        metrics = QFontMetricsF(self._theme.figure_font(role))
        flags = int(Qt.TextFlag.TextWordWrap.value)
        return metrics.boundingRect(QRectF(0, 0, max(40.0, width), 1e6), flags, text).height()

    def hot_spots(self, top: float, bottom: float) -> list[HotSpot]:
        """What can be clicked between two heights. Only there: an answer may hold a thousand code blocks."""
        spots = []
        index = self.first_at(top)
        while index < len(self.boxes) and self.boxes[index].top < bottom:
            box = self.boxes[index]
            if box.block.kind is Kind.CODE:
                right = self.content_x + self.content_width
                spots.append(HotSpot(QRectF(right - 74, box.top + 4, 70, 26), "copy_code", index))
            index += 1
        if self.is_user:
            spots.append(HotSpot(QRectF(self.content_x - BUBBLE_X - BUTTON - 6, 6, BUTTON, BUTTON), "copy"))
        elif self.has_foot:
            y = self.height - max(BUTTON, self.facts_height())
            spots.append(HotSpot(QRectF(-6, y, BUTTON, BUTTON), "copy"))
            if self.is_last:
                spots.append(HotSpot(QRectF(BUTTON - 4, y, BUTTON, BUTTON), "again"))
        return spots

    # ---- text positions

    def document_origin(self, index: int) -> QPointF:
        """Where the block's document stands, in the message's coordinates."""
        box = self.boxes[index]
        match box.block.kind:
            case Kind.CODE:
                return QPointF(self.content_x + CODE_PADDING, box.top + CODE_HEAD)
            case Kind.QUOTE:
                return QPointF(self.content_x + QUOTE_INDENT, box.top)
            case _:
                return QPointF(self.content_x, box.top)

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
        """What a person sees between two positions, without Markdown's marks."""
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
            stop = min(last, end[1]) if index == end[0] else last
            cursor.setPosition(stop, QTextCursor.MoveMode.KeepAnchor)
            parts.append(_plain(cursor.selectedText()))
        return "\n\n".join(part for part in parts if part)

    def end_position(self) -> tuple[int, int]:
        return max(0, len(self.boxes) - 1), 1 << 30


def _plain(selected: str) -> str:
    """QTextCursor's paragraph, line and frame marks as line breaks and tabs."""
    table = {0x2029: "\n", 0x2028: "\n", 0xFDD0: "\n", 0xFDD1: "\n", 0xFFFC: "", 0xA0: " "}
    return selected.translate(table).strip("\n")
