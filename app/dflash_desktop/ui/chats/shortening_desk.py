"""PFlash in the chat: the quick switch, and the look at what is kept before a long message is sent."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from dflash_desktop.engine.pflash.chat import SHORT_TOKENS
from dflash_desktop.engine.requests import ChatPrompt
from dflash_desktop.ui.chats.chat import Chat
from dflash_desktop.ui.chats.composer import Composer
from dflash_desktop.ui.chats.pflash_switch import PflashSwitch
from dflash_desktop.ui.chats.shortening_dialog import LEAST_PERCENT, ShorteningDialog
from dflash_desktop.ui.chats.talk_desk import TalkDesk
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.engine.pflash_row import MODES
from dflash_desktop.ui.kit.theme import Theme

BYTES_PER_TOKEN = 4
"""A guess, for text that nobody has counted yet."""


class ShorteningDesk(QObject):
    """Lives as long as the page."""

    decided = Signal(object)  # ShorteningDecision: send what stands in the composer
    settings_wanted = Signal()
    troubled = Signal(object)  # a sentence

    def __init__(
        self,
        theme: Theme,
        chat: Chat,
        pair_state: PairState,
        figures: LiveFigures,
        composer: Composer,
        desk: TalkDesk,
        window: QWidget,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._chat = chat
        self._pair_state = pair_state
        self._figures = figures
        self._composer = composer
        self._desk = desk
        self._window = window
        self.dialog: ShorteningDialog | None = None
        self.switch = PflashSwitch(theme)
        composer.foot.insertWidget(composer.foot.count() - 1, self.switch)
        self.switch.mode_chosen.connect(self.on_mode_chosen)
        self.switch.preview_wanted.connect(self.on_preview_wanted)
        self.switch.settings_wanted.connect(self.settings_wanted)
        pair_state.changed.connect(self.on_pair_changed)
        composer.text_moved.connect(self.on_text_moved)
        chat.busy_changed.connect(self.on_text_moved)
        self.on_pair_changed()

    def close(self) -> None:
        if self.dialog is not None:
            self.dialog.reject()

    # ---- the switch

    @property
    def _is_usable(self) -> bool:
        pair = self._pair_state.pair
        return pair is not None and pair.can_template and self._pair_state.phase is Phase.LOADED

    @Slot()
    def on_pair_changed(self) -> None:
        self.switch.setVisible(self._is_usable)
        self.switch.show_choice(self._pair_state.pflash)
        if not self._is_usable:
            self.close()
        self.on_text_moved()

    @Slot()
    def on_text_moved(self) -> None:
        n_new, n_all = self._n_new_tokens(), self._n_all_tokens()
        is_long = n_new > SHORT_TOKENS and n_all >= self._threshold_tokens
        can_preview = self._is_usable and not self._chat.is_busy and n_new > SHORT_TOKENS
        self.switch.show_long(is_long=is_long, can_preview=can_preview)

    @Slot(object)
    def on_mode_chosen(self, mode: str) -> None:
        self._pair_state.set_pflash(replace(self._pair_state.pflash, mode=MODES[mode]))

    # ---- looking before sending

    @property
    def _context_tokens(self) -> int:
        return self._pair_state.pair.context_tokens if self._pair_state.pair is not None else 0

    @property
    def _threshold_tokens(self) -> int:
        """From here on the engine shortens with auto: what does not fit the context is too long as well."""
        threshold = self._pair_state.pflash.threshold_tokens
        return min(threshold, self._context_tokens) if self._context_tokens else threshold

    def _unsent(self) -> list[str]:
        attached = [one.text for one in self._composer.attached.attachments()]
        return [self._composer.typed_text(), *attached]

    def _n_new_tokens(self) -> int:
        return sum(len(text.encode(errors="replace")) for text in self._unsent()) // BYTES_PER_TOKEN

    def _n_all_tokens(self) -> int:
        """The meter's number lags behind a paste, so what is new counts at least as much as it looks like."""
        return max(self._composer.meter.n_tokens, self._n_new_tokens())

    def looks_first(self) -> bool:
        """Show what would be kept, if the person wants to see that before sending this. True: `decided` may follow."""
        choice = self._pair_state.pflash
        if choice.mode == "off" or not choice.asks_first or not self._is_usable or self._chat.is_busy:
            return False
        if self._n_new_tokens() <= SHORT_TOKENS:
            return False
        if choice.mode == "auto" and self._n_all_tokens() < self._threshold_tokens:
            return False
        self._look()
        return True

    @Slot()
    def on_preview_wanted(self) -> None:
        if self._is_usable and not self._chat.is_busy and self._n_new_tokens() > 0:
            self._look()

    def _look(self) -> None:
        if self.dialog is not None:
            return
        choice = self._pair_state.pflash
        # What is on its way with "always" anyway needs no choice of the person's own.
        keep = None
        if choice.mode != "always":
            keep = max(LEAST_PERCENT, round(100 * choice.ratio(self._n_all_tokens()))) / 100
        text, attachments = self._composer.typed_text(), self._composer.attached.attachments()
        asked = self._chat.asked_with(text, attachments, self._desk.edited, keep)
        options = asked.pflash
        if options.scorer is None:
            self.troubled.emit(self.tr("No scorer is chosen. Choose a small model in the settings of PFlash."))
            return
        dialog = ShorteningDialog(
            self._theme,
            self._chat.bridge,
            self._window.window(),
            prefill_tps=self._figures.prefill_tps,
            keep=keep,
            asks_first=choice.asks_first if choice.mode != "off" else None,
            context_tokens=self._context_tokens,
            n_prompt_tokens=self._composer.meter.n_tokens,
        )
        dialog.decided.connect(self.decided)
        dialog.asking_changed.connect(self.on_asking_changed)
        dialog.finished.connect(self.on_dialog_finished)
        self.dialog = dialog
        dialog.show()
        dialog.ask(ChatPrompt(asked.rows), options)

    @Slot(bool)
    def on_asking_changed(self, is_on: bool) -> None:
        self._pair_state.set_pflash(replace(self._pair_state.pflash, asks_first=is_on))

    @Slot()
    def on_dialog_finished(self) -> None:
        self.dialog = None
        self._composer.edit.setFocus(Qt.FocusReason.OtherFocusReason)
