"""The chat page: the chats, the conversation, the composer, live figures and the settings of the reply."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from dflash_desktop.engine.events import JobFailed
from dflash_desktop.ui.chats.attaching import Attaching, dropped_texts
from dflash_desktop.ui.chats.chat import Chat, ShorteningDecision, Unsent
from dflash_desktop.ui.chats.chat_list_panel import ChatListPanel
from dflash_desktop.ui.chats.composer import Composer
from dflash_desktop.ui.chats.context_desk import ContextDesk
from dflash_desktop.ui.chats.exporting import Exporting
from dflash_desktop.ui.chats.floating_stack import FloatingStack
from dflash_desktop.ui.chats.formulas import Formulas
from dflash_desktop.ui.chats.message_view import MessageView
from dflash_desktop.ui.chats.page_head import PageHead, beside
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.chats.reply_settings_panel import ReplySettingsPanel
from dflash_desktop.ui.chats.shortening_desk import ShorteningDesk
from dflash_desktop.ui.chats.sides import Sides
from dflash_desktop.ui.chats.start_view import StartView
from dflash_desktop.ui.chats.talk_desk import TalkDesk
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.pair_state import PairState, Phase, StarterPair
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.palette import READING_WIDTH, L, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import icon_button, rule

JUMP_SIZE = 36


class ChatPage(QWidget):
    """Owns the widgets; the conversation itself is `chat`."""

    engine_page_wanted = Signal()
    pflash_page_wanted = Signal()
    start_wanted = Signal()
    open_wanted = Signal()
    start_view_shown = Signal(object)  # bool: whether the empty state stands where the conversation will be
    state_changed = Signal()  # something that is remembered between starts

    def __init__(
        self,
        theme: Theme,
        icons: Icons,
        chat: Chat,
        pair_state: PairState,
        figures: LiveFigures,
        starter: StarterPair | None,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._pair_state = pair_state
        self._starter = starter
        self._phase = pair_state.phase
        self.chat = chat
        self.keeper = chat.keeper
        self._formulas = Formulas(self)
        self.view = MessageView(theme, icons, self._formulas)
        self.view.setModel(chat.items)
        self.start = StartView(theme, icons, pair_state, starter)
        self.composer = Composer(theme, icons)
        self.notice = Notice(theme, icons)
        self.head = PageHead(theme, icons, chat, figures)
        self.panel = ReplySettingsPanel(theme, icons, chat.settings, chat.keeper)
        self.chats = ChatListPanel(theme, icons, chat)
        self.context = ContextDesk(theme, icons, chat, pair_state, figures, self.composer)
        self.attaching = Attaching(theme, self)
        self.exporting = Exporting(theme, chat, self)
        self.desk = TalkDesk(chat, self.view, self.composer, self.panel, self.notice)
        self.shortening = ShorteningDesk(theme, chat, pair_state, figures, self.composer, self.desk, self)
        self.strip = self.head.strip
        self.new_button = self.head.new_button
        self.settings_button = self.head.settings_button
        self._side = beside(self.panel, line_first=True)
        self._list_side = beside(self.chats, line_first=False)
        self.sides = Sides(
            self,
            theme,
            (self.chats, self._list_side, self.head.list_button),
            (self.panel, self._side, self.settings_button),
        )
        self._build()
        self._connect()
        self._connect_talk()
        for helper in (self.attaching, self.exporting, self.context, self.desk, self.shortening):
            helper.setParent(self)  # they go with the page, and hear of nothing afterwards
        self.on_rows_changed()
        self.on_pair_changed()
        self.on_busy_changed()

    def _build(self) -> None:
        self.setAcceptDrops(True)
        self.jump_button = icon_button(self._icons, "down", self.tr("Go to the end (End)"), color="text")
        self.jump_button.setFixedSize(JUMP_SIZE, JUMP_SIZE)
        self.jump_button.setStyleSheet(
            "border-radius: 18px; border: 1px solid palette(dark); background: palette(base);"
        )
        self.jump_button.hide()
        self._pages = FloatingStack(self.jump_button)
        self._pages.addWidget(self.start)
        self._pages.addWidget(self.view)
        foot = QVBoxLayout()
        foot.setContentsMargins(0, S, 0, S)
        foot.setSpacing(S)
        foot.addWidget(self.context.choice)
        foot.addWidget(self.notice)
        foot.addWidget(self.composer)
        foot_box = QWidget()
        foot_box.setLayout(foot)
        foot_box.setMaximumWidth(self._theme.px(READING_WIDTH) + 2 * L)
        across = QHBoxLayout()
        across.setContentsMargins(L, 0, L, 0)
        across.addStretch(1)
        across.addWidget(foot_box, 100)
        across.addStretch(1)
        main = QVBoxLayout()
        main.setContentsMargins(0, 0, 0, 0)
        main.setSpacing(0)
        main.addWidget(self._pages, 1)
        main.addLayout(across)
        body = QHBoxLayout()
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        body.addWidget(self._list_side)
        body.addLayout(main, 1)
        body.addWidget(self._side)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.head)
        whole.addWidget(rule())
        whole.addLayout(body, 1)
        self._side.hide()
        self.setTabOrder(self.view, self.composer.edit)

    def _connect(self) -> None:
        self.composer.send_clicked.connect(self.on_send_clicked)
        self.composer.stop_clicked.connect(self.chat.stop)
        self.composer.attach_clicked.connect(self.attaching.choose)
        self.composer.text_settled.connect(self.state_changed)
        self.attaching.attached.connect(self.composer.attached.add)
        self.attaching.failed.connect(self.on_trouble)
        self.exporting.done.connect(self.on_info)
        self.exporting.failed.connect(self.on_trouble)
        self.context.new_wanted.connect(self.desk.on_new_wanted)
        self.context.choice.shorten_clicked.connect(self.shortening.on_preview_wanted)
        self.shortening.decided.connect(self.on_shortening_decided)
        self.shortening.settings_wanted.connect(self.pflash_page_wanted)
        self.shortening.troubled.connect(self.on_trouble)
        self.context.left_out.connect(self.desk.on_left_out)
        self.jump_button.clicked.connect(self.view.follow)
        self.sides.changed.connect(self.state_changed)
        self.head.export_wanted.connect(self.exporting.ask)
        self.head.export_all_wanted.connect(lambda: self.exporting.ask(None))
        self.head.import_wanted.connect(self.exporting.ask_import)
        self.head.menu_wanted.connect(self.view.add_to_menu)
        self.head.strip.clicked.connect(self.engine_page_wanted)
        self.new_button.clicked.connect(self.desk.on_new_wanted)
        self.panel.close_clicked.connect(self.settings_button.toggle)
        self.panel.changed.connect(self.on_reply_settings_changed)
        self.chats.chat_chosen.connect(self.desk.on_chat_chosen)
        self.chats.new_clicked.connect(self.desk.on_new_wanted)
        self.chats.deleted.connect(self.desk.on_chat_deleted)
        self.chats.export_wanted.connect(self.exporting.ask)
        self.chats.left.connect(self.composer.edit.setFocus)
        self.start.start_clicked.connect(self.start_wanted)
        self.start.start_clicked.connect(self._write_on)
        self.start.open_clicked.connect(self.open_wanted)
        self.start.cancel_clicked.connect(self._pair_state.cancel_load)
        self.start.cancel_clicked.connect(self._write_on)
        self.start.prompt_chosen.connect(self.on_prompt_chosen)
        self._pair_state.changed.connect(self.on_pair_changed)

    def _connect_talk(self) -> None:
        self.view.attachment_clicked.connect(self.attaching.show_text)
        self.view.follow_changed.connect(self.on_follow_changed)
        self.chat.busy_changed.connect(self.on_busy_changed)
        self.chat.refused.connect(self.on_message_refused)
        self.chat.failed.connect(self.on_reply_failed)
        self.desk.settings_changed.connect(self.state_changed)
        for changed in (self.chat.items.rowsInserted, self.chat.items.rowsRemoved, self.chat.items.modelReset):
            changed.connect(self.on_rows_changed)

    def close_down(self) -> None:
        """The page goes: what is being written is kept, and no thread of its own stays. Replies run on."""
        self.desk.keep_composer_text()
        self.shortening.close()
        self.attaching.close()
        self.exporting.close()
        self.context.close()
        self._formulas.close()

    # ---- what is remembered between starts

    def remember(self) -> dict[str, Any]:
        return {
            "composer_text": self.composer.unsent_text(),
            "has_side_panel": self.settings_button.isChecked(),
            "has_chat_list": self.sides.wants_list,
            "reply_settings": asdict(self.chat.settings),
        }

    def recall(
        self, *, composer_text: str, has_side_panel: bool, settings: ReplySettings, has_chat_list: bool = True
    ) -> None:
        self.desk.recall(composer_text)
        self.panel.show_settings(settings)
        self.chat.settings = self.panel.settings()
        self.sides.recall(has_list=has_chat_list, has_settings=has_side_panel)

    @Slot()
    def on_new_clicked(self) -> None:
        """For the window's shortcut."""
        self.desk.on_new_wanted()

    @property
    def is_start_shown(self) -> bool:
        return self.chat.items.rowCount() == 0

    # ---- sending

    @Slot()
    def on_send_clicked(self) -> None:
        if self._pair_state.phase is Phase.EMPTY:
            self._offer_start()
            return
        if not self.shortening.looks_first() and self.desk.send():
            self._after_send()

    @Slot(object)
    def on_shortening_decided(self, decision: ShorteningDecision) -> None:
        if self.desk.send(decision):
            self._after_send()

    def _after_send(self) -> None:
        self.notice.hide()
        self.context.choice.hide()
        self.view.follow()
        self._write_on()
        self.state_changed.emit()

    @Slot()
    def _write_on(self) -> None:
        """The keyboard goes to the text: Qt would hand it to the next widget when the one that had it hides."""
        self.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _offer_start(self) -> None:
        if self._starter is None:
            self.notice.show_info(
                self.tr("No model is loaded yet. Open one to send this message."),
                self.tr("Open a model file…"),
                self.open_wanted.emit,
            )
            return
        self.notice.show_info(
            self.tr("No model is loaded yet. Start the built-in one to send this message?"),
            self.tr("Start and send"),
            self._start_and_send,
        )

    def _start_and_send(self) -> None:
        self.start_wanted.emit()
        self.on_send_clicked()
        self._write_on()

    @Slot(object)
    def on_prompt_chosen(self, prompt: str) -> None:
        if self._pair_state.phase is not Phase.EMPTY and self.chat.send(prompt):
            self._after_send()

    @Slot(object, object)
    def on_message_refused(self, unsent: Unsent, why: str) -> None:
        # What the person has begun to write meanwhile stays; the refused message comes back above it.
        self.composer.take_back(unsent.text, unsent.attachments)
        if self._pair_state.phase is Phase.LOADED:
            self.notice.show_error(why)
        else:
            self.notice.show_info(why)
        self.desk.keep_composer_text()
        self.state_changed.emit()

    @Slot(object)
    def on_reply_failed(self, failure: JobFailed) -> None:
        if failure.kind == "device":
            words = self.tr("The device failed. Load the model again to go on.")
            self.notice.show_info(words, self.tr("Load again"), self._pair_state.load_again)

    @Slot(object)
    def on_trouble(self, words: str) -> None:
        self.notice.show_error(words)

    @Slot(object)
    def on_info(self, words: str) -> None:
        self.notice.show_info(words)

    # ---- following the rest of the window

    @Slot()
    def on_rows_changed(self) -> None:
        self._pages.setCurrentWidget(self.view if self.chat.items.rowCount() else self.start)
        self.new_button.setEnabled(self.chat.items.rowCount() > 0)
        self.start_view_shown.emit(self.is_start_shown)
        self.on_follow_changed()

    @Slot()
    def on_busy_changed(self) -> None:
        self.composer.set_busy(is_busy=self.chat.is_busy)

    @Slot()
    def on_pair_changed(self) -> None:
        phase = self._pair_state.phase
        if phase is Phase.LOADED:
            words = self.tr("Write to {0}").format(self._pair_state.title())
        elif phase is Phase.LOADING:
            words = self.tr("Write a message: it is sent when the model is ready")
        else:
            words = self.tr("Write a message")
        self.composer.set_placeholder(words)
        if phase is not self._phase and phase in (Phase.LOADED, Phase.LOADING):
            self.notice.pass_by()  # what it said of the pair before is history
        self._phase = phase

    @Slot()
    def on_follow_changed(self) -> None:
        self.jump_button.setVisible(not self.view.is_following and self.chat.items.rowCount() > 0)
        self._pages.place()

    @Slot()
    def on_reply_settings_changed(self) -> None:
        self.chat.settings = self.panel.settings()
        self.context.recount()
        self.state_changed.emit()

    # ---- by keyboard

    def find_chats(self) -> None:
        """To the search field, whether the list shows or not."""
        if not self.sides.shows_list:
            self.sides.on_list_clicked()
        self.chats.focus_search()

    def focus_conversation(self) -> None:
        """To the last message: from there on, the arrow keys."""
        if self.chat.items.rowCount():
            self.view.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self.view.make_current(self.chat.items.rowCount() - 1)

    def step_chat(self, step: int) -> None:
        """To the chat below or above in the list."""
        ids = [one.chat_id for one in self.keeper.chats()]
        here = self.chat.talk.chat_id
        place = ids.index(here) + step if here in ids else 0
        if 0 <= place < len(ids):
            self.desk.on_chat_chosen(ids[place])

    # ---- room

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.sides.share_out()

    # ---- dropped files

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_texts(event):
            event.acceptProposedAction()
        else:
            event.ignore()  # models are the window's

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.attaching.read(dropped_texts(event))
