"""Where the draft computes: beside its target, or on another card. Shown where there is another card only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device, is_same_card
from dflash_desktop.ui.kit.palette import XS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label


class DraftPlace(QWidget):
    """`changed` comes for what the person does. Takes effect with the next load."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._devices: list[Device] = []
        self._target: Device | None = None
        self._wanted = ""
        self.box = QComboBox()
        self.box.setFont(theme.font("body"))
        self.box.setMinimumHeight(theme.px(30))
        self.box.setAccessibleName(self.tr("Device of the draft"))
        self.box.setToolTip(
            self.tr("On another card the draft takes no memory beside the target; what it needs travels between them.")
        )
        title = label(theme, self.tr("Device of the draft"), "caption", tone="muted")
        title.setBuddy(self.box)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(XS)
        column.addWidget(title)
        column.addWidget(self.box)
        self.box.activated.connect(self.on_activated)
        self._show()

    def device(self) -> str | None:
        """The id of another card; None: beside the target."""
        return self.box.currentData() or None

    def show_devices(self, devices: Sequence[Device], target: Device | None) -> None:
        """`target`: where the target goes. A choice that is gone comes back with its card."""
        self._devices, self._target = list(devices), target
        self._show()

    def want(self, device: str) -> None:
        """Choose by id; "": beside the target."""
        self._wanted = device
        self._show()

    @Slot(int)
    def on_activated(self, _index: int) -> None:
        self._wanted = self.box.currentData() or ""
        self.changed.emit()

    def _show(self) -> None:
        target = self._target
        others = [
            device
            for device in self._devices
            if device.kind != "cpu" and (target is None or not is_same_card(device, target))
        ]
        self.box.clear()
        self.box.addItem(self.tr("beside the target"), "")
        for device in others:
            self.box.addItem(f"{device.name} · {device.description}", device.id)
        self.box.setCurrentIndex(max(0, self.box.findData(self._wanted)))
        self.setVisible(bool(others))
