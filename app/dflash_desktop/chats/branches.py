"""Which message follows which, and which branch shows. Links only: whose messages they are is the caller's business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Link:
    parent_id: int | None
    shown_order: int


class Branches:
    """The messages of one chat by id. One whose parent is unknown counts as a first one, so that nothing hides."""

    def __init__(self) -> None:
        self._links: dict[int, _Link] = {}
        self._children: dict[int | None, list[int]] = {None: []}

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._links

    def __len__(self) -> int:
        return len(self._links)

    def add(self, message_id: int, parent_id: int | None, shown_order: int) -> None:
        """Add a message below its parent, as the last of its siblings. Parents come first."""
        if parent_id not in self._children:
            parent_id = None
        self._links[message_id] = _Link(parent_id, shown_order)
        self._children.setdefault(parent_id, []).append(message_id)
        self._children.setdefault(message_id, [])

    def next_order(self) -> int:
        """A `shown_order` greater than all."""
        return 1 + max((link.shown_order for link in self._links.values()), default=0)

    def path(self) -> list[int]:
        """The messages that show, first to last."""
        return self._down(None)

    def path_from(self, message_id: int) -> list[int]:
        """That message and what shows below it."""
        return [message_id, *self._down(message_id)]

    def siblings(self, message_id: int) -> list[int]:
        """The other versions of a message and itself, oldest first."""
        return list(self._children[self._links[message_id].parent_id])

    def place(self, message_id: int) -> tuple[int, int]:
        """Which of how many siblings it is, counted from 1."""
        siblings = self._children[self._links[message_id].parent_id]
        return siblings.index(message_id) + 1, len(siblings)

    def parent(self, message_id: int) -> int | None:
        return self._links[message_id].parent_id

    def show(self, message_id: int) -> int:
        """Make that message the one of its siblings that shows, and return its new order."""
        order = self.next_order()
        self._links[message_id].shown_order = order
        return order

    def below(self, message_id: int) -> list[int]:
        """That message and all its descendants on every branch, parents first."""
        found = [message_id]
        for one in found:
            found += self._children[one]
        return found

    def remove(self, message_id: int) -> list[int]:
        """Take out that message with all its descendants, and return their ids, parents first."""
        removed = self.below(message_id)
        self._children[self._links[message_id].parent_id].remove(message_id)
        for one in removed:
            del self._links[one], self._children[one]
        return removed

    def _down(self, message_id: int | None) -> list[int]:
        path = []
        children = self._children[message_id]
        while children:
            shown = max(children, key=lambda child: self._links[child].shown_order)
            path.append(shown)
            children = self._children[shown]
        return path
