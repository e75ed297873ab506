"""Paints one row of the list of chats, and the field in which it gets another name."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from dflash_desktop.ui.chats.calm_line_edit import CalmLineEdit
from dflash_desktop.ui.chats.chat_list_model import ROW_ROLE, ChatRow, Heading
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import CONTROL_RADIUS, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, MEDIUM

Index = QModelIndex | QPersistentModelIndex
ROW, HEADING, SNIPPET = 34, 30, 18


class ChatListDelegate(QStyledItemDelegate):
    """The open chat is marked; the row under the keyboard has a ring."""

    renamed = Signal(object, object)  # chat id, title

    def __init__(self, theme: Theme, icons: Icons, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons = icons
        self.open_chat_id: int | None = None

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: ARG002
        row = index.data(ROW_ROLE)
        height = HEADING if isinstance(row, Heading) else ROW + (SNIPPET if row and row.snippet else 0)
        return QSize(80, self._theme.px(height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ROW_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = option.rect
        if isinstance(row, Heading):
            painter.setFont(self._theme.font("caption", weight=MEDIUM))
            painter.setPen(self._theme.color("muted"))
            painter.drawText(
                area.adjusted(S + 4, 0, 0, -4), Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, row.text
            )
        elif isinstance(row, ChatRow):
            self._chat(painter, option, area, row)
        painter.restore()

    def _chat(self, painter: QPainter, option: QStyleOptionViewItem, area: QRect, row: ChatRow) -> None:
        is_open = row.chat.chat_id == self.open_chat_id
        state = option.state
        frame = QRectF(area).adjusted(4.5, 1.5, -4.5, -1.5)
        if is_open or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("pressed" if is_open else "hover"))
            painter.drawRoundedRect(frame, CONTROL_RADIUS, CONTROL_RADIUS)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(self._theme.color("accent_text"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(frame, CONTROL_RADIUS, CONTROL_RADIUS)
        line = QRectF(frame.x() + S, frame.y(), frame.width() - 2 * S, self._theme.px(ROW) - 3)
        line = self._right_side(painter, line, row)
        font = self._theme.font("body", weight=DEMI if is_open else self._theme.font("body").weight())
        painter.setFont(font)
        painter.setPen(self._theme.color("text"))
        title = QFontMetricsF(font).elidedText(row.title, Qt.TextElideMode.ElideRight, line.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, title)
        if row.snippet:
            below = QRectF(frame.x() + S, line.bottom() - 4, frame.width() - 2 * S, self._theme.px(SNIPPET))
            self._snippet(painter, below, row)

    def _right_side(self, painter: QPainter, line: QRectF, row: ChatRow) -> QRectF:
        """Pin, time or a dot for an answer in the making; returns the room that is left."""
        if row.is_running:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("flash"))
            painter.drawEllipse(QRectF(line.right() - 8, line.center().y() - 4, 8, 8))
            return line.adjusted(0, 0, -16, 0)
        if row.chat.is_pinned:
            ratio = painter.device().devicePixelRatioF()
            pixmap = self._icons.pixmap("pin", "muted", 16, ratio)
            painter.drawPixmap(round(line.right() - 14), round(line.center().y() - 8), pixmap)
            return line.adjusted(0, 0, -20, 0)
        font = self._theme.font("caption")
        width = QFontMetricsF(font).horizontalAdvance(row.when)
        if width > line.width() / 2:
            return line
        painter.setFont(font)
        painter.setPen(self._theme.color("muted"))
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, row.when)
        return line.adjusted(0, 0, -width - S, 0)

    def _snippet(self, painter: QPainter, area: QRectF, row: ChatRow) -> None:
        font = self._theme.font("caption")
        shown = QFontMetricsF(font).elidedText(row.snippet, Qt.TextElideMode.ElideRight, area.width())
        layout = QTextLayout(shown, font)
        marks = []
        for start, end in row.ranges:
            mark = QTextLayout.FormatRange()
            mark.start, mark.length = start, max(0, min(end, len(shown)) - start)
            lit = QTextCharFormat()
            lit.setBackground(self._theme.color("flash_soft"))
            lit.setForeground(self._theme.color("flash_text"))
            mark.format = lit
            if start < len(shown):
                marks.append(mark)
        layout.setFormats(marks)
        layout.beginLayout()
        line = layout.createLine()
        line.setLineWidth(area.width() + 1)
        layout.endLayout()
        painter.setPen(self._theme.color("muted"))
        layout.draw(painter, area.topLeft())

    # ---- another name

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: ARG002
        editor = CalmLineEdit(self._theme, self.tr("Name of this chat"))
        editor.setParent(parent)
        editor.entered.connect(lambda: self._take(editor))
        editor.left.connect(lambda: self.closeEditor.emit(editor))
        return editor

    def _take(self, editor: QWidget) -> None:
        self.commitData.emit(editor)
        self.closeEditor.emit(editor)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        row = index.data(ROW_ROLE)
        if isinstance(editor, CalmLineEdit) and isinstance(row, ChatRow):
            editor.setText(row.chat.title)
            editor.selectAll()

    def setModelData(self, editor: QWidget, _model: object, index: Index) -> None:
        row = index.data(ROW_ROLE)
        if isinstance(editor, CalmLineEdit) and isinstance(row, ChatRow):
            self.renamed.emit(row.chat.chat_id, editor.text())

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:
        """Qt's own filter would take Enter and Escape before the field sees them, input method or not."""
        if event.type() == QEvent.Type.KeyPress:
            return False
        return super().eventFilter(editor, event)
