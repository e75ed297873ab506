"""How much of the context the conversation takes: a number, and a thin bar."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label, set_tone

NEARLY_FULL = 0.9


class ContextMeter(QWidget):
    """Hidden until it is known how large the context is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._n_tokens = 0
        self._context_tokens = 0
        self._words = label(theme, "", "caption", tone="muted")
        self._words.setFont(theme.figure_font("caption", weight=theme.font("caption").weight()))
        self._bar = _Bar(theme)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        row.addWidget(self._words)
        row.addWidget(self._bar, 0, Qt.AlignmentFlag.AlignVCenter)
        self.hide()

    @property
    def n_tokens(self) -> int:
        return self._n_tokens

    @property
    def n_too_many(self) -> int:
        """By how many tokens the next prompt is too long; one is needed for the reply."""
        return max(0, self._n_tokens + 1 - self._context_tokens) if self._context_tokens else 0

    def show_tokens(self, n_tokens: int, context_tokens: int) -> None:
        """`n_tokens`: what the next prompt will have, or the running one has. `context_tokens` 0: not known."""
        if (n_tokens, context_tokens) == (self._n_tokens, self._context_tokens):
            return
        self._n_tokens, self._context_tokens = n_tokens, context_tokens
        self.setVisible(context_tokens > 0)
        if context_tokens <= 0:
            return
        n_too_many = self.n_too_many
        if n_too_many:
            words = self.tr("{0} tokens too many for the context").format(numbers.count(n_too_many))
        else:
            words = self.tr("Context: {0} of {1} tokens")
            words = words.format(numbers.count(n_tokens), numbers.count(context_tokens))
        self._words.setText(words)
        self.setAccessibleName(words)
        self.setToolTip(
            self.tr(
                "What the model reads with the next message: the conversation, the system prompt and what you have "
                "written. The answer needs room too."
            )
        )
        set_tone(self._words, "bad" if n_too_many else "muted")
        self._bar.show_share(n_tokens / context_tokens)


class _Bar(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._share = 0.0
        self.setFixedSize(self.sizeHint())
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(64, 6)

    def show_share(self, share: float) -> None:
        self._share = share
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(self.rect())
        painter.setBrush(self._theme.color("border"))
        painter.drawRoundedRect(track, 3, 3)
        if self._share > 0:
            track.setWidth(max(6.0, track.width() * min(1.0, self._share)))
            color = "bad" if self._share >= 1 else "flash" if self._share >= NEARLY_FULL else "accent_text"
            painter.setBrush(self._theme.color(color))
            painter.drawRoundedRect(track, 3, 3)
        painter.end()
