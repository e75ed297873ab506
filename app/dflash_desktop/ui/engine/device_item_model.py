"""Devices as a Qt item model: exactly what --list-devices prints, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.engine.device_words import same_card_words, user_names
from dflash_desktop.ui.kit import numbers

Index = QModelIndex | QPersistentModelIndex
_INVALID = QModelIndex()


class DeviceItemModel(QAbstractTableModel):
    """Columns: device, backend, description, free, total, used by. The device that holds the weights is marked."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._devices: list[Device] = []
        self._in_use = ""
        self._heads = (
            self.tr("Device"),
            self.tr("Backend"),
            self.tr("Description"),
            self.tr("Free"),
            self.tr("Total"),
            self.tr("Used by"),
        )

    def rowCount(self, parent: Index = _INVALID) -> int:
        return 0 if parent.isValid() else len(self._devices)

    def columnCount(self, parent: Index = _INVALID) -> int:
        return 0 if parent.isValid() else len(self._heads)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self._heads):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(section)
        return self._heads[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._devices):
            return None
        device = self._devices[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._cells(device)[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            about = (device.description, same_card_words(device), device.id, user_names(device))
            return "\n".join(words for words in about if words)
        return None

    def show_devices(self, devices: Sequence[Device]) -> None:
        self.beginResetModel()
        self._devices = list(devices)
        self.endResetModel()

    def mark_in_use(self, name: str) -> None:
        """The device that the loaded pair is on; empty when nothing is loaded."""
        if name != self._in_use:
            self._in_use = name
            if self._devices:
                self.dataChanged.emit(self.index(0, 0), self.index(len(self._devices) - 1, 0))

    def _cells(self, device: Device) -> tuple[str, ...]:
        name = self.tr("{0}  (in use)").format(device.name) if device.name == self._in_use else device.name
        return (
            name,
            device.backend,
            same_card_words(device) or device.description,
            numbers.memory(device.free_bytes),
            numbers.memory(device.total_bytes),
            user_names(device) or numbers.DASH,
        )

    @staticmethod
    def _alignment(column: int) -> int:
        side = Qt.AlignmentFlag.AlignRight if column in (3, 4) else Qt.AlignmentFlag.AlignLeft
        return int((side | Qt.AlignmentFlag.AlignVCenter).value)
