"""One control per declared setting: the page is built from the declarations, never by hand."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QSignalBlocker, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QSpinBox, QVBoxLayout, QWidget

from dflash_desktop.settings.declare import Setting
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import XS, L
from dflash_desktop.ui.kit.switch import Switch
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, SegmentedControl, label, style_spin

Value = str | int | bool
MOST_SEGMENTS = 3
MOST_LISTED = 24
"""A number with no more steps than this is chosen from a list: one click, and no half-typed value in force."""


def translated(text: str) -> str:
    """A text of the declarations in the window's language."""
    return QCoreApplication.translate("settings", text) if text else ""


class SettingRow(QWidget):
    """Title and help at the left, the control at the right."""

    def __init__(self, theme: Theme, setting: Setting, value: Value, change: Callable[[str, Value], object]) -> None:
        super().__init__()
        self._setting = setting
        self._change = change
        self._theme = theme
        title, help_words = translated(setting.words.title), translated(setting.words.help)
        words = QVBoxLayout()
        words.setSpacing(XS // 2)
        words.addWidget(label(theme, title, weight=DEMI))
        words.addWidget(label(theme, help_words, "caption", tone="muted", wraps=True))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, XS, 0, XS)
        row.setSpacing(L)
        row.addLayout(words, 1)
        self.control = self._make_control(title)
        self.control.setAccessibleName(title)
        self.control.setAccessibleDescription(help_words)
        row.addWidget(self.control)
        self.show_value(value)

    def _make_control(self, title: str) -> QWidget:
        setting = self._setting
        if setting.kind == "switch":
            switch = Switch(self._theme, title)
            switch.clicked.connect(self.on_switch_clicked)
            return switch
        if setting.kind == "choice" and len(setting.words.choices) <= MOST_SEGMENTS:
            choices = [(key, translated(name)) for key, name in setting.words.choices]
            segments = SegmentedControl(self._theme, choices, title)
            segments.chosen.connect(self.on_chosen)
            return segments
        n_steps = (setting.high - setting.low) // setting.step
        if setting.kind == "choice" or n_steps <= MOST_LISTED:
            return self._make_list()
        return self._make_spin()

    def _make_list(self) -> QComboBox:
        setting = self._setting
        box = QComboBox()
        box.setFont(self._theme.font("body"))
        box.setMinimumHeight(self._theme.px(32))
        if setting.kind == "choice":
            for key, name in setting.words.choices:
                box.addItem(translated(name), key)
        else:
            for value in range(setting.low, setting.high + 1, setting.step):
                box.addItem(f"{numbers.count(value)} {translated(setting.unit)}".rstrip(), value)
        box.activated.connect(self.on_listed)
        return box

    def _make_spin(self) -> QSpinBox:
        setting = self._setting
        spin = QSpinBox()
        spin.setRange(setting.low, setting.high)
        spin.setSingleStep(setting.step)
        spin.setGroupSeparatorShown(True)
        spin.setSpecialValueText(translated(setting.words.zero))
        spin.setSuffix(f" {translated(setting.unit)}" if setting.unit else "")
        spin.setFont(self._theme.font("body"))
        spin.setMinimumHeight(self._theme.px(32))
        spin.setMinimumWidth(self._theme.px(220))
        spin.setKeyboardTracking(False)
        style_spin(spin)
        spin.valueChanged.connect(self.on_number)
        return spin

    def show_value(self, value: Value) -> None:
        """Show what is in force, without telling anybody."""
        control = self.control
        with QSignalBlocker(control):
            if isinstance(control, Switch):
                control.show_state(is_on=bool(value))
            elif isinstance(control, SegmentedControl):
                control.choose(str(value))
            elif isinstance(control, QComboBox):
                control.setCurrentIndex(control.findData(value))
            elif isinstance(control, QSpinBox):
                control.setValue(int(value))

    @Slot()
    def on_switch_clicked(self) -> None:
        assert isinstance(self.control, Switch)
        self._change(self._setting.name, not self.control.isChecked())

    @Slot(object)
    def on_chosen(self, key: str) -> None:
        self._change(self._setting.name, key)

    @Slot(int)
    def on_listed(self, index: int) -> None:
        assert isinstance(self.control, QComboBox)
        self._change(self._setting.name, self.control.itemData(index))

    @Slot(int)
    def on_number(self, value: int) -> None:
        self._change(self._setting.name, value)
