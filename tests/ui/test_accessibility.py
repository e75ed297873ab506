"""Each control has a name and can be reached by keyboard; no text is cut at the smallest size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)

from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.kit.widgets import ElidedLabel
from dflash_desktop.ui.window import SMALLEST
from ui.conftest import Desk
from ui.scripted_engine import Script

CONTROLS = (QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit)
PAGES = ["chat", "engine", "engine load", "settings"]


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    made = make_desk(Script(text="A reply.\n\n```c\nint a;\n```\n"))
    made.window.page("engine")
    made.window.page("settings")
    made.window.show_page("chat")
    made.page.settings_button.setChecked(True)
    made.window.resize(SMALLEST)
    made.load()
    made.send("go")
    made.wait_for_reply()
    return made


def show(desk: Desk, key: str) -> None:
    page, _, view = key.partition(" ")
    desk.window.show_page(page)
    if page == "engine":
        engine_page = desk.window.page("engine")
        assert isinstance(engine_page, EnginePage)
        engine_page.show_view(view or "live")


def controls(root: QWidget) -> list[QWidget]:
    found = [w for w in root.findChildren(QWidget) if isinstance(w, CONTROLS) and not isinstance(w, QScrollBar)]
    # The line edit inside a spin box is the spin box's own part.
    return [w for w in found if not isinstance(w.parentWidget(), QAbstractSpinBox)]


def test_every_control_has_a_name(desk: Desk) -> None:
    dialog = desk.window.open_dialog()
    named = [*controls(desk.window), *controls(dialog)]
    assert len(named) > 30
    nameless = [w for w in named if w.isVisibleTo(w.window()) and not (w.accessibleName() or getattr(w, "text", str)())]
    # Qt's own hidden parts are called qt_...
    nameless = [w for w in nameless if not w.objectName().startswith("qt_")]
    assert [f"{type(w).__name__} in {type(w.parentWidget()).__name__}" for w in nameless] == []
    dialog.reject()


@pytest.mark.parametrize("key", PAGES)
def test_tab_reaches_every_control_of_the_page(desk: Desk, key: str) -> None:
    show(desk, key)
    desk.window.activateWindow()
    wanted = {w for w in controls(desk.window) if w.isVisible() and w.isEnabled()}
    # In a group of exclusive buttons, Tab goes to the checked one and the arrow keys to the others.
    wanted = {
        w
        for w in wanted
        if not (isinstance(w, QAbstractButton) and w.isCheckable() and w.group() is not None and not w.isChecked())
    }
    reached: set[QWidget] = set()
    next(button for button in desk.window.rail.findChildren(QAbstractButton) if button.isChecked()).setFocus()
    for _ in range(3 * len(wanted) + 20):
        focused = QApplication.focusWidget()
        if focused is not None:
            reached.add(focused)
        QTest.keyClick(desk.window, Qt.Key.Key_Tab)
    assert {w.accessibleName() for w in wanted - reached} == set()


@pytest.mark.parametrize("key", PAGES)
def test_no_text_is_cut_in_the_smallest_window(desk: Desk, key: str) -> None:
    show(desk, key)
    desk.qtbot.wait(300)
    assert desk.window.size() == SMALLEST
    cut = []
    for widget in desk.window.findChildren(QWidget):
        text = widget.text() if isinstance(widget, (QLabel, QAbstractButton)) else ""
        if not text or not widget.isVisible() or isinstance(widget, ElidedLabel):
            continue
        wraps = isinstance(widget, QLabel) and widget.wordWrap()
        metrics = QFontMetrics(widget.font())
        flags = int(Qt.TextFlag.TextWordWrap.value) if wraps else 0
        box = metrics.boundingRect(0, 0, widget.width() if wraps else 10_000, 10_000, flags, text)
        if box.width() > widget.width() + 1 or box.height() > widget.height() + 2:
            cut.append(text)
        corner = widget.mapTo(desk.window, QPoint(widget.width(), 0))
        if corner.x() > desk.window.width():
            cut.append(text)
    assert cut == []


def test_the_keyboard_alone_is_enough(desk: Desk) -> None:
    desk.page.on_new_clicked()
    QTest.keyClick(desk.window, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(desk.composer.edit, "by keyboard")
    QTest.keyClick(desk.composer.edit, Qt.Key.Key_Return)
    desk.wait_for_reply()
    assert desk.items.message(0).text == "by keyboard"
    QTest.keyClick(desk.window, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert desk.window.page("engine").isVisible()
    QTest.keyClick(desk.window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(desk.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert desk.items.rowCount() == 0
    QTest.keyClick(desk.window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    dialog = desk.window.open_dialog()
    assert dialog.isVisible()
    # Handed to the dialog itself: on the offscreen platform the main window stays the active one, with its own Esc.
    dialog.keyPressEvent(QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier))
    desk.qtbot.waitUntil(lambda: desk.window.dialogs.dialog is None)
    buttons = desk.window.model_bar.draft_switch.buttons()
    buttons[0].setFocus()
    QTest.keyClick(buttons[0], Qt.Key.Key_Right)
    assert buttons[1].isChecked()
    assert desk.window.pair_state.draft_mode == "on"
