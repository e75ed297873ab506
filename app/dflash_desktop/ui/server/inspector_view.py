"""One request from the inside: facts, the prompt as the model read it, the answer, and a copy without private texts."""

from __future__ import annotations

import re

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XS, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import (
    DEMI,
    Card,
    ElidedLabel,
    SegmentedControl,
    icon_button,
    label,
    push_button,
)
from dflash_desktop.ui.server.request_records import RequestRecord

HEAD_CHARS, TAIL_CHARS = 48_000, 16_000
"""Longer texts are shown without their middle: laying out a whole prompt of an agent would hold the window up."""

LONG_LINE = re.compile(r"([^\n]{1000})(?=[^\n])")
"""A line is laid out whole once a part of it is seen: 64,000 characters took 30 ms. Long lines wrap anyway."""


class InspectorView(Card):
    """Shows one RequestRecord; ask it to show the same one again when that has changed."""

    close_clicked = Signal()

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__(theme)
        self._theme = theme
        self._record: RequestRecord | None = None
        self._shown_facts: list[tuple[str, str]] = []
        self._shown_text = ""
        self.setAccessibleName(self.tr("Inspector"))
        self._title = ElidedLabel(theme, "body", weight=DEMI)
        self.tabs = SegmentedControl(
            theme,
            [("facts", self.tr("Facts")), ("prompt", self.tr("Prompt")), ("answer", self.tr("Answer"))],
            self.tr("Show"),
        )
        self.copy_button = push_button(theme, self.tr("Copy redacted"), "secondary")
        self.copy_button.setToolTip(self.tr("Counts and times for a bug report; nothing that you or the model wrote."))
        self.copy_text_button = push_button(theme, self.tr("Copy text"), "secondary")
        self.close_button = icon_button(icons, "close", self.tr("Close the inspector"), size=16)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setProperty("kind", "bare")
        self.text.setFont(theme.code_font("body"))
        self.text.setTabChangesFocus(True)
        self._facts = QWidget()
        self._grid = QGridLayout(self._facts)
        self._cells: list[tuple[QLabel, QLabel]] = []
        self._stack = QStackedWidget()
        self._build()
        self.tabs.chosen.connect(self.on_tab_chosen)
        self.copy_button.clicked.connect(self.on_copy_clicked)
        self.copy_text_button.clicked.connect(self.on_copy_text_clicked)
        self.close_button.clicked.connect(self.close_clicked)

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(S)
        head.addWidget(self._title, 1)
        head.addWidget(self.close_button)
        self._grid.setContentsMargins(0, 0, M, 0)
        self._grid.setHorizontalSpacing(L)
        self._grid.setVerticalSpacing(XS + 2)
        self._grid.setColumnStretch(1, 1)
        self._facts.setProperty("kind", "page")
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        holder.setProperty("kind", "page")
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._facts)
        column.addStretch(1)
        scroll.setWidget(holder)
        scroll.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        scroll.setAccessibleName(self.tr("Facts of the request"))
        well = QFrame()
        well.setProperty("kind", "well")
        inside = QVBoxLayout(well)
        inside.setContentsMargins(S, S, S, S)
        inside.addWidget(self.text)
        self._stack.addWidget(scroll)
        self._stack.addWidget(well)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addWidget(self.copy_button)
        buttons.addWidget(self.copy_text_button)
        buttons.addStretch(1)
        self.body.addLayout(head)
        self.body.addWidget(self.tabs)
        self.body.addWidget(self._stack, 1)
        self.body.addLayout(buttons)

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(360), 300)

    def show_record(self, record: RequestRecord) -> None:
        is_other = record is not self._record
        self._record = record
        self._title.setText(record.client_words())
        if self.tabs.choice() == "facts":
            self._show_facts(record)
        else:
            self._show_text(record, is_other=is_other)
        self.copy_text_button.setVisible(self.tabs.choice() != "facts")

    def whole_text(self) -> str:
        """The text of the chosen tab, all of it."""
        record = self._record
        if record is None:
            return ""
        return record.prompt_text() if self.tabs.choice() == "prompt" else record.reply_text()

    @Slot(object)
    def on_tab_chosen(self, tab: str) -> None:
        self._stack.setCurrentIndex(0 if tab == "facts" else 1)
        self.text.setAccessibleName(self.tr("Prompt as the model read it") if tab == "prompt" else self.tr("Answer"))
        if self._record is not None:
            self._show_plain("")
            self.show_record(self._record)

    @Slot()
    def on_copy_clicked(self) -> None:
        if self._record is not None:
            QGuiApplication.clipboard().setText(self._record.redacted())

    @Slot()
    def on_copy_text_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.whole_text())

    def _show_text(self, record: RequestRecord, *, is_other: bool) -> None:
        text = self.whole_text()
        if not text:
            text = self.tr("It is still being written.") if record.is_running else self.tr("There is none.")
        if is_other or text != self._shown_text:
            self._show_plain(text)

    def _show_plain(self, text: str) -> None:
        self._shown_text = text
        self.text.setPlainText(LONG_LINE.sub(r"\1\n", self._cut(text)))

    def _cut(self, text: str) -> str:
        n_cut = len(text) - HEAD_CHARS - TAIL_CHARS
        if n_cut <= 0:
            return text
        words = self.tr("… {0} characters are not shown; copying takes all …").format(n_cut)
        return f"{text[:HEAD_CHARS]}\n\n{words}\n\n{text[-TAIL_CHARS:]}"

    def _show_facts(self, record: RequestRecord) -> None:
        facts = record.facts()
        if facts == self._shown_facts:
            return
        self._shown_facts = facts
        while len(self._cells) < len(facts):
            name = label(self._theme, "", "caption", tone="muted")
            value = label(self._theme, "", "body", wraps=True)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            row = len(self._cells)
            self._grid.addWidget(name, row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(value, row, 1)
            self._cells.append((name, value))
        for index, (name, value) in enumerate(self._cells):
            is_used = index < len(facts)
            if is_used:
                words, text = facts[index]
                if name.text() != words:
                    name.setText(words)
                if value.text() != text:
                    value.setText(text)
                    value.setAccessibleName(f"{words}: {text}")
            name.setVisible(is_used)
            value.setVisible(is_used)
