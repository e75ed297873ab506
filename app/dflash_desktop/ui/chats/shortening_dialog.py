"""Before a long message is sent: what PFlash would keep of it, how much that is, and the person's choice."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QProgressBar, QSlider, QVBoxLayout, QWidget

from dflash_desktop.engine.events import JobCancelled, JobFailed, JobQueued, LoadProgress
from dflash_desktop.engine.pflash.compress import Compression, Shortened, choose_anew
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed, ScoreProgress
from dflash_desktop.engine.pflash.selection import Unit, anchored
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.chat import ShorteningDecision
from dflash_desktop.ui.chats.kept_text_view import KeptTextView
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.cause_words import told
from dflash_desktop.ui.kit.palette import XL, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, label, push_button
from dflash_desktop.ui.kit.worker import Worker

LEAST_PERCENT = 2
PROGRESS_STEPS = 1000


class ShorteningDialog(QDialog):
    """Window-modal: what is sent must not change meanwhile. Deletes itself when closed."""

    decided = Signal(object)  # ShorteningDecision
    asking_changed = Signal(bool)  # whether to be asked before sending

    def __init__(
        self,
        theme: Theme,
        bridge: EngineBridge,
        parent: QWidget,
        *,
        prefill_tps: float | None,
        keep: float | None,
        asks_first: bool | None,
        context_tokens: int,
        n_prompt_tokens: int,
    ) -> None:
        """`prefill_tps`: as it was measured last. `keep`: the share that is sent unless the person chooses another;
        None: as PFlash is set. `asks_first` None: it is off, so that nobody asks. `n_prompt_tokens`: of all that would
        be sent whole, as far as it is counted.
        """
        super().__init__(parent)
        self._theme = theme
        self._bridge = bridge
        self._prefill_tps = prefill_tps
        self._default = keep
        self._context_tokens = context_tokens
        self._n_prompt_tokens = n_prompt_tokens
        self._job_id: int | None = None
        self._latest = -1
        self._compressed: PromptCompressed | None = None
        self._view: Shortened | None = None
        self._question = ""
        self._anchors: frozenset[int] | None = None
        self._ratio: float | None = None  # the person's, once the slider has moved
        self.units: list[Unit] = []
        self._worker = Worker("find-anchors")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(self.tr("What is kept of this message"))
        self.resize(theme.px(860), theme.px(620))
        self._words = label(theme, "", "body", weight=DEMI, wraps=True)
        self._hint = label(
            theme,
            self.tr("Bright is sent, dim is left out. The bars are the scores; point at a passage for its own."),
            "caption",
            tone="muted",
            wraps=True,
        )
        self.progress = QProgressBar()
        self.progress.setRange(0, PROGRESS_STEPS)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(self.tr("Choosing what to keep"))
        self.text = KeptTextView(theme)
        self.keep = QSlider(Qt.Orientation.Horizontal)
        self.keep.setRange(LEAST_PERCENT, 100)
        self.keep.setAccessibleName(self.tr("Share that is kept"))
        self._keep_words = label(theme, "", "body")
        self._keep_words.setMinimumWidth(theme.px(56))
        self.asks = QCheckBox(self.tr("Show this before sending"))
        self.asks.setChecked(bool(asks_first))
        self.asks.setFont(theme.font("body"))
        self.asks.setVisible(asks_first is not None)
        self.send_button = push_button(theme, self.tr("Send shortened"), "primary")
        self.whole_button = push_button(theme, self.tr("Send whole"), "secondary")
        self.cancel_button = push_button(theme, self.tr("Cancel"), "secondary")
        self._build()
        self._check_whole()
        self.keep.valueChanged.connect(self.on_keep_moved)
        self.asks.toggled.connect(self.asking_changed)
        self.send_button.clicked.connect(self.on_send_clicked)
        self.whole_button.clicked.connect(self.on_whole_clicked)
        self.cancel_button.clicked.connect(self.reject)
        bridge.engine_event.connect(self.on_engine_event)

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, L, XL, L)
        column.setSpacing(S)
        column.addWidget(self._words)
        column.addWidget(self.progress)
        self._well = Card(self._theme)
        self._well.body.addWidget(self.text)
        column.addWidget(self._well, 1)
        self._below = QWidget()
        below = QVBoxLayout(self._below)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(S)
        below.addWidget(self._hint)
        line = QHBoxLayout()
        line.setSpacing(M)
        title = label(self._theme, self.tr("Keep"), "body", tone="muted")
        title.setBuddy(self.keep)
        line.addWidget(title)
        line.addWidget(self.keep, 1)
        line.addWidget(self._keep_words)
        below.addLayout(line)
        column.addWidget(self._below)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addWidget(self.asks)
        buttons.addStretch(1)
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.whole_button)
        buttons.addWidget(self.send_button)
        column.addLayout(buttons)
        self._below.hide()
        self.send_button.setEnabled(False)

    # ---- asking the engine

    def ask(self, prompt: ChatPrompt, options: PflashOptions) -> None:
        """What would be kept of the prompt's last message? Say so here."""
        self._latest = len(prompt.messages) - 1
        self._words.setText(self.tr("Choosing what to keep"))
        self.progress.show()
        self._job_id = self._bridge.compress(prompt, options)

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        if self._job_id is None or getattr(event, "job_id", None) != self._job_id:
            return
        match event:
            case JobQueued() if event.n_ahead:
                self._words.setText(self.tr("Waiting until the engine is free"))
            case LoadProgress():
                self._words.setText(self.tr("Loading the scorer"))
                self._show_share(event.n_done_bytes, event.n_total_bytes)
            case ScoreProgress():
                self._say_progress(event)
            case PromptCompressed():
                self._job_id = None
                self._take(event)
            case JobFailed():
                self._job_id = None
                self._show_problem(told(event.cause, event.message))
            case JobCancelled():
                self._job_id = None
            case _:
                pass

    def _say_progress(self, event: ScoreProgress) -> None:
        n_done, n_total = event.n_done_tokens, event.n_total_tokens
        words = self.tr("Choosing what to keep: {0} of {1} tokens read")
        words = words.format(numbers.count(n_done), numbers.count(n_total))
        if n_done > 0 and event.elapsed_s > 0:
            left = numbers.remaining(event.elapsed_s / n_done * (n_total - n_done))
            words = self.tr("{0}, {1}").format(words, left)
        self._words.setText(words)
        self._show_share(n_done, n_total)

    def _check_whole(self) -> None:
        """Nobody can send whole what does not fit."""
        n_tokens = max(self._n_prompt_tokens, self.totals()[0])
        fits = self._context_tokens <= 0 or n_tokens < self._context_tokens
        self.whole_button.setEnabled(fits)
        words = self.tr("{0} tokens do not fit into the context of {1}")
        words = words.format(numbers.count(n_tokens), numbers.count(self._context_tokens))
        self.whole_button.setToolTip("" if fits else words)

    def _show_share(self, n_done: int, n_total: int) -> None:
        self.progress.setValue(round(PROGRESS_STEPS * n_done / max(1, n_total)))

    def _show_problem(self, words: str) -> None:
        """Nothing is shortened: it can go whole."""
        self.progress.hide()
        self._words.setText(words)
        self.send_button.setEnabled(False)
        self.whole_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _take(self, event: PromptCompressed) -> None:
        self._compressed = event
        found = event.compression
        view = _latest_view(found, self._latest) if found is not None else None
        if found is None or view is None:
            self._show_problem(event.why_not or self.tr("Nothing in this message is long enough to be shortened."))
            return
        self._view, self._question = view, found.question
        self.units = list(view.units)
        self._worker.do(lambda: frozenset(anchored(view.text, view.units, found.question)), self._take_anchors)
        with QSignalBlocker(self.keep):
            self.keep.setValue(round(100 * (self._default if self._default is not None else found.ratio)))
        self.progress.hide()
        self._below.show()
        self.text.show_text(view.text, view.units)
        self.send_button.setEnabled(True)
        self.send_button.setFocus(Qt.FocusReason.OtherFocusReason)
        self._check_whole()
        self._say_totals()

    def _take_anchors(self, anchors: frozenset[int]) -> None:
        self._anchors = anchors
        if self._ratio is not None:
            self._choose()

    # ---- choosing anew

    @Slot(int)
    def on_keep_moved(self, percent: int) -> None:
        self._ratio = percent / 100
        self._choose()

    def _choose(self) -> None:
        """By the scores that are known: nothing is rated again."""
        view = self._view
        if view is None or self._ratio is None or self._anchors is None:
            return  # the anchors are on their way, and come back here
        self.units = choose_anew(view.text, view.units, self._question, self._ratio, self._anchors)
        self.text.show_choice(self.units)
        self._say_totals()

    def totals(self) -> tuple[int, int]:
        """Tokens of the message, and of what is kept of it."""
        return sum(unit.n_tokens for unit in self.units), sum(unit.n_tokens for unit in self.units if unit.is_kept)

    def _say_totals(self) -> None:
        n_before, n_after = self.totals()
        share = n_after / n_before if n_before else 1.0
        before, after = numbers.count(n_before), numbers.tokens(n_after)
        words = self.tr("{0} → {1}: {2} of this message is kept").format(before, after, numbers.percent(share))
        if self._prefill_tps and n_before > n_after:
            saved = numbers.seconds((n_before - n_after) / self._prefill_tps)
            words = self.tr("{0}; reading the rest would take about {1}").format(words, saved)
        self._words.setText(words)
        self._words.setAccessibleName(words)
        self._keep_words.setText(numbers.percent(self.keep.value() / 100))

    # ---- the decision

    def _decide(self, keep: float | None) -> None:
        event = self._compressed
        rated_s = event.load_s + event.score_s if event is not None and keep != 1.0 else 0.0
        decision = ShorteningDecision(keep, rated_s)
        self.accept()
        self.decided.emit(decision)

    @Slot()
    def on_send_clicked(self) -> None:
        # 1 would mean whole, which is the other button's; with everything kept both are the same anyway.
        self._decide(self._ratio if self._ratio is not None else self._default)

    @Slot()
    def on_whole_clicked(self) -> None:
        self._decide(1.0)

    def done(self, result: int) -> None:
        """However it ends: nothing goes on behind it."""
        if self._job_id is not None:
            self._bridge.cancel(self._job_id)
            self._job_id = None
        self._bridge.engine_event.disconnect(self.on_engine_event)
        self._worker.close(timeout_s=0.0)
        super().done(result)


def _latest_view(found: Compression, message: int) -> Shortened | None:
    return next((view for view in found.shortened if view.message == message), None)
