"""Where the person writes: grows with the text, sends on Enter, and never loses a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt, QTimer, Signal, SignalInstance, Slot
from PySide6.QtGui import QFocusEvent, QFontMetrics, QInputMethodEvent, QKeyEvent, QPainter, QPaintEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from dflash_desktop.chats.records import Attachment
from dflash_desktop.ui.chats.attachments_row import AttachmentsRow
from dflash_desktop.ui.chats.calm_line_edit import is_escape_shortcut
from dflash_desktop.ui.chats.context_meter import ContextMeter
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import CHECKPOINT_MS, SAVE_MS
from dflash_desktop.ui.kit.palette import XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import ElidedLabel, icon_button, label, push_button

MAX_LINES = 9
LONG_PASTE_CHARS = 8000
"""A longer paste is kept beside the field, as a chip, and sent below what was typed."""
BUTTON_SIZE = 36


class ComposerEdit(QPlainTextEdit):
    """The text field. Enter sends, Shift+Enter breaks the line; while an input method composes, Enter is its own."""

    sent = Signal()
    left = Signal()  # Escape, while `takes_escape`
    long_text_pasted = Signal(object)  # str
    height_wanted = Signal(int)
    focus_changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._is_composing = False
        self.takes_escape = False
        self.setProperty("kind", "bare")
        self._theme = theme
        self._use_font()
        theme.changed.connect(self._use_font)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self._ask_for_height)

    @Slot()
    def _use_font(self) -> None:
        self.setFont(self._theme.zoomed(self._theme.font("reading")))
        self.height_wanted.emit(self.wanted_height())

    @property
    def is_composing(self) -> bool:
        return self._is_composing

    def event(self, event: QEvent) -> bool:
        if self.takes_escape and is_escape_shortcut(event):
            event.accept()
            return True
        return super().event(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.key() == Qt.Key.Key_Escape and self.takes_escape and not self._is_composing:
            self.left.emit()
        elif not is_enter:
            super().keyPressEvent(event)
        elif self._is_composing:
            event.ignore()  # some input methods let the Enter that takes a candidate come through
        elif modifiers in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier):
            self.sent.emit()
        elif modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.textCursor().insertText("\n")
            self.ensureCursorVisible()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._is_composing = False
        self.focus_changed.emit()

    def insertFromMimeData(self, source: QMimeData) -> None:
        # Laying out a megabyte in one line takes Qt minutes, and nobody edits it here anyway.
        text = source.text()
        if len(text) > LONG_PASTE_CHARS:
            self.long_text_pasted.emit(text)
        else:
            super().insertFromMimeData(source)

    def sizeHint(self) -> QSize:
        return QSize(200, self.wanted_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, QFontMetrics(self.font()).lineSpacing() + 8)

    def wanted_height(self) -> int:
        line = QFontMetrics(self.font()).lineSpacing()
        # QPlainTextDocumentLayout counts its height in lines.
        n_lines = min(MAX_LINES, max(1, round(self.document().size().height())))
        return n_lines * line + 8

    @Slot()
    def _ask_for_height(self) -> None:
        self.height_wanted.emit(self.wanted_height())


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What stands in a composer, and what was put aside while a message is written anew."""

    text: str
    attachments: tuple[Attachment, ...]
    cursor: int
    aside: tuple[str, tuple[Attachment, ...]] | None


class Composer(QFrame):
    """The rounded box with the field, the send button that becomes stop, and one line of help."""

    send_clicked = Signal()
    stop_clicked = Signal()
    attach_clicked = Signal()
    edit_ended = Signal()  # the person does not want to write that message anew after all
    text_settled = Signal()  # the text has not changed for SAVE_MS
    text_moved = Signal()  # it has changed, at most every CHECKPOINT_MS

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._is_busy = False
        self._aside: tuple[str, tuple[Attachment, ...]] | None = None  # unsent text, while a message is written anew
        self.edit = ComposerEdit(theme)
        self.edit.setPlaceholderText(self.tr("Write a message"))
        self.edit.setAccessibleName(self.tr("Message"))
        self.button = _RoundButton(theme, icons)
        self.attach_button = icon_button(icons, "attach", self.tr("Attach text or PDF files (Ctrl+Shift+A)"))
        self.meter = ContextMeter(theme)
        self._hint = ElidedLabel(theme, "caption", tone="muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(XS + 2)
        box = _Box(theme, self.edit)
        self.attached = AttachmentsRow(theme, icons)
        inside = QVBoxLayout(box)
        inside.setContentsMargins(S, S, S, S)
        inside.setSpacing(XS)
        inside.addWidget(self._build_edit_row())
        inside.addWidget(self.attached)
        row = QHBoxLayout()
        row.setSpacing(S)
        inside.addLayout(row)
        row.addWidget(self.attach_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column.addWidget(box)
        self.foot = QHBoxLayout()
        self.foot.setContentsMargins(M, 0, M, 0)
        self.foot.addWidget(self._hint, 1)
        self.foot.addWidget(self.meter)
        column.addLayout(self.foot)
        self._save_timer = _timer(self, SAVE_MS, self.text_settled)
        self._move_timer = _timer(self, CHECKPOINT_MS, self.text_moved)
        self.edit.sent.connect(self.on_enter_pressed)
        self.edit.left.connect(self.end_edit)
        self.edit.textChanged.connect(self.on_text_changed)
        self.edit.long_text_pasted.connect(self.attached.add_pasted)
        self.attached.changed.connect(self.on_text_changed)
        self.edit.height_wanted.connect(self.edit.setFixedHeight)
        self.edit.setFixedHeight(self.edit.wanted_height())
        self.button.clicked.connect(self.on_button_clicked)
        self.attach_button.clicked.connect(self.attach_clicked)
        self.set_busy(is_busy=False)

    def _build_edit_row(self) -> QWidget:
        self._edit_row = QWidget()
        row = QHBoxLayout(self._edit_row)
        row.setContentsMargins(S, 0, 0, 0)
        words = self.tr("You write this message anew; the old one stays as a version of its own.")
        row.addWidget(label(self._theme, words, "caption", tone="muted", wraps=True), 1)
        cancel = push_button(self._theme, self.tr("Cancel"), "link")
        cancel.clicked.connect(self.end_edit)
        row.addWidget(cancel)
        self._edit_row.hide()
        return self._edit_row

    # ---- the text

    def text(self) -> str:
        """All of it: what was typed, then what was pasted."""
        pasted = [one.text for one in self.attached.attachments() if one.kind == "pasted"]
        return "\n\n".join(part for part in (self.edit.toPlainText(), *pasted) if part)

    def typed_text(self) -> str:
        return self.edit.toPlainText()

    def unsent_text(self) -> str:
        """What has to survive: the text that was put aside, while a message is written anew."""
        if self._aside is None:
            return self.text()
        pasted = [one.text for one in self._aside[1] if one.kind == "pasted"]
        return "\n\n".join(part for part in (self._aside[0], *pasted) if part)

    def set_text(self, text: str) -> None:
        """Show this text instead; a very long one as a chip."""
        self.attached.clear()
        is_long = len(text) > LONG_PASTE_CHARS
        self.edit.setPlainText("" if is_long else text)
        if is_long:
            self.attached.add_pasted(text)
        self.edit.moveCursor(QTextCursor.MoveOperation.End)

    def put(self, text: str, attachments: Sequence[Attachment]) -> None:
        """Show this text with these attachments instead of what is there."""
        self.set_text(text)
        for attachment in attachments:
            self.attached.add(attachment)

    def unfinished(self) -> Unfinished:
        """For another composer to go on with."""
        cursor = self.edit.textCursor().position()
        return Unfinished(self.edit.toPlainText(), tuple(self.attached.attachments()), cursor, self._aside)

    def go_on_with(self, unfinished: Unfinished) -> None:
        """Show what another composer has shown."""
        if unfinished.aside is not None:
            self.put(*unfinished.aside)
            self.begin_edit(unfinished.text, unfinished.attachments)
        else:
            self.put(unfinished.text, unfinished.attachments)
        cursor = self.edit.textCursor()
        cursor.setPosition(min(unfinished.cursor, len(self.edit.toPlainText())))
        self.edit.setTextCursor(cursor)

    def take_back(self, text: str, attachments: Sequence[Attachment]) -> None:
        """A message that was refused: what has been begun meanwhile stays, below it."""
        begun, more = self.edit.toPlainText(), self.attached.attachments()
        self.put(f"{text}\n\n{begun}" if begun.strip() and text else text or begun, (*attachments, *more))

    def clear(self) -> None:
        self.attached.clear()
        self.edit.clear()

    # ---- writing a message anew

    @property
    def is_editing(self) -> bool:
        return self._aside is not None

    def begin_edit(self, text: str, attachments: Sequence[Attachment]) -> None:
        """Show a message that was sent; unsent text is put aside and comes back."""
        if self._aside is None:
            self._aside = (self.edit.toPlainText(), self.attached.attachments())
        self.put(text, attachments)
        self.edit.takes_escape = True
        self._edit_row.show()
        self.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def end_edit(self) -> None:
        """Back to the unsent text."""
        if self._aside is not None:
            text, attachments = self._aside
            self._aside = None
            self.edit.takes_escape = False
            self._edit_row.hide()
            self.put(text, attachments)
            self.edit_ended.emit()

    def set_busy(self, *, is_busy: bool) -> None:
        """While a reply is made, the button stops it."""
        self._is_busy = is_busy
        name, says = ("stop", self.tr("Stop (Esc)")) if is_busy else ("send", self.tr("Send (Enter)"))
        self.button.show_action(name, says)
        self._hint.setText(
            self.tr("Esc stops the answer") if is_busy else self.tr("Enter sends, Shift+Enter starts a new line")
        )
        self.on_text_changed()

    def set_placeholder(self, text: str) -> None:
        self.edit.setPlaceholderText(text)
        self.edit.viewport().update()  # Qt 6.11 paints another text only when it appears or goes

    @Slot()
    def on_enter_pressed(self) -> None:
        if not self._is_busy and (self.edit.toPlainText().strip() or self.attached.attachments()):
            self.send_clicked.emit()

    @Slot()
    def on_button_clicked(self) -> None:
        if self._is_busy:
            self.stop_clicked.emit()
        else:
            self.on_enter_pressed()

    @Slot()
    def on_text_changed(self) -> None:
        is_empty = self.edit.document().isEmpty() and not self.attached.attachments()
        self.button.setEnabled(self._is_busy or not is_empty)
        self._save_timer.start()
        if not self._move_timer.isActive():
            self._move_timer.start()


def _timer(parent: Composer, interval_ms: int, signal: SignalInstance) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    timer.timeout.connect(signal)
    return timer


class _Box(QWidget):
    """Paints the rounded edge and the focus ring around the field."""

    def __init__(self, theme: Theme, edit: ComposerEdit) -> None:
        super().__init__()
        self._theme = theme
        self._edit = edit
        theme.changed.connect(self.update)
        edit.focus_changed.connect(self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        has_focus = self._edit.hasFocus()
        pen = painter.pen()
        pen.setColor(self._theme.color("accent_text" if has_focus else "outline"))
        pen.setWidthF(1.5 if has_focus else 1.0)
        painter.setPen(pen)
        painter.setBrush(self._theme.color("surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 16, 16)
        painter.end()

    def mousePressEvent(self, _event: QEvent) -> None:
        self._edit.setFocus()


class _RoundButton(QToolButton):
    """Send or stop, filled with the accent colour."""

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._name = "send"
        self.setFixedSize(theme.px(BUTTON_SIZE), theme.px(BUTTON_SIZE))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def show_action(self, name: str, says: str) -> None:
        self._name = name
        self.setToolTip(says)
        self.setAccessibleName(says)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        fill = "border" if not self.isEnabled() else "accent_hover" if self.underMouse() else "accent"
        painter.setBrush(self._theme.color(fill))
        circle = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        painter.drawEllipse(circle)
        if self.hasFocus():
            pen = painter.pen()
            pen.setStyle(Qt.PenStyle.SolidLine)
            pen.setColor(self._theme.color("text"))
            pen.setWidthF(2)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(circle)
        color = "on_accent" if self.isEnabled() else "muted"
        size = self.width() // 2
        pixmap = self._icons.pixmap(self._name, color, size, self.devicePixelRatioF())
        painter.drawPixmap(round((self.width() - size) / 2), round((self.height() - size) / 2), pixmap)
        painter.end()
