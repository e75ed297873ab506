"""The window's style sheet: shapes and states of standard controls. Fonts and spacing are set in code, not here."""

from __future__ import annotations

from dataclasses import fields
from string import Template

from dflash_desktop.ui.kit.palette import CARD_RADIUS, CONTROL_RADIUS, Palette

_LENGTHS = {"button_height": 30, "link_height": 26, "item_height": 28, "mark": 14}
_SHEET = Template("""
QToolTip { background: $surface; color: $text; border: 1px solid $border; padding: 6px 8px; }

QPushButton, QToolButton[kind="quiet"], QToolButton[kind="icon"] {
    border: 1px solid transparent; border-radius: ${radius}px; color: $text; background: transparent; }
QPushButton { padding: 0 14px; min-height: ${button_height}px; }
QPushButton[kind="primary"] { background: $accent; color: $on_accent; }
QPushButton[kind="primary"]:hover { background: $accent_hover; }
QPushButton[kind="primary"]:pressed { background: $accent; }
QPushButton[kind="secondary"] { background: $surface; border-color: $outline; }
QPushButton[kind="secondary"]:hover { background: $hover; }
QPushButton[kind="secondary"]:pressed { background: $pressed; }
QPushButton[kind="choice"] { background: $surface; border-color: $border; text-align: left; font-weight: 400; }
QPushButton[kind="choice"]:hover { background: $hover; border-color: $outline; }
QPushButton[kind="link"] { color: $accent_text; padding: 0 6px; min-height: ${link_height}px; }
QPushButton[kind="link"]:hover { background: $accent_soft; }
QPushButton:disabled { color: $muted; background: $sunken; border-color: $border; }
QPushButton[kind="link"]:disabled { background: transparent; border-color: transparent; }
QToolButton[kind="icon"]:hover, QToolButton[kind="quiet"]:hover { background: $hover; }
QToolButton[kind="icon"]:pressed, QToolButton[kind="icon"]:checked { background: $pressed; }
QToolButton[kind="icon"]:checked { background: $accent_soft; }
QPushButton:focus, QToolButton[kind="icon"]:focus, QToolButton[kind="quiet"]:focus { border-color: $accent_text; }
QPushButton[kind="primary"]:focus { border: 2px solid $text; }
QToolButton[kind="quiet"][tone="muted"] { color: $muted; }
QToolButton[kind="quiet"][tone="flash"] { color: $flash_text; background: $flash_soft; }
QToolButton::menu-indicator { image: none; width: 0; }

QLineEdit, QAbstractSpinBox, QComboBox, QPlainTextEdit[kind="field"] {
    background: $surface; color: $text; border: 1px solid $outline; border-radius: ${radius}px;
    padding: 3px 8px; selection-background-color: $selection; selection-color: $text; }
QLineEdit:focus, QAbstractSpinBox:focus, QComboBox:focus, QPlainTextEdit[kind="field"]:focus {
    border-color: $accent_text; }
QAbstractSpinBox QLineEdit { border: 0; padding: 0; background: transparent; }
QComboBox::drop-down { subcontrol-origin: padding; subcontrol-position: center right; width: 26px; border: 0; }
QComboBox::down-arrow { image: url(icons:combo-$scheme.svg); width: 16px; height: 16px; }
QComboBox:disabled, QAbstractSpinBox:disabled, QLineEdit:disabled { color: $muted; background: $sunken; }
QComboBox QAbstractItemView { background: $surface; color: $text; border: 1px solid $border; padding: 4px;
    outline: 0; selection-background-color: $hover; selection-color: $text; }
QComboBox QAbstractItemView::item { min-height: ${item_height}px; }
QComboBox QAbstractItemView::item:disabled { color: $outline; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: 0; border: 0; }
QCheckBox { color: $text; background: transparent; spacing: 8px; }
QCheckBox:disabled { color: $muted; }
QCheckBox::indicator { width: ${mark}px; height: ${mark}px; border: 1px solid $outline; border-radius: 4px;
    background: $surface; }
QCheckBox::indicator:hover, QCheckBox::indicator:focus { border-color: $accent_text; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; image: url(icons:check-on-accent.svg); }
QCheckBox::indicator:disabled { background: $sunken; border-color: $border; }
QPlainTextEdit[kind="bare"] { background: transparent; border: 0; color: $text;
    selection-background-color: $selection; selection-color: $text; }

QFrame[kind="card"] { background: $surface; border: 1px solid $border; border-radius: ${card}px; }
QFrame[kind="well"] { background: $sunken; border: 0; border-radius: ${card}px; }
QFrame[kind="rule"] { background: $border; border: 0; }
QFrame[kind="error"] { background: $bad_soft; border: 1px solid $bad; border-radius: ${card}px; }
QFrame[kind="info"] { background: $accent_soft; border: 1px solid transparent; border-radius: ${card}px; }
QWidget[kind="bar"] { background: $window; }
QWidget[kind="rail"] { background: $rail; }
QScrollArea, QScrollArea > QWidget > QWidget[kind="page"] { background: transparent; border: 0; }
QLabel { background: transparent; color: $text; }
QLabel[tone="muted"] { color: $muted; }
QLabel[tone="bad"] { color: $bad; }
QLabel[tone="good"] { color: $good; }
QLabel[tone="flash"] { color: $flash_text; }
QLabel[kind="chip"] { background: $sunken; color: $muted; border-radius: 6px; padding: 2px 7px; }
QLabel[kind="chip"][tone="good"] { color: $good; }
QLabel[kind="chip"][tone="flash"] { background: $flash_soft; color: $flash_text; }
QLabel[kind="chip"][tone="bad"] { background: $bad_soft; color: $bad; }

QProgressBar { background: $border; border: 0; border-radius: 3px; max-height: 6px; min-height: 6px; }
QProgressBar::chunk { background: $accent; border-radius: 3px; }
QSlider { min-height: 20px; }
QSlider::groove:horizontal { height: 4px; background: $border; border-radius: 2px; }
QSlider::sub-page:horizontal { background: $accent; border-radius: 2px; }
QSlider::handle:horizontal { background: $surface; border: 2px solid $accent; width: 12px; height: 12px;
    margin: -6px 0; border-radius: 8px; }
QSlider::handle:horizontal:focus { background: $accent; }

QTableView { background: $surface; border: 0; gridline-color: $border; color: $text;
    selection-background-color: $accent_soft; selection-color: $text; }
QTableView::item { padding: 0 12px; border-bottom: 1px solid $border; }
QHeaderView { background: $surface; border: 0; }
QHeaderView::section { background: $surface; color: $muted; padding: 6px 15px; /* 12, and Qt's 3 around items */
    border: 0; border-bottom: 1px solid $border; }

QScrollBar:vertical { background: transparent; width: 12px; margin: 0; }
QScrollBar::handle:vertical { background: $thumb; min-height: 36px; border-radius: 3px; margin: 2px 3px; }
QScrollBar:horizontal { background: transparent; height: 12px; margin: 0; }
QScrollBar::handle:horizontal { background: $thumb; min-width: 36px; border-radius: 3px; margin: 3px 2px; }
QScrollBar::handle:hover { background: $outline; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QMenu { background: $surface; color: $text; border: 1px solid $border; padding: 4px; }
QMenu::item { padding: 6px 28px 6px 12px; border-radius: 5px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }
QDialog { background: $window; }
""")


def style_sheet(palette: Palette, factor: float = 1.0) -> str:
    """`factor`: how much larger than usual the text is, and with it what holds text."""
    lengths = {name: round(factor * pixels) for name, pixels in _LENGTHS.items()}
    values = {f.name: str(getattr(palette, f.name)) for f in fields(palette)}
    scheme = "dark" if palette.is_dark else "light"
    return _SHEET.substitute(values, **lengths, scheme=scheme, radius=CONTROL_RADIUS, card=CARD_RADIUS)
