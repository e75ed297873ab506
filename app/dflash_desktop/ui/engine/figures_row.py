"""The row of big numbers: acceptance length, speed, first token, prefill, drafted and accepted."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.pace import NUMBERS_MS
from dflash_desktop.ui.kit.palette import XS, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, ElidedLabel, label

LEAST_STEPS = 8
"""Fewer steps say nothing of the speed."""


class FiguresRow(QWidget):
    """Changes at NUMBERS_MS at most, and only while it is visible."""

    def __init__(self, theme: Theme, figures: LiveFigures) -> None:
        super().__init__()
        self._figures = figures
        self._said_version = -1
        row = QGridLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setHorizontalSpacing(M)
        self._values: dict[str, tuple[QLabel, ElidedLabel]] = {}
        for column, (key, title, tip) in enumerate(
            (
                (
                    "length",
                    self.tr("Acceptance length"),
                    self.tr("Tokens gained per step of the target, over this reply"),
                ),
                ("now", self.tr("Tokens per second"), self.tr("Over the last second; below it the mean of the reply")),
                (
                    "speed_up",
                    self.tr("Speed-up"),
                    self.tr("Tokens per second with the draft against plain decoding, both measured here"),
                ),
                (
                    "ttft",
                    self.tr("Time to first token"),
                    self.tr("From the request to its first token; below it the tokens of the prompt"),
                ),
                ("prefill", self.tr("Prefill"), self.tr("How fast the prompt was read")),
                (
                    "accepted",
                    self.tr("Accepted"),
                    self.tr("Drafted nodes that the target agreed with, over this reply"),
                ),
            )
        ):
            card = Card(theme)
            card.setToolTip(tip)
            card.setAccessibleName(title)
            card.setContentsMargins(0, -XS, 0, -XS)
            value = label(theme, numbers.DASH, "title", tone="flash" if key == "length" else "")
            value.setFont(theme.figure_font("title"))
            detail = ElidedLabel(theme, "caption", tone="muted")
            detail.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            inner = QVBoxLayout()
            inner.setSpacing(1)
            inner.addWidget(label(theme, title, "caption", tone="muted", wraps=True))
            inner.addWidget(value)
            inner.addWidget(detail)
            card.body.addLayout(inner)
            card.body.addStretch(1)
            row.addWidget(card, 0, column)
            row.setColumnStretch(column, 1)
            self._values[key] = (value, detail)
        self._timer = QTimer(self)
        self._timer.setInterval(NUMBERS_MS)
        self._timer.timeout.connect(self._say)
        self._timer.start()

    def value(self, key: str) -> str:
        return self._values[key][0].text()

    def _put(self, key: str, value: str, detail: str) -> None:
        self._values[key][0].setText(value)
        self._values[key][1].setText(detail)

    @Slot()
    def _say(self) -> None:
        figures = self._figures
        if not self.isVisible() or figures.version == self._said_version:
            return
        self._said_version = figures.version
        length = figures.acceptance_length()
        self._put(
            "length",
            numbers.decimal(length, 2) if length is not None else numbers.DASH,
            self.tr("1 step") if figures.n_steps == 1 else self.tr("{0} steps").format(numbers.count(figures.n_steps)),
        )
        self._put(
            "now", numbers.rate(figures.current_tps()), self.tr("mean {0}").format(numbers.rate(figures.mean_tps))
        )
        self._put("speed_up", *self._speed_up_words())
        self._put(
            "ttft",
            numbers.seconds(figures.ttft_s),
            self.tr("prompt: {0}").format(numbers.count(figures.n_prompt_tokens)),
        )
        self._put("prefill", numbers.rate(figures.prefill_tps), self.tr("tok/s"))
        # No percentage: across trees the share of accepted nodes says nothing.
        self._put(
            "accepted",
            numbers.count(figures.n_accepted) if figures.n_drafted else numbers.DASH,
            self.tr("of {0} drafted").format(numbers.count(figures.n_drafted)),
        )

    def _speed_up_words(self) -> tuple[str, str]:
        figures = self._figures
        if figures.n_steps and not figures.is_drafting:
            # What the draft would bring is no figure of what is done. The last step's reason says little of a reply:
            # it is often that there was no room for more.
            has_no_draft = any(record.reason in ("no_draft", "off") for record in figures.records)
            return numbers.DASH, self.tr("no draft") if has_no_draft else self.tr("plain decoding")
        if figures.speed_up is not None and figures.n_steps >= LEAST_STEPS:
            words = self.tr("against plain")
            return self.tr("{0}×").format(numbers.decimal(figures.speed_up, 2)), words
        return numbers.DASH, self.tr("not measured")
