"""The navigation rail: one button per page, icon above its name."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QLabel, QVBoxLayout, QWidget

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import RAIL_WIDTH, XS, L, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import MEDIUM

PILL_WIDTH, PILL_HEIGHT, ICON_SIZE = 52, 30, 20


class NavigationRail(QWidget):
    """Pages from the top, the rest from the bottom."""

    page_chosen = Signal(object)  # the page's key

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._keys: list[str] = []
        self._n_high = 0  # pages at the top
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("kind", "rail")
        self.setFixedWidth(theme.px(RAIL_WIDTH))
        self.setAccessibleName(self.tr("Pages"))
        self._group = QButtonGroup(self)
        self._mark = QLabel()
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(XS + 2, L, XS + 2, M)
        self._column.setSpacing(XS)
        self._column.addWidget(self._mark)
        self._column.addSpacing(M)
        self._column.addStretch(1)
        self._group.idClicked.connect(self.on_page_clicked)
        theme.changed.connect(self.update)
        self._show_mark()

    def add_page(self, key: str, icon: str, name: str, *, is_low: bool = False) -> QAbstractButton:
        """`is_low`: at the bottom, after what is there already."""
        button = RailButton(self._theme, self._icons, icon, name)
        button.setCheckable(True)
        self._group.addButton(button, len(self._keys))
        self._make_room(button)
        if is_low:
            self._column.addWidget(button)
        else:
            self._column.insertWidget(2 + self._n_high, button)
            self._n_high += 1
        self._keys.append(key)
        if len(self._keys) == 1:
            button.setChecked(True)
        return button

    def add_at_bottom(self, icon: str, name: str) -> QAbstractButton:
        button = RailButton(self._theme, self._icons, icon, name)
        self._column.addWidget(button)
        self._make_room(button)
        return button

    def _make_room(self, button: QAbstractButton) -> None:
        """Wide enough for every name: languages differ."""
        margins = self._column.contentsMargins()
        needed = button.sizeHint().width() + margins.left() + margins.right()
        self.setFixedWidth(max(self.width(), needed))

    def choose(self, key: str) -> None:
        self._group.button(self._keys.index(key)).setChecked(True)

    def set_badge(self, key: str, color: str, says: str) -> None:
        """A dot on the page's icon, in the palette's colour of that name, and what it means; no colour: no dot."""
        button = self._group.button(self._keys.index(key))
        button.setAccessibleDescription(says)
        button.setToolTip(says)
        if isinstance(button, RailButton):
            button.set_badge(color)

    @Slot(int)
    def on_page_clicked(self, index: int) -> None:
        self.page_chosen.emit(self._keys[index])

    def _show_mark(self) -> None:
        ratio = self.devicePixelRatioF()
        self._mark.setPixmap(self._icons.app_pixmap(self._theme.px(36), ratio))


class RailButton(QAbstractButton):
    """Icon above text, a soft pill behind the icon of the page that is shown."""

    def __init__(self, theme: Theme, icons: Icons, icon: str, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._icon = icon
        self._badge = ""
        self.setText(name)
        self.setAccessibleName(name)
        self.setFont(theme.font("caption", weight=MEDIUM))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_badge(self, color: str) -> None:
        if color != self._badge:
            self._badge = color
            self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(self.font())
        return QSize(max(64, metrics.horizontalAdvance(self.text()) + 4), self._words_top() + metrics.height() + 8)

    def _words_top(self) -> int:
        return self._theme.px(PILL_HEIGHT) + 4

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wide, high = self._theme.px(PILL_WIDTH), self._theme.px(PILL_HEIGHT)
        pill = QRectF((self.width() - wide) / 2, 2, wide, high)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isChecked():
            painter.setBrush(self._theme.color("accent_soft"))
            painter.drawRoundedRect(pill, high / 2, high / 2)
        elif self.underMouse():
            painter.setBrush(self._theme.color("hover"))
            painter.drawRoundedRect(pill, high / 2, high / 2)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(self._theme.color("accent_text"))
            painter.drawRoundedRect(pill.adjusted(0.5, 0.5, -0.5, -0.5), high / 2, high / 2)
        ratio = self.devicePixelRatioF()
        size = self._theme.px(ICON_SIZE)
        pixmap = self._icons.pixmap(self._icon, "accent_text" if self.isChecked() else "muted", size, ratio)
        painter.drawPixmap(round((self.width() - size) / 2), round(2 + (high - size) / 2), pixmap)
        if self._badge:
            painter.setPen(QPen(self._theme.color("rail"), 2))
            painter.setBrush(self._theme.color(self._badge))
            painter.drawEllipse(QRectF(self.width() / 2 + size / 2 - 4, 4, 10, 10))
        painter.setPen(self._theme.color("text" if self.isChecked() else "muted"))
        text = QRectF(0, self._words_top(), self.width(), self.height() - self._words_top())
        painter.drawText(text, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, self.text())
        painter.end()
