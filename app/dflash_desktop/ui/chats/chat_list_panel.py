"""The panel beside the conversation: all chats, found, named, pinned, deleted."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QListView, QMenu, QVBoxLayout, QWidget

from dflash_desktop.chats.events import ChatsFound
from dflash_desktop.chats.records import ChatRecord
from dflash_desktop.ui.chats.calm_line_edit import CalmLineEdit, is_escape_shortcut
from dflash_desktop.ui.chats.chat import Chat
from dflash_desktop.ui.chats.chat_list_delegate import ChatListDelegate
from dflash_desktop.ui.chats.chat_list_model import ChatListItemModel
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.menus import show_key
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import icon_button, label

WIDTH = 248
SEARCH_MS = 150
HEADINGS_MS = 60_000


class ChatListPanel(QWidget):
    """Follows the keeper by itself."""

    chat_chosen = Signal(object)  # chat id
    new_clicked = Signal()
    deleted = Signal(object)  # ChatRecord, for whoever offers to undo it
    export_wanted = Signal(object)  # chat id
    left = Signal()  # Escape: the person wants to write again

    def __init__(self, theme: Theme, icons: Icons, chat: Chat) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._chat = chat
        self._keeper = chat.keeper
        self._hits: ChatsFound | None = None
        self.setFixedWidth(theme.px(WIDTH))
        self.setAccessibleName(self.tr("Chats"))
        self.search = CalmLineEdit(theme, self.tr("Search all chats"))
        self.search.setPlaceholderText(self.tr("Search all chats"))
        self.search.setClearButtonEnabled(True)
        self.search.setProperty("kind", "field")
        self.new_button = icon_button(icons, "new-chat", self.tr("New chat (Ctrl+N)"))
        self.items = ChatListItemModel(self)
        self.list = _ChatList()
        self.list.setAccessibleName(self.tr("Chats"))
        self.list.setModel(self.items)
        self._delegate = ChatListDelegate(theme, icons, self)
        self.list.setItemDelegate(self._delegate)
        self._empty = label(theme, "", "body", tone="muted", wraps=True)
        self._empty.setContentsMargins(M, S, M, S)
        head = QHBoxLayout()
        head.setContentsMargins(S, S, S, S)
        head.setSpacing(S)
        head.addWidget(self.search, 1)
        head.addWidget(self.new_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self._empty)
        column.addWidget(self.list, 1)
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(SEARCH_MS)
        self._search_timer.timeout.connect(self._find)
        self._day_timer = QTimer(self)
        self._day_timer.setInterval(HEADINGS_MS)
        self._day_timer.timeout.connect(self.show_again)
        self._day_timer.start()
        self._connect()
        self.show_again()

    def _connect(self) -> None:
        self.search.textChanged.connect(self.on_search_changed)
        self.search.entered.connect(self.on_search_entered)
        self.search.left.connect(self.on_search_left)
        self.new_button.clicked.connect(self.new_clicked)
        self.list.clicked.connect(self.on_row_clicked)
        self.list.key_pressed.connect(self.on_list_key)
        self.list.customContextMenuRequested.connect(self.on_menu_wanted)
        self._delegate.renamed.connect(self._keeper.rename)
        self._keeper.chats_changed.connect(self.show_again)
        self._keeper.found.connect(self.on_found)
        self._chat.talk_changed.connect(self.show_again)
        self._chat.busy_changed.connect(self.show_again)
        self._theme.changed.connect(self.list.viewport().update)

    # ---- rows

    @Slot()
    def show_again(self) -> None:
        """Show what is so now."""
        now = datetime.now().astimezone()
        chats = self._keeper.chats()
        self._delegate.open_chat_id = self._chat.talk.chat_id
        if self._hits is not None:
            self.items.show_hits(self._hits.hits, chats, now)
            words = self.tr("Nothing found.")
        else:
            running = frozenset(chat.chat_id for chat in chats if self._chat.replies.of(chat.chat_id))
            self.items.show_chats(chats, running, now)
            words = self.tr("Your chats will be listed here.")
        self._empty.setText(words)
        self._empty.setVisible(self.items.rowCount() == 0)
        if not self.list.hasFocus():
            number = self.items.number_of(self._chat.talk.chat_id)
            if number is not None:
                self.list.setCurrentIndex(self.items.index(number))
        self.list.viewport().update()

    @Slot()
    def on_search_changed(self) -> None:
        if self.search.text().strip():
            self._search_timer.start()
        else:
            self._search_timer.stop()
            self._hits = None
            self.show_again()

    @Slot()
    def _find(self) -> None:
        self._keeper.find(self.search.text())

    @Slot(object)
    def on_found(self, found: ChatsFound) -> None:
        if found.query == self.search.text() and found.query.strip():  # else it is an answer to an older question
            self._hits = found
            self.show_again()

    @Slot()
    def on_search_entered(self) -> None:
        """To the first hit."""
        for number in range(self.items.rowCount()):
            if self.items.chat_at(number) is not None:
                self.list.setFocus()
                self.list.setCurrentIndex(self.items.index(number))
                return

    @Slot()
    def on_search_left(self) -> None:
        if self.search.text():
            self.search.clear()
        else:
            self.left.emit()

    def focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    # ---- what the person does with a row

    @Slot(QModelIndex)
    def on_row_clicked(self, index: QModelIndex) -> None:
        chat = self.items.chat_at(index.row())
        if chat is not None:
            self.chat_chosen.emit(chat.chat_id)

    @Slot(object)
    def on_list_key(self, event: QKeyEvent) -> None:
        chat = self.items.chat_at(self.list.currentIndex().row())
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        elif chat is None:
            event.ignore()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chat_chosen.emit(chat.chat_id)
        elif event.key() == Qt.Key.Key_F2:
            self.list.edit(self.list.currentIndex())
        elif event.key() == Qt.Key.Key_Delete:
            self.delete(chat)
        elif event.key() == Qt.Key.Key_P and not event.modifiers():
            self._keeper.pin(chat.chat_id, is_pinned=not chat.is_pinned)
        else:
            event.ignore()

    def delete(self, chat: ChatRecord) -> None:
        record = self._chat.delete_chat(chat.chat_id)
        if record is not None:
            self.deleted.emit(record)

    @Slot(QPoint)
    def on_menu_wanted(self, point: QPoint) -> None:
        index = self.list.indexAt(point) if self.list.rect().contains(point) else self.list.currentIndex()
        menu = self.menu_for(index.row())
        if menu is not None:
            menu.popup(self.list.viewport().mapToGlobal(point))

    def menu_for(self, number: int) -> QMenu | None:
        """What can be done with a chat. The menu deletes itself when closed."""
        chat = self.items.chat_at(number)
        if chat is None:
            return None
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        show_key(menu.addAction(self.tr("Open"), lambda: self.chat_chosen.emit(chat.chat_id)), "Return")
        show_key(menu.addAction(self.tr("Rename"), lambda: self.list.edit(self.items.index(number))), "F2")
        words = self.tr("Unpin") if chat.is_pinned else self.tr("Pin to the top")
        pin = menu.addAction(words, lambda: self._keeper.pin(chat.chat_id, is_pinned=not chat.is_pinned))
        show_key(pin, "P")
        menu.addAction(self.tr("Export…"), lambda: self.export_wanted.emit(chat.chat_id))
        menu.addSeparator()
        show_key(menu.addAction(self.tr("Delete"), lambda: self.delete(chat)), "Del")
        return menu


class _ChatList(QListView):
    key_pressed = Signal(object)  # QKeyEvent; ignored by whoever does not want it

    def __init__(self) -> None:
        super().__init__()
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.viewport().setAutoFillBackground(False)

    def event(self, event: QEvent) -> bool:
        if is_escape_shortcut(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.accept()
        self.key_pressed.emit(event)
        if not event.isAccepted():
            super().keyPressEvent(event)
