"""One client: what to do by hand, what to copy, what we can write after showing it, and how to take it back."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from dflash_desktop.clients.card import Card as ClientCard
from dflash_desktop.clients.writer import Preview
from dflash_desktop.ui.clients.card_words import said
from dflash_desktop.ui.clients.client_desk import CardState
from dflash_desktop.ui.clients.client_ticks import Tick
from dflash_desktop.ui.clients.code_well import CodeWell
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import READING_WIDTH, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, label, push_button, set_tone
from dflash_desktop.ui.server.ask_strip import AskStrip
from dflash_desktop.ui.server.serve_words import AGENT_CONTEXT

HIDDEN_KEY = "••••••••"
_AGENTS = frozenset({"cline", "roo_code", "claude_code", "codex", "opencode", "qwen_code", "hermes", "droid"})


class CardView(QScrollArea):
    """Shows one CardState; asks for writing only after the person has seen the change."""

    preview_wanted = Signal(object)  # client id
    write_wanted = Signal(object)
    undo_wanted = Signal(object)

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._state: CardState | None = None
        self._can_write = False
        self._context_tokens = 0
        self._access_token = ""
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._name = label(theme, "", "heading", weight=DEMI)
        self._tick = label(theme, "", "caption", tone="muted", wraps=True)
        self.write_button = push_button(theme, self.tr("Write settings…"), "secondary")
        self.undo_button = push_button(theme, self.tr("Undo"), "secondary")
        self.undo_button.setToolTip(self.tr("Takes the last write back; what was changed since stays."))
        self.note = AskStrip(theme)
        self._why_not = label(theme, "", "caption", tone="muted", wraps=True)
        self._preview = QWidget()
        self._preview_column = QVBoxLayout(self._preview)
        self._preview_column.setContentsMargins(0, 0, 0, 0)
        self._preview_column.setSpacing(S)
        self._preview.hide()
        self._body = QWidget()
        self._body_column = QVBoxLayout(self._body)
        self._body_column.setContentsMargins(0, 0, 0, 0)
        self._body_column.setSpacing(S)
        self._build()
        self.write_button.clicked.connect(self.on_write_clicked)
        self.undo_button.clicked.connect(self.on_undo_clicked)

    def _build(self) -> None:
        page = QWidget()
        page.setProperty("kind", "page")
        page.setMaximumWidth(self._theme.px(READING_WIDTH) + 2 * L)
        head = QHBoxLayout()
        head.setSpacing(S)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self._name)
        words.addWidget(self._tick)
        head.addLayout(words, 1)
        head.addWidget(self.undo_button, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.write_button, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(page)
        column.setContentsMargins(L, M, L, L)
        column.setSpacing(M)
        column.addLayout(head)
        for widget in (self._why_not, self.note, self._preview, self._body):
            column.addWidget(widget)
        column.addStretch(1)
        self.setWidget(page)

    # ---- what is shown

    @property
    def client_id(self) -> str:
        return self._state.card.client_id if self._state is not None else ""

    @property
    def can_be_written(self) -> bool:
        return self._state is not None and self._state.card.can_write

    def show_state(
        self, state: CardState, tick: Tick, *, can_write: bool, context_tokens: int, access_token: str
    ) -> None:
        """Another client, or the same one with other settings. The key is copied and written, but not shown."""
        self._access_token = access_token
        before = self._state
        is_other = before is None or before.card.client_id != state.card.client_id
        self._state = state
        self._can_write = can_write
        if is_other:
            self.note.clear()
            self._end_preview()
            self.verticalScrollBar().setValue(0)
        if is_other or before is None or before.card != state.card or context_tokens != self._context_tokens:
            self._context_tokens = context_tokens
            self._fill(state.card)
        self._name.setText(said(state.card.name))
        self._show_parts()
        self.show_tick(tick)

    def _show_parts(self) -> None:
        """What can be done with this client now."""
        state = self._state
        if state is None:
            return
        has_model, is_previewed = self._context_tokens > 0, self._preview.isVisibleTo(self)
        self.write_button.setVisible(state.card.can_write and has_model and not is_previewed)
        self.write_button.setEnabled(self._can_write)
        self.undo_button.setVisible(state.can_undo and not is_previewed)
        self._body.setVisible(has_model and not is_previewed)
        if not has_model:
            self._why_not.setText(self.tr("Load a model first: the program has to be told its name."))
        else:
            self._why_not.setText(self.tr("Turn the server on to write these settings."))
        self._why_not.setVisible(not has_model or (state.card.can_write and not self._can_write))

    def show_tick(self, tick: Tick) -> None:
        state = self._state
        if state is None:
            return
        words = tick.words(time.time())
        if tick.last_failure:
            words = self.tr("{0}. The last request failed: {1}").format(words, tick.last_failure)
        elif not words and state.card.client_id == "other":
            words = self.tr("Addresses for programs without a card")
        elif not words:
            words = self.tr("Found on this computer") if state.card.is_detected else self.tr("Not found here")
        self._tick.setText(words)
        set_tone(self._tick, ("good" if tick.is_good else "bad") if tick.last_at_s else "muted")

    def _fill(self, card: ClientCard) -> None:
        _empty(self._body_column)
        for number, step in enumerate(card.steps, start=1):
            row = QHBoxLayout()
            row.setSpacing(S)
            mark = label(self._theme, numbers.count(number), "body", tone="muted", weight=DEMI)
            mark.setFixedWidth(self._theme.px(16))
            row.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
            row.addWidget(self._words(said(step)), 1)
            self._body_column.addLayout(row)
        if card.warning:
            self._body_column.addWidget(self._words(said(card.warning), tone="flash"))
        if card.client_id in _AGENTS and 0 < self._context_tokens < AGENT_CONTEXT:
            words = self.tr(
                "The model is served with {0}. Agents need long prompts: some refuse below {1}, others forget early."
            ).format(numbers.tokens(self._context_tokens), numbers.tokens(AGENT_CONTEXT))
            self._body_column.addWidget(self._words(words, tone="flash"))
        for snippet in card.snippets:
            text = snippet.text.rstrip("\n")
            self._body_column.addWidget(
                CodeWell(self._theme, self._icons, said(snippet.title), self._without_key(text), copied=text)
            )

    def _without_key(self, text: str) -> str:
        return text.replace(self._access_token, HIDDEN_KEY) if self._access_token else text

    def _words(self, text: str, *, tone: str = "") -> QWidget:
        words = label(self._theme, self._without_key(text), "body", tone=tone, wraps=True)
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return words

    # ---- writing and taking back

    @Slot()
    def on_write_clicked(self) -> None:
        self.write_button.setEnabled(False)
        self.preview_wanted.emit(self.client_id)

    @Slot()
    def on_undo_clicked(self) -> None:
        self.undo_wanted.emit(self.client_id)

    def show_preview(self, previews: list[Preview]) -> None:
        """Every file and what would change in it; nothing is written before the button."""
        self.note.clear()
        _empty(self._preview_column)
        changed = [each for each in previews if each.diff]
        if not changed:
            self.write_button.setEnabled(self._can_write)
            self.note.ask(self.tr("The settings are there already: nothing would change."))
            return
        head = QHBoxLayout()
        head.setSpacing(S)
        head.addWidget(label(self._theme, self.tr("This would change"), "body", weight=DEMI), 1)
        self.confirm_button = push_button(self._theme, self.tr("Write"), "primary")
        self.cancel_button = push_button(self._theme, self.tr("Cancel"), "secondary")
        self.confirm_button.clicked.connect(self.on_confirmed)
        self.cancel_button.clicked.connect(self._end_preview)
        head.addWidget(self.cancel_button)
        head.addWidget(self.confirm_button)
        self._preview_column.addLayout(head)
        words = self.tr("Everything else in these files stays as it is. A dated copy is kept, and Undo takes it back.")
        self._preview_column.addWidget(label(self._theme, words, "caption", tone="muted", wraps=True))
        for each in changed:
            name = str(each.path) if each.exists else self.tr("{0} (a new file)").format(each.path)
            change = self._without_key(_without_head(each))
            self._preview_column.addWidget(CodeWell(self._theme, self._icons, name, change, is_diff=True))
        self._preview.show()
        self._body.hide()
        self.write_button.hide()
        self.confirm_button.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def on_confirmed(self) -> None:
        client_id = self.client_id
        self._end_preview()
        self.write_wanted.emit(client_id)

    @Slot()
    def _end_preview(self) -> None:
        focused = QApplication.focusWidget()
        has_focus = focused is not None and self._preview.isAncestorOf(focused)
        self._preview.hide()
        _empty(self._preview_column)
        self._show_parts()
        if has_focus:
            self.write_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_written(self, backup: Path) -> None:
        next_step = said(self._state.card.next_step) if self._state is not None else ""
        self.note.ask(self.tr("Written. Next: {0}").format(next_step) if next_step else self.tr("Written."))
        self.note.setToolTip(self.tr("What was there before is kept in {0}").format(backup))

    def show_undone(self) -> None:
        self.note.ask(self.tr("Taken back."))

    def show_failure(self, sentence: str) -> None:
        self._end_preview()
        self.note.ask(sentence, is_bad=True)


def _without_head(preview: Preview) -> str:
    """The change without the two lines that name the file: the title does."""
    lines = preview.diff.split("\n")
    return "\n".join(lines[2:] if lines[:1] and lines[0].startswith("---") else lines).rstrip("\n")


def _empty(layout: QVBoxLayout | QHBoxLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif isinstance(inner := item.layout(), QVBoxLayout | QHBoxLayout):
            _empty(inner)
            inner.deleteLater()
