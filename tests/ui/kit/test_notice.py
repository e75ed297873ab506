"""Notices: their words keep the room that reading takes."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.theme import Theme

WORDS = "The program ended unexpectedly last time, while a model was answering. Your chats are still here. " * 2
WAYS = [("Show the log", list), ("Save a report…", list)]


@pytest.mark.parametrize("more", [WAYS, []])
def test_several_ways_out_leave_the_words_their_room(theme: Theme, icons: Icons, qtbot: QtBot, more: list) -> None:  # type: ignore[type-arg]
    notice = Notice(theme, icons)
    qtbot.addWidget(notice)
    notice.resize(620, 10)
    notice.show_error(WORDS, "Change what is loaded…", list, WAYS)
    notice.show_error(WORDS, "Change what is loaded…", list, more)
    notice.adjustSize()
    notice.resize(620, notice.height())
    assert [button.text() for button in notice.buttons()] == ["Change what is loaded…", *(words for words, _ in more)]
    assert notice._text.width() > 300
    below = [button.mapTo(notice, button.rect().topLeft()).y() for button in notice.buttons()]
    assert all((y >= notice._text.geometry().bottom()) is bool(more) for y in below)
