"""Paints one client in the list: name, status below it, a tick once it has connected."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from dflash_desktop.ui.clients.client_item_model import StatusRole, ToneRole
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import CONTROL_RADIUS, XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import MEDIUM

MARK = 16


class ClientDelegate(QStyledItemDelegate):
    """Stateless; colours come from the theme at each paint."""

    def __init__(self, theme: Theme, icons: Icons, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons = icons
        self._name_font = theme.font("body", weight=MEDIUM)
        self._status_font = theme.font("caption")

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        height = QFontMetrics(self._name_font).height() + QFontMetrics(self._status_font).height() + 2 * S
        return QSize(200, height + 2)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = self._theme
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        state = option.state
        area = option.rect
        box = QRectF(area).adjusted(2, 1, -2, -1)
        is_chosen = bool(state & QStyle.StateFlag.State_Selected)
        if is_chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent_soft" if is_chosen else "hover"))
            painter.drawRoundedRect(box, CONTROL_RADIUS, CONTROL_RADIUS)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(theme.color("accent_text"))
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), CONTROL_RADIUS, CONTROL_RADIUS)
        tone = str(index.data(ToneRole))
        has_mark = tone in ("good", "bad")
        inner = box.adjusted(M, S - 2, -M - (MARK + XS if has_mark else 0), -S + 2)
        name_height = QFontMetrics(self._name_font).height()
        painter.setFont(self._name_font)
        painter.setPen(theme.color("muted" if tone == "muted" else "text"))
        self._draw(painter, inner.adjusted(0, 0, 0, name_height - inner.height()), str(index.data()))
        painter.setFont(self._status_font)
        painter.setPen(theme.color(tone if has_mark else "muted"))
        self._draw(painter, inner.adjusted(0, name_height, 0, 0), str(index.data(StatusRole)))
        if has_mark:
            ratio = painter.device().devicePixelRatioF()
            icon = self._icons.pixmap("check" if tone == "good" else "warning", tone, MARK, ratio)
            painter.drawPixmap(round(box.right() - M - MARK), round(box.center().y() - MARK / 2), icon)
        painter.restore()

    @staticmethod
    def _draw(painter: QPainter, box: QRectF, text: str) -> None:
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(box.width()))
        painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
