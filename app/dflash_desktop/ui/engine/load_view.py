"""How the pair is loaded, and on what: the load panel of the loaded pair, and the devices as the engine lists them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QTableView, QVBoxLayout, QWidget

from dflash_desktop.engine.device_users import DriverProblem
from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.engine.device_item_model import DeviceItemModel
from dflash_desktop.ui.engine.device_words import problem_words
from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XL, L, M, S
from dflash_desktop.ui.kit.tables import row_table
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, ElidedLabel, icon_button, label, push_button

ROW_PIXELS = 40


class LoadView(QWidget):
    """The panel speaks of the pair that is loaded, or was asked for last."""

    refresh_clicked = Signal()
    open_wanted = Signal()

    def __init__(self, theme: Theme, icons: Icons, pair_state: PairState, desk: LoadDesk) -> None:
        super().__init__()
        self._theme = theme
        self._pair_state = pair_state
        self._desk = desk
        self._shown: PairFiles | None = None
        self.setProperty("kind", "page")
        self.panel = desk.make_panel(is_live=True)
        self.load_button = push_button(theme, self.tr("Load with these settings"), "primary")
        self.cancel_button = push_button(theme, self.tr("Cancel loading"), "secondary")
        self.open_button = push_button(theme, self.tr("Another model…"), "secondary")
        self._names = ElidedLabel(theme, "body", tone="muted")
        self.devices = DeviceItemModel(self)
        self.device_table = self._build_table()
        self._problem = label(theme, "", "body", tone="bad", wraps=True)
        self._problem.hide()
        self._driver_words = label(theme, "", "body", tone="bad", wraps=True)
        self._driver_words.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(XL, L, XL, XL)
        column.setSpacing(M)
        column.addWidget(self._build_load_card())
        column.addWidget(self._build_device_card(icons))
        column.addStretch(1)
        self.load_button.clicked.connect(self.on_load_clicked)
        self.cancel_button.clicked.connect(pair_state.cancel_load)
        self.open_button.clicked.connect(self.open_wanted)
        self.panel.changed.connect(self.on_panel_changed)
        self.panel.draft_dropped.connect(self.on_draft_dropped)
        desk.record.measured.connect(self.on_measured)
        desk.driver_problems_found.connect(self.on_driver_problems)
        pair_state.changed.connect(self.on_pair_changed)
        self.on_driver_problems(desk.problems)
        self.on_pair_changed()

    def _build_load_card(self) -> Card:
        card = Card(self._theme, self.tr("How it is loaded"))
        card.head.insertWidget(1, self._names, 4)
        card.body.addWidget(self.panel)
        buttons = QHBoxLayout()
        buttons.setSpacing(S)
        buttons.addWidget(self.load_button)
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.open_button)
        buttons.addStretch(1)
        card.body.addLayout(buttons)
        return card

    def _build_device_card(self, icons: Icons) -> Card:
        card = Card(self._theme, self.tr("Devices"))
        self.refresh_button = icon_button(icons, "refresh", self.tr("Look for devices again"), size=16)
        self.refresh_button.clicked.connect(self.refresh_clicked)
        card.head.addWidget(self.refresh_button)
        card.body.addWidget(self._problem)
        card.body.addWidget(self._driver_words)
        card.body.addWidget(self.device_table)
        return card

    def _build_table(self) -> QTableView:
        table = row_table(self._theme, self.devices, self.tr("Devices"), row_pixels=ROW_PIXELS)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.horizontalHeader().setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        return table

    def show_devices(self, devices: Sequence[Device], problem: str) -> None:
        """The list as the engine gives it, or the sentence that says why there is none."""
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        self.devices.show_devices(devices)
        self.device_table.setVisible(bool(devices))
        n_rows = max(1, len(devices))
        head_height = self.device_table.horizontalHeader().sizeHint().height()
        self.device_table.setFixedHeight(head_height + n_rows * self._theme.px(ROW_PIXELS) + 2)

    def problem_text(self) -> str:
        return "" if self._problem.isHidden() else self._problem.text()

    def driver_text(self) -> str:
        return "" if self._driver_words.isHidden() else self._driver_words.text()

    @Slot(object)
    def on_driver_problems(self, problems: Sequence[DriverProblem]) -> None:
        self._driver_words.setText("\n".join(problem_words(problem) for problem in problems))
        self._driver_words.setVisible(bool(problems))

    @Slot()
    def on_pair_changed(self) -> None:
        state = self._pair_state
        is_loading = state.phase is Phase.LOADING
        pair = state.pair if state.phase is Phase.LOADED else None
        self.devices.mark_in_use(pair.device_name if pair is not None else "")
        self.cancel_button.setVisible(is_loading)
        self.panel.setEnabled(not is_loading)
        asked = state.asked
        if asked is not None and asked != self._shown:
            self._shown = asked
            remembered = self._desk.recall(asked.target)
            self.panel.show_files(asked.target, asked.draft, remembered, self._desk.default_context())
        if pair is not None:
            self.panel.show_loaded(pair)
        names = [path.name for path in (asked.target, asked.draft) if path is not None] if asked is not None else []
        self._names.setText(" + ".join(names))
        words = self.tr("Another model…") if asked is not None else self.tr("Open a model file…")
        self.open_button.setText(words)
        self.open_button.setAccessibleName(words)
        self.on_panel_changed()

    @Slot()
    def on_measured(self) -> None:
        asked = self._pair_state.asked
        load = self._desk.recall(asked.target) if asked is not None else None
        if load is not None:
            self.panel.plan.show_measured(load.planned_bytes, load.measured_bytes)

    @Slot()
    def on_panel_changed(self) -> None:
        is_too_big = self.panel.is_too_big()
        words = self.tr("Load anyway") if is_too_big else self.tr("Load with these settings")
        self.load_button.setText(words)
        self.load_button.setAccessibleName(words)
        is_loading = self._pair_state.phase is Phase.LOADING
        self.load_button.setEnabled(self.panel.files() is not None and not is_loading)

    @Slot()
    def on_draft_dropped(self) -> None:
        asked = self._pair_state.asked
        if asked is not None:
            self._names.setText(asked.target.name)

    @Slot()
    def on_load_clicked(self) -> None:
        files = self.panel.files()
        if files is not None:
            self._pair_state.load(files)
