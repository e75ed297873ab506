"""The command palette: everything that can be done, found by a few letters and done with Enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.ui.kit.palette import CONTROL_RADIUS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import label

Index = QModelIndex | QPersistentModelIndex
WIDTH, HEIGHT, ROW = 560, 420, 36
COMMAND_ROLE = int(Qt.ItemDataRole.UserRole) + 1


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do. `keys`: its shortcut as people read it; `group`: what it belongs to, shown before it."""

    words: str
    run: Callable[[], object]
    keys: str = ""
    group: str = ""

    def matches(self, query: str) -> int:
        """How well the query fits, 0 for not at all: whole beginnings before words before letters in order."""
        wanted = query.casefold().split()
        text = f"{self.group} {self.words}".casefold()
        if not wanted or self.words.casefold().startswith(query.casefold()):
            return 3
        if all(word in text for word in wanted):
            return 2
        letters = iter(text)
        return 1 if all(letter in letters for letter in "".join(wanted)) else 0


class CommandPalette(QDialog):
    """Made anew each time it is opened; deletes itself when closed."""

    def __init__(self, theme: Theme, commands: Sequence[Command], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(self.tr("Commands"))
        self.field = _Field(self)
        self.field.setFont(theme.font("reading"))
        self.field.setMinimumHeight(theme.px(38))
        self.field.setPlaceholderText(self.tr("What do you want to do?"))
        self.field.setAccessibleName(self.tr("Command"))
        self.items = CommandItemModel(commands)
        self.list = QListView()
        self.list.setFrameShape(QListView.Shape.NoFrame)
        self.list.setModel(self.items)
        self.list.setItemDelegate(_Delegate(theme, self))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setMouseTracking(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName(self.tr("Commands"))
        self.nothing = label(theme, self.tr("No command is called that."), tone="muted")
        self.nothing.setContentsMargins(S, 0, S, S)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(M, M, M, M)
        column.setSpacing(S)
        column.addWidget(self.field)
        column.addWidget(self.list)
        column.addWidget(self.nothing)
        self.setFixedWidth(theme.px(WIDTH))
        self.field.textChanged.connect(self.on_text_changed)
        self.list.clicked.connect(self.on_row_clicked)
        self._fit()
        self._choose(0)

    def open_over(self, window: QWidget) -> None:
        """Show it in the upper part of `window`."""
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - self.width()) // 2, corner.y() + window.height() // 8)
        self.show()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def shown(self) -> list[str]:
        return [self.items.command(row).words for row in range(self.items.rowCount())]

    @Slot(str)
    def on_text_changed(self, text: str) -> None:
        self.items.filter(text)
        self._fit()
        self._choose(0)

    @Slot(QModelIndex)
    def on_row_clicked(self, index: QModelIndex) -> None:
        self._run(index.row())

    def on_key(self, key: int) -> bool:
        """A key of the field that means the list. True when it did."""
        row = self.list.currentIndex().row()
        match key:
            case Qt.Key.Key_Down:
                self._choose((row + 1) % max(1, self.items.rowCount()))
            case Qt.Key.Key_Up:
                self._choose((row - 1) % max(1, self.items.rowCount()))
            case Qt.Key.Key_PageDown | Qt.Key.Key_PageUp:
                step = max(1, self.list.height() // self._theme.px(ROW) - 1) * (1 if key == Qt.Key.Key_PageDown else -1)
                self._choose(min(max(0, row + step), self.items.rowCount() - 1))
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._run(row)
            case _:
                return False
        return True

    def _fit(self) -> None:
        """Be as high as what is shown, HEIGHT at most. It grows and shrinks at its lower edge: the field stays."""
        n_rows = self.items.rowCount()
        self.list.setVisible(n_rows > 0)
        self.nothing.setVisible(n_rows == 0)
        most = self._theme.px(HEIGHT) - self.field.minimumHeight() - 2 * M - S
        self.list.setFixedHeight(min(most, n_rows * self._theme.px(ROW)))
        self.setFixedHeight(self._column.sizeHint().height())

    def _choose(self, row: int) -> None:
        index = self.items.index(row)
        self.list.setCurrentIndex(index)
        self.field.setAccessibleDescription(str(index.data(Qt.ItemDataRole.AccessibleTextRole) or ""))

    def _run(self, row: int) -> None:
        if 0 <= row < self.items.rowCount():
            command = self.items.command(row)
            self.close()
            command.run()


class CommandItemModel(QAbstractListModel):
    """The commands that fit the query, best first."""

    def __init__(self, commands: Sequence[Command], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all = list(commands)
        self._shown = list(commands)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or not 0 <= index.row() < len(self._shown):
            return None
        command = self._shown[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return command.words
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(part for part in (command.group, command.words, command.keys) if part)
            case _ if role == COMMAND_ROLE:
                return command
            case _:
                return None

    def command(self, row: int) -> Command:
        return self._shown[row]

    def filter(self, query: str) -> None:
        ranked = [(command.matches(query), place, command) for place, command in enumerate(self._all)]
        self.beginResetModel()
        self._shown = [command for rank, _, command in sorted(ranked, key=lambda one: (-one[0], one[1])) if rank]
        self.endResetModel()


class _Field(QLineEdit):
    def __init__(self, palette: CommandPalette) -> None:
        super().__init__()
        self._palette = palette
        self._is_composing = False

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._is_composing or not self._palette.on_key(event.key()):
            super().keyPressEvent(event)


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: ARG002
        return QSize(100, self._theme.px(ROW))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        command = index.data(COMMAND_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(option.rect).adjusted(2, 1, -2, -1)
        is_current = bool(option.state & QStyle.StateFlag.State_Selected)
        if is_current or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("accent_soft" if is_current else "hover"))
            painter.drawRoundedRect(area, CONTROL_RADIUS, CONTROL_RADIUS)
        inner = area.adjusted(S, 0, -S, 0)
        painter.setFont(self._theme.font("caption"))
        painter.setPen(self._theme.color("muted"))
        keys_width = painter.fontMetrics().horizontalAdvance(command.keys)
        painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, command.keys)
        inner.setRight(inner.right() - keys_width - S)
        painter.setFont(self._theme.font("body"))
        if command.group:
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter, command.group)
            inner.setLeft(inner.left() + painter.fontMetrics().horizontalAdvance(command.group) + M)
        painter.setPen(self._theme.color("text"))
        words = painter.fontMetrics().elidedText(command.words, Qt.TextElideMode.ElideRight, int(inner.width()))
        painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()

    def helpEvent(self, event: QEvent, *others: object) -> bool:  # noqa: ARG002
        return False
