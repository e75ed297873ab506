"""A chat in reading order, for files that people read: the branch that shows, then every other version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dflash_desktop.chats.branches import Branches
from dflash_desktop.chats.records import Conversation, MessageRecord, Role


@dataclass(frozen=True, slots=True)
class ExportWords:
    """What an exported file says in the person's own language. The defaults are English."""

    roles: Mapping[Role, str]
    thoughts: str
    attached: str
    version: str  # with {0} and {1}: which of how many
    when: Callable[[float], str]  # seconds since 1970
    facts: Callable[[Mapping[str, Any]], str]  # one line about a reply; empty when nothing is known


@dataclass(frozen=True, slots=True)
class Section:
    """Messages that follow each other. `version`: which of how many its first message is; None for the main one."""

    messages: tuple[MessageRecord, ...]
    version: tuple[int, int] | None = None


def branch_of(conversation: Conversation) -> tuple[MessageRecord, ...]:
    """The messages that show."""
    branches, known = _read(conversation)
    return tuple(known[one] for one in branches.path())


def sections_of(conversation: Conversation, *, all_branches: bool) -> list[Section]:
    """The branch that shows; with `all_branches` then, each once, the versions that do not, with what follows them."""
    branches, known = _read(conversation)
    sections: list[Section] = []
    waiting: list[tuple[list[int], tuple[int, int] | None]] = [(branches.path(), None)]
    while waiting:
        path, version = waiting.pop(0)
        sections.append(Section(tuple(known[one] for one in path), version))
        if not all_branches:
            break
        inside = set(path)
        others: list[tuple[list[int], tuple[int, int] | None]] = []
        for place, one in enumerate(path):
            if place == 0 and version is not None:
                continue  # its siblings are sections already
            others += [
                (branches.path_from(sibling), branches.place(sibling))
                for sibling in branches.siblings(one)
                if sibling not in inside
            ]
        waiting = others + waiting
    return [section for section in sections if section.messages]


def _read(conversation: Conversation) -> tuple[Branches, dict[int, MessageRecord]]:
    branches = Branches()
    for message in conversation.messages:
        branches.add(message.message_id, message.parent_id, message.shown_order)
    return branches, {message.message_id: message for message in conversation.messages}
