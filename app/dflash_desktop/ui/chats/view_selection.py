"""Selected text across messages: where it begins and ends, and what it says."""

from __future__ import annotations

from PySide6.QtGui import QTextCursor

from dflash_desktop.ui.chats.message_box import MessageBox

Spot = tuple[int, int, int]  # message, block, character
_END = 1 << 30


class ViewSelection:
    """Reads the view's list of boxes; holds positions only."""

    def __init__(self, boxes: list[MessageBox]) -> None:
        self._boxes = boxes
        self._anchor: Spot | None = None
        self._end: Spot | None = None
        self._is_pressed = False
        self._has_moved = False

    @property
    def is_dragging(self) -> bool:
        return self._is_pressed

    def clear(self) -> None:
        self._anchor = self._end = None
        self._is_pressed = False

    def press(self, spot: Spot, *, extends: bool) -> None:
        if not (extends and self._anchor):
            self._anchor = spot
        self._end = spot
        self._is_pressed = True
        self._has_moved = False

    def drag(self, spot: Spot) -> None:
        self._has_moved |= spot != self._anchor
        self._end = spot

    def release(self) -> bool:
        """The button is up. True when text was selected by it."""
        was_drag = self._is_pressed and self._has_moved
        self._is_pressed = False
        return was_drag

    def take_all(self) -> None:
        if self._boxes:
            self._anchor = (0, 0, 0)
            self._end = (len(self._boxes) - 1, *self._boxes[-1].end_position())

    def take_word(self, spot: Spot) -> None:
        row, index, offset = spot
        document = self._boxes[row].boxes[index].document if index < len(self._boxes[row].boxes) else None
        if document is None:
            return
        cursor = QTextCursor(document.document)
        cursor.setPosition(min(offset, document.document.characterCount() - 1))
        cursor.select(QTextCursor.SelectionType.WordUnderCursor)
        self._anchor = (row, index, cursor.selectionStart())
        self._end = (row, index, cursor.selectionEnd())

    def inside_any(self) -> bool:
        return self._anchor is not None and self._anchor != self._end

    def inside(self, row: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The selected part of one message."""
        if self._anchor is None or self._end is None or self._anchor == self._end:
            return None
        first, last = sorted((self._anchor, self._end))
        if not first[0] <= row <= last[0]:
            return None
        start = first[1:] if row == first[0] else (0, 0)
        end = last[1:] if row == last[0] else (_END, _END)
        return start, end

    def text(self) -> str:
        parts = []
        for row, box in enumerate(self._boxes):
            part = self.inside(row)
            if part is None:
                continue
            is_whole = part[0] == (0, 0) and part[1][0] >= len(box.boxes) - 1 and part[1][1] >= _END
            parts.append(box.message.text if is_whole else box.text_between(*part))
        return "\n\n".join(part for part in parts if part)
