"""What one chat page hands to the next when the window is built again: unsent text, the place in the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_desktop.ui.chats.composer import Unfinished
from dflash_desktop.ui.chats.messages import Message

if TYPE_CHECKING:
    from dflash_desktop.ui.chats.message_stack import Anchor
    from dflash_desktop.ui.chats.page import ChatPage


@dataclass(frozen=True, slots=True)
class CarriedChat:
    """Of one page."""

    unfinished: Unfinished
    edited: Message | None  # the message that is being written anew
    place: Anchor | None  # what is at the view's upper edge; None: it follows the end
    shows_accepted: bool
    searched: str


def take_from(page: ChatPage) -> CarriedChat:
    """What that page shows and nobody else knows."""
    return CarriedChat(
        page.composer.unfinished(),
        page.desk.edited,
        page.view.place(),
        page.view.shows_accepted,
        page.chats.search.text(),
    )


def give_to(page: ChatPage, carried: CarriedChat) -> None:
    """Show it there. The page has its size by now."""
    page.composer.go_on_with(carried.unfinished)
    page.desk.go_on_editing(carried.edited)
    page.view.show_accepted(is_on=carried.shows_accepted)
    page.chats.search.setText(carried.searched)
    page.view.go_to(carried.place)
