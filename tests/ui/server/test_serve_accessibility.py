"""The serve page at the smallest size: names, Tab, and no text that is cut, on each of its tabs."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)

from dflash_desktop.ui.kit.widgets import ElidedLabel
from dflash_desktop.ui.server.request_item_model import STATE
from dflash_desktop.ui.server.serving import ServePhase
from dflash_desktop.ui.window import SMALLEST
from support.patience import LONG_MS
from ui.scripted_engine import Script
from ui.server.conftest import MakeRoom, ServeRoom

CONTROLS = (QAbstractButton, QAbstractSpinBox, QLineEdit, QPlainTextEdit, QAbstractItemView)
TABS = ["clients", "requests", "access"]


@pytest.fixture
def room(make_room: MakeRoom) -> ServeRoom:
    made = make_room(Script(text="Some words."))
    made.window.resize(SMALLEST)
    made.serve_loaded()
    made.serve_page.access.lan.click()
    made.qtbot.waitUntil(lambda: made.serving.is_lan and made.serving.phase is ServePhase.SERVING, timeout=LONG_MS)
    authorised = {"Authorization": f"Bearer {made.serving.key()}", "User-Agent": "RooCode/3.0"}
    made.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}, authorised).wait()
    made.qtbot.waitUntil(lambda: made.serving.n_running == 0 and made.serve.requests.rowCount() == 1, timeout=LONG_MS)
    made.serve_page.requests.open_row(0)
    return made


def controls(root: QWidget) -> list[QWidget]:
    found = [w for w in root.findChildren(QWidget) if isinstance(w, CONTROLS) and not isinstance(w, QScrollBar)]
    return [w for w in found if not isinstance(w.parentWidget(), QAbstractSpinBox | QAbstractItemView)]


@pytest.mark.parametrize("tab", TABS)
def test_every_control_has_a_name_and_tab_reaches_it(room: ServeRoom, tab: str) -> None:
    page = room.serve_page
    page.show_tab(tab)
    shown = [w for w in controls(page) if w.isVisible()]
    assert len(shown) > 8
    assert [w for w in shown if not (w.accessibleName() or getattr(w, "text", str)())] == []
    wanted = {w for w in shown if w.isEnabled() and w.focusPolicy() & Qt.FocusPolicy.TabFocus}
    wanted = {
        w
        for w in wanted
        if not (isinstance(w, QAbstractButton) and w.isCheckable() and w.group() is not None and not w.isChecked())
    }
    reached: set[QWidget] = set()
    page.socket.switch.setFocus()
    for _ in range(4 * len(wanted) + 30):
        focused = QApplication.focusWidget()
        if focused is not None:
            reached.add(focused)
        QTest.keyClick(room.window, Qt.Key.Key_Tab)
    assert {w.accessibleName() or type(w).__name__ for w in wanted - reached} == set()


@pytest.mark.parametrize("tab", TABS)
def test_no_text_is_cut_in_the_smallest_window(room: ServeRoom, tab: str) -> None:
    room.serve_page.show_tab(tab)
    room.qtbot.wait(100)
    assert room.window.size() == SMALLEST
    cut = []
    for widget in room.serve_page.findChildren(QWidget):
        text = widget.text() if isinstance(widget, (QLabel, QAbstractButton)) else ""
        if not text or not widget.isVisible() or isinstance(widget, ElidedLabel) or widget.width() < 2:
            continue
        wraps = isinstance(widget, QLabel) and widget.wordWrap()
        flags = int(Qt.TextFlag.TextWordWrap.value) if wraps else 0
        width = widget.width() if wraps else 10_000
        box = QFontMetrics(widget.font()).boundingRect(QRect(0, 0, width, 10_000), flags, text)
        if box.width() > widget.width() + 1 or box.height() > widget.height() + 2:
            cut.append(text)
        if not _is_in_scroll_area(widget):
            corner = widget.mapTo(room.window, QPoint(widget.width(), widget.height()))
            if corner.x() > room.window.width() or corner.y() > room.window.height():
                cut.append(text)
    assert cut == []


def test_the_state_of_a_request_is_readable_beside_the_inspector(room: ServeRoom) -> None:
    room.serve_page.show_tab("requests")
    room.qtbot.wait(50)
    table = room.serve_page.requests.table
    assert room.serve_page.requests.inspector.isVisible()
    needed = QFontMetrics(table.font()).horizontalAdvance("token limit reached")
    assert table.columnWidth(STATE) > needed
    assert table.horizontalHeader().length() <= table.viewport().width()


def _is_in_scroll_area(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QAbstractScrollArea):
            return True
        parent = parent.parentWidget()
    return False
