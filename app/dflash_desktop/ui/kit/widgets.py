"""Small shared widgets, and the few lines that make standard ones look like ours."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import CONTROL_HEIGHT, L, S
from dflash_desktop.ui.kit.theme import FontRole, Theme

DEMI = QFont.Weight.DemiBold
MEDIUM = QFont.Weight.Medium


def label(
    theme: Theme,
    text: str = "",
    role: FontRole = "body",
    *,
    tone: str = "",
    weight: QFont.Weight = QFont.Weight.Normal,
    wraps: bool = False,
) -> QLabel:
    """A label in one of the type scale's sizes. tone: muted, bad, good, flash or nothing."""
    widget = QLabel(text)
    widget.setFont(theme.font(role, weight=weight))
    widget.setProperty("tone", tone)
    widget.setTextFormat(Qt.TextFormat.PlainText)
    widget.setWordWrap(wraps)
    return widget


def set_tone(widget: QWidget, tone: str) -> None:
    if widget.property("tone") != tone:
        widget.setProperty("tone", tone)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def push_button(theme: Theme, text: str, kind: str = "secondary") -> QPushButton:
    """kind: primary (one per view), secondary, link."""
    button = QPushButton(text)
    button.setProperty("kind", kind)
    button.setFont(theme.font("body", weight=MEDIUM))
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.setAccessibleName(text.replace("&", ""))
    button.setAutoDefault(False)
    return button


def icon_button(icons: Icons, name: str, says: str, *, color: str = "muted", size: int = 18) -> QToolButton:
    """A square button with an icon only; `says` is its tooltip and its name for screen readers."""
    button = QToolButton()
    button.setProperty("kind", "icon")
    button.setToolTip(says)
    button.setAccessibleName(says)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.setFixedSize(icons.px(CONTROL_HEIGHT), icons.px(CONTROL_HEIGHT))
    icons.put(button, name, color, checked="accent_text", size=size)
    return button


def style_spin(spin: QAbstractSpinBox) -> None:
    """Room at the sides, which the style sheet's padding does not reach."""
    spin.lineEdit().setTextMargins(S, 0, S, 0)


def chip(theme: Theme, text: str = "") -> QLabel:
    """A short fact in a small rounded box."""
    widget = label(theme, text, "caption")
    widget.setProperty("kind", "chip")
    widget.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return widget


def rule() -> QFrame:
    """A hairline between regions."""
    line = QFrame()
    line.setProperty("kind", "rule")
    line.setFixedHeight(1)
    return line


class Card(QFrame):
    """A surface with an optional heading; put widgets into `body`."""

    def __init__(self, theme: Theme, title: str = "", *, kind: str = "card") -> None:
        super().__init__()
        self.setProperty("kind", kind)
        self._outer = QVBoxLayout(self)
        self._outer.setContentsMargins(L, L, L, L)
        self._outer.setSpacing(S)
        self.head = QHBoxLayout()
        self.head.setSpacing(S)
        if title:
            self._title = label(theme, title, "body", weight=DEMI)
            self.head.addWidget(self._title)
            self.head.addStretch(1)
            self._title.setMinimumHeight(theme.px(CONTROL_HEIGHT))
            self._outer.addLayout(self.head)
            self.setAccessibleName(title)
        self.body = QVBoxLayout()
        self.body.setSpacing(S)
        self._outer.addLayout(self.body, 1)


class ElidedLabel(QLabel):
    """One line that ends in an ellipsis where room ends; the whole text is its tooltip then."""

    def __init__(
        self, theme: Theme, role: FontRole = "body", *, tone: str = "", weight: QFont.Weight = QFont.Weight.Normal
    ) -> None:
        super().__init__()
        self.setFont(theme.font(role, weight=weight))
        self.setProperty("tone", tone)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._whole = ""

    def setText(self, text: str) -> None:
        self._whole = text
        self.setAccessibleName(text)
        self.updateGeometry()
        self._fit()

    def whole_text(self) -> str:
        return self._whole

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(self.font())
        return QSize(metrics.horizontalAdvance(self._whole) + 4, metrics.height() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(24, self.sizeHint().width()), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        shown = QFontMetrics(self.font()).elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width())
        super().setText(shown)
        self.setToolTip(self._whole if shown != self._whole else "")


class SegmentedControl(QWidget):
    """A few exclusive choices side by side. Arrow keys move between them."""

    chosen = Signal(object)  # the key of the choice, by the person only

    def __init__(self, theme: Theme, choices: Sequence[tuple[str, str]], says: str) -> None:
        super().__init__()
        self._theme = theme
        self._keys = [key for key, _ in choices]
        self.setAccessibleName(says)
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(3, 3, 3, 3)
        row.setSpacing(2)
        for index, (_, text) in enumerate(choices):
            button = _Segment(theme, text)
            button.setAccessibleName(f"{says}: {text}")
            self._group.addButton(button, index)
            row.addWidget(button)
        self._group.buttons()[0].setChecked(True)
        self._group.idClicked.connect(self.on_segment_clicked)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def choice(self) -> str:
        return self._keys[self._group.checkedId()]

    def choose(self, key: str) -> None:
        """Show that choice without telling anybody."""
        chosen = self._group.button(self._keys.index(key))
        chosen.setChecked(True)
        for button in self._group.buttons():  # Qt moves the place for Tab only when the person does the choosing
            policy = Qt.FocusPolicy.StrongFocus if button is chosen else Qt.FocusPolicy.ClickFocus
            button.setFocusPolicy(policy)

    def buttons(self) -> list[QAbstractButton]:
        return self._group.buttons()

    @Slot(int)
    def on_segment_clicked(self, index: int) -> None:
        self.chosen.emit(self._keys[index])

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        # In the dark, cards are lighter than the page: what shall be seen on both is lighter still.
        painter.setBrush(self._theme.color("hover" if self._theme.palette.is_dark else "sunken"))
        painter.drawRoundedRect(self.rect(), 8, 8)
        painter.end()


class _Segment(QAbstractButton):
    def __init__(self, theme: Theme, text: str) -> None:
        super().__init__()
        self._theme = theme
        self.setText(text)
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFont(theme.font("body", weight=MEDIUM))
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(self.font())
        return QSize(metrics.horizontalAdvance(self.text()) + 22, max(26, metrics.height() + 8))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = self.rect().adjusted(0, 0, -1, -1)
        dark = self._theme.palette.is_dark
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isChecked():
            painter.setBrush(self._theme.color("pressed" if dark else "surface"))
            painter.setPen(self._theme.color("outline" if dark else "border"))
            painter.drawRoundedRect(box, 6, 6)
        elif self.underMouse():
            painter.setBrush(self._theme.color("pressed" if dark else "hover"))
            painter.drawRoundedRect(box, 6, 6)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(self._theme.color("accent_text"))
            painter.drawRoundedRect(box, 6, 6)
        painter.setPen(self._theme.color("text" if self.isChecked() else "muted"))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())
        painter.end()
