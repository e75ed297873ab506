"""Where the person writes: grows with the text, sends on Enter, and never loses a word."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFocusEvent, QFontMetrics, QInputMethodEvent, QKeyEvent, QPainter, QPaintEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from dflash_desktop.ui.chats.pasted_texts import PastedTexts
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import SAVE_MS
from dflash_desktop.ui.kit.palette import XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label

MAX_LINES = 9
LONG_PASTE_CHARS = 8000
"""A longer paste is kept beside the field, as a chip, and sent below what was typed."""
BUTTON_SIZE = 36


class ComposerEdit(QPlainTextEdit):
    """The text field. Enter sends, Shift+Enter breaks the line; while an input method composes, Enter is its own."""

    sent = Signal()
    long_text_pasted = Signal(object)  # str
    height_wanted = Signal(int)
    focus_changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._is_composing = False
        self.setProperty("kind", "bare")
        self.setFont(theme.font("reading"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self._ask_for_height)

    @property
    def is_composing(self) -> bool:
        return self._is_composing

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if not is_enter:
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


class Composer(QFrame):
    """The rounded box with the field, the send button that becomes stop, and one line of help."""

    send_clicked = Signal()
    stop_clicked = Signal()
    text_settled = Signal()  # the text has not changed for SAVE_MS

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._is_busy = False
        self.edit = ComposerEdit(theme)
        self.edit.setPlaceholderText(self.tr("Write a message"))
        self.edit.setAccessibleName(self.tr("Message"))
        self.button = _RoundButton(theme, icons)
        self._hint = label(theme, "", "caption", tone="muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(XS + 2)
        box = _Box(theme, self.edit)
        self.pasted = PastedTexts(theme, icons)
        inside = QVBoxLayout(box)
        inside.setContentsMargins(L, S, S, S)
        inside.setSpacing(XS)
        inside.addWidget(self.pasted)
        row = QHBoxLayout()
        row.setSpacing(M)
        inside.addLayout(row)
        row.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column.addWidget(box)
        column.addWidget(self._hint, 0, Qt.AlignmentFlag.AlignHCenter)
        self._save_timer = QTimer(self)
        self._save_timer.setSingleShot(True)
        self._save_timer.setInterval(SAVE_MS)
        self._save_timer.timeout.connect(self.text_settled)
        self.edit.sent.connect(self.on_enter_pressed)
        self.edit.textChanged.connect(self.on_text_changed)
        self.edit.long_text_pasted.connect(self.pasted.add)
        self.pasted.changed.connect(self.on_text_changed)
        self.edit.height_wanted.connect(self.edit.setFixedHeight)
        self.edit.setFixedHeight(self.edit.wanted_height())
        self.button.clicked.connect(self.on_button_clicked)
        self.set_busy(is_busy=False)

    def text(self) -> str:
        """All of it: what was typed, then what was pasted."""
        return "\n\n".join(part for part in (self.edit.toPlainText(), *self.pasted.texts()) if part)

    def set_text(self, text: str) -> None:
        """Show this text instead; a very long one as a chip."""
        self.pasted.clear()
        is_long = len(text) > LONG_PASTE_CHARS
        self.edit.setPlainText("" if is_long else text)
        if is_long:
            self.pasted.add(text)
        self.edit.moveCursor(QTextCursor.MoveOperation.End)

    def clear(self) -> None:
        self.pasted.clear()
        self.edit.clear()

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

    @Slot()
    def on_enter_pressed(self) -> None:
        if not self._is_busy and self.text().strip():
            self.send_clicked.emit()

    @Slot()
    def on_button_clicked(self) -> None:
        if self._is_busy:
            self.stop_clicked.emit()
        else:
            self.on_enter_pressed()

    @Slot()
    def on_text_changed(self) -> None:
        is_empty = self.edit.document().isEmpty() and not self.pasted.texts()
        self.button.setEnabled(self._is_busy or not is_empty)
        self._save_timer.start()


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
        self.setFixedSize(BUTTON_SIZE, BUTTON_SIZE)
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
        pixmap = self._icons.pixmap(self._name, color, 18, self.devicePixelRatioF())
        painter.drawPixmap(round((self.width() - 18) / 2), round((self.height() - 18) / 2), pixmap)
        painter.end()
