"""The context of a pair: a slider in sensible steps, the exact number, and the largest that fits in one click."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QHBoxLayout, QSlider, QSpinBox, QVBoxLayout, QWidget

from dflash_desktop.ui.engine.load_fit import STEP, context_steps, nearest_step
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import XS, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label, push_button, style_spin

UNKNOWN_TRAINED = 8192
MOST_DIGITS = 9


class TokensSpin(QSpinBox):
    """Takes a number above its maximum while it is typed, and makes the maximum of it: no digit is dropped."""

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        if self._typed(text) > self.maximum():
            return QValidator.State.Intermediate, text, position
        return super().validate(text, position)

    def fixup(self, text: str) -> str:
        return str(self.maximum()) if self._typed(text) > self.maximum() else super().fixup(text)

    def _typed(self, text: str) -> int:
        digits = text.replace(self.locale().groupSeparator(), "").strip()
        return int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else 0


class ContextRow(QWidget):
    """`changed` comes for what the person does, never for what is shown by us."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._largest = 0
        self._steps = context_steps(UNKNOWN_TRAINED)
        name = self.tr("Context in tokens")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(name)
        self.spin = TokensSpin()
        self.spin.setSingleStep(STEP)
        self.spin.setGroupSeparatorShown(True)
        self.spin.setKeyboardTracking(False)
        self.spin.setFont(theme.figure_font("body", weight=theme.font("body").weight()))
        self.spin.setFixedWidth(theme.px(96))
        self.spin.setMinimumHeight(theme.px(30))
        self.spin.setAccessibleName(name)
        style_spin(self.spin)
        self.largest_button = push_button(theme, "", "link")
        self._trained_words = label(theme, "", "caption", tone="muted")
        row = QHBoxLayout()
        row.setSpacing(M)
        row.addWidget(self.slider, 1)
        row.addWidget(self.spin)
        below = QHBoxLayout()
        below.addWidget(self._trained_words, 1)
        below.addWidget(self.largest_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(XS)
        column.addLayout(row)
        column.addLayout(below)
        self.slider.valueChanged.connect(self.on_slider_moved)
        self.spin.valueChanged.connect(self.on_spin_changed)
        self.largest_button.clicked.connect(self.on_largest_clicked)
        self.show_trained(UNKNOWN_TRAINED)
        self._trained_words.clear()  # of no model yet
        self.show_largest(None)

    def tokens(self) -> int:
        return self.spin.value()

    def show_trained(self, trained_tokens: int) -> None:
        """What the model was trained for: the slider's end."""
        self._steps = context_steps(trained_tokens)
        with QSignalBlocker(self.slider), QSignalBlocker(self.spin):
            self.slider.setRange(0, len(self._steps) - 1)
            self.spin.setRange(min(STEP, trained_tokens), trained_tokens)
            self.slider.setValue(nearest_step(self._steps, self.spin.value()))
        self._trained_words.setText(self.tr("trained for {0}").format(numbers.count(trained_tokens)))

    def show_tokens(self, tokens: int) -> None:
        with QSignalBlocker(self.slider), QSignalBlocker(self.spin):
            self.spin.setMaximum(max(tokens, self.spin.maximum()))  # until show_trained knows better
            self.spin.setValue(tokens)
            self.slider.setValue(nearest_step(self._steps, self.spin.value()))

    def show_largest(self, tokens: int | None) -> None:
        """The largest that fits; None while nobody knows."""
        self._largest = tokens or 0
        self.largest_button.setEnabled(bool(tokens))
        if tokens == 0:
            words = self.tr("No context fits")
        elif tokens is None:
            words = self.tr("Largest that fits: {0}").format(numbers.DASH)
        else:
            words = self.tr("Largest that fits: {0}").format(numbers.count(tokens))
        self.largest_button.setText(words)
        self.largest_button.setAccessibleName(words)

    @Slot(int)
    def on_slider_moved(self, position: int) -> None:
        with QSignalBlocker(self.spin):
            self.spin.setValue(self._steps[position])
        self.changed.emit()

    @Slot(int)
    def on_spin_changed(self, tokens: int) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(nearest_step(self._steps, tokens))
        self.changed.emit()

    @Slot()
    def on_largest_clicked(self) -> None:
        if self._largest:
            self.show_tokens(self._largest)
            self.changed.emit()
