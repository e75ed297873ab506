"""What the engine does now: numbers, acceptance length, the tree of a step, memory over time."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QGridLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.engine.acceptance_plot import AcceptancePlot
from dflash_desktop.ui.engine.figures_row import FiguresRow
from dflash_desktop.ui.engine.live_figures import MEAN_STEPS, LiveFigures
from dflash_desktop.ui.engine.memory_plot import MemoryPlot
from dflash_desktop.ui.engine.memory_sampler import Watched
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.engine.parts_bar import PartsBar
from dflash_desktop.ui.engine.step_card import StepCard
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XL, L, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import Card, label

PLOT_ROW, TREE_ROW, MEMORY_ROW = 216, 330, 230


class LiveView(QWidget):
    """Reads LiveFigures and PairState at its own pace."""

    def __init__(
        self,
        theme: Theme,
        icons: Icons,
        pair_state: PairState,
        figures: LiveFigures,
        read_device: Callable[[str], Device] | None,
    ) -> None:
        super().__init__()
        self._pair_state = pair_state
        self.setProperty("kind", "page")
        self.figures_row = FiguresRow(theme, figures)
        self.acceptance_plot = AcceptancePlot(theme, figures)
        self.step_card = StepCard(theme, icons, figures, pair_state.token_text)
        self.memory_plot = MemoryPlot(theme, read_device)
        self.memory_bar = PartsBar(theme)
        plot_card = Card(theme, self.tr("Acceptance length"))
        words = self.tr("tokens per step; line: mean of {0}").format(MEAN_STEPS)
        plot_card.head.addWidget(label(theme, words, "caption", tone="muted"))
        plot_card.body.addWidget(self.acceptance_plot)
        memory_card = Card(theme, self.tr("Memory by part"))
        memory_card.body.addWidget(self.memory_bar)
        memory_card.body.addStretch(1)
        over_time_card = Card(theme, self.tr("Memory over time"))
        over_time_card.body.addWidget(self.memory_plot)
        grid = QGridLayout(self)
        grid.setContentsMargins(XL, L, XL, XL)
        grid.setSpacing(M)
        grid.addWidget(self.figures_row, 0, 0, 1, 2)
        grid.addWidget(plot_card, 1, 0, 1, 2)
        grid.addWidget(self.step_card, 2, 0, 1, 2)
        grid.addWidget(memory_card, 3, 0)
        grid.addWidget(over_time_card, 3, 1)
        for row, height in ((1, PLOT_ROW), (2, TREE_ROW), (3, MEMORY_ROW)):
            grid.setRowMinimumHeight(row, theme.px(height))
        for row, stretch in ((1, 3), (2, 4), (3, 2)):
            grid.setRowStretch(row, stretch)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        pair_state.changed.connect(self.on_pair_changed)
        self.on_pair_changed()

    @Slot()
    def on_pair_changed(self) -> None:
        pair = self._pair_state.pair if self._pair_state.phase is Phase.LOADED else None
        self.memory_bar.show_use(pair.memory if pair else None)
        if pair is None:
            self.memory_plot.watch(Watched())
            return
        name = "" if pair.device_name.upper() == "CPU" else pair.device_name
        self.memory_plot.watch(Watched(name, pair.memory))
