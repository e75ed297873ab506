"""How to draft: method, tree budget and block size. These count from the next message on, without a new load."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QSpinBox, QVBoxLayout, QWidget

from dflash_desktop.engine.requests import DraftMode, DraftOptions
from dflash_desktop.ui.kit.palette import XS, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import SegmentedControl, label, style_spin

MOST_NODES = 63
"""What one verify holds beside the root (dflash.h)."""
_MODES: dict[str, DraftMode] = {"auto": "auto", "tree": "tree", "chain": "chain", "off": "off"}


class DraftRow(QWidget):
    """`changed` comes for what the person does."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        choices = [
            ("auto", self.tr("Auto")),
            ("tree", self.tr("Tree")),
            ("chain", self.tr("Chain")),
            ("off", self.tr("Off")),
        ]
        self.method = SegmentedControl(theme, choices, self.tr("Draft"))
        self.method.setToolTip(
            self.tr("Auto measures and drafts where that is faster. Tree and Chain always draft, come what may.")
        )
        self.budget = self._spin(theme, MOST_NODES, self.tr("Tree budget"), self.tr("automatic"))
        self.budget.setToolTip(self.tr("Most nodes that one step may verify."))
        self.block = self._spin(theme, 64, self.tr("Block size"), self.tr("as trained"))
        self.block.setToolTip(self.tr("Positions that the draft fills in one pass, the root included."))
        grid = QGridLayout()
        grid.setHorizontalSpacing(M)
        grid.setVerticalSpacing(XS)
        for column, (name, field) in enumerate(
            ((self.tr("Tree budget"), self.budget), (self.tr("Block size"), self.block))
        ):
            title = label(theme, name, "caption", tone="muted")
            title.setBuddy(field)
            grid.addWidget(title, 0, column)
            grid.addWidget(field, 1, column)
        column_box = QVBoxLayout(self)
        column_box.setContentsMargins(0, 0, 0, 0)
        column_box.setSpacing(M)
        column_box.addWidget(self.method)
        column_box.addLayout(grid)
        self.method.chosen.connect(self.on_edited)
        self.budget.valueChanged.connect(self.on_edited)
        self.block.valueChanged.connect(self.on_edited)

    def options(self) -> DraftOptions:
        block = self.block.value()
        return DraftOptions(_MODES[self.method.choice()], self.budget.value(), block if block > 1 else 0)

    def show_options(self, options: DraftOptions) -> None:
        with QSignalBlocker(self.budget), QSignalBlocker(self.block):
            self.method.choose(options.mode)
            self.budget.setValue(options.tree_budget)
            self.block.setValue(options.block_size)

    def show_block_size(self, trained: int) -> None:
        """How far the draft was trained; 0: there is no draft."""
        with QSignalBlocker(self.block):
            self.block.setRange(0, max(2, trained))
        self.setEnabled(trained > 0)

    @Slot()
    def on_edited(self) -> None:
        if self.block.value() == 1:  # the root alone is no block
            self.block.setValue(2 if self.block.maximum() >= 2 else 0)
        self.changed.emit()

    def _spin(self, theme: Theme, high: int, name: str, lowest_words: str) -> QSpinBox:
        spin = QSpinBox()
        spin.setRange(0, high)
        spin.setSpecialValueText(lowest_words)
        spin.setFont(theme.font("body"))
        spin.setMinimumHeight(theme.px(30))
        spin.setAccessibleName(name)
        style_spin(spin)
        return spin
