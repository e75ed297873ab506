"""A message inside the page: what happened, why, what to do. Never a modal box."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, M, S
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
        self._lasts = False
        self._action: Callable[[], object] | None = None
        self._mark = QLabel()
        self._text = label(theme, wraps=True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._button = push_button(theme, "", "secondary")
        self._button.hide()
        self._more: list[QPushButton] = []
        self._details = label(theme, "", "caption", tone="muted", wraps=True)
        self._details.setTextInteractionFlags(self._text.textInteractionFlags())
        self._details.hide()
        self.details_button = push_button(theme, self.tr("Details"), "link")
        self.details_button.setCheckable(True)
        self.details_button.toggled.connect(self._details.setVisible)
        self.details_button.hide()
        self._close = icon_button(icons, "close", self.tr("Close this message"), size=16)
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(M, S, S, S)
        row.setSpacing(S + 2)
        row.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        self._ways = QWidget()
        self._buttons = QHBoxLayout(self._ways)
        self._buttons.setContentsMargins(0, 0, 0, 0)
        self._buttons.setSpacing(S)
        self._buttons.addWidget(self._button)
        self._buttons.addWidget(self.details_button)
        self._column = QVBoxLayout()
        self._column.setSpacing(XS)
        self._column.addWidget(self._text)
        self._column.addWidget(self._details)
        row.addLayout(self._column, 1)
        row.addWidget(self._ways)
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
        self,
        text: str,
        action: str = "",
        do: Callable[[], object] | None = None,
        more: Sequence[Way] = (),
        details: str = "",
        *,
        lasts: bool = False,
    ) -> None:
        """`more`: further ways out, after the first. `details`: the same from closer by, shown when it is asked for.
        `lasts`: it is about nothing that passes by itself, such as what is loaded."""
        self._show("error", text, action, do, more)
        self._lasts = lasts
        self._details.setText(details)
        self._buttons.addWidget(self.details_button)  # behind the ways out
        self.details_button.setVisible(bool(details))

    def show_info(
        self, text: str, action: str = "", do: Callable[[], object] | None = None, more: Sequence[Way] = ()
    ) -> None:
        self._show("info", text, action, do, more)

    def pass_by(self) -> None:
        """Things have moved on: hide what was about those of before."""
        if not self._lasts:
            self.hide()

    def buttons(self) -> list[QPushButton]:
        """The ways out that are shown."""
        return [button for button in (self._button, *self._more) if not button.isHidden()]

    def _show(
        self, tone: str, text: str, action: str, do: Callable[[], object] | None, more: Sequence[Way] = ()
    ) -> None:
        self._tone = tone
        self._lasts = False
        self._action = do
        self.details_button.setChecked(False)
        self.details_button.hide()
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
        self._place_ways()
        self.setProperty("kind", tone)
        self.style().unpolish(self)
        self.style().polish(self)
        self.on_theme_changed()
        self.show()

    def _place_ways(self) -> None:
        """One way out stands beside the text; several would leave it a narrow column, and stand below."""
        if self._more:
            self._column.addWidget(self._ways, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._row.insertWidget(self._row.count() - 1, self._ways)

    @Slot()
    def on_theme_changed(self) -> None:
        name, color = ("warning", "bad") if self._tone == "error" else ("info", "accent_text")
        self._mark.setPixmap(self._icons.pixmap(name, color, 18, self.devicePixelRatioF()))

    def _way_button(self, words: str, do: Callable[[], object]) -> QPushButton:
        button = push_button(self._theme, words, "secondary")
        button.clicked.connect(self.hide)
        button.clicked.connect(lambda: do())
        self._buttons.addWidget(button)
        button.show()
        return button

    @Slot()
    def on_action_clicked(self) -> None:
        self.hide()
        if self._action:
            self._action()
