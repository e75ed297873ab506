"""The painted conversation: only what shows is laid out; it follows the end, or stays."""

from __future__ import annotations

import gc
import random
import time

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.chats.block_box import KEPT_DOCUMENTS
from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.message_stack import MESSAGE_GAP
from dflash_desktop.ui.chats.message_view import MessageView
from dflash_desktop.ui.chats.messages import Message, ReplyState
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import L
from dflash_desktop.ui.kit.theme import Theme
from support.patience import in_time

PARAGRAPH = "The quick brown fox jumps over the **lazy** dog, and `code` follows. " * 6
ANSWER = (
    f"## Head\n\n{PARAGRAPH}\n\n```python\nprint('hello')\n```\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
)


@pytest.fixture
def model() -> ChatItemModel:
    return ChatItemModel()


@pytest.fixture
def view(theme: Theme, icons: Icons, model: ChatItemModel, qtbot: QtBot) -> MessageView:
    made = MessageView(theme, icons)
    qtbot.addWidget(made)
    made.setModel(model)
    made.resize(900, 600)
    with qtbot.waitExposed(made):
        made.show()
    return made


def fill(model: ChatItemModel, n_pairs: int, answer: str = ANSWER) -> None:
    for number in range(n_pairs):
        model.append(Message("user", f"Question {number}"))
        model.append(Message("assistant", answer))


def laid_out(view: MessageView) -> int:
    return sum(box.document is not None for message in view._stack.boxes for box in message.boxes)


def test_only_what_shows_is_laid_out(view: MessageView, model: ChatItemModel, qtbot: QtBot) -> None:
    fill(model, 60)
    qtbot.wait(20)
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum()
    for value in range(0, bar.maximum(), 400):
        bar.setValue(value)
    view.grab()
    assert laid_out(view) <= KEPT_DOCUMENTS


def test_it_follows_the_end_until_the_person_scrolls_up(view: MessageView, model: ChatItemModel, qtbot: QtBot) -> None:
    fill(model, 3)
    reply = Message("assistant", "", ReplyState.WRITING)
    model.append(reply)
    bar = view.verticalScrollBar()
    for _ in range(30):
        model.extend_reply(reply, PARAGRAPH + "\n\n")
        assert bar.value() == bar.maximum()
    bar.setValue(bar.value() - 3)  # a touch pad's smallest move
    assert not view.is_following
    stays = bar.value()
    for _ in range(10):
        model.extend_reply(reply, PARAGRAPH + "\n\n")
    assert bar.value() == stays
    view.follow()
    assert bar.value() == bar.maximum()


def test_the_first_move_away_from_the_end_arrives_where_it_was_meant_to(
    view: MessageView, model: ChatItemModel, qtbot: QtBot
) -> None:
    """What it uncovers has another height than was guessed: that is no reason to go back to the end."""
    fill(model, 1, "# A heading that is higher than a line of text\n\n" * 30 + PARAGRAPH)
    qtbot.wait(20)
    bar = view.verticalScrollBar()
    was_following = view.is_following
    assert was_following
    assert bar.maximum() > view.height()
    bar.setValue(0)
    assert not view.is_following
    assert bar.value() == 0
    view.follow()
    aim = bar.maximum() // 2
    bar.setValue(aim)
    assert abs(bar.value() - aim) < view.height()


def test_the_text_under_the_eyes_stays_when_the_window_changes_its_width(
    view: MessageView, model: ChatItemModel, qtbot: QtBot
) -> None:
    fill(model, 40)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    before = view._stack.anchor_at(view.verticalScrollBar().value())
    view.resize(640, 600)
    qtbot.wait(10)
    after = view._stack.anchor_at(view.verticalScrollBar().value())
    assert before is not None
    assert after is not None
    assert (before.row, before.block_index) == (after.row, after.block_index)


def test_messages_stand_where_they_would_had_all_been_placed_anew(
    view: MessageView, model: ChatItemModel, qtbot: QtBot
) -> None:
    """Only what changed is placed again: whatever happened, nothing overlaps and nothing is torn apart."""
    chance = random.Random(3)
    fill(model, 6)
    for _ in range(60):
        row = chance.randrange(model.rowCount())
        match chance.randrange(6):
            case 0:
                model.append(Message("assistant", ANSWER[: chance.randrange(len(ANSWER))]))
            case 1 if model.rowCount() > 3:
                model.remove_from(max(2, model.rowCount() - 2))
            case 2:
                model.set_text(model.message(row), PARAGRAPH * chance.randrange(4))
            case 3:
                view.resize(chance.choice([640, 900, 1200]), 600)
            case 4:
                view.verticalScrollBar().setValue(chance.randrange(view.verticalScrollBar().maximum() + 1))
            case _:
                model.follow_path([*model.messages()[: row + 1], Message("user", "another branch")])
        stack = view._stack
        assert len(stack.tops) == len(stack.boxes) == model.rowCount()
        y = float(L)
        for top, box in zip(stack.tops, stack.boxes, strict=True):
            assert top == pytest.approx(y)
            assert box.width == pytest.approx(view._column()[1])
            y += box.height + MESSAGE_GAP
        assert stack.height == pytest.approx(y)


def test_selected_text_is_what_is_seen(view: MessageView, model: ChatItemModel, qtbot: QtBot) -> None:
    model.append(Message("assistant", "Some **bold** text.\n\n```python\nx = 1\n```\n\n1. one\n2. two"))
    view.grab()
    box = view._stack.boxes[0]
    assert box.text_between((0, 0), box.end_position()) == "Some bold text.\n\nx = 1\n\none\ntwo"
    view.select_all_text()
    view.copy()
    # A whole message is copied as it was written.
    assert QGuiApplication.clipboard().text().startswith("Some **bold** text.")


def test_dragging_selects_over_messages(view: MessageView, model: ChatItemModel, qtbot: QtBot) -> None:
    fill(model, 1, "First paragraph.\n\nSecond paragraph.")
    view.grab()
    viewport = view.viewport()
    left = round(view._column()[0])
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=QPoint(left + 400, 30))
    for y in (60, 90, 120, 150):
        move(view, left + 700, y)
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=QPoint(left + 700, 150))
    assert "First paragraph." in view.selected_text()


def move(view: MessageView, x: int, y: int) -> None:
    from PySide6.QtCore import QEvent, QPointF
    from PySide6.QtGui import QMouseEvent

    point = QPointF(x, y)
    buttons = Qt.MouseButton.LeftButton
    event = QMouseEvent(QEvent.Type.MouseMove, point, point, buttons, buttons, Qt.KeyboardModifier.NoModifier)
    view.mouseMoveEvent(event)


def test_the_keyboard_goes_from_message_to_message_and_copies(
    view: MessageView, model: ChatItemModel, qtbot: QtBot
) -> None:
    fill(model, 2, "An answer.")
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Up)
    assert view.currentIndex().row() == 3
    QTest.keyClick(view, Qt.Key.Key_Up)
    assert view.accessibleDescription() == "You: Question 1"
    QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "Question 1"


def test_the_copy_button_of_code_copies_the_code(view: MessageView, model: ChatItemModel, qtbot: QtBot) -> None:
    model.append(Message("assistant", "```js\nlet a = 1;\n```"))
    view.grab()
    spot = view._stack.boxes[0].hot_spots(0, 100)[0]
    point = QPoint(round(view._column()[0]), round(view._stack.tops[0])) + spot.rect.center().toPoint()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert QGuiApplication.clipboard().text() == "let a = 1;"


def test_markdown_fetches_nothing(view: MessageView, model: ChatItemModel, qtbot: QtBot) -> None:
    model.append(Message("assistant", "![alt](file:///etc/passwd) <img src='http://x/y.png'> [l](http://a.b)"))
    view.grab()
    box = view._stack.boxes[0]
    assert box.boxes[0].document is not None
    html = box.boxes[0].document.document.toHtml()
    assert "<img" not in html.replace("&lt;img", "")


@in_time(0.4)
def test_two_hundred_thousand_tokens_scroll(
    view: MessageView, model: ChatItemModel, qtbot: QtBot, within_s: float
) -> None:
    """Generous limits: the benchmark proper is in tests/bench."""
    fill(model, 250, ANSWER * 4)  # about 800 kB of text
    bar = view.verticalScrollBar()
    slowest = 0.0
    for step in range(120):
        begin = time.perf_counter()
        bar.setValue((step * 7919) % max(1, bar.maximum()))
        view.viewport().repaint()
        slowest = max(slowest, time.perf_counter() - begin)
    assert slowest < within_s
    assert laid_out(view) <= KEPT_DOCUMENTS
    gc.collect()
