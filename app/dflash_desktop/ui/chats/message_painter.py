"""Paints one message: bubble, blocks, code frames, and the foot with status, error and facts."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QPainter,
    QPalette,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)

from dflash_desktop.ui.chats.blocks import Kind
from dflash_desktop.ui.chats.message_box import CODE_HEAD, QUOTE_INDENT, MessageBox
from dflash_desktop.ui.chats.message_parts import (
    BUBBLE_TOP,
    BUBBLE_X,
    BUTTON,
    CAPTION_HEIGHT,
    CHIP_GAP,
    CHIP_HEIGHT,
    CHIP_ICON,
    FOOT_GAP,
    NOTE_ICON,
    NOTE_INDENT,
    THOUGHTS_HEIGHT,
    HotSpot,
    attachment_words,
)
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import BUBBLE_RADIUS
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import MEDIUM

Position = tuple[int, int]
_ICONS = {"again": "again", "edit": "edit", "continue": "play", "previous": "back", "next": "forward"}


@dataclass(frozen=True, slots=True)
class Look:
    """What the view knows about a message and its painter must show."""

    selection: tuple[Position, Position] | None = None
    is_hovered: bool = False
    is_current: bool = False
    hot_spot: HotSpot | None = None  # under the mouse
    copied: HotSpot | None = None  # just copied: shows a tick
    copy_words: str = "Copy"
    call_words: str = "Tool call"
    shows_accepted: bool = False  # tint what the draft proposed and the target accepted


class MessagePainter:
    """Stateless but for the theme; coordinates are the message's own."""

    def __init__(self, theme: Theme, icons: Icons, ratio: float) -> None:
        self._theme = theme
        self._icons = icons
        self._ratio = ratio

    def paint(self, painter: QPainter, box: MessageBox, top: float, bottom: float, look: Look) -> None:
        """Paint what shows between the heights `top` and `bottom`."""
        if look.is_current:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("accent"))
            painter.drawRoundedRect(QRectF(-14, 0, 3, box.height), 1.5, 1.5)
        if box.is_user:
            self._bubble(painter, box)
        else:
            self._head(painter, box, look)
        index = box.first_at(top)
        while index < len(box.boxes) and box.boxes[index].top < bottom:
            self._block(painter, box, index, top, bottom, look)
            index += 1
        if not box.is_user:
            self._foot(painter, box)
        if box.parts.has_versions:
            self._count(painter, box)
        self._buttons(painter, box, box.hot_spots(top, bottom), look)

    def _bubble(self, painter: QPainter, box: MessageBox) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("bubble"))
        x = box.content_x - BUBBLE_X
        painter.drawRoundedRect(QRectF(x, 0, box.width - x, box.content_height), BUBBLE_RADIUS, BUBBLE_RADIUS)
        painter.setFont(self._theme.font("caption"))
        for place, attachment in enumerate(box.message.attachments):
            y = BUBBLE_TOP + place * (CHIP_HEIGHT + CHIP_GAP)
            area = QRectF(box.content_x, y, box.content_width, CHIP_HEIGHT)
            painter.setPen(self._theme.color("border"))
            painter.setBrush(self._theme.color("surface"))
            painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
            name = "copy" if attachment.kind == "pasted" else "file"
            painter.drawPixmap(QPointF(area.x() + 6, y + 6), self._icons.pixmap(name, "muted", 16, self._ratio))
            painter.setPen(self._theme.color("text"))
            room = area.adjusted(CHIP_ICON + 4, 0, -8, 0)
            words = painter.fontMetrics().elidedText(
                attachment_words(attachment), Qt.TextElideMode.ElideMiddle, int(room.width())
            )
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, words)

    def _head(self, painter: QPainter, box: MessageBox, look: Look) -> None:
        caption = box.parts.caption()
        top = 0.0
        if caption:
            painter.setFont(self._theme.font("caption", weight=MEDIUM))
            painter.setPen(self._theme.color("muted"))
            painter.drawText(QRectF(0, 0, box.width, CAPTION_HEIGHT), Qt.AlignmentFlag.AlignTop, caption)
            top = CAPTION_HEIGHT
        if not box.parts.has_thoughts:
            return
        is_hot = look.hot_spot is not None and look.hot_spot.action == "thoughts"
        painter.setFont(self._theme.figure_font("body", weight=self._theme.font("body").weight()))
        color = "text" if is_hot else "muted"
        painter.setPen(self._theme.color(color))
        area = QRectF(22, top, box.width - 22, THOUGHTS_HEIGHT - 8)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, box.message.reasoning_words())
        name = "chevron" if box.parts.is_unfolded else "forward"
        pixmap = self._icons.pixmap(name, color, 16, self._ratio)
        painter.drawPixmap(QPointF(0, top + (THOUGHTS_HEIGHT - 8 - 16) / 2), pixmap)

    def _count(self, painter: QPainter, box: MessageBox) -> None:
        area = box.parts.count_rect(width=box.width, content_height=box.content_height, height=box.height)
        version, n_versions = box.message.place
        painter.setFont(self._theme.figure_font("caption", weight=MEDIUM))
        painter.setPen(self._theme.color("muted"))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, f"{version}/{n_versions}")

    def _block(self, painter: QPainter, box: MessageBox, index: int, top: float, bottom: float, look: Look) -> None:
        piece = box.boxes[index]
        indent = QUOTE_INDENT if piece.is_thought else 0.0
        frame = QRectF(box.content_x + indent, piece.top, box.content_width - indent, piece.height)
        if piece.is_thought:
            painter.fillRect(QRectF(box.content_x + 7, piece.top, 2, piece.height), self._theme.color("border"))
        match piece.block.kind:
            case Kind.RULE:
                painter.fillRect(QRectF(frame.x(), frame.center().y(), frame.width(), 1), self._theme.color("border"))
                return
            case Kind.CODE | Kind.CALL:
                is_call = piece.block.kind is Kind.CALL
                self._code_frame(painter, frame, look.call_words if is_call else piece.block.language)
            case Kind.QUOTE:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(self._theme.color("outline"))
                painter.drawRoundedRect(QRectF(frame.x(), frame.y() + 2, 3, frame.height() - 4), 1.5, 1.5)
            case _:
                pass
        if piece.document is None:
            return
        origin = box.document_origin(index)
        painter.save()
        painter.translate(origin)
        context = QAbstractTextDocumentLayout.PaintContext()
        palette = QPalette(context.palette)
        palette.setColor(QPalette.ColorRole.Text, self._theme.color("text"))
        context.palette = palette
        clip = QRectF(-40, top - origin.y(), box.width + 80, bottom - top)
        context.clip = clip
        selected = _selection_in(piece.document.document, index, look.selection, self._theme.color("selection"))
        marks = self._accepted_marks(piece.document.document, box, index) if look.shows_accepted else []
        if selected is not None:
            marks.append(selected)
        if marks:
            context.selections = marks
        piece.document.document.documentLayout().draw(painter, context)
        painter.restore()

    def _accepted_marks(
        self, document: QTextDocument, box: MessageBox, index: int
    ) -> list[QAbstractTextDocumentLayout.Selection]:
        color = self._theme.color("flash_soft")
        return [_mark(document, start, end, color) for start, end in box.accepted_ranges(index)]

    def _code_frame(self, painter: QPainter, frame: QRectF, language: str) -> None:
        painter.setPen(self._theme.color("border"))
        painter.setBrush(self._theme.color("sunken"))
        painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
        painter.setFont(self._theme.font("caption", weight=MEDIUM))
        painter.setPen(self._theme.color("muted"))
        head = QRectF(frame.x() + 14, frame.y(), frame.width() - 100, CODE_HEAD)
        painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, language)

    def _foot(self, painter: QPainter, box: MessageBox) -> None:
        message = box.message
        y = box.content_height + (FOOT_GAP if box.content_height else 0)
        status = message.status_words()
        if status:
            self._status(painter, box, QRectF(0, y, box.width, box.parts.status_height()), status)
            y += box.parts.status_height() + FOOT_GAP
        note = message.note_words()
        if note:
            area = QRectF(0, y, box.width, box.parts.note_height(box.width))
            self._note(painter, area, note)
            y += area.height() + FOOT_GAP
        if message.error:
            area = QRectF(0.5, y, box.width - 1, box.parts.error_height(box.width))
            painter.setPen(self._theme.color("bad"))
            painter.setBrush(self._theme.color("bad_soft"))
            painter.drawRoundedRect(area, 10, 10)
            painter.drawPixmap(QPointF(14, y + 12), self._icons.pixmap("warning", "bad", 18, self._ratio))
            painter.setFont(self._theme.font("body"))
            painter.setPen(self._theme.color("text"))
            painter.drawText(area.adjusted(42, 12, -14, -12), int(Qt.TextFlag.TextWordWrap.value), message.error)
        if message.facts and box.parts.has_foot:
            height = max(BUTTON, box.parts.facts_height(box.width))
            area = QRectF(box.parts.facts_x(), box.height - height, box.width - box.parts.facts_x(), height)
            painter.setFont(self._theme.figure_font("caption", weight=self._theme.font("caption").weight()))
            painter.setPen(self._theme.color("muted"))
            flags = int(Qt.TextFlag.TextWordWrap.value) | int(Qt.AlignmentFlag.AlignVCenter.value)
            painter.drawText(area, flags, message.facts.line())

    def _note(self, painter: QPainter, area: QRectF, words: str) -> None:
        font = self._theme.figure_font("body", weight=self._theme.font("body").weight())
        painter.setFont(font)
        top = area.y() + (painter.fontMetrics().height() - NOTE_ICON) / 2  # beside the first line
        painter.drawPixmap(QPointF(0, top), self._icons.pixmap("info", "muted", round(NOTE_ICON), self._ratio))
        painter.setPen(self._theme.color("muted"))
        painter.drawText(area.adjusted(NOTE_INDENT, 0, 0, 0), int(Qt.TextFlag.TextWordWrap.value), words)

    def _status(self, painter: QPainter, box: MessageBox, area: QRectF, words: str) -> None:
        message = box.message
        painter.setFont(self._theme.figure_font("body", weight=self._theme.font("body").weight()))
        painter.setPen(self._theme.color("muted"))
        painter.drawText(area, int(Qt.AlignmentFlag.AlignTop.value), words)
        if message.state is ReplyState.READING and message.n_prompt_tokens > 0:
            track = QRectF(0, area.bottom() - 7, min(360.0, box.width), 5)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("border"))
            painter.drawRoundedRect(track, 2.5, 2.5)
            share = min(1.0, message.n_read_tokens / message.n_prompt_tokens)
            if share > 0:
                track.setWidth(max(5.0, track.width() * share))
                painter.setBrush(self._theme.color("accent"))
                painter.drawRoundedRect(track, 2.5, 2.5)

    def _buttons(self, painter: QPainter, box: MessageBox, spots: list[HotSpot], look: Look) -> None:
        for spot in spots:
            if spot.action in ("thoughts", "attachment", "facts"):
                continue
            if box.is_user and spot.action in ("copy", "edit") and not (look.is_hovered or look.is_current):
                continue
            is_hot = look.hot_spot == spot
            if is_hot:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(self._theme.color("pressed" if spot.action == "copy_code" else "hover"))
                painter.drawRoundedRect(spot.rect, 6, 6)
            is_done = look.copied == spot
            name = "check" if is_done else _ICONS.get(spot.action, "copy")
            color = "good" if is_done else "text" if is_hot else "muted"
            pixmap = self._icons.pixmap(name, color, 16, self._ratio)
            if spot.action == "copy_code":
                painter.drawPixmap(QPointF(spot.rect.x() + 8, spot.rect.y() + 5), pixmap)
                painter.setFont(self._theme.font("caption", weight=MEDIUM))
                painter.setPen(self._theme.color(color))
                painter.drawText(
                    spot.rect.adjusted(29, 0, 0, 0), int(Qt.AlignmentFlag.AlignVCenter.value), look.copy_words
                )
            else:
                painter.drawPixmap(spot.rect.center() - QPointF(8, 8), pixmap)


def _selection_in(
    document: QTextDocument, index: int, selection: tuple[Position, Position] | None, color: QColor
) -> QAbstractTextDocumentLayout.Selection | None:
    if selection is None or not selection[0][0] <= index <= selection[1][0]:
        return None
    (first_block, first), (last_block, last) = selection
    end = document.characterCount() - 1
    start = first if index == first_block else 0
    return _mark(document, min(end, start), min(end, last if index == last_block else end), color)


def _mark(document: QTextDocument, start: int, end: int, color: QColor) -> QAbstractTextDocumentLayout.Selection:
    cursor = QTextCursor(document)
    cursor.setPosition(start)
    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    found = QAbstractTextDocumentLayout.Selection()
    found.cursor = cursor
    shape = QTextCharFormat()
    shape.setBackground(color)
    found.format = shape
    return found
