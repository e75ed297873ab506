"""The chat page: conversation, composer, live figures and the settings of the reply."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from dflash_desktop.engine.events import JobFailed
from dflash_desktop.ui.chats.chat import Chat, ReplySettings
from dflash_desktop.ui.chats.composer import Composer
from dflash_desktop.ui.chats.live_strip import LiveStrip
from dflash_desktop.ui.chats.message_view import MessageView
from dflash_desktop.ui.chats.reply_settings_panel import ReplySettingsPanel
from dflash_desktop.ui.chats.start_view import StartView
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.pair_state import PairState, Phase, StarterPair
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.palette import READING_WIDTH, XL, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, icon_button, label, rule

JUMP_SIZE = 36


class ChatPage(QWidget):
    """Owns the widgets; the conversation itself is `chat`."""

    engine_page_wanted = Signal()
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
        self.view = MessageView(theme, icons)
        self.view.setModel(chat.items)
        self.start = StartView(theme, icons, pair_state, starter)
        self.composer = Composer(theme, icons)
        self.notice = Notice(theme, icons)
        self.strip = LiveStrip(theme, figures)
        self.panel = ReplySettingsPanel(theme, icons, chat.settings)
        self._side = self._build_side()
        self._build()
        self._connect(pair_state)
        self.on_rows_changed()
        self.on_pair_changed()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(XL, S, M, S)
        head.setSpacing(S)
        head.addWidget(label(self._theme, self.tr("Chat"), "heading", weight=DEMI))
        head.addStretch(1)
        head.addWidget(self.strip)
        self.new_button = icon_button(self._icons, "new-chat", self.tr("New chat (Ctrl+N)"))
        self.settings_button = icon_button(self._icons, "settings", self.tr("Chat settings"))
        self.settings_button.setCheckable(True)
        head.addWidget(self.new_button)
        head.addWidget(self.settings_button)
        self._pages = QStackedWidget()
        self._pages.addWidget(self.start)
        self._pages.addWidget(self.view)
        self.jump_button = icon_button(self._icons, "down", self.tr("Go to the end (End)"), color="text")
        self.jump_button.setParent(self._pages)
        self.jump_button.setFixedSize(JUMP_SIZE, JUMP_SIZE)
        self.jump_button.setStyleSheet(
            "border-radius: 18px; border: 1px solid palette(dark); background: palette(base);"
        )
        self.jump_button.hide()
        foot = QVBoxLayout()
        foot.setContentsMargins(0, S, 0, S)
        foot.setSpacing(S)
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
        body.addLayout(main, 1)
        body.addWidget(self._side)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(head)
        whole.addWidget(rule())
        whole.addLayout(body, 1)
        self.setTabOrder(self.view, self.composer.edit)

    def _build_side(self) -> QWidget:
        side = QWidget()
        row = QHBoxLayout(side)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        line = QFrame()
        line.setProperty("kind", "rule")
        line.setFixedWidth(1)
        row.addWidget(line)
        row.addWidget(self.panel)
        side.hide()
        return side

    def _connect(self, pair_state: PairState) -> None:
        self.composer.send_clicked.connect(self.on_send_clicked)
        self.composer.stop_clicked.connect(self.chat.stop)
        self.composer.text_settled.connect(self.state_changed)
        self.view.again_clicked.connect(self.chat.regenerate)
        self.view.follow_changed.connect(self.on_follow_changed)
        self.jump_button.clicked.connect(self.view.follow)
        self.new_button.clicked.connect(self.on_new_clicked)
        self.settings_button.toggled.connect(self.on_settings_toggled)
        self.panel.close_clicked.connect(self.settings_button.toggle)
        self.panel.changed.connect(self.on_reply_settings_changed)
        self.strip.clicked.connect(self.engine_page_wanted)
        self.start.start_clicked.connect(self.start_wanted)
        self.start.open_clicked.connect(self.open_wanted)
        self.start.cancel_clicked.connect(pair_state.cancel_load)
        self.start.prompt_chosen.connect(self.on_prompt_chosen)
        self.chat.busy_changed.connect(self.on_busy_changed)
        self.chat.refused.connect(self.on_message_refused)
        self.chat.failed.connect(self.on_reply_failed)
        self.chat.items.rowsInserted.connect(self.on_rows_changed)
        self.chat.items.rowsRemoved.connect(self.on_rows_changed)
        pair_state.changed.connect(self.on_pair_changed)
        pair_state.failed.connect(self.on_load_failed)

    # ---- what is remembered between starts

    def remember(self) -> dict[str, Any]:
        return {
            "composer_text": self.composer.text(),
            "has_side_panel": self.settings_button.isChecked(),
            "reply_settings": asdict(self.chat.settings),
        }

    def recall(self, *, composer_text: str, has_side_panel: bool, settings: ReplySettings) -> None:
        self.composer.set_text(composer_text)
        self.panel.show_settings(settings)
        self.chat.settings = self.panel.settings()
        self.settings_button.setChecked(has_side_panel)

    @property
    def is_start_shown(self) -> bool:
        return self.chat.items.rowCount() == 0

    # ---- sending

    @Slot()
    def on_send_clicked(self) -> None:
        self._send(self.composer.text())

    def _send(self, text: str) -> None:
        if self._pair_state.phase is Phase.EMPTY:
            self._offer_start()
            return
        if self.chat.send(text):
            self.notice.hide()
            self.composer.clear()
            self.view.follow()
            self.state_changed.emit()

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
        self._send(self.composer.text())

    @Slot(object)
    def on_prompt_chosen(self, prompt: str) -> None:
        self._send(prompt)

    @Slot(object, object)
    def on_message_refused(self, text: str, why: str) -> None:
        # What the person has begun to write meanwhile stays; the refused message comes back above it.
        begun = self.composer.text()
        self.composer.set_text(f"{text}\n\n{begun}" if begun.strip() else text)
        if self._pair_state.phase is Phase.LOADED:
            self.notice.show_error(why)
        else:
            self.notice.show_info(why)
        self.state_changed.emit()

    @Slot(object)
    def on_reply_failed(self, failure: JobFailed) -> None:
        if failure.kind == "device":
            words = self.tr("The device failed. Load the model again to go on.")
            self.notice.show_info(words, self.tr("Load again"), self._pair_state.load_again)

    @Slot(object)
    def on_load_failed(self, failure: JobFailed) -> None:
        asked = self._pair_state.asked
        if asked is not None and asked.draft is not None and failure.kind == "bad_request":
            self.notice.show_error(
                failure.message, self.tr("Load without the draft"), self._pair_state.load_again_without_draft
            )
        else:
            self.notice.show_error(failure.message)

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
            self.notice.hide()  # what it said of the pair before is history
        self._phase = phase

    @Slot()
    def on_follow_changed(self) -> None:
        self.jump_button.setVisible(not self.view.is_following and self.chat.items.rowCount() > 0)
        self._place_jump_button()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_jump_button()

    def _place_jump_button(self) -> None:
        area = self._pages.rect()
        self.jump_button.move((area.width() - JUMP_SIZE) // 2, area.height() - JUMP_SIZE - M)
        self.jump_button.raise_()

    @Slot()
    def on_new_clicked(self) -> None:
        if self.chat.items.rowCount() == 0:
            return
        self.chat.clear()
        self.composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.notice.show_info(self.tr("A new chat has begun."), self.tr("Bring the old one back"), self.chat.undo_clear)

    @Slot(bool)
    def on_settings_toggled(self, is_on: bool) -> None:
        self._side.setVisible(is_on)
        self.state_changed.emit()

    @Slot()
    def on_reply_settings_changed(self) -> None:
        self.chat.settings = self.panel.settings()
        self.state_changed.emit()
