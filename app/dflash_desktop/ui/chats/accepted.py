"""Which characters of a shown block the draft had proposed: from runs over the written text to what is seen of it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from dflash_desktop.ui.chats.block_box import BlockBox
from dflash_desktop.ui.chats.messages import Message

_LOOK_AHEAD = 80
"""Markup between two shown characters is shorter than this."""


def accepted_ranges(boxes: list[BlockBox], index: int, message: Message) -> list[tuple[int, int]]:
    """Ranges in the plain text of block `index`, for a message with `accepted_runs`."""
    box = boxes[index]
    if box.is_thought or box.document is None:
        return []
    _find_sources(boxes, index, message.text)
    ends = list(accumulate(message.accepted_runs))
    ranges: list[tuple[int, int]] = []
    at = max(0, box.source_start)
    for place, char in enumerate(box.document.document.toPlainText()):
        if char.isspace() or char == "\ufffc":
            found = at
        else:
            found = message.text.find(char, at, at + _LOOK_AHEAD)
            if found < 0:
                continue
            at = found + 1
        if bisect_right(ends, found) % 2 == 1:
            if ranges and ranges[-1][1] == place:
                ranges[-1] = (ranges[-1][0], place + 1)
            else:
                ranges.append((place, place + 1))
    return ranges


def _find_sources(boxes: list[BlockBox], last: int, text: str) -> None:
    """Say of each block up to `last` where it begins in the message."""
    at = 0
    for box in boxes[: last + 1]:
        if box.is_thought:
            continue
        if box.source_start < 0:
            first_line = box.block.text.split("\n", 1)[0].strip()
            found = text.find(first_line, at) if first_line else at
            box.source_start = at if found < 0 else found
        at = box.source_start + 1
