"""The two sides of the chat page, the list of chats and the settings of the reply: which show when room is short."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QToolButton, QWidget

from dflash_desktop.ui.chats.chat_list_panel import ChatListPanel
from dflash_desktop.ui.chats.reply_settings_panel import ReplySettingsPanel
from dflash_desktop.ui.kit.theme import Theme

ROOM_FOR_TALK = 560
"""Below this width beside it, the list of chats makes room by itself."""


class Sides(QObject):
    """Belongs to the page, whose width is what there is to share out."""

    changed = Signal()  # what the person wants to see; remembered between starts

    def __init__(
        self,
        page: QWidget,
        theme: Theme,
        chats: tuple[ChatListPanel, QWidget, QToolButton],
        settings: tuple[ReplySettingsPanel, QWidget, QToolButton],
    ) -> None:
        """Of each: the panel, what it is shown in, and the button for it."""
        super().__init__(page)
        self._page = page
        self._theme = theme
        self._chats, self._chats_side, self._chats_button = chats
        self._panel, self._panel_side, self._panel_button = settings
        self.wants_list = True
        self._chats_button.clicked.connect(self.on_list_clicked)
        self._panel_button.toggled.connect(self.on_settings_toggled)

    @property
    def shows_list(self) -> bool:
        return not self._chats_side.isHidden()

    def recall(self, *, has_list: bool, has_settings: bool) -> None:
        """As it was the last time."""
        self._panel_button.setChecked(has_settings)
        self.wants_list = has_list
        self.share_out()

    @Slot(bool)
    def on_settings_toggled(self, is_on: bool) -> None:
        self._panel_side.setVisible(is_on)
        self.share_out()
        self.changed.emit()

    @Slot()
    def on_list_clicked(self) -> None:
        """Show or hide the list; where there is no room for both, the settings give way."""
        self.wants_list = not self.shows_list
        if self.wants_list and not self._has_room_for_list():
            self._panel_button.setChecked(False)
        self.share_out()
        self.changed.emit()

    def share_out(self) -> None:
        """For the page's width as it is now."""
        shows = self.wants_list and self._has_room_for_list()
        self._chats_side.setVisible(shows)
        self._chats_button.setChecked(shows)

    def _has_room_for_list(self) -> bool:
        taken = self._panel.width() if not self._panel_side.isHidden() else 0
        return self._page.width() - taken - self._chats.width() >= self._theme.px(ROOM_FOR_TALK)
