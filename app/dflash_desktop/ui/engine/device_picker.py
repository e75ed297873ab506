"""Choosing a device: every one that the engine lists, with its memory and who uses it. Nothing is chosen in silence."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QSizePolicy, QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device, choose_device
from dflash_desktop.ui.engine.device_words import device_facts, reason_words, same_card_words, users_words
from dflash_desktop.ui.kit.palette import XS, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import MEDIUM, label

DOT = 16
METER_WIDTH, METER_HEIGHT = 96, 6


class DevicePicker(QWidget):
    """A row per device, exactly one checked. Arrow keys move between rows."""

    chosen = Signal(object)  # Device, by the person only

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._devices: list[Device] = []
        self._wanted = ""  # id; what the person or the memory wants, even while it is not there
        self._group = QButtonGroup(self)
        self._rows: list[DeviceRow] = []
        self._problem = label(theme, "", "body", tone="bad", wraps=True)
        self._problem.hide()
        self.setAccessibleName(self.tr("Device"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(XS)
        self._column.addWidget(self._problem)
        self._group.idClicked.connect(self.on_row_clicked)

    def show_devices(self, devices: Sequence[Device]) -> None:
        """The list as the engine gives it. What was chosen stays chosen, also when it is gone: that is said then."""
        for row in self._rows:
            self._group.removeButton(row)
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._devices = list(devices)
        self._rows = [DeviceRow(self._theme, device, self._devices) for device in devices]
        for number, row in enumerate(self._rows):
            self._group.addButton(row, number)
            self._column.addWidget(row)
        self._show_choice()

    def want(self, device_id: str) -> None:
        """Show that device as chosen, without telling anybody; "": the best one."""
        self._wanted = device_id
        self._show_choice()

    def device(self) -> Device | None:
        """The device that is chosen; None when the wanted one is not there."""
        if not self._devices:
            return None
        if not self._wanted:
            return choose_device(self._devices)
        return next((device for device in self._devices if device.answers_to(self._wanted)), None)

    def problem(self) -> str:
        return "" if self._problem.isHidden() else self._problem.text()

    def rows(self) -> list[DeviceRow]:
        return list(self._rows)

    @Slot(int)
    def on_row_clicked(self, number: int) -> None:
        device = self._devices[number]
        self._wanted = device.id
        self._show_choice()
        self.chosen.emit(device)

    def _show_choice(self) -> None:
        device = self.device()
        self._group.setExclusive(False)
        for row in self._rows:
            row.setChecked(device is not None and row.device.id == device.id and row.device.name == device.name)
        self._group.setExclusive(True)
        is_missing = bool(self._devices) and device is None
        words = self.tr("{0} is not there now (asleep, unplugged, or its driver is gone). Choose another device.")
        self._problem.setText(words.format(self._wanted) if is_missing else "")
        self._problem.setVisible(is_missing)


class DeviceRow(QAbstractButton):
    """A dot, the device's names, how full it is, and who uses it."""

    def __init__(self, theme: Theme, device: Device, devices: Sequence[Device]) -> None:
        super().__init__()
        self.device = device
        self._theme = theme
        facts = device_facts(device)
        self._title = facts.title
        self._memory = facts.memory_words
        best = choose_device(devices)
        reason = reason_words(device, devices) if device is best and len(devices) > 1 else ""
        recommended = self.tr("Recommended: {0}").format(reason) if reason else ""
        self._below = [words for words in (recommended, same_card_words(device), users_words(device)) if words]
        self.setCheckable(True)
        self.setText(self._title)
        self.setToolTip("\n".join(words for words in (self._title, self._memory, *self._below, device.id) if words))
        self.setAccessibleName(f"{self._title}, {self._memory}")
        self.setAccessibleDescription(". ".join(self._below))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        body = QFontMetrics(self._theme.font("body")).height()
        caption = QFontMetrics(self._theme.font("caption")).height()
        return QSize(320, 2 * S + body + caption * (1 + len(self._below)))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        is_chosen = self.isChecked()
        painter.setPen(self._theme.color("accent_text" if is_chosen or self.hasFocus() else "border"))
        shade = "accent_soft" if is_chosen else "hover" if self.underMouse() else "surface"
        painter.setBrush(self._theme.color(shade))
        painter.drawRoundedRect(box, 7, 7)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 6, 6)
        self._dot(painter, is_chosen=is_chosen)
        self._words(painter)
        self._meter(painter)
        painter.end()

    def _dot(self, painter: QPainter, *, is_chosen: bool) -> None:
        ring = QRectF(S + 2, (self.height() - DOT) / 2, DOT, DOT)
        painter.setPen(self._theme.color("accent_text" if is_chosen else "outline"))
        painter.setBrush(self._theme.color("surface"))
        painter.drawEllipse(ring)
        if is_chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("accent_text"))
            painter.drawEllipse(ring.adjusted(4, 4, -4, -4))

    def _words(self, painter: QPainter) -> None:
        left = S + 2 + DOT + S + 2
        room = self.width() - left - METER_WIDTH - 3 * S
        y = float(S)
        for text, role, tone in (
            (self._title, "body", "text"),
            (self._memory, "caption", "muted"),
            *((words, "caption", "muted") for words in self._below),
        ):
            font = self._theme.font("body", weight=MEDIUM) if role == "body" else self._theme.font("caption")
            painter.setFont(font)
            painter.setPen(self._theme.color(tone))
            metrics = QFontMetrics(font)
            area = QRectF(left, y, room, metrics.height())
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(room))
            painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft.value), shown)
            y += metrics.height()

    def _meter(self, painter: QPainter) -> None:
        """How full it is."""
        if self.device.total_bytes <= 0:
            return
        track = QRectF(
            self.width() - METER_WIDTH - S - 4, (self.height() - METER_HEIGHT) / 2, METER_WIDTH, METER_HEIGHT
        )
        share = 1 - min(1.0, self.device.free_bytes / self.device.total_bytes)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("border"))
        painter.drawRoundedRect(track, 3, 3)
        used = QRectF(track.left(), track.top(), max(2.0, track.width() * share), track.height())
        painter.setBrush(self._theme.color("bad" if share > 0.92 else "accent"))
        painter.drawRoundedRect(used, 3, 3)
