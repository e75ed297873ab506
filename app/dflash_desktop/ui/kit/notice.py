"""A message inside the page: what happened, why, what to do. Never a modal box."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import icon_button, label, push_button

Way = tuple[str, Callable[[], object]]
"""What a button says, and what it does."""


class Notice(QFrame):
    """Hidden until it has something to say."""

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._tone = "info"
        self._action: Callable[[], object] | None = None
        self._mark = QLabel()
        self._text = label(theme, wraps=True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._button = push_button(theme, "", "secondary")
        self._button.hide()
        self._more: list[QPushButton] = []
        self._close = icon_button(icons, "close", self.tr("Close this message"), size=16)
        row = QHBoxLayout(self)
        row.setContentsMargins(M, S, S, S)
        row.setSpacing(S + 2)
        row.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._text, 1)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(S)
        self._buttons.addWidget(self._button)
        row.addLayout(self._buttons)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self._mark.setContentsMargins(0, 6, 0, 0)
        self._text.setContentsMargins(0, 5, 0, 5)
        self._button.clicked.connect(self.on_action_clicked)
        self._close.clicked.connect(self.hide)
        theme.changed.connect(self.on_theme_changed)
        self.hide()

    def text(self) -> str:
        return "" if self.isHidden() else self._text.text()

    def show_error(
        self, text: str, action: str = "", do: Callable[[], object] | None = None, more: Sequence[Way] = ()
    ) -> None:
        """`more`: further ways out, after the first."""
        self._show("error", text, action, do, more)

    def show_info(
        self, text: str, action: str = "", do: Callable[[], object] | None = None, more: Sequence[Way] = ()
    ) -> None:
        self._show("info", text, action, do, more)

    def buttons(self) -> list[QPushButton]:
        """The ways out that are shown."""
        return [button for button in (self._button, *self._more) if not button.isHidden()]

    def _show(
        self, tone: str, text: str, action: str, do: Callable[[], object] | None, more: Sequence[Way] = ()
    ) -> None:
        self._tone = tone
        self._action = do
        self._text.setText(text)
        self.setAccessibleName(text)
        self._button.setText(action)
        self._button.setAccessibleName(action)
        self._button.setVisible(bool(action))
        for old in self._more:
            self._buttons.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._more = [self._way_button(words, way) for words, way in more]
        self.setProperty("kind", tone)
        self.style().unpolish(self)
        self.style().polish(self)
        self.on_theme_changed()
        self.show()

    @Slot()
    def on_theme_changed(self) -> None:
        name, color = ("warning", "bad") if self._tone == "error" else ("info", "accent_text")
        self._mark.setPixmap(self._icons.pixmap(name, color, 18, self.devicePixelRatioF()))

    def _way_button(self, words: str, do: Callable[[], object]) -> QPushButton:
        button = push_button(self._theme, words, "secondary")
        button.clicked.connect(self.hide)
        button.clicked.connect(lambda: do())
        self._buttons.addWidget(button)
        return button

    @Slot()
    def on_action_clicked(self) -> None:
        self.hide()
        if self._action:
            self._action()
