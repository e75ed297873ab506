"""B140: closing over running work asks once; a signal asks nothing."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox, QPushButton

from ui.conftest import Desk
from ui.test_replies import LONG, MakeDesk


class FromTheFrame(QCloseEvent):
    """As it comes when a person clicks the window's own close button."""

    def spontaneous(self) -> bool:
        return True


def writing(make_desk: MakeDesk) -> Desk:
    desk = make_desk(LONG)
    desk.load()
    desk.send("go")
    desk.qtbot.waitUntil(lambda: bool(desk.items.message(1).text))
    return desk


def press(box: QMessageBox, words: str) -> None:
    (button,) = (each for each in box.buttons() if each.text() == words)
    assert isinstance(button, QPushButton)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def test_a_person_is_asked_once_and_may_keep_it_open(make_desk: MakeDesk) -> None:
    desk = writing(make_desk)
    event = FromTheFrame()
    desk.window.closeEvent(event)
    assert not event.isAccepted() and desk.window.isVisible()
    box = desk.window.closing.box
    assert box is not None and "A reply is being written" in box.text()
    press(box, "Keep open")
    desk.qtbot.waitUntil(lambda: desk.window.closing.box is None)
    assert desk.window.isVisible() and desk.window.chat.replies.n_running == 1


def test_the_answer_closes_the_window(make_desk: MakeDesk) -> None:
    desk = writing(make_desk)
    desk.window.quit()
    box = desk.window.closing.box
    assert box is not None
    press(box, "Close")
    desk.qtbot.waitUntil(lambda: not desk.window.isVisible())


def test_closing_again_means_it(make_desk: MakeDesk) -> None:
    desk = writing(make_desk)
    desk.window.closeEvent(FromTheFrame())
    again = FromTheFrame()
    desk.window.closeEvent(again)
    assert again.isAccepted()
    assert desk.window.chat.replies.n_running == 0


def test_nothing_is_asked_when_nothing_runs_or_a_signal_comes(make_desk: MakeDesk) -> None:
    desk = make_desk(LONG)
    event = FromTheFrame()
    assert event.type() == QEvent.Type.Close
    desk.window.closeEvent(event)
    assert event.isAccepted() and desk.window.closing.box is None
    busy = writing(make_desk)
    busy.window.close()
    assert not busy.window.isVisible() and busy.window.closing.box is None
