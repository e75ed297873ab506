"""The quick way to the theme: a menu at the rail. It changes the setting, and follows it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from dflash_desktop.ui.settings.desk import SettingsDesk


class ThemeMenu(QMenu):
    """One checkable action per choice."""

    def __init__(self, parent: QWidget, desk: SettingsDesk) -> None:
        super().__init__(parent)
        self._desk = desk
        group = QActionGroup(self)
        names = {"system": self.tr("As the system"), "light": self.tr("Light"), "dark": self.tr("Dark")}
        for mode, name in names.items():
            action = QAction(name, self)
            action.setCheckable(True)
            action.setData(mode)
            group.addAction(action)
            self.addAction(action)
        group.triggered.connect(self.on_chosen)
        desk.changed.connect(self.on_changed)
        self.on_changed()

    def popup_beside(self, button: QWidget) -> None:
        """Right of `button`, growing upwards: the button is at the window's bottom."""
        corner = button.mapToGlobal(button.rect().topRight())
        self.popup(corner - QPoint(0, self.sizeHint().height() - button.height()))

    @Slot(QAction)
    def on_chosen(self, action: QAction) -> None:
        self._desk.store.change(theme=action.data())

    @Slot()
    def on_changed(self) -> None:
        for action in self.actions():
            action.setChecked(action.data() == self._desk.store.values.theme)
