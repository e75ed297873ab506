"""The types of keys and values in the KV cache: all are listed, those that this device cannot use are greyed out."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QGridLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.requests import KvType
from dflash_desktop.ui.engine.load_fit import KV_TYPES
from dflash_desktop.ui.kit.palette import XS, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label


class KvRow(QWidget):
    """`changed` comes for what the person does."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._supported: dict[KvType, frozenset[KvType]] = {}
        self._on_cpu = True
        self.keys = self._box(theme, self.tr("Keys"))
        self.values = self._box(theme, self.tr("Values"))
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(M)
        grid.setVerticalSpacing(XS)
        for column, (name, box) in enumerate(((self.tr("Keys"), self.keys), (self.tr("Values"), self.values))):
            title = label(theme, name, "caption", tone="muted")
            title.setBuddy(box)
            grid.addWidget(title, 0, column)
            grid.addWidget(box, 1, column)
            grid.setColumnStretch(column, 1)
        self.keys.activated.connect(self.on_keys_chosen)
        self.values.activated.connect(self.on_values_chosen)
        self.show_device(None)

    def types(self) -> tuple[KvType, KvType]:
        return self.keys.currentData(), self.values.currentData()

    def show_types(self, kv_k: str, kv_v: str) -> None:
        for box, kv_type in ((self.keys, kv_k), (self.values, kv_v)):
            box.setCurrentIndex(max(0, box.findData(kv_type)))
        self._grey_out()

    def show_device(self, device: Device | None) -> None:
        """What `automatic` stands for there."""
        self._on_cpu = device is None or device.kind == "cpu"
        words = self.tr("automatic ({0})").format(self._automatic())
        for box in (self.keys, self.values):
            box.setItemText(0, words)

    def forget_supported(self) -> None:
        """Another model or device: everything may be chosen until the engine has answered."""
        self._supported.clear()
        self._grey_out()

    def show_supported(self, kv_k: KvType, values: frozenset[KvType]) -> None:
        self._supported[kv_k] = values
        self._grey_out()

    def supported_pairs(self) -> set[tuple[KvType, KvType]]:
        return {(kv_k, kv_v) for kv_k, values in self._supported.items() for kv_v in values}

    def _automatic(self) -> KvType:
        return "f32" if self._on_cpu else "f16"

    def _real(self, kv_type: KvType) -> KvType:
        return self._automatic() if kv_type == "auto" else kv_type

    @Slot()
    def on_keys_chosen(self) -> None:
        # Values that do not go with the new keys follow them; what changed is seen beside it at once.
        kv_k, kv_v = self.types()
        values = self._supported.get(self._real(kv_k))
        if values is not None and self._real(kv_v) not in values:
            self.values.setCurrentIndex(max(0, self.values.findData(kv_k)))
        self._grey_out()
        self.changed.emit()

    @Slot()
    def on_values_chosen(self) -> None:
        self.changed.emit()

    def _grey_out(self) -> None:
        values = self._supported.get(self._real(self.keys.currentData()))
        self._enable(self.keys, {key for key in KV_TYPES if self._supported.get(key, KV_TYPES)})
        self._enable(self.values, set(KV_TYPES) if values is None else set(values))

    def _enable(self, box: QComboBox, usable: set[KvType]) -> None:
        model = box.model()
        assert isinstance(model, QStandardItemModel)
        for row in range(box.count()):
            model.item(row).setEnabled(self._real(box.itemData(row)) in usable)

    def _box(self, theme: Theme, name: str) -> QComboBox:
        box = QComboBox()
        box.addItem("", "auto")
        for kv_type in KV_TYPES:
            box.addItem(kv_type, kv_type)
        box.setFont(theme.font("body"))
        box.setMinimumHeight(theme.px(30))
        box.setAccessibleName(self.tr("KV cache: {0}").format(name))
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return box
