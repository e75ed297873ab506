"""A view that shows messages one below the other: rows, layout and painting. message_view.py adds what people do."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QRegion, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView

from dflash_desktop.ui.chats.block_box import DocumentCache
from dflash_desktop.ui.chats.chat_item_model import ChatItemModel
from dflash_desktop.ui.chats.documents import Press
from dflash_desktop.ui.chats.formulas import Formulas
from dflash_desktop.ui.chats.message_box import MessageBox, TextSizes
from dflash_desktop.ui.chats.message_painter import Look, MessagePainter
from dflash_desktop.ui.chats.message_parts import BUBBLE_X
from dflash_desktop.ui.chats.message_stack import Anchor, MessageStack
from dflash_desktop.ui.chats.messages import UNFINISHED, Message
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import READING_WIDTH, XL, L
from dflash_desktop.ui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex
NEAR_END = 8
SCROLL_STEP = 48


class StackView(QAbstractItemView):
    """Follows the end of the text while it is at the end; stays put when the person has scrolled up."""

    follow_changed = Signal()

    def __init__(self, theme: Theme, icons: Icons, formulas: Formulas | None = None) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._press = Press(theme, formulas)
        self._sizes = TextSizes.of(theme)
        self._cache = DocumentCache()
        self._stack = MessageStack()
        self._is_following = True
        self._is_arranging = False
        self._last_scroll = 0
        self.setFrameShape(QAbstractItemView.Shape.NoFrame)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.viewport().setAutoFillBackground(False)
        self.verticalScrollBar().setSingleStep(SCROLL_STEP)
        theme.changed.connect(self.on_theme_changed)
        if formulas is not None:
            formulas.ready.connect(self.on_formulas_ready)

    def _box(self, message: Message) -> MessageBox:
        return MessageBox(self._press, self._cache, self._sizes, message)

    def forget_spots(self) -> None:
        """Rows went away: positions in them mean nothing any more."""

    def look(self, row: int) -> Look:  # noqa: ARG002
        """How the painter shall show that message."""
        return Look()

    # ---- rows

    def setModel(self, model: ChatItemModel | None) -> None:  # type: ignore[override]
        super().setModel(model)
        self.reset()

    def chat_model(self) -> ChatItemModel | None:
        model = self.model()
        return model if isinstance(model, ChatItemModel) else None

    def reset(self) -> None:
        super().reset()
        self.forget_spots()
        model = self.chat_model()
        self._stack.fill(map(self._box, model.messages() if model is not None else ()))
        self._is_following = True
        self._arrange()
        self.follow_changed.emit()

    def rowsInserted(self, parent: Index, start: int, end: int) -> None:
        super().rowsInserted(parent, start, end)
        model = self.chat_model()
        if model is None:
            return
        self._stack.insert(start, [self._box(model.message(row)) for row in range(start, end + 1)])
        # Something new is followed; another branch leaves the eyes where they are.
        if model.message(end).state in UNFINISHED:
            self._is_following = True
        self._arrange()

    def rowsAboutToBeRemoved(self, parent: Index, start: int, end: int) -> None:
        super().rowsAboutToBeRemoved(parent, start, end)
        self._stack.remove(start, end)
        self.forget_spots()
        self._arrange()

    def dataChanged(self, top_left: Index, bottom_right: Index, roles: object = ()) -> None:  # noqa: ARG002
        for row in range(top_left.row(), bottom_right.row() + 1):
            if row < len(self._stack.boxes):
                self._stack.boxes[row].sync()
        self._stack.moved(top_left.row())
        self._arrange()

    # ---- layout

    def _column(self) -> tuple[float, float]:
        """Left edge and width of the reading column."""
        room = self.width()  # with the scroll bar: the column must not jump when it appears
        wanted = round(self._theme.px(READING_WIDTH) * self._theme.zoom_percent / 100)
        width = min(wanted, max(120, room - 2 * XL))
        return round((room - width) / 2), width

    def _arrange(self) -> None:
        """Give every message its place, lay out what shows, and keep the view where the person's eyes are."""
        if self._is_arranging:
            return
        self._is_arranging = True
        bar = self.verticalScrollBar()
        anchor = None if self._is_following else self._stack.anchor_at(bar.value())
        self._stack.arrange(self._column()[1])
        for _ in range(4):  # laying out what shows may change what shows; it settles at once or at the second time
            bar.setRange(0, max(0, round(self._stack.height) - self.viewport().height()))
            bar.setPageStep(self.viewport().height())
            if self._is_following:
                bar.setValue(bar.maximum())
            elif anchor is not None:
                bar.setValue(round(self._stack.height_of(anchor)))
            if not self._realize_visible():
                break
        self._is_arranging = False
        self.viewport().update()

    def _realize_visible(self) -> bool:
        top = self.verticalScrollBar().value()
        return self._stack.realize(top, top + self.viewport().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def updateGeometries(self) -> None:
        """QAbstractItemView's own scroll bar arithmetic is not for us."""

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: ARG002
        self._look_where_it_went()  # first: what is laid out below would go back to the end if it still followed it
        if not self._is_arranging and self._realize_visible():
            self._arrange()
        self.viewport().update()

    @property
    def is_following(self) -> bool:
        return self._is_following

    def place(self) -> Anchor | None:
        """What is at the upper edge; None while it follows the end."""
        return None if self._is_following else self._stack.anchor_at(self.verticalScrollBar().value())

    def go_to(self, place: Anchor | None) -> None:
        """There, in a view of the same messages."""
        if place is None:
            self.follow()
            return
        self._set_following(False)
        self._arrange()
        self.verticalScrollBar().setValue(round(self._stack.height_of(place)))
        self._set_following(False)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._is_following = True
        self._arrange()
        self.follow_changed.emit()

    def _look_where_it_went(self) -> None:
        value = self.verticalScrollBar().value()
        # Any move up lets go of the end, however small: wheels and touch pads move by a few pixels.
        went_up = value < self._last_scroll
        self._last_scroll = value
        if not self._is_arranging:
            near_end = value >= self.verticalScrollBar().maximum() - NEAR_END
            self._set_following(near_end and not went_up)

    def _set_following(self, follows: bool) -> None:
        if follows != self._is_following:
            self._is_following = follows
            self.follow_changed.emit()

    @Slot()
    def on_theme_changed(self) -> None:
        self._sizes = TextSizes.of(self._theme)
        self._cache.clear()
        for box in self._stack.boxes:
            box.renew()
        self._stack.moved(0)
        self._arrange()

    @Slot()
    def on_formulas_ready(self) -> None:
        if self._cache.renew_formulas():
            self._arrange()

    # ---- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        self._use_ratio(self.devicePixelRatioF())
        artist = MessagePainter(self._theme, self._icons, self._press.ratio)
        left, _ = self._column()
        scroll = self.verticalScrollBar().value()
        top, bottom = scroll + event.rect().top(), scroll + event.rect().bottom() + 1
        for row in range(self._stack.row_at(top), len(self._stack.boxes)):
            y = self._stack.tops[row]
            if y > bottom:
                break
            box = self._stack.boxes[row]
            painter.save()
            painter.translate(left, y - scroll)
            artist.paint(painter, box, top - y, bottom - y, self.look(row))
            painter.restore()
        painter.end()

    def _use_ratio(self, ratio: float) -> None:
        """Formulas are pictures: another screen needs others."""
        if ratio != self._press.ratio:
            self._press.ratio = ratio
            self._cache.clear()
            self._realize_visible()

    # ---- what QAbstractItemView asks of its children

    def visualRect(self, index: Index) -> QRect:
        if not 0 <= index.row() < len(self._stack.tops):
            return QRect()
        left, width = self._column()
        y = self._stack.tops[index.row()] - self.verticalScrollBar().value()
        return QRectF(left - BUBBLE_X, y, width + 2 * BUBBLE_X, self._stack.boxes[index.row()].height).toRect()

    def indexAt(self, point: QPoint) -> QModelIndex:
        model = self.chat_model()
        if model is None or not self._stack.boxes:
            return QModelIndex()
        index = model.index(self._stack.row_at(point.y() + self.verticalScrollBar().value()))
        return index if self.visualRect(index).contains(point) else QModelIndex()

    def scrollTo(
        self, index: Index, _hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible
    ) -> None:
        if not 0 <= index.row() < len(self._stack.tops):
            return
        bar = self.verticalScrollBar()
        top, height = self._stack.tops[index.row()], self._stack.boxes[index.row()].height
        if top < bar.value() or height > bar.pageStep():
            bar.setValue(round(top - L))
        elif top + height > bar.value() + bar.pageStep():
            bar.setValue(round(top + height - bar.pageStep() + L))

    def moveCursor(self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier) -> QModelIndex:  # noqa: ARG002
        return self.currentIndex()

    def horizontalOffset(self) -> int:
        return 0

    def verticalOffset(self) -> int:
        return self.verticalScrollBar().value()

    def isIndexHidden(self, index: Index) -> bool:  # noqa: ARG002
        return False

    def setSelection(self, rect: QRect, command: object) -> None:
        """Rows are not selected here; text is."""

    def visualRegionForSelection(self, selection: object) -> QRegion:  # noqa: ARG002
        return QRegion()
