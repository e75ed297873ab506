"""Stores that are closed again, and chats to put into them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from dflash_desktop.chats.events import StoreEvent, StoreOpened
from dflash_desktop.chats.records import ChatRecord, MessageRecord, Role, new_id
from dflash_desktop.chats.store import ChatStore
from support.patience import LONG_S

Event = TypeVar("Event")


class OpenStore:
    """A running store and what it has said."""

    def __init__(self, folder: Path) -> None:
        self.store = ChatStore(folder)
        self._events: queue.Queue[StoreEvent] = queue.Queue()
        self.store.start(self._events.put)
        self.opened = self.wait(StoreOpened)

    def wait(self, kind: type[Event]) -> Event:
        """The next event of that kind."""
        while True:
            event = self._events.get(timeout=LONG_S)
            if isinstance(event, kind):
                return event


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., OpenStore]]:
    made: list[OpenStore] = []

    def make(folder: Path = tmp_path) -> OpenStore:
        made.append(OpenStore(folder))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


def chat_of(title: str = "Sky", **more: object) -> ChatRecord:
    return ChatRecord(new_id(), title=title, created_s=1.0, changed_s=more.pop("changed_s", 2.0), **more)  # type: ignore[arg-type]


def message_of(role: Role, text: str, parent: MessageRecord | None = None, **more: object) -> MessageRecord:
    return MessageRecord(
        new_id(),
        parent.message_id if parent else None,
        role,
        text,
        created_s=3.0,
        shown_order=1,
        **more,  # type: ignore[arg-type]
    )
