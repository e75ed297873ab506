"""Room on the chat page: what is offered is readable in the smallest window, what floats keeps its place."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.message_view import MessageView
from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.window import SMALLEST
from ui.conftest import Desk
from ui.scripted_engine import Script


def is_readable(button: QPushButton) -> bool:
    return button.width() >= button.sizeHint().width()


def test_every_way_out_of_a_full_context_is_readable_in_the_smallest_window(desk: Desk) -> None:
    desk.window.resize(SMALLEST)
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    choice = desk.page.context.choice
    for can_shorten in (True, False, True):
        choice.offer(is_message=False, larger_tokens=131_072, can_leave_out=True, can_shorten=can_shorten)
        desk.qtbot.wait(50)  # layouts settle in the event loop
        assert desk.window.size() == SMALLEST
        shown = [way for way in choice._ways if way.isVisible()]
        assert len(shown) == 3 + can_shorten
        assert [way.text() for way in shown if not is_readable(way)] == []
        assert desk.composer.width() == choice.width()  # it does not push the page wider than the window
    desk.window.resize(1600, 900)
    desk.qtbot.wait(50)
    tops = {way.geometry().top() for way in choice._ways}
    assert len(tops) == 1


def test_the_way_to_the_end_stays_above_what_takes_its_room(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="word\n\n" * 80))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    desk.page.view.verticalScrollBar().setValue(0)
    button, room = desk.page.jump_button, desk.page.jump_button.parentWidget()
    assert room is not None
    gap = room.height() - button.geometry().bottom()
    before = room.height()
    desk.page.notice.show_error("A message that takes a line or two. " * 4)
    desk.qtbot.waitUntil(lambda: room.height() < before)
    assert button.isVisible()
    assert room.height() - button.geometry().bottom() == gap
    desk.page.notice.hide()
    desk.qtbot.waitUntil(lambda: room.height() == before)
    assert room.height() - button.geometry().bottom() == gap


def test_the_strip_of_a_plain_reply_says_no_acceptance_length(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="word " * 40, reason="plain_faster"))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    strip = desk.page.strip
    desk.qtbot.waitUntil(lambda: strip.accessibleName().startswith("Plain decoding, "))


def test_the_keys_that_menus_show_are_those_that_the_conversation_hears(
    theme: Theme, icons: Icons, qtbot: QtBot
) -> None:
    model, view = ChatItemModel(), MessageView(theme, icons)
    qtbot.addWidget(view)
    view.setModel(model)
    model.append(Message("user", "go"))
    model.append(Message("assistant", "Hello."))
    heard: list[str] = []
    view.edit_clicked.connect(lambda _message: heard.append("E"))
    view.again_clicked.connect(lambda _message: heard.append("R"))
    view.delete_clicked.connect(lambda _message: heard.append("Del"))
    for row, names in ((0, ("Write anew", "Delete from here on")), (1, ("Answer again", "Delete from here on"))):
        keys = {action.text(): action.shortcut() for action in view.menu_for(row).actions()}
        view.make_current(row)
        for name in names:
            named = keys[name].toString()
            QTest.keyClick(view, {"E": Qt.Key.Key_E, "R": Qt.Key.Key_R, "Del": Qt.Key.Key_Delete}[named])
            assert heard.pop() == named


def test_the_menu_of_the_chat_tints_what_was_accepted(desk: Desk) -> None:
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    tint = next(action for action in desk.page.head.menu().actions() if action.isCheckable())
    tint.trigger()
    assert desk.page.view.shows_accepted
