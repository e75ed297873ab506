"""The engine page: what it does now, what it costs, what it runs on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QScrollArea,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.engine.acceptance_plot import AcceptancePlot
from dflash_desktop.ui.engine.device_item_model import DeviceItemModel
from dflash_desktop.ui.engine.draft_tree_view import DraftTreeView
from dflash_desktop.ui.engine.figures_row import FiguresRow
from dflash_desktop.ui.engine.live_figures import MEAN_STEPS, LiveFigures, ShownTree
from dflash_desktop.ui.engine.memory_view import MemoryBar, ProcessMemoryPlot
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import PLOT_MS
from dflash_desktop.ui.kit.palette import XL, L, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, Card, ElidedLabel, icon_button, label, rule

ROW_PIXELS = 40
PLOT_ROW, TREE_ROW = 216, 276


class EnginePage(QWidget):
    """Reads LiveFigures and PairState at its own pace."""

    refresh_clicked = Signal()

    def __init__(self, theme: Theme, icons: Icons, pair_state: PairState, figures: LiveFigures) -> None:
        super().__init__()
        self._theme = theme
        self._icons = icons
        self._pair_state = pair_state
        self._figures = figures
        self._held: list[ShownTree] = []  # the steps to walk through while held; empty: live
        self._held_at = 0
        self._shown: ShownTree | None = None
        self.figures_row = FiguresRow(theme, figures)
        self.acceptance_plot = AcceptancePlot(theme, figures)
        self.tree_view = DraftTreeView(theme, pair_state.token_text)
        self.memory_bar = MemoryBar(theme)
        self.memory_plot = ProcessMemoryPlot(theme)
        self.devices = DeviceItemModel(self)
        self.device_table = self._build_table()
        self._device_problem = label(theme, "", "body", tone="bad", wraps=True)
        self._device_problem.hide()
        self._build()
        pair_state.changed.connect(self.on_pair_changed)
        self._timer = QTimer(self)
        self._timer.setInterval(PLOT_MS)
        self._timer.timeout.connect(self._repaint)
        self._timer.start()
        self.on_pair_changed()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(XL, S, M, S)
        head.addWidget(label(self._theme, self.tr("Engine"), "heading", weight=DEMI))
        self._state_words = ElidedLabel(self._theme, "body", tone="muted")
        head.addSpacing(M)
        head.addWidget(self._state_words, 1)
        head_box = QWidget()
        head_box.setLayout(head)
        head_box.setMinimumHeight(self._theme.px(48))
        page = QWidget()
        page.setProperty("kind", "page")
        grid = QGridLayout(page)
        grid.setContentsMargins(XL, L, XL, XL)
        grid.setSpacing(M)
        grid.addWidget(self.figures_row, 0, 0, 1, 2)
        plot_card = Card(self._theme, self.tr("Acceptance length"))
        plot_card.head.addWidget(
            label(
                self._theme, self.tr("tokens per step; line: mean of {0}").format(MEAN_STEPS), "caption", tone="muted"
            )
        )
        plot_card.body.addWidget(self.acceptance_plot)
        grid.addWidget(plot_card, 1, 0, 1, 2)
        grid.addWidget(self._build_tree_card(), 2, 0, 1, 2)
        memory_card = Card(self._theme, self.tr("Memory by part"))
        memory_card.body.addWidget(self.memory_bar)
        memory_card.body.addStretch(1)
        grid.addWidget(memory_card, 3, 0)
        process_card = Card(self._theme, self.tr("Memory of this process"))
        process_card.body.addWidget(self.memory_plot)
        grid.addWidget(process_card, 3, 1)
        grid.addWidget(self._build_device_card(), 4, 0, 1, 2)
        grid.setRowMinimumHeight(1, self._theme.px(PLOT_ROW))
        grid.setRowMinimumHeight(2, self._theme.px(TREE_ROW))
        grid.setRowStretch(1, 3)
        grid.setRowStretch(2, 3)
        grid.setRowStretch(3, 2)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(head_box)
        column.addWidget(rule())
        column.addWidget(scroll, 1)

    def _build_tree_card(self) -> Card:
        card = Card(self._theme, self.tr("Draft tree of a step"))
        self._step_words = label(self._theme, "", "caption", tone="muted")
        self._step_words.setFont(self._theme.figure_font("caption", weight=self._theme.font("caption").weight()))
        self.back_button = icon_button(self._icons, "back", self.tr("One step back"), size=16)
        self.hold_button = icon_button(self._icons, "pause", self.tr("Hold this step"), size=16)
        self.forward_button = icon_button(self._icons, "forward", self.tr("One step on"), size=16)
        for widget in (self._step_words, self.back_button, self.hold_button, self.forward_button):
            card.head.addWidget(widget)
        self.back_button.clicked.connect(self.on_back_clicked)
        self.hold_button.clicked.connect(self.on_hold_clicked)
        self.forward_button.clicked.connect(self.on_forward_clicked)
        card.body.addWidget(self.tree_view)
        return card

    def _build_table(self) -> QTableView:
        table = QTableView()
        table.setModel(self.devices)
        table.setShowGrid(False)
        table.setFont(self._theme.font("body"))
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setTabKeyNavigation(False)
        table.setWordWrap(False)
        table.setAccessibleName(self.tr("Devices"))
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(self._theme.px(ROW_PIXELS))
        heads = table.horizontalHeader()
        heads.setFont(self._theme.font("caption"))
        heads.setHighlightSections(False)
        heads.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        heads.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        return table

    def _build_device_card(self) -> Card:
        card = Card(self._theme, self.tr("Devices"))
        self.refresh_button = icon_button(self._icons, "refresh", self.tr("Look for devices again"), size=16)
        self.refresh_button.clicked.connect(self.refresh_clicked)
        card.head.addWidget(self.refresh_button)
        card.body.addWidget(self._device_problem)
        card.body.addWidget(self.device_table)
        return card

    def show_devices(self, devices: Sequence[Device], problem: str) -> None:
        """The list as the engine gives it, or the sentence that says why there is none."""
        self._device_problem.setText(problem)
        self._device_problem.setVisible(bool(problem))
        self.devices.show_devices(devices)
        n_rows = max(1, self.devices.rowCount())
        head_height = self.device_table.horizontalHeader().sizeHint().height()
        self.device_table.setFixedHeight(head_height + n_rows * self._theme.px(ROW_PIXELS) + 2)

    @Slot()
    def on_pair_changed(self) -> None:
        pair = self._pair_state.pair if self._pair_state.phase is Phase.LOADED else None
        self.memory_bar.show_use(pair.memory if pair else None)
        self.devices.mark_in_use(pair.device_name if pair else "")
        if pair is not None:
            words = f"{pair.device_name}, {pair.device_description}" if pair.device_description else pair.device_name
            self._state_words.setText(words)
        else:
            self._state_words.setText(self.tr("Nothing is loaded"))

    # ---- the tree of a step

    @Slot()
    def on_hold_clicked(self) -> None:
        if self._held:
            self._held = []
        else:
            self._held = list(self._figures.trees)
            self._held_at = len(self._held) - 1
        self._show_held()

    @Slot()
    def on_back_clicked(self) -> None:
        if not self._held:
            self._held = list(self._figures.trees)
            self._held_at = len(self._held) - 1
        self._held_at = max(0, self._held_at - 1)
        self._show_held()

    @Slot()
    def on_forward_clicked(self) -> None:
        self._held_at = min(len(self._held) - 1, self._held_at + 1)
        self._show_held()

    def _show_held(self) -> None:
        words = self.tr("Go on live") if self._held else self.tr("Hold this step")
        self._icons.put(self.hold_button, "play" if self._held else "pause", "muted", checked="accent_text", size=16)
        self.hold_button.setToolTip(words)
        self.hold_button.setAccessibleName(words)
        self._repaint()

    @Slot()
    def _repaint(self) -> None:
        if not self.isVisible():
            return
        trees = self._figures.trees
        if self._held:
            self._show_tree(self._held[self._held_at])
        else:
            self._show_tree(trees[-1] if trees else None)
        self.back_button.setEnabled(self._held_at > 0 if self._held else len(trees) > 1)
        self.forward_button.setEnabled(bool(self._held) and self._held_at < len(self._held) - 1)
        self.hold_button.setEnabled(bool(self._held or trees))

    def _show_tree(self, shown: ShownTree | None) -> None:
        if shown is self._shown:
            return
        self._shown = shown
        self.tree_view.show_tree(shown.tree if shown else None)
        if shown is None:
            self._step_words.setText("")
            return
        self._step_words.setText(
            self.tr("step {0}: {1} of {2} accepted").format(
                numbers.count(shown.step_index + 1),
                numbers.count(max(0, len(shown.tree.accepted_rows) - 1)),
                numbers.count(len(shown.tree.parents) - 1),
            )
        )
