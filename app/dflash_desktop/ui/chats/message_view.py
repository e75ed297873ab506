"""The conversation as people use it: read, select, copy, follow links, go through it by keyboard."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, QPointF, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QMenu

from dflash_desktop.ui.chats.message_box import HotSpot
from dflash_desktop.ui.chats.message_menu import message_menu
from dflash_desktop.ui.chats.message_painter import Look
from dflash_desktop.ui.chats.stack_view import StackView
from dflash_desktop.ui.chats.view_selection import Spot, ViewSelection
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme

TICK_SHOWN_MS = 1400
DRAG_SCROLL_MS = 40
KEPT_ON_PAGING = 60


class MessageView(StackView):
    """Adds mouse, keyboard and clipboard to StackView."""

    again_clicked = Signal()

    def __init__(self, theme: Theme, icons: Icons) -> None:
        self._hovered = -1
        self._hot: tuple[int, HotSpot] | None = None
        self._copied: tuple[int, HotSpot] | None = None
        self._drag_point: QPoint | None = None
        super().__init__(theme, icons)
        self._selection = ViewSelection(self._stack.boxes)
        self.viewport().setMouseTracking(True)
        self.setAccessibleName(self.tr("Conversation"))
        self._tick_timer = QTimer(self)
        self._tick_timer.setSingleShot(True)
        self._tick_timer.setInterval(TICK_SHOWN_MS)
        self._tick_timer.timeout.connect(self.on_tick_over)
        self._drag_timer = QTimer(self)
        self._drag_timer.setInterval(DRAG_SCROLL_MS)
        self._drag_timer.timeout.connect(self.on_drag_scrolled)

    def forget_spots(self) -> None:
        self._selection.clear()
        self._hot, self._copied, self._hovered = None, None, -1

    def look(self, row: int) -> Look:
        is_current = self.hasFocus() and self.currentIndex().row() == row
        return Look(
            selection=self._selection.inside(row),
            is_hovered=row == self._hovered,
            is_current=is_current,
            hot_spot=self._hot[1] if self._hot and self._hot[0] == row else None,
            copied=self._copied[1] if self._copied and self._copied[0] == row else None,
            copy_words=self.tr("Copy"),
        )

    # ---- mouse

    def _inside(self, row: int, point: QPointF) -> QPointF:
        left, _ = self._column()
        return QPointF(point.x() - left, point.y() + self.verticalScrollBar().value() - self._stack.tops[row])

    def _spot_at(self, point: QPointF) -> Spot | None:
        if not self._stack.boxes:
            return None
        row = self._stack.row_at(point.y() + self.verticalScrollBar().value())
        return (row, *self._stack.boxes[row].position_at(self._inside(row, point)))

    def _hot_spot_at(self, point: QPointF) -> tuple[int, HotSpot] | None:
        if not self._stack.boxes:
            return None
        row = self._stack.row_at(point.y() + self.verticalScrollBar().value())
        spot = self._stack.hot_spot_at(row, self._inside(row, point))
        return (row, spot) if spot else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if event.buttons() & Qt.MouseButton.LeftButton and self._selection.is_dragging:
            self._drag_point = point.toPoint()
            self._drag_timer.start()
            self._drag_to(point)
            return
        self._hovered = self._stack.row_at(point.y() + self.verticalScrollBar().value()) if self._stack.boxes else -1
        self._hot = self._hot_spot_at(point)
        self.viewport().setToolTip(self._words_for(self._hot[1]) if self._hot else "")
        link = self._link_at(point)
        shape = Qt.CursorShape.PointingHandCursor if self._hot or link else Qt.CursorShape.IBeamCursor
        self.viewport().setCursor(shape)
        if link:
            self.viewport().setToolTip(link)
        self.viewport().update()

    def _link_at(self, point: QPointF) -> str:
        if self._hovered < 0:
            return ""
        return self._stack.boxes[self._hovered].link_at(self._inside(self._hovered, point))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        if event.button() != Qt.MouseButton.LeftButton or self._hot_spot_at(event.position()):
            return
        spot = self._spot_at(event.position())
        if spot is not None:
            extends = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._selection.press(spot, extends=extends)
            self.setCurrentIndex(QModelIndex())
        self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag_timer.stop()
        was_drag = self._selection.release()
        if event.button() != Qt.MouseButton.LeftButton or was_drag:
            return
        hot = self._hot_spot_at(event.position())
        link = self._link_at(event.position())
        if hot is not None:
            self._act(*hot)
        elif link.startswith(("http://", "https://", "mailto:")):
            QDesktopServices.openUrl(QUrl(link))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        spot = self._spot_at(event.position())
        if spot is not None and not self._hot_spot_at(event.position()):
            self._selection.take_word(spot)
            self.viewport().update()

    def leaveEvent(self, event: object) -> None:  # noqa: ARG002
        self._hot, self._hovered = None, -1
        self.viewport().update()

    def _drag_to(self, point: QPointF) -> None:
        spot = self._spot_at(point)
        if spot is not None:
            self._selection.drag(spot)
            self.viewport().update()

    @Slot()
    def on_drag_scrolled(self) -> None:
        point = self._drag_point
        if point is None:
            return
        beyond = min(0, point.y()) + max(0, point.y() - self.viewport().height())
        if beyond:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() + beyond // 2)
            self._drag_to(QPointF(point))

    # ---- actions

    def _words_for(self, spot: HotSpot) -> str:
        words = {
            "copy": self.tr("Copy this message"),
            "copy_code": self.tr("Copy this code"),
            "again": self.tr("Answer again"),
        }
        return words[spot.action]

    def _act(self, row: int, spot: HotSpot) -> None:
        box = self._stack.boxes[row]
        if spot.action == "again":
            self.again_clicked.emit()
            return
        text = box.boxes[spot.block_index].block.text if spot.action == "copy_code" else box.message.text
        QGuiApplication.clipboard().setText(text)
        self._copied = (row, spot)
        self._tick_timer.start()
        self.viewport().update()

    @Slot()
    def on_tick_over(self) -> None:
        self._copied = None
        self.viewport().update()

    def copy(self) -> None:
        """Copy the selected text, else the current message."""
        text = self._selection.text()
        row = self.currentIndex().row()
        if not text and 0 <= row < len(self._stack.boxes):
            text = self._stack.boxes[row].message.text
        if text:
            QGuiApplication.clipboard().setText(text)

    def select_all_text(self) -> None:
        self._selection.take_all()
        self.viewport().update()

    def selected_text(self) -> str:
        return self._selection.text()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        row = self.currentIndex().row()
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all_text()
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            step = -1 if event.key() == Qt.Key.Key_Up else 1
            self._make_current(row + step if row >= 0 else len(self._stack.boxes) - 1)
        elif event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            bar.setValue(
                bar.value() + (bar.pageStep() - KEPT_ON_PAGING) * (-1 if event.key() == Qt.Key.Key_PageUp else 1)
            )
        elif event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.follow()
        else:
            event.ignore()

    def _make_current(self, row: int) -> None:
        model = self.chat_model()
        if model is None or not 0 <= row < len(self._stack.boxes):
            return
        self.setCurrentIndex(model.index(row))
        self.setAccessibleDescription(model.spoken(row))
        self.scrollTo(model.index(row))
        self.viewport().update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        row = self.currentIndex().row()
        if event.reason() == QContextMenuEvent.Reason.Mouse and self._stack.boxes:
            row = self._stack.row_at(event.pos().y() + self.verticalScrollBar().value())
        self.menu_for(row).popup(event.globalPos())

    def menu_for(self, row: int) -> QMenu:
        box = self._stack.boxes[row] if 0 <= row < len(self._stack.boxes) else None
        return message_menu(self, box, is_last=row == len(self._stack.boxes) - 1)

    def has_selected_text(self) -> bool:
        return self._selection.inside_any()
