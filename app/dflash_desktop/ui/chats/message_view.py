"""The conversation as people use it: read, select, copy, follow links, go through it by keyboard."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, QPointF, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QMenu

from dflash_desktop.ui.chats.formulas import Formulas
from dflash_desktop.ui.chats.message_menu import add_tint, message_menu
from dflash_desktop.ui.chats.message_painter import Look
from dflash_desktop.ui.chats.message_parts import HotSpot
from dflash_desktop.ui.chats.stack_view import Index, StackView
from dflash_desktop.ui.chats.view_selection import Spot, ViewSelection
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme

TICK_SHOWN_MS = 1400
DRAG_SCROLL_MS = 40
KEPT_ON_PAGING = 60


class MessageView(StackView):
    """Adds mouse, keyboard and clipboard to StackView."""

    again_clicked = Signal(object)  # Message, like all of these
    continue_clicked = Signal(object)
    edit_clicked = Signal(object)
    delete_clicked = Signal(object)
    branch_clicked = Signal(object)
    version_clicked = Signal(object, int)  # the next one (1) or the one before (-1)
    attachment_clicked = Signal(object)  # Attachment

    def __init__(self, theme: Theme, icons: Icons, formulas: Formulas | None = None) -> None:
        self.shows_accepted = False
        self._hovered = -1
        self._hot: tuple[int, HotSpot] | None = None
        self._copied: tuple[int, HotSpot] | None = None
        self._drag_point: QPoint | None = None
        self._row_left = -1  # where the keyboard was before its message went away
        super().__init__(theme, icons, formulas)
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

    def rowsAboutToBeRemoved(self, parent: Index, start: int, end: int) -> None:
        row = self.currentIndex().row()
        if self.hasFocus() and start <= row <= end:
            self._row_left = row
        super().rowsAboutToBeRemoved(parent, start, end)

    def rowsInserted(self, parent: Index, start: int, end: int) -> None:
        super().rowsInserted(parent, start, end)
        model = self.chat_model()
        if model is not None and start <= self._row_left <= end:
            # Another version stands there now: the keyboard stays at it.
            self.setCurrentIndex(model.index(self._row_left))
            self.setAccessibleDescription(model.spoken(self._row_left))
            self._row_left = -1

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
            call_words=self.tr("Tool call"),
            shows_accepted=self.shows_accepted,
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
        self.viewport().setToolTip(self._words_for(*self._hot) if self._hot else "")
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

    def _words_for(self, row: int, spot: HotSpot) -> str:
        message = self._stack.boxes[row].message
        if spot.action == "facts":
            return message.facts.details() if message.facts else ""
        words = {
            "copy": self.tr("Copy this message"),
            "copy_code": self.tr("Copy this code"),
            "again": self.tr("Answer again"),
            "continue": self.tr("Continue this answer"),
            "edit": self.tr("Write this message anew"),
            "previous": self.tr("Version before"),
            "next": self.tr("Next version"),
            "thoughts": self.tr("Show or hide the thoughts"),
            "attachment": self.tr("Show this text"),
        }
        return words[spot.action]

    def _act(self, row: int, spot: HotSpot) -> None:
        box = self._stack.boxes[row]
        message = box.message
        match spot.action:
            case "again":
                self.again_clicked.emit(message)
            case "continue":
                self.continue_clicked.emit(message)
            case "edit":
                self.edit_clicked.emit(message)
            case "previous" | "next":
                self.version_clicked.emit(message, 1 if spot.action == "next" else -1)
            case "thoughts":
                self.fold_thoughts(row)
            case "attachment":
                self.attachment_clicked.emit(message.attachments[spot.index])
            case "copy" | "copy_code":
                code = box.boxes[spot.index].block.text if spot.action == "copy_code" else ""
                QGuiApplication.clipboard().setText(code or message.text)
                self._copied = (row, spot)
                self._tick_timer.start()
                self.viewport().update()
            case _:
                pass

    def fold_thoughts(self, row: int) -> None:
        """Show the thoughts of that answer, or hide them again."""
        box = self._stack.boxes[row]
        if box.parts.has_thoughts:
            anchor = self._stack.tops[row]
            box.fold(is_open=not box.parts.is_unfolded)
            self._stack.moved(row)
            self.forget_spots()
            self._set_following(False)
            self._arrange()
            # The line that was clicked stays under the mouse.
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() + round(self._stack.tops[row] - anchor))

    def show_accepted(self, *, is_on: bool) -> None:
        """Tint what the draft proposed and the target accepted, in all answers whose tokens are known."""
        self.shows_accepted = is_on
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
        if self._act_by_key(event, row):
            return
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all_text()
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            step = -1 if event.key() == Qt.Key.Key_Up else 1
            self.make_current(row + step if row >= 0 else len(self._stack.boxes) - 1)
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

    def _act_by_key(self, event: QKeyEvent, row: int) -> bool:
        """Single keys for the current message: the same as its buttons and menu."""
        if not 0 <= row < len(self._stack.boxes) or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            return False
        message = self._stack.boxes[row].message
        match event.key():
            case Qt.Key.Key_Left | Qt.Key.Key_Right:
                self.version_clicked.emit(message, 1 if event.key() == Qt.Key.Key_Right else -1)
            case Qt.Key.Key_E if message.role == "user":
                self.edit_clicked.emit(message)
            case Qt.Key.Key_R if message.role == "assistant":
                self.again_clicked.emit(message)
            case Qt.Key.Key_G if message.can_continue:
                self.continue_clicked.emit(message)
            case Qt.Key.Key_Delete:
                self.delete_clicked.emit(message)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Space if message.reasoning:
                self.fold_thoughts(row)
            case Qt.Key.Key_T:
                self.show_accepted(is_on=not self.shows_accepted)
            case _:
                return False
        return True

    def make_current(self, row: int) -> None:
        """Have the keyboard at that message, and say it."""
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
        return message_menu(self, box, row)

    @Slot(object)
    def add_to_menu(self, menu: QMenu) -> None:
        """What concerns the whole conversation."""
        add_tint(menu, self)

    def has_selected_text(self) -> bool:
        return self._selection.inside_any()
