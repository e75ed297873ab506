"""What all our menus have in common."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence


def show_key(action: QAction, key: str) -> None:
    """Tell the key that does the same where the keyboard is: the widget there hears it, the menu only shows it."""
    action.setShortcut(QKeySequence(key))
    action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    action.setShortcutVisibleInContextMenu(True)
