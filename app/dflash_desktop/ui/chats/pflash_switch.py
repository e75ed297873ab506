"""The quick switch for PFlash below the composer: what it is set to, and whether this prompt is long enough for it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton

from dflash_desktop.ui.engine.pflash_choice import PflashChoice
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import set_tone


class PflashSwitch(QToolButton):
    """Hidden until a pair is loaded that takes conversations."""

    mode_chosen = Signal(object)  # off, auto, always
    preview_wanted = Signal()
    settings_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._choice = PflashChoice()
        self._is_long = False
        self.setProperty("kind", "quiet")
        self.setFont(theme.font("caption"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.own_menu = QMenu(self)
        self._group = QActionGroup(self)
        self.modes: dict[str, QAction] = {}
        for key in ("off", "auto", "always"):
            self.modes[key] = action = QAction(self)
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, mode=key: self.mode_chosen.emit(mode))
            self._group.addAction(action)
            self.own_menu.addAction(action)
        self.modes["off"].setText(self.tr("Off: prompts are read whole"))
        self.modes["always"].setText(self.tr("Always: shorten whatever is longer than a paragraph"))
        self.own_menu.addSeparator()
        self.preview = self.own_menu.addAction(self.tr("Show what would be kept…"))
        self.preview.triggered.connect(self.preview_wanted)
        self.own_menu.addAction(self.tr("Settings of PFlash…")).triggered.connect(self.settings_wanted)
        self.setMenu(self.own_menu)
        self.hide()
        self.show_choice(PflashChoice())

    def show_choice(self, choice: PflashChoice) -> None:
        self._choice = choice
        self.modes[choice.mode].setChecked(True)
        words = self.tr("Auto: shorten prompts from {0} on")
        self.modes["auto"].setText(words.format(numbers.tokens(choice.threshold_tokens)))
        self._say()

    def show_long(self, *, is_long: bool, can_preview: bool) -> None:
        """Whether the prompt that is being written is long enough to be worth it."""
        self.preview.setEnabled(can_preview)
        if is_long != self._is_long:
            self._is_long = is_long
            self._say()

    @Slot()
    def _say(self) -> None:
        match self._choice.mode:
            case "off" if self._is_long:
                words = self.tr("PFlash: shorten this?")
            case "off":
                words = self.tr("PFlash off")
            case "auto":
                words = self.tr("PFlash auto")
            case "always":
                words = self.tr("PFlash always")
        self.setText(words)
        self.setAccessibleName(words)
        self.setToolTip(
            self.tr(
                "PFlash lets a small model choose what of a long prompt is read: faster, and something may be missed."
            )
        )
        set_tone(self, "flash" if self._is_long and self._choice.mode == "off" else "muted")
