"""The line above the conversation: its name, figures of the engine, and what can be done with the whole chat."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QWidget

from dflash_desktop.ui.chats.chat import Chat
from dflash_desktop.ui.chats.live_strip import LiveStrip
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, ElidedLabel, icon_button


class PageHead(QWidget):
    """The buttons are the page's to connect."""

    export_wanted = Signal(object)  # chat id
    export_all_wanted = Signal()
    import_wanted = Signal()
    menu_wanted = Signal(object)  # QMenu, before it shows: for what others know how to do

    def __init__(self, theme: Theme, icons: Icons, chat: Chat, figures: LiveFigures) -> None:
        super().__init__()
        self._chat = chat
        self.list_button = icon_button(icons, "list", self.tr("Show or hide the chats (Ctrl+B)"))
        self.list_button.setCheckable(True)
        self._title = ElidedLabel(theme, "heading", weight=DEMI)
        self.strip = LiveStrip(theme, figures)
        self.new_button = icon_button(icons, "new-chat", self.tr("New chat (Ctrl+N)"))
        self.more_button = icon_button(icons, "more", self.tr("More about this chat"))
        self.settings_button = icon_button(icons, "settings", self.tr("Chat settings (Ctrl+Shift+S)"))
        self.settings_button.setCheckable(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(M, S, M, S)
        row.setSpacing(S)
        row.addWidget(self.list_button)
        row.addWidget(self._title, 1)
        row.addWidget(self.strip)
        for button in (self.new_button, self.more_button, self.settings_button):
            row.addWidget(button)
        self.more_button.clicked.connect(self.on_more_clicked)
        chat.talk_changed.connect(self.show_title)
        chat.busy_changed.connect(self.show_title)
        chat.keeper.chats_changed.connect(self.show_title)
        self.show_title()

    @Slot()
    def show_title(self) -> None:
        record = self._chat.keeper.record(self._chat.talk.chat_id) or self._chat.talk.record
        title = record.title or (self.tr("Chat") if len(self._chat.talk) else self.tr("New chat"))
        if title != self._title.whole_text():
            self._title.setText(title)

    def title(self) -> str:
        return self._title.whole_text()

    @Slot()
    def on_more_clicked(self) -> None:
        menu = self.menu()
        menu.popup(self.more_button.mapToGlobal(self.more_button.rect().bottomLeft()))

    def menu(self) -> QMenu:
        """What concerns the whole chat, or all of them. Deletes itself when closed."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        export = menu.addAction(self.tr("Export this chat…"), lambda: self.export_wanted.emit(self._chat.talk.chat_id))
        export.setEnabled(len(self._chat.talk) > 0)
        menu.addAction(self.tr("Export all chats…"), self.export_all_wanted.emit)
        menu.addAction(self.tr("Import chats…"), self.import_wanted.emit)
        menu.addSeparator()
        self.menu_wanted.emit(menu)
        return menu


def beside(panel: QWidget, *, line_first: bool) -> QWidget:
    """A panel with a hairline between it and the conversation."""
    side = QWidget()
    row = QHBoxLayout(side)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(0)
    line = QFrame()
    line.setProperty("kind", "rule")
    line.setFixedWidth(1)
    for widget in (line, panel) if line_first else (panel, line):
        row.addWidget(widget)
    return side
