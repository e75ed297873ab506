"""What every page but the chat looks like from afar: a head with the page's name, a hairline, and the rest below."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLayout, QVBoxLayout, QWidget

from dflash_desktop.ui.kit.palette import XL, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, label, rule

HEAD_PIXELS = 48


class PageHead(QWidget):
    """The name of the page; what else concerns the whole page goes into `row`, after it."""

    def __init__(self, theme: Theme, title: str) -> None:
        super().__init__()
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(XL, S, M, S)
        self.row.addWidget(label(theme, title, "heading", weight=DEMI))
        self.setMinimumHeight(theme.px(HEAD_PIXELS))


def frame_page(page: QWidget, head: PageHead, body: QWidget | QLayout) -> None:
    """Give `page` its layout: `body` takes all the room below the head."""
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(head)
    column.addWidget(rule())
    if isinstance(body, QWidget):
        column.addWidget(body, 1)
    else:
        column.addLayout(body, 1)
