"""What the person does with one message or one chat, and how it can be taken back."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot

from dflash_desktop.chats.events import StoreOpened
from dflash_desktop.chats.records import ChatRecord
from dflash_desktop.ui.chats.chat import UNDECIDED, Chat, ShorteningDecision
from dflash_desktop.ui.chats.composer import Composer
from dflash_desktop.ui.chats.keeper import COMPOSER_TEXT, OPEN_CHAT
from dflash_desktop.ui.chats.message_view import MessageView
from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.chats.reply_settings_panel import ReplySettingsPanel
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.window_state import restored


class TalkDesk(QObject):
    """Lives as long as the page, between its view, its composer and the conversation."""

    settings_changed = Signal()

    def __init__(
        self, chat: Chat, view: MessageView, composer: Composer, panel: ReplySettingsPanel, notice: Notice
    ) -> None:
        super().__init__()
        self._chat = chat
        self._keeper = chat.keeper
        self._composer = composer
        self._panel = panel
        self._notice = notice
        self._edited: Message | None = None
        self._recalled_text = ""
        self._waits_for_last = False  # whose recalled text it is shows when the chats are there
        view.again_clicked.connect(chat.regenerate)
        view.continue_clicked.connect(chat.continue_reply)
        view.version_clicked.connect(chat.show_version)
        view.branch_clicked.connect(chat.branch_off)
        view.edit_clicked.connect(self.on_edit_wanted)
        view.delete_clicked.connect(self.on_delete_wanted)
        composer.edit_ended.connect(self.on_edit_ended)
        composer.text_moved.connect(self.keep_composer_text)
        chat.talk_changed.connect(self.on_talk_changed)
        self._keeper.opened.connect(self.on_store_opened)
        self._keeper.troubled.connect(self.on_store_troubled)

    # ---- sending

    @property
    def edited(self) -> Message | None:
        """The message that is being written anew."""
        return self._edited

    def send(self, decision: ShorteningDecision = UNDECIDED) -> bool:
        """Send what stands in the composer, as a new message or as another version of one. False: not now."""
        text, attachments = self._composer.typed_text(), self._composer.attached.attachments()
        if self._edited is not None:
            if not self._chat.edit(self._edited, text, attachments, decision):
                return False
            self._edited = None
            self._composer.end_edit()
        else:
            if not self._chat.send(text, attachments, decision):
                return False
            self._composer.clear()
            self._keeper.keep_composer_text(None, "")
            self._keeper.keep_attachments(None, ())
        self.keep_composer_text()
        return True

    @Slot()
    def keep_composer_text(self) -> None:
        """What was typed and pasted as one text, and what was attached."""
        if self._waits_for_last and self._composer.unsent_text() == self._recalled_text:
            return  # most likely of the chat that was open last, not of a new one
        unfinished, chat_id = self._composer.unfinished(), self._chat.talk.chat_id
        _, attachments = unfinished.aside or (unfinished.text, unfinished.attachments)
        self._keeper.keep_attachments(chat_id, attachments)
        self._keeper.keep_composer_text(chat_id, self._composer.unsent_text())

    def _put_unsent(self, text: str) -> None:
        """Show a text that was kept, with what was attached to it in chips of its own."""
        attachments = self._keeper.attachments(self._chat.talk.chat_id)
        pasted = "\n\n".join(one.text for one in attachments if one.kind == "pasted")
        if not text.endswith(pasted):  # as older versions wrote it, or another window
            attachments = tuple(one for one in attachments if one.kind != "pasted")
            pasted = ""
        typed = text[: len(text) - len(pasted)] if pasted else text
        self._composer.put(typed.removesuffix("\n\n") if pasted else typed, attachments)

    # ---- messages

    @Slot(object)
    def on_edit_wanted(self, message: Message) -> None:
        self._edited = message
        self._composer.begin_edit(message.text, message.attachments)

    def go_on_editing(self, message: Message | None) -> None:
        """Of the page before this one, whose composer is carried over."""
        self._edited = message

    @Slot()
    def on_edit_ended(self) -> None:
        self._edited = None

    @Slot(object)
    def on_delete_wanted(self, message: Message) -> None:
        talk = self._chat.talk
        removed = self._chat.delete(message)
        if removed:
            words = self.tr("{0} messages were deleted.").format(numbers.count(len(removed)))
            self._notice.show_info(words, self.tr("Bring them back"), lambda: self._chat.undelete(talk, removed))

    @Slot(object)
    def on_left_out(self, n_messages: int) -> None:
        words = self.tr("The model does not read the first {0} messages any more. They stay here for you.")
        self._notice.show_info(words.format(numbers.count(n_messages)))

    # ---- chats

    def recall(self, text: str) -> None:
        """Unsent text of the last run, as the window's own file has it."""
        self._recalled_text = text
        self._waits_for_last = self._keeper.has_store
        self._composer.set_text(text)

    @Slot(object)
    def on_store_opened(self, event: StoreOpened) -> None:
        """The chats are there: show the one that was open last, with the text that was not sent."""
        if event.problem:
            self._notice.show_error(event.problem)
        if len(self._chat.talk) or self._composer.text() != self._recalled_text:
            self._waits_for_last = False
            return  # the person was faster
        last = event.kept.get(OPEN_CHAT, "")
        if last.isdigit() and any(chat.chat_id == int(last) for chat in event.chats):
            self._chat.open(int(last))
        else:
            self._waits_for_last = False
            self._put_unsent(event.kept.get(COMPOSER_TEXT, "") or self._recalled_text)

    @Slot(object)
    def on_chat_chosen(self, chat_id: int) -> None:
        self.keep_composer_text()
        self._chat.open(chat_id)
        self._composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def on_new_wanted(self) -> None:
        self._composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)
        if self._chat.items.rowCount() == 0:
            return
        self.keep_composer_text()
        self._chat.clear()
        if not self._keeper.has_store:
            words = self.tr("A new chat has begun.")
            self._notice.show_info(words, self.tr("Bring the old one back"), self._chat.undo_clear)

    @Slot(object)
    def on_chat_deleted(self, record: ChatRecord) -> None:
        words = self.tr("“{0}” was deleted.").format(record.title or self.tr("Chat without a name"))
        self._notice.show_info(words, self.tr("Bring it back"), lambda: self._keeper.restore(record))

    @Slot()
    def on_talk_changed(self) -> None:
        """Another conversation: its own unsent text, its own settings."""
        self._waits_for_last = False
        self._composer.end_edit()
        if self._keeper.has_store:
            text = self._keeper.composer_text(self._chat.talk.chat_id)
            has_attached = self._composer.attached.attachments() or self._keeper.attachments(self._chat.talk.chat_id)
            if text != self._composer.text() or has_attached:
                self._put_unsent(text)
        stored = self._chat.talk.record.settings
        if stored:
            self._panel.show_settings(restored(self._chat.settings, dict(stored)))
            self._chat.settings = self._panel.settings()
            self.settings_changed.emit()

    @Slot(object)
    def on_store_troubled(self, words: str) -> None:
        if words:
            self._notice.show_error(words)
        else:
            self._notice.show_info(self.tr("Chats are saved again."))
