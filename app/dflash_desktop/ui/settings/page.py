"""The settings page: everything that is declared, where the files lie, help when something is wrong, and reset."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSystemTrayIcon, QVBoxLayout, QWidget

from dflash_desktop.base.errors import AppError
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.settings.store import DECLARED
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.kit.cause_words import told
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.page_frame import PageHead, frame_page
from dflash_desktop.ui.kit.palette import XL, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, label
from dflash_desktop.ui.settings.about_card import AboutCard
from dflash_desktop.ui.settings.confirm_button import ConfirmButton
from dflash_desktop.ui.settings.controls import SettingRow, Value
from dflash_desktop.ui.settings.desk import SettingsDesk
from dflash_desktop.ui.settings.files_card import FilesCard
from dflash_desktop.ui.settings.help_card import HelpCard

PAGE_WIDTH = 780


class SettingsPage(QWidget):
    """Shows the store and changes it; what a change does is the desk's matter."""

    restart_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        icons: Icons,
        desk: SettingsDesk,
        pair_memory: PairMemory | None,
        models_desk: ModelsDesk | None = None,
    ) -> None:
        """`models_desk` asks for updates: it has the network."""
        super().__init__()
        self._theme = theme
        self._desk = desk
        self._pair_memory = pair_memory
        self.notice = Notice(theme, icons)
        self.rows: dict[str, SettingRow] = {}
        page = QWidget()
        page.setProperty("kind", "page")
        column = QVBoxLayout(page)
        column.setContentsMargins(XL, L, XL, XL)
        column.setSpacing(M)
        column.addWidget(self.notice)
        column.addWidget(self._section("general", self.tr("General")))
        self.rows["stays_in_tray"].setVisible(QSystemTrayIcon.isSystemTrayAvailable())
        column.addWidget(self._section("engine", self.tr("Engine")))
        self.files_card: FilesCard | None = None
        self.help_card: HelpCard | None = None
        if desk.home is not None:
            self.files_card = FilesCard(theme, icons, desk.home, desk.worker, self.notice)
            self.files_card.restart_wanted.connect(self.restart_wanted)
            column.addWidget(self.files_card)
            self.help_card = HelpCard(theme, desk, self.notice)
            self.help_card.add_row(self._row("detailed_log"))
            column.addWidget(self.help_card)
        column.addWidget(self._privacy_card())
        column.addWidget(self._reset_card())
        self.about_card = AboutCard(theme)
        if models_desk is not None:
            self.about_card.add_updates(models_desk)
        column.addWidget(self.about_card)
        column.addStretch(1)
        page.setMaximumWidth(theme.px(PAGE_WIDTH))
        self._build_frame(page)
        desk.changed.connect(self.on_changed)
        self.on_changed()

    def _build_frame(self, page: QWidget) -> None:
        holder = QWidget()
        holder.setProperty("kind", "page")
        centre = QHBoxLayout(holder)
        centre.setContentsMargins(0, 0, 0, 0)
        centre.addWidget(page, 1, Qt.AlignmentFlag.AlignTop)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(holder)
        head = PageHead(self._theme, self.tr("Settings"))
        head.row.addStretch(1)
        frame_page(self, head, scroll)

    def _section(self, key: str, title: str) -> Card:
        card = Card(self._theme, title)
        for setting in DECLARED.values():
            if setting.section == key:
                card.body.addWidget(self._row(setting.name))
        return card

    def _row(self, name: str) -> SettingRow:
        row = SettingRow(self._theme, DECLARED[name], getattr(self._desk.store.values, name), self._change)
        self.rows[name] = row
        return row

    def _privacy_card(self) -> Card:
        card = Card(self._theme, self.tr("What this program sends"))
        for words in (
            self.tr("Nothing by itself: no telemetry, no account, no look for updates."),
            self.tr("huggingface.co, or the mirror you set, when you search for models or press Download."),
            self.tr("The place where new versions are announced, when you press Check for updates."),
            self.tr("This computer only, when you start the server; your network if you allow it there."),
        ):
            card.body.addWidget(label(self._theme, words, wraps=True))
        return card

    def _reset_card(self) -> Card:
        card = Card(self._theme, self.tr("Reset"))
        self.reset_button = ConfirmButton(
            self._theme, self.tr("Reset all settings"), self.tr("Really reset all settings?")
        )
        self.reset_button.confirmed.connect(self.on_reset)
        self.forget_button = ConfirmButton(
            self._theme, self.tr("Forget how models were loaded"), self.tr("Really forget it for all models?")
        )
        self.forget_button.confirmed.connect(self.on_forget)
        self.forget_button.setVisible(self._pair_memory is not None)
        words = self.tr("Chats and models are not touched by either.")
        card.body.addWidget(label(self._theme, words, "caption", tone="muted", wraps=True))
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addWidget(self.reset_button)
        buttons.addWidget(self.forget_button)
        buttons.addStretch(1)
        card.body.addLayout(buttons)
        return card

    def _change(self, name: str, value: Value) -> None:
        try:
            self._desk.store.change(**{name: value})
        except AppError as error:
            self.notice.show_error(str(error))
        self.on_changed()

    @Slot()
    def on_changed(self) -> None:
        for name, row in self.rows.items():
            row.show_value(getattr(self._desk.store.values, name))
        if self._desk.store.problem:
            self.notice.show_error(told(self._desk.store.cause, self._desk.store.problem))

    @Slot()
    def on_reset(self) -> None:
        self._desk.store.reset()
        self.notice.show_info(self.tr("All settings have their defaults again."))

    @Slot()
    def on_forget(self) -> None:
        if self._pair_memory is not None:
            self._pair_memory.forget_all()
            self.notice.show_info(self.tr("The settings of all models are forgotten."))
