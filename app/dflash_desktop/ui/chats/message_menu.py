"""Everything that can be done with a message, for the right mouse button and the keyboard alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu

from dflash_desktop.ui.chats.message_box import FRAMED, MessageBox
from dflash_desktop.ui.chats.messages import UNFINISHED
from dflash_desktop.ui.kit.menus import show_key

if TYPE_CHECKING:
    from dflash_desktop.ui.chats.message_view import MessageView

translate = QCoreApplication.translate
MOST_CODES = 20


def message_menu(view: MessageView, box: MessageBox | None, row: int) -> QMenu:
    """The menu for one message; without one, only what concerns the selected text. It deletes itself when closed."""
    menu = QMenu(view)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    copy = menu.addAction(translate("menu", "Copy selected text"), view.copy)
    copy.setEnabled(view.has_selected_text())
    show_key(copy, "Ctrl+C")
    if box is not None:
        _add_copies(menu, box)
        menu.addSeparator()
        _add_actions(menu, view, box, row)
    menu.addSeparator()
    show_key(add_tint(menu, view), "T")
    show_key(menu.addAction(translate("menu", "Select all"), view.select_all_text), "Ctrl+A")
    return menu


def add_tint(menu: QMenu, view: MessageView) -> QAction:
    """Whether what the draft proposed and the target accepted is tinted."""
    tint = menu.addAction(translate("menu", "Show what the draft got right"))
    tint.setCheckable(True)
    tint.setChecked(view.shows_accepted)
    tint.toggled.connect(lambda is_on: view.show_accepted(is_on=is_on))
    return tint


def _add_copies(menu: QMenu, box: MessageBox) -> None:
    _add_copy(menu, translate("menu", "Copy message"), box.message.text)
    if box.message.reasoning:
        _add_copy(menu, translate("menu", "Copy thoughts"), box.message.reasoning)
    codes = [piece.block for piece in box.boxes if piece.block.kind in FRAMED]
    for number, block in enumerate(codes[:MOST_CODES], 1):
        name = block.language or translate("menu", "text")
        _add_copy(menu, translate("menu", "Copy code {0} ({1})").format(number, name), block.text)


def _add_actions(menu: QMenu, view: MessageView, box: MessageBox, row: int) -> None:
    message = box.message
    version, n_versions = message.place
    if message.role == "user":
        show_key(menu.addAction(translate("menu", "Write anew"), lambda: view.edit_clicked.emit(message)), "E")
    if message.role == "assistant" and message.state not in UNFINISHED:
        show_key(menu.addAction(translate("menu", "Answer again"), lambda: view.again_clicked.emit(message)), "R")
        if message.can_continue:
            show_key(menu.addAction(translate("menu", "Continue"), lambda: view.continue_clicked.emit(message)), "G")
    if box.parts.has_thoughts:
        words = translate("menu", "Hide thoughts") if box.parts.is_unfolded else translate("menu", "Show thoughts")
        show_key(menu.addAction(words, lambda: view.fold_thoughts(row)), "Return")
    if version > 1:
        before = menu.addAction(translate("menu", "Version before"), lambda: view.version_clicked.emit(message, -1))
        show_key(before, "Left")
    if version < n_versions:
        after = menu.addAction(translate("menu", "Next version"), lambda: view.version_clicked.emit(message, 1))
        show_key(after, "Right")
    menu.addAction(translate("menu", "New chat from here"), lambda: view.branch_clicked.emit(message))
    delete = menu.addAction(translate("menu", "Delete from here on"), lambda: view.delete_clicked.emit(message))
    show_key(delete, "Del")


def _add_copy(menu: QMenu, words: str, text: str) -> None:
    menu.addAction(words, lambda: QGuiApplication.clipboard().setText(text))
