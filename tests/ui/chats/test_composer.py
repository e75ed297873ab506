"""Writing: keys, input methods, growth, large pastes."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton
from pytestqt.qtbot import QtBot

from dflash_desktop.ui.chats.composer import Composer
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from support.patience import in_time


@pytest.fixture
def composer(theme: Theme, icons: Icons, qtbot: QtBot) -> Composer:
    made = Composer(theme, icons)
    qtbot.addWidget(made)
    made.resize(600, 120)
    made.show()
    return made


def sends(composer: Composer) -> list[str]:
    seen: list[str] = []
    composer.send_clicked.connect(lambda: seen.append(composer.text()))
    return seen


def is_composing(composer: Composer) -> bool:
    return composer.edit.is_composing


def test_enter_sends_and_shift_enter_breaks_the_line(composer: Composer, qtbot: QtBot) -> None:
    seen = sends(composer)
    QTest.keyClicks(composer.edit, "one")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(composer.edit, "two")
    assert seen == []
    QTest.keyClick(composer.edit, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    assert seen == ["one\ntwo"]


def test_the_enter_that_takes_a_candidate_does_not_send(composer: Composer, qtbot: QtBot) -> None:
    """B137."""
    seen = sends(composer)
    QApplication.sendEvent(composer.edit, QInputMethodEvent("ni hao", []))
    assert is_composing(composer)
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert seen == []
    committed = QInputMethodEvent("", [])
    committed.setCommitString("你好")
    QApplication.sendEvent(composer.edit, committed)
    assert not is_composing(composer)
    assert composer.text() == "你好"
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert seen == ["你好"]


def test_another_placeholder_is_painted_at_once(composer: Composer, qtbot: QtBot) -> None:
    composer.set_placeholder("Write to the first")
    qtbot.waitUntil(lambda: composer.window().windowHandle().isExposed())
    QApplication.processEvents()
    before = composer.edit.viewport().grab().toImage()
    painted: list[QEvent.Type] = []

    class Watch(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            painted.append(event.type())
            return False

    watch = Watch()
    composer.edit.viewport().installEventFilter(watch)
    composer.set_placeholder("Write to the second")
    qtbot.waitUntil(lambda: QEvent.Type.Paint in painted)
    assert composer.edit.viewport().grab().toImage() != before


def test_blank_text_is_not_sent(composer: Composer, qtbot: QtBot) -> None:
    seen = sends(composer)
    assert not composer.button.isEnabled()
    composer.set_text("  \n ")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert seen == []


def test_enter_does_nothing_while_a_reply_is_made(composer: Composer, qtbot: QtBot) -> None:
    seen = sends(composer)
    composer.set_text("next")
    composer.set_busy(is_busy=True)
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert (seen, composer.text()) == ([], "next")
    with qtbot.waitSignal(composer.stop_clicked):
        QTest.mouseClick(composer.button, Qt.MouseButton.LeftButton)


def test_the_field_grows_with_its_text_up_to_a_limit(composer: Composer, qtbot: QtBot) -> None:
    one = composer.edit.height()
    composer.set_text("a\nb\nc")
    qtbot.waitUntil(lambda: composer.edit.height() > 2 * one)
    composer.set_text("line\n" * 50)
    qtbot.waitUntil(lambda: composer.edit.height() > 4 * one)
    limit = composer.edit.height()
    composer.set_text("line\n" * 500)
    qtbot.wait(20)
    assert composer.edit.height() == limit
    composer.clear()
    qtbot.waitUntil(lambda: composer.edit.height() == one)


def test_a_paste_has_no_formats(composer: Composer) -> None:
    mime = QMimeData()
    mime.setHtml("<b>bold</b><img src='file:///etc/passwd'>")
    mime.setText("bold")
    composer.edit.insertFromMimeData(mime)
    assert composer.text() == "bold"


@in_time(0.5)
@pytest.mark.parametrize(
    "text", ["lines of text\n" * 75_000, "漢字" * 170_000, "x" * 1_000_000], ids=["ascii", "cjk", "line"]
)
def test_a_megabyte_is_taken_as_text_and_nothing_is_lost(
    composer: Composer, qtbot: QtBot, text: str, within_s: float
) -> None:
    """B131. One line of a megabyte took Qt's editor two minutes: long texts are chips."""
    mime = QMimeData()
    mime.setText(text)
    QTest.keyClicks(composer.edit, "Read this:")
    begin = time.perf_counter()
    composer.edit.insertFromMimeData(mime)
    QApplication.processEvents()
    assert time.perf_counter() - begin < within_s
    assert composer.text() == "Read this:\n\n" + text
    composer.set_text(composer.text())  # as after a refusal, or at the next start
    assert composer.text() == "Read this:\n\n" + text
    assert composer.button.isEnabled()
    close = composer.attached.findChildren(QToolButton)[0]
    QTest.mouseClick(close, Qt.MouseButton.LeftButton)
    assert composer.text() == ""
    assert not composer.button.isEnabled()
