"""One block of a message in the view: where it stands, and its document while it is kept."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from dflash_desktop.ui.chats.blocks import Block
from dflash_desktop.ui.chats.documents import BlockDocument

KEPT_DOCUMENTS = 240
"""Laid-out blocks kept in memory over all messages; the rest is laid out again when it comes into view."""


@dataclass(slots=True, eq=False)
class BlockBox:
    block: Block
    is_thought: bool = False
    top: float = 0.0
    height: float = 0.0
    is_exact: bool = False
    is_stale: bool = True  # the text grew since the document was made
    document: BlockDocument | None = None
    last_s: float = 0.0
    cost_s: float = 0.0
    source_start: int = -1  # where the block's text begins in the message's; -1: not looked for yet


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
            box.is_exact = False
        self.recent.clear()

    def renew_formulas(self) -> bool:
        """Formulas that were waited for are there: have those documents made again. True when there were any."""
        waiting = [box for box in self.recent if box.document is not None and box.document.waits_for_formula]
        for box in waiting:
            box.document = None
            box.is_stale = True
            box.is_exact = False
        return bool(waiting)
