"""Everything that can be done with a message, for the right mouse button and the keyboard alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from dflash_desktop.ui.chats.blocks import Kind
from dflash_desktop.ui.chats.message_box import MessageBox

if TYPE_CHECKING:
    from dflash_desktop.ui.chats.message_view import MessageView

translate = QCoreApplication.translate


def message_menu(view: MessageView, box: MessageBox | None, *, is_last: bool) -> QMenu:
    """The menu for one message; without one, only what concerns the selected text. It deletes itself when closed."""
    menu = QMenu(view)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    copy = menu.addAction(translate("menu", "Copy selected text"), view.copy)
    copy.setEnabled(view.has_selected_text())
    if box is not None:
        _add_copy(menu, translate("menu", "Copy message"), box.message.text)
        codes = [piece.block for piece in box.boxes if piece.block.kind is Kind.CODE]
        for number, block in enumerate(codes, 1):
            name = block.language or translate("menu", "text")
            _add_copy(menu, translate("menu", "Copy code {0} ({1})").format(number, name), block.text)
        if is_last and box.has_foot:
            menu.addSeparator()
            menu.addAction(translate("menu", "Answer again"), view.again_clicked.emit)
    menu.addSeparator()
    menu.addAction(translate("menu", "Select all"), view.select_all_text)
    return menu


def _add_copy(menu: QMenu, words: str, text: str) -> None:
    menu.addAction(words, lambda: QGuiApplication.clipboard().setText(text))
