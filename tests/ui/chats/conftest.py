"""A window whose chats are kept, and what a person does and sees there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_desktop.chats.events import StoreEvent, StoreOpened
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.ui.chats.chat_list_model import ChatRow
from dflash_desktop.ui.parts import Parts
from ui.conftest import Desk
from ui.scripted_engine import Script

OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(make_desk: Callable[..., Desk], tmp_path: Path) -> OpenDesk:
    """A window with a store, ready when its chats are there. A second call is the next start."""

    def make(script: Script | None = None) -> Desk:
        told: list[StoreEvent] = []
        store = ChatStore(tmp_path / "chats")
        start = store.start

        def start_and_watch(subscriber: Callable[[StoreEvent], None]) -> None:
            def watch(event: StoreEvent) -> None:
                subscriber(event)
                told.append(event)

            start(watch)

        store.start = start_and_watch  # type: ignore[method-assign]
        desk = make_desk(script, parts=Parts(chats=store))
        desk.qtbot.waitUntil(lambda: any(isinstance(event, StoreOpened) for event in told))
        desk.qtbot.wait(30)  # the window hears of it in its next turn
        return desk

    return make


def ask(desk: Desk, *texts: str) -> None:
    for text in texts:
        desk.send(text)
        desk.wait_for_reply()


def titles(desk: Desk) -> list[str]:
    items = desk.page.chats.items
    rows = [items.row(number) for number in range(items.rowCount())]
    return [row.title for row in rows if isinstance(row, ChatRow)]


def texts(desk: Desk) -> list[str]:
    return [message.text for message in desk.items.messages()]


def open_chat(desk: Desk, title: str) -> None:
    items = desk.page.chats.items
    number = titles_with_rows(desk)[title]
    desk.page.chats.list.clicked.emit(items.index(number))
    desk.qtbot.waitUntil(lambda: desk.page.head.title() == title)


def titles_with_rows(desk: Desk) -> dict[str, int]:
    items = desk.page.chats.items
    found = {}
    for number in range(items.rowCount()):
        row = items.row(number)
        if isinstance(row, ChatRow):
            found[row.title] = number
    return found
