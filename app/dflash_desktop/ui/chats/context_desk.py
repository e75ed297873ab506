"""Keeps the context meter true, and offers what can be done when the context is full."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, QSize, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout

from dflash_desktop.engine.events import GenerationDone
from dflash_desktop.ui.chats.chat import BYTES_PER_TOKEN, Chat
from dflash_desktop.ui.chats.composer import Composer
from dflash_desktop.ui.chats.context_counter import PIECE_CHARS, ContextCounter, count_tokens
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import NUMBERS_MS
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import icon_button, label, push_button

LONG_CHARS = 2000
"""An unsent message of this length can be shortened to some effect."""
MOST_COUNTED_CHARS = 10 * PIECE_CHARS
"""Longer messages are not counted while the person waits."""


class ContextChoice(QFrame):
    """What to do when the conversation does not fit any more. Hidden until then."""

    leave_out_clicked = Signal()
    enlarge_clicked = Signal()
    new_clicked = Signal()
    shorten_clicked = Signal()

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self.setProperty("kind", "info")
        self._words = label(theme, "", wraps=True)
        self.leave_out = push_button(theme, self.tr("Leave out the oldest messages"), "secondary")
        self.enlarge = push_button(theme, "", "secondary")
        self.new = push_button(theme, self.tr("New chat"), "secondary")
        self.shorten = push_button(theme, self.tr("Shorten it with PFlash…"), "secondary")
        close = icon_button(icons, "close", self.tr("Close this message"), size=16)
        self._ways = (self.shorten, self.leave_out, self.enlarge, self.new)
        self._grid = QGridLayout()
        self._grid.setSpacing(S)
        self._grid.setColumnStretch(len(self._ways), 1)
        top = QHBoxLayout()
        top.addWidget(self._words, 1)
        top.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(M, S, S, S)
        column.addLayout(top)
        column.addLayout(self._grid)
        self.leave_out.clicked.connect(self.leave_out_clicked)
        self.enlarge.clicked.connect(self.enlarge_clicked)
        self.new.clicked.connect(self.new_clicked)
        self.shorten.clicked.connect(self.shorten_clicked)
        for way in (*self._ways, close):
            way.clicked.connect(self.hide)
        self._place()
        self.hide()

    def offer(self, *, is_message: bool, larger_tokens: int, can_leave_out: bool, can_shorten: bool) -> None:
        """`is_message`: the unsent message is too long by itself, whatever the conversation holds.

        `larger_tokens`: the context that the model can be loaded with instead; 0: none that helps. `can_shorten`: it is
        a long message that did not fit.
        """
        words = self.tr("The context is full: this conversation has no room for another answer. Nothing is lost.")
        if is_message:
            words = self.tr("This message is longer than the context. Nothing is lost.")
        self._words.setText(words)
        self.setAccessibleName(words)
        self.enlarge.setText(self.tr("Load again with {0}").format(numbers.tokens(larger_tokens)))
        self.enlarge.setAccessibleName(self.enlarge.text())
        self.enlarge.setVisible(larger_tokens > 0)
        self.leave_out.setVisible(can_leave_out)
        self.shorten.setVisible(can_shorten)
        self.new.setVisible(not is_message)  # it would not fit into a new one either
        self._place()
        self.show()

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())  # where the row has no room it becomes two

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """All ways in one row, or two by two."""
        shown = [way for way in self._ways if not way.isHidden()]
        needed = sum(way.sizeHint().width() for way in shown) + S * (len(shown) + 2)
        n_columns = len(self._ways) if needed <= self.width() else 2
        for way in self._ways:
            self._grid.removeWidget(way)
        for number, way in enumerate(shown):
            self._grid.addWidget(way, number // n_columns, number % n_columns)


class ContextDesk(QObject):
    """Lives as long as the page."""

    left_out = Signal(object)  # how many messages the model does not read any more
    new_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        icons: Icons,
        chat: Chat,
        pair_state: PairState,
        figures: LiveFigures,
        composer: Composer,
    ) -> None:
        super().__init__()
        self._chat = chat
        self._pair_state = pair_state
        self._figures = figures
        self._composer = composer
        self._counter = ContextCounter()
        self._larger_tokens = 0  # what is offered
        self.choice = ContextChoice(theme, icons)
        self._timer = QTimer(self)
        self._timer.setInterval(NUMBERS_MS)
        self._timer.timeout.connect(self.show_running)
        self._counter.counted.connect(self.on_counted)
        self.choice.leave_out_clicked.connect(self.on_leave_out_clicked)
        self.choice.enlarge_clicked.connect(self.on_enlarge_clicked)
        self.choice.new_clicked.connect(self.new_wanted)
        chat.replied.connect(self.on_replied)
        chat.context_exceeded.connect(self.offer)
        chat.talk_changed.connect(self.on_talk_changed)
        chat.busy_changed.connect(self.on_busy_changed)
        pair_state.changed.connect(self.on_pair_changed)
        composer.text_moved.connect(self.recount)
        self.on_pair_changed()

    def close(self) -> None:
        self._counter.close()

    @property
    def _context_tokens(self) -> int:
        pair = self._pair_state.pair
        return pair.context_tokens if pair is not None and self._pair_state.phase is Phase.LOADED else 0

    @Slot()
    def on_pair_changed(self) -> None:
        self._counter.use_reader(self._pair_state.reader if self._context_tokens else None)
        if not self._context_tokens:
            self._composer.meter.show_tokens(0, 0)
            self.choice.hide()
        self.recount()

    @Slot()
    def on_talk_changed(self) -> None:
        self.choice.hide()
        self.recount()

    @Slot()
    def recount(self) -> None:
        """Count what the next prompt will be; while a reply is made, the engine's own figures are shown."""
        if not self._context_tokens or self._chat.is_busy:
            return
        messages = self._chat.replies.sent_part(self._chat.talk, self._chat.talk.path())
        attached = [one.text for one in self._composer.attached.attachments()]
        self._counter.count(messages, self._chat.settings.system_prompt, [self._composer.typed_text(), *attached])

    @Slot()
    def on_busy_changed(self) -> None:
        if self._chat.is_busy:
            self._timer.start()
        else:
            self._timer.stop()
            self.recount()

    @Slot()
    def show_running(self) -> None:
        """How far the running reply has filled the context. The engine may be making somebody else's before it."""
        run = self._chat.replies.of(self._chat.talk.chat_id)
        is_ours = run is not None and run.job_id is not None and run.job_id == self._figures.job_id
        if is_ours and self._figures.is_running and self._context_tokens:
            self._composer.meter.show_tokens(self._figures.n_context_tokens, self._context_tokens)

    @Slot(int)
    def on_counted(self, n_tokens: int) -> None:
        if not self._chat.is_busy:
            self._composer.meter.show_tokens(max(0, n_tokens - self._n_left_out()), self._context_tokens)

    def _n_left_out(self) -> int:
        """Tokens of the conversation that PFlash has left out: they stay out of the next prompt too."""
        for message in reversed(self._chat.talk.path()):
            if message.facts is not None:
                found = message.facts.shortening
                return max(0, found.n_before - found.n_after) if found is not None else 0
        return 0

    @Slot(object)
    def on_replied(self, done: GenerationDone) -> None:
        if not self._chat.is_busy and self._context_tokens:
            # At once, for its figures stand below it now; what the next prompt will be is counted meanwhile.
            self._composer.meter.show_tokens(done.n_prompt_tokens + done.n_committed, self._context_tokens)
        if done.finish_reason == "context":
            self.offer()

    @Slot()
    def offer(self) -> None:
        """Say that the context is full, and what can be done."""
        unsent = [self._composer.typed_text(), *(one.text for one in self._composer.attached.attachments())]
        pair = self._pair_state.pair
        n_unsent = sum(self._n_tokens(text) for text in unsent)
        first, n_newest = self._chat.newest(self._context_tokens, self._counter.known)
        self._larger_tokens = self._larger(n_unsent)
        self.choice.offer(
            is_message=n_unsent >= self._context_tokens,
            larger_tokens=self._larger_tokens,
            can_leave_out=first > 0 and n_newest + n_unsent < self._context_tokens,
            can_shorten=pair is not None and pair.can_template and sum(map(len, unsent)) > LONG_CHARS,
        )

    def _n_tokens(self, text: str) -> int:
        reader = self._pair_state.reader
        if reader is None or len(text) > MOST_COUNTED_CHARS:
            return len(text.encode(errors="replace")) // BYTES_PER_TOKEN
        return count_tokens(reader, text)

    def _larger(self, n_tokens: int) -> int:
        """A context that holds so many tokens and more than now; 0: the model or the memory has no more."""
        pair = self._pair_state.pair
        if pair is None or pair.context_choice in ("fitted", "reduced"):
            return 0
        wanted = 2 * pair.context_tokens
        while wanted <= n_tokens:
            wanted *= 2
        wanted = min(pair.trained_context_tokens, wanted)
        return wanted if wanted > max(n_tokens, pair.context_tokens) else 0

    @Slot()
    def on_enlarge_clicked(self) -> None:
        asked = self._pair_state.asked
        if asked is not None:
            options = replace(asked.options, context_tokens=self._larger_tokens)
            self._pair_state.load(replace(asked, options=options))

    @Slot()
    def on_leave_out_clicked(self) -> None:
        n_left_out = self._chat.leave_out_oldest(self._context_tokens, self._counter.known)
        self.recount()
        if n_left_out:
            self.left_out.emit(n_left_out)
