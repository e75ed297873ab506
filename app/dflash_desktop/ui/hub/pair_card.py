"""One pair of the catalogue: what it is, whether it fits here, how fast it may be, and one button."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout

from dflash_desktop.hub.fit import Recommendation
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.summaries import summary_words
from dflash_desktop.ui.hub.words import fit_badge, fit_source, fit_words, note_words, speed_words, state_words
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, chip, label, push_button, set_tone


def badge(theme: Theme) -> QLabel:
    """A chip for a verdict."""
    made = chip(theme)
    made.setFont(theme.font("caption", weight=DEMI))
    return made


def show_badge(widget: QLabel, words: str, tone: str) -> None:
    widget.setText(words)
    set_tone(widget, tone)


class PairCard(Card):
    """Shows a Recommendation; follows the downloads of its pair."""

    get_wanted = Signal(object)  # Recommendation
    load_wanted = Signal(object)  # DownloadStatus

    def __init__(self, theme: Theme, desk: ModelsDesk, recommended: Recommendation, *, is_best: bool) -> None:
        super().__init__(theme)
        self._theme = theme
        self._desk = desk
        self.recommended = recommended
        pair = recommended.pair
        self.setAccessibleName(pair.name)
        name = label(theme, pair.name, "heading", weight=DEMI)
        self._best = chip(theme, self.tr("recommended here"))
        self._badge = badge(theme)
        self._facts = label(theme, "", "body", tone="muted", wraps=True)
        self._fit = label(theme, "", "caption", tone="muted", wraps=True)
        notes = "\n".join(note_words(note) for note in pair.notes)
        self.get_button = push_button(theme, self.tr("Get it…"), "secondary")
        self.get_button.setAccessibleName(self.tr("Get {0}").format(pair.name))
        self.load_button = push_button(theme, self.tr("Load"), "secondary")
        self.load_button.setAccessibleName(self.tr("Load {0}").format(pair.name))
        head = QHBoxLayout()
        head.setSpacing(S)
        head.addWidget(name)
        head.addWidget(self._badge)
        head.addWidget(self._best)
        head.addStretch(1)
        text = QVBoxLayout()
        text.setSpacing(XS)
        text.addLayout(head)
        text.addWidget(label(theme, summary_words(pair.summary), "body", wraps=True))
        text.addWidget(self._facts)
        text.addWidget(self._fit)
        self._notes = label(theme, notes, "caption", tone="muted", wraps=True)
        text.addWidget(self._notes)
        buttons = QVBoxLayout()
        buttons.addWidget(self.get_button)
        buttons.addWidget(self.load_button)
        buttons.addStretch(1)
        row = QHBoxLayout()
        row.setSpacing(M)
        row.addLayout(text, 1)
        row.addLayout(buttons)
        self.body.addLayout(row)
        self.get_button.clicked.connect(lambda: self.get_wanted.emit(self.recommended))
        self.load_button.clicked.connect(self.on_load_clicked)
        self.show_recommended(recommended, is_best=is_best)
        self.on_rows_changed()
        desk.rows_changed.connect(self.on_rows_changed)

    def show_recommended(self, recommended: Recommendation, *, is_best: bool) -> None:
        """Another device, or more of its memory is free."""
        self.recommended = recommended
        pair, proposal, fit = recommended.pair, recommended.proposal, recommended.fit
        show_badge(self._badge, *fit_badge(fit))
        self._best.setVisible(is_best)
        self._notes.setVisible(recommended.has_draft and bool(pair.notes))  # all of them are about the draft
        facts = [
            self.tr("{0} to download").format(numbers.size(recommended.n_bytes)),
            self.tr("target {0}, draft {1}").format(proposal.target, proposal.draft)
            if recommended.has_draft
            else self.tr("target {0}, no draft").format(proposal.target),
            pair.licence,
            speed_words(recommended.expected_tps),
        ]
        self._facts.setText("  ·  ".join(fact for fact in facts if fact))
        self._fit.setText(self.tr("{0} ({1})").format(fit_words(fit), fit_source(fit)))

    @Slot()
    def on_rows_changed(self) -> None:
        row = self._desk.row_of_pair(self.recommended.pair.id)
        is_done = row is not None and row.state == "done"
        self.get_button.setVisible(not is_done)
        self.get_button.setEnabled(row is None)
        self.get_button.setToolTip(state_words(row) if row is not None and not is_done else "")
        self.load_button.setVisible(is_done)

    @Slot()
    def on_load_clicked(self) -> None:
        row = self._desk.row_of_pair(self.recommended.pair.id)
        if row is not None:
            self.load_wanted.emit(row)
