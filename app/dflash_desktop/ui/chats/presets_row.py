"""Presets: a named system prompt with its sampling settings, chosen, saved and deleted above the settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QInputDialog, QVBoxLayout, QWidget

from dflash_desktop.ui.chats.keeper import ChatKeeper
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import icon_button
from dflash_desktop.ui.kit.window_state import restored


class PresetsRow(QWidget):
    """Shows the preset that the settings are equal to, if there is one."""

    chosen = Signal(object)  # ReplySettings

    def __init__(self, theme: Theme, icons: Icons, keeper: ChatKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._settings = ReplySettings()
        self._built_in = {
            self.tr("Standard"): ReplySettings(),
            self.tr("Exact (always the likeliest token)"): ReplySettings(temperature=0.0, top_p=1.0, top_k=0),
            self.tr("Varied"): ReplySettings(temperature=1.0, top_p=0.95, top_k=0),
        }
        self.box = QComboBox()
        self.box.setFont(theme.font("body"))
        self.box.setMinimumHeight(theme.px(30))
        self.box.setAccessibleName(self.tr("Preset"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.save_button = icon_button(icons, "save", self.tr("Save these settings as a preset"))
        self.delete_button = icon_button(icons, "trash", self.tr("Delete this preset"))
        row = QHBoxLayout()
        row.setSpacing(XS)
        row.addWidget(self.box, 1)
        row.addWidget(self.save_button)
        row.addWidget(self.delete_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(row)
        self.box.activated.connect(self.on_activated)
        self.save_button.clicked.connect(self.on_save_clicked)
        self.delete_button.clicked.connect(self.on_delete_clicked)
        keeper.presets_changed.connect(self.on_presets_changed)
        self.on_presets_changed()

    def presets(self) -> dict[str, ReplySettings]:
        """Built-in ones first; one of the person's with the same name counts instead."""
        own = {one.name: restored(ReplySettings(), dict(one.settings)) for one in self._keeper.presets}
        return {**self._built_in, **own}

    def show_settings(self, settings: ReplySettings) -> None:
        """These are in force: which preset is that?"""
        self._settings = settings
        name = next((name for name, one in self.presets().items() if _same(one, settings)), None)
        self.box.setCurrentIndex(self.box.findText(name) if name is not None else -1)
        self.box.setPlaceholderText(self.tr("Own settings"))
        is_own = any(one.name == name for one in self._keeper.presets)
        self.delete_button.setEnabled(is_own)

    def save(self, name: str) -> None:
        """Keep the settings in force under that name."""
        if name.strip():
            self._keeper.save_preset(name.strip(), asdict(self._settings))

    @Slot()
    def on_presets_changed(self) -> None:
        self.box.clear()
        self.box.addItems(list(self.presets()))
        self.show_settings(self._settings)

    @Slot(int)
    def on_activated(self, _index: int) -> None:
        found = self.presets().get(self.box.currentText())
        if found is not None:
            self.chosen.emit(found)

    @Slot()
    def on_save_clicked(self) -> None:
        dialog = QInputDialog(self)
        dialog.setWindowTitle(self.tr("Save a preset"))
        dialog.setLabelText(self.tr("Name of the preset"))
        dialog.setTextValue(self.box.currentText())
        dialog.textValueSelected.connect(self.save)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot()
    def on_delete_clicked(self) -> None:
        self._keeper.delete_preset(self.box.currentText())


def _same(one: ReplySettings, other: ReplySettings) -> bool:
    return _rounded(one) == _rounded(other)


def _rounded(settings: ReplySettings) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(settings).items()}
