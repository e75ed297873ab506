"""The engine page: what it does now, and how the pair is loaded and on what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QProgressBar, QScrollArea, QStackedWidget, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.engine.live_figures import LiveFigures
from dflash_desktop.ui.engine.live_view import LiveView
from dflash_desktop.ui.engine.load_desk import LoadDesk
from dflash_desktop.ui.engine.load_view import LoadView
from dflash_desktop.ui.engine.pair_state import PairState, Phase
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.pace import NUMBERS_MS
from dflash_desktop.ui.kit.page_frame import PageHead, frame_page
from dflash_desktop.ui.kit.palette import M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import ElidedLabel, SegmentedControl, label

PROGRESS_STEPS = 1000


class EnginePage(QWidget):
    """Two views under one head: live, and loading."""

    refresh_clicked = Signal()
    open_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        icons: Icons,
        pair_state: PairState,
        figures: LiveFigures,
        desk: LoadDesk,
        read_device: Callable[[str], Device] | None = None,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._pair_state = pair_state
        self._figures = figures
        self.live = LiveView(theme, icons, pair_state, figures, read_device)
        self.loading = LoadView(theme, icons, pair_state, desk)
        self.loading.refresh_clicked.connect(self.refresh_clicked)
        self.loading.open_wanted.connect(self.open_wanted)
        self.switch = SegmentedControl(
            theme, [("live", self.tr("Live")), ("load", self.tr("Model and devices"))], self.tr("What to show")
        )
        self.switch.chosen.connect(self.show_view)
        self._views = QStackedWidget()
        self._areas = {"live": _scrolling(self.live), "load": _scrolling(self.loading)}
        for area in self._areas.values():
            self._views.addWidget(area)
        self._build()
        pair_state.changed.connect(self.on_pair_changed)
        self._timer = QTimer(self)
        self._timer.setInterval(NUMBERS_MS)
        self._timer.timeout.connect(self._say_prefill)
        self._timer.start()
        self.on_pair_changed()

    def _build(self) -> None:
        self._state_words = ElidedLabel(self._theme, "body", tone="muted")
        self.prefill_words = label(self._theme, "", "caption", tone="muted")
        self.prefill_bar = QProgressBar()
        self.prefill_bar.setRange(0, PROGRESS_STEPS)
        self.prefill_bar.setTextVisible(False)
        self.prefill_bar.setFixedWidth(self._theme.px(140))
        self.prefill_bar.setAccessibleName(self.tr("Reading the prompt"))
        self.prefill_words.hide()
        self.prefill_bar.hide()
        head = PageHead(self._theme, self.tr("Engine"))
        head.row.addSpacing(M)
        head.row.addWidget(self._state_words, 1)
        head.row.addWidget(self.prefill_words)
        head.row.addSpacing(S)
        head.row.addWidget(self.prefill_bar)
        head.row.addSpacing(M)
        head.row.addWidget(self.switch)
        frame_page(self, head, self._views)

    def show_devices(self, devices: Sequence[Device], problem: str) -> None:
        self.loading.show_devices(devices, problem)

    @Slot(object)
    def show_view(self, key: str) -> None:
        """live or load"""
        self.switch.choose(key)
        self._views.setCurrentWidget(self._areas[key])

    @Slot()
    def on_pair_changed(self) -> None:
        pair = self._pair_state.pair if self._pair_state.phase is Phase.LOADED else None
        if pair is None:
            self._state_words.setText(self.tr("Nothing is loaded"))
        elif pair.device_description:
            self._state_words.setText(f"{pair.device_name}, {pair.device_description}")
        else:
            self._state_words.setText(pair.device_name)

    @Slot()
    def _say_prefill(self) -> None:
        figures = self._figures
        is_shown = figures.is_prefilling
        self.prefill_words.setVisible(is_shown)
        self.prefill_bar.setVisible(is_shown)
        if not is_shown or not self.isVisible():
            return
        self.prefill_bar.setValue(round(PROGRESS_STEPS * figures.n_prefilled / max(1, figures.n_prefill_total)))
        words = self.tr("Reading the prompt: {0} of {1}").format(
            numbers.count(figures.n_prefilled), numbers.tokens(figures.n_prefill_total)
        )
        left = numbers.remaining(figures.prefill_left_s) if figures.prefill_left_s is not None else ""
        self.prefill_words.setText(self.tr("{0}, {1}").format(words, left) if left else words)


def _scrolling(view: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(view)
    return area
