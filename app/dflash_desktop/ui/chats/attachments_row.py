"""Files and long pasted texts, as chips above the field: named, removed with one click, sent whole."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from dflash_desktop.chats.records import Attachment
from dflash_desktop.ui.chats.message_parts import attachment_words
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import ElidedLabel, icon_button

CLOSE_SIZE = 24


class AttachmentsRow(QWidget):
    """Hidden while there is none."""

    changed = Signal()

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._chips: list[_Chip] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, XS, 0, 0)
        self._row.setSpacing(S)
        self._row.addStretch(1)
        self.hide()

    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(chip.attachment for chip in self._chips)

    @Slot(object)
    def add_pasted(self, text: str) -> None:
        n_bytes = len(text.encode("utf-8", errors="replace"))
        self.add(Attachment("", "pasted", text, n_bytes))

    def add(self, attachment: Attachment) -> None:
        chip = _Chip(self._theme, self._icons, attachment)
        chip.close_clicked.connect(self.on_close_clicked)
        self._row.insertWidget(len(self._chips), chip)
        self._chips.append(chip)
        self.show()
        self.changed.emit()

    def clear(self) -> None:
        for chip in list(self._chips):
            self._drop(chip)

    @Slot(object)
    def on_close_clicked(self, chip: _Chip) -> None:
        self._drop(chip)

    def _drop(self, chip: _Chip) -> None:
        self._chips.remove(chip)
        self._row.removeWidget(chip)
        chip.setParent(None)
        chip.deleteLater()
        self.setVisible(bool(self._chips))
        self.changed.emit()


class _Chip(QWidget):
    close_clicked = Signal(object)

    def __init__(self, theme: Theme, icons: Icons, attachment: Attachment) -> None:
        super().__init__()
        self._theme = theme
        self.attachment = attachment
        label = ElidedLabel(theme, "caption")
        words = attachment_words(attachment)
        label.setText(self.tr("Pasted text: {0}").format(words) if attachment.kind == "pasted" else words)
        self.setAccessibleName(label.whole_text())
        close = icon_button(icons, "close", self.tr("Remove {0}").format(words), size=12)
        close.setFixedSize(CLOSE_SIZE, CLOSE_SIZE)
        close.clicked.connect(self.on_close_clicked)
        row = QHBoxLayout(self)
        row.setContentsMargins(S, 2, XS, 2)
        row.setSpacing(XS)
        row.addWidget(label)
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self.update)

    @Slot()
    def on_close_clicked(self) -> None:
        self.close_clicked.emit(self)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._theme.color("border"))
        painter.setBrush(self._theme.color("sunken"))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 8, 8)
        painter.end()
