"""The panel beside the chat: system prompt and how the next token is chosen."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QHBoxLayout,
    QPlainTextEdit,
    QScrollArea,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.ui.chats.keeper import ChatKeeper
from dflash_desktop.ui.chats.presets_row import PresetsRow
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, L, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, SegmentedControl, icon_button, label, push_button, style_spin

WIDTH = 308
MAX_SEED = 2**31 - 1


class ReplySettingsPanel(QScrollArea):
    """Changes count from the next message on."""

    changed = Signal()
    close_clicked = Signal()

    def __init__(self, theme: Theme, icons: Icons, settings: ReplySettings, keeper: ChatKeeper) -> None:
        super().__init__()
        self._theme = theme
        self._is_showing = False
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFixedWidth(theme.px(WIDTH))
        self.setAccessibleName(self.tr("Chat settings"))
        page = QWidget()
        page.setProperty("kind", "page")
        column = QVBoxLayout(page)
        column.setContentsMargins(L, L, L, L)
        column.setSpacing(XS)
        head = QHBoxLayout()
        head.addWidget(label(theme, self.tr("Chat settings"), "heading", weight=DEMI), 1)
        close = icon_button(icons, "close", self.tr("Close the chat settings"), size=16)
        close.clicked.connect(self.close_clicked)
        head.addWidget(close)
        column.addLayout(head)
        column.addSpacing(S)

        self.presets = PresetsRow(theme, icons, keeper)
        self.presets.chosen.connect(self.on_preset_chosen)
        self._add(column, self.tr("Preset"), self.presets, "")
        self.system_prompt = QPlainTextEdit()
        self.system_prompt.setProperty("kind", "field")
        self.system_prompt.setFixedHeight(theme.px(104))
        self.system_prompt.setTabChangesFocus(True)
        self.system_prompt.setFont(theme.font("body"))
        self.system_prompt.setPlaceholderText(self.tr("How the model should behave. Empty: the model's own."))
        self._add(column, self.tr("System prompt"), self.system_prompt, "")
        self.temperature = _Dial(theme, 0.0, 2.0, 0.05)
        self._add(
            column,
            self.tr("Temperature"),
            self.temperature,
            self.tr("0 always takes the likeliest token. Higher is more varied."),
        )
        self.top_p = _Dial(theme, 0.05, 1.0, 0.05)
        self._add(column, self.tr("Top-p"), self.top_p, self.tr("Smallest set of tokens with this share. 1 is off."))
        self.top_k = _spin(theme, 0, 1000, self.tr("off"))
        self._add(column, self.tr("Top-k"), self.top_k, self.tr("Only the k likeliest tokens."))
        self.seed = _spin(theme, -1, MAX_SEED, self.tr("another each time"))
        self._add(column, self.tr("Seed"), self.seed, self.tr("The same seed and text give the same answer."))
        self.max_tokens = _spin(theme, 0, 1_000_000, self.tr("room left in the context"))
        self._add(column, self.tr("Most tokens per answer"), self.max_tokens, "")
        self.thinking = SegmentedControl(
            theme,
            [("auto", self.tr("Auto")), ("on", self.tr("On")), ("off", self.tr("Off"))],
            self.tr("Thinking"),
        )
        self._add(
            column,
            self.tr("Thinking"),
            self.thinking,
            self.tr("For models that can answer with and without thoughts."),
        )
        column.addSpacing(S)
        reset = push_button(theme, self.tr("Reset to defaults"), "link")
        reset.clicked.connect(self.on_reset_clicked)
        column.addWidget(reset, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        self.setWidget(page)
        self.show_settings(settings)
        self.system_prompt.textChanged.connect(self.on_edited)
        for dial in (self.temperature, self.top_p):
            dial.changed.connect(self.on_edited)
        for spin in (self.top_k, self.seed, self.max_tokens):
            spin.valueChanged.connect(self.on_edited)
        self.thinking.chosen.connect(self.on_edited)

    def settings(self) -> ReplySettings:
        return ReplySettings(
            system_prompt=self.system_prompt.toPlainText(),
            temperature=self.temperature.value(),
            top_p=self.top_p.value(),
            top_k=self.top_k.value(),
            seed=self.seed.value(),
            max_tokens=self.max_tokens.value(),
            thinking=self.thinking.choice(),
        )

    def show_settings(self, settings: ReplySettings) -> None:
        self._is_showing = True
        self.system_prompt.setPlainText(settings.system_prompt)
        self.temperature.set_value(settings.temperature)
        self.top_p.set_value(settings.top_p)
        self.top_k.setValue(settings.top_k)
        self.seed.setValue(settings.seed)
        self.max_tokens.setValue(settings.max_tokens)
        self.thinking.choose(settings.thinking if settings.thinking in ("auto", "on", "off") else "auto")
        self.presets.show_settings(self.settings())
        self._is_showing = False

    @Slot()
    def on_edited(self) -> None:
        if not self._is_showing:
            self.presets.show_settings(self.settings())
            self.changed.emit()

    @Slot(object)
    def on_preset_chosen(self, settings: ReplySettings) -> None:
        self.show_settings(settings)
        self.changed.emit()

    @Slot()
    def on_reset_clicked(self) -> None:
        self.show_settings(ReplySettings())
        self.changed.emit()

    def _add(self, column: QVBoxLayout, name: str, field: QWidget, help_words: str) -> None:
        title = label(self._theme, name, "body", weight=DEMI)
        title.setBuddy(field)
        field.setAccessibleName(name)
        field.setAccessibleDescription(help_words)
        if isinstance(field, _Dial):
            field.name_parts(name)
            title.setBuddy(field.spin)
        column.addWidget(title)
        column.addWidget(field)
        if help_words:
            column.addWidget(label(self._theme, help_words, "caption", tone="muted", wraps=True))
        column.addSpacing(S + 2)


class _Dial(QWidget):
    """A slider and the number it stands for."""

    changed = Signal()

    def __init__(self, theme: Theme, low: float, high: float, step: float) -> None:
        super().__init__()
        self._step = step
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(round(low / step), round(high / step))
        self.spin = QDoubleSpinBox()
        self.spin.setRange(low, high)
        self.spin.setSingleStep(step)
        self.spin.setDecimals(2)
        self.spin.setFont(theme.figure_font("body", weight=theme.font("body").weight()))
        self.spin.setFixedWidth(theme.px(64))
        style_spin(self.spin)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S + XS)
        row.addWidget(self.slider, 1)
        row.addWidget(self.spin)
        self.slider.valueChanged.connect(self.on_slider_moved)
        self.spin.valueChanged.connect(self.on_spin_changed)

    def name_parts(self, name: str) -> None:
        self.slider.setAccessibleName(name)
        self.spin.setAccessibleName(name)

    def value(self) -> float:
        return self.spin.value()

    def set_value(self, value: float) -> None:
        self.spin.setValue(value)

    @Slot(int)
    def on_slider_moved(self, position: int) -> None:
        if round(self.spin.value() / self._step) != position:
            self.spin.setValue(position * self._step)

    @Slot(float)
    def on_spin_changed(self, value: float) -> None:
        self.slider.setValue(round(value / self._step))
        self.changed.emit()


def _spin(theme: Theme, low: int, high: int, lowest_words: str) -> QSpinBox:
    spin = QSpinBox()
    spin.setRange(low, high)
    spin.setSpecialValueText(lowest_words)
    spin.setFont(theme.font("body"))
    spin.setMinimumHeight(theme.px(30))
    style_spin(spin)
    return spin
