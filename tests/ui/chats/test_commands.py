"""The palette and the keys: everything can be done without a mouse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from dflash_desktop.ui.kit.command_palette import Command, CommandPalette
from dflash_desktop.ui.kit.theme import Theme
from ui.conftest import Desk
from ui.scripted_engine import Script

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.mark.parametrize(
    ("query", "rank"),
    [("", 3), ("new", 3), ("chat new", 2), ("NEW CH", 3), ("nwct", 1), ("xyz", 0), ("chat", 2)],
)
def test_how_well_a_query_fits(query: str, rank: int) -> None:
    assert Command("New chat", lambda: None, group="Chat").matches(query) == rank


def test_the_palette_finds_and_does(desk: Desk) -> None:
    done: list[str] = []
    commands = [Command(name, lambda name=name: done.append(name)) for name in ("One", "Two", "Three")]  # type: ignore[misc]
    palette = CommandPalette(desk.window.theme, commands, desk.window)
    palette.open_over(desk.window)
    QTest.keyClicks(palette.field, "t")
    assert palette.shown() == ["Two", "Three"]
    QTest.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.field.accessibleDescription() == "Three"
    QApplication.sendEvent(palette.field, QInputMethodEvent("ni", []))
    QTest.keyClick(palette.field, Qt.Key.Key_Return)  # B137
    assert done == []
    QApplication.sendEvent(palette.field, QInputMethodEvent("", []))
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    assert done == ["Three"]


def test_ctrl_k_offers_what_makes_sense_now(desk: Desk) -> None:
    words = shown(desk)
    assert "New chat" in words
    assert "Answer again" not in words
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    assert {"Answer again", "Export this chat…", "Unload the model"} <= set(shown(desk))


def shown(desk: Desk) -> list[str]:
    palette = desk.window.open_palette()
    words = palette.shown()
    palette.close()
    return words


def test_every_command_of_the_palette_runs(make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    from dflash_desktop.ui.commands import window_commands

    for name in ("getOpenFileNames", "getOpenFileName", "getSaveFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_args, **_more: ([] if name == "getOpenFileNames" else "", ""))  # noqa: B023
    monkeypatch.setattr("dflash_desktop.ui.chats.attaching.QFileDialog.getOpenFileNames", lambda *_a, **_m: ([], ""))
    desk = make_desk(Script(text="Fine."))
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    commands = [one for one in window_commands(desk.window) if one.words != "Quit"]
    assert len(commands) > 15
    for command in commands:
        command.run()
        desk.qtbot.wait(5)
        for dialog in QApplication.topLevelWidgets():
            if dialog is not desk.window and dialog.isVisible():
                dialog.close()
    desk.window.show_page("chat")


@pytest.mark.parametrize("key", [Qt.Key.Key_N, Qt.Key.Key_L])
def test_a_key_for_the_chat_page_works_on_every_page(desk: Desk, key: Qt.Key) -> None:
    desk.window.show_page("settings")
    QTest.keyClick(desk.window, key, CTRL)
    assert desk.page.isVisible()
    assert desk.composer.edit.hasFocus()


def test_text_grows_and_shrinks_at_once(desk: Desk, theme: Theme) -> None:
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    desk.window.grab()
    view = desk.page.view
    before = view._stack.boxes[1].boxes[0].height
    QTest.keyClick(desk.window, Qt.Key.Key_Plus, CTRL)
    assert theme.zoom_percent == 110
    for _ in range(3):
        QTest.keyClick(desk.window, Qt.Key.Key_Plus, CTRL)
    assert theme.zoom_percent == 175
    assert view._stack.boxes[1].boxes[0].height > 1.5 * before
    assert desk.composer.edit.font().pixelSize() == 26
    QTest.keyClick(desk.window, Qt.Key.Key_0, CTRL)
    assert view._stack.boxes[1].boxes[0].height == before
    QTest.keyClick(desk.window, Qt.Key.Key_Minus, CTRL)
    assert theme.zoom_percent == 90
    desk.window.close()
    assert desk.window._state_file.read().zoom_percent == 90
    theme.set_zoom(100)


def test_a_message_is_edited_answered_again_and_deleted_by_keys(desk: Desk) -> None:
    desk.load()
    desk.send("one")
    desk.wait_for_reply()
    QTest.keyClick(desk.window, Qt.Key.Key_M, CTRL | Qt.KeyboardModifier.ShiftModifier)
    view = desk.page.view
    assert view.hasFocus()
    assert view.currentIndex().row() == 1
    QTest.keyClick(view, Qt.Key.Key_R)
    desk.wait_for_reply()
    assert desk.items.message(1).place == (2, 2)
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert desk.items.message(1).place == (1, 2)
    assert "Version 1 of 2" in desk.items.spoken(1)
    QTest.keyClick(view, Qt.Key.Key_Up)
    QTest.keyClick(view, Qt.Key.Key_E)
    assert desk.composer.edit.hasFocus()
    QTest.keyClick(desk.composer.edit, Qt.Key.Key_A, CTRL)
    QTest.keyClicks(desk.composer.edit, "two")
    QTest.keyClick(desk.composer.edit, Qt.Key.Key_Return)
    desk.wait_for_reply()
    assert [message.text for message in desk.items.messages()] == ["two", "Hello, world."]
    assert desk.items.message(0).place == (2, 2)
    view.setFocus()
    view.make_current(0)
    QTest.keyClick(view, Qt.Key.Key_C, CTRL)
    assert QGuiApplication.clipboard().text() == "two"
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert [message.text for message in desk.items.messages()] == ["one", "Hello, world."]


def test_escape_leaves_the_edit_and_brings_the_unsent_text_back(desk: Desk) -> None:
    desk.load()
    desk.send("one")
    desk.wait_for_reply()
    desk.composer.set_text("unsent")
    desk.page.view.edit_clicked.emit(desk.items.message(0))
    assert desk.composer.text() == "one"
    assert desk.composer.unsent_text() == "unsent"
    QTest.keyClick(desk.composer.edit, Qt.Key.Key_Escape)
    assert desk.composer.text() == "unsent"
    assert not desk.composer.is_editing


def test_the_palette_is_as_high_as_what_it_shows_and_its_field_stays(desk: Desk) -> None:
    palette = desk.window.open_palette()
    n_all, tallest = len(palette.shown()), palette.height()
    place = palette.field.mapToGlobal(palette.field.rect().topLeft())
    width = palette.width()
    heights = {}
    for typed in ("the", "qqqqqq", "theme", "", "settings"):
        palette.field.setText(typed)
        n_shown = heights[typed] = len(palette.shown())
        rows = palette.list.viewport().height() / palette.list.sizeHintForRow(0) if n_shown else 0
        assert rows == n_shown or (palette.height() == tallest and rows < n_shown)
        assert palette.height() <= tallest
        assert palette.field.mapToGlobal(palette.field.rect().topLeft()) == place
        assert palette.width() == width
        assert palette.nothing.isVisible() is (n_shown == 0)
        bottom = palette.list if n_shown else palette.nothing
        assert palette.height() - bottom.geometry().bottom() < 20
    assert heights["qqqqqq"] == 0
    assert 0 < heights["the"] < n_all
    palette.close()
