"""The bar at the top of every page: which pair is loaded, what its draft does, load and unload."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from dflash_desktop.ui.engine.pair_state import PairState, Phase, StarterPair
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.palette import XL, XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, ElidedLabel, SegmentedControl, chip, icon_button, label, push_button

PROGRESS_STEPS = 1000
WIDE = 1060


class ModelBar(QWidget):
    """Shows PairState and passes on what the person wants."""

    open_wanted = Signal()
    start_wanted = Signal()
    adjust_wanted = Signal()
    draft_mode_chosen = Signal(object)

    def __init__(self, theme: Theme, icons: Icons, pair_state: PairState, starter: StarterPair | None) -> None:
        super().__init__()
        self._theme = theme
        self._pair_state = pair_state
        self._starter = starter
        self._is_start_offered = True
        self.setProperty("kind", "bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Model bar"))
        self._target = ElidedLabel(theme, "heading", weight=DEMI)
        self._draft = ElidedLabel(theme, "body", tone="muted")
        self._chips = [chip(theme) for _ in range(3)]
        self._sentence = ElidedLabel(theme, "caption", tone="muted")
        self._bar = QProgressBar()
        self._bar.setRange(0, PROGRESS_STEPS)
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(theme.px(220))
        self._bar.setAccessibleName(self.tr("Load progress"))
        truth = self.tr("Answers are the target's own; the draft only changes speed.")
        self.draft_switch = SegmentedControl(
            theme, [("auto", self.tr("Auto")), ("on", self.tr("On")), ("off", self.tr("Off"))], self.tr("Draft")
        )
        self.draft_switch.setToolTip(truth)
        self.draft_switch.setAccessibleDescription(truth)
        self.draft_switch.choose(pair_state.draft_mode)
        self._draft_label = label(theme, self.tr("Draft"), "body", tone="muted")
        self._draft_label.setToolTip(truth)
        self.cancel_button = push_button(theme, self.tr("Cancel"), "link")
        self.start_button = push_button(theme, self.tr("Load the built-in model"), "secondary")
        self.open_button = push_button(theme, self.tr("Open model…"), "secondary")
        self.open_button.setToolTip(self.tr("Open your own GGUF files (Ctrl+O)"))
        icons.put(self.open_button, "open", "muted", size=16)
        self.adjust_button = icon_button(icons, "settings", self.tr("How the model is loaded: device, context, memory"))
        self.unload_button = icon_button(icons, "eject", self.tr("Unload the model and free its memory"))
        self._build()
        self.cancel_button.clicked.connect(pair_state.cancel_load)
        self.start_button.clicked.connect(self.start_wanted)
        self.open_button.clicked.connect(self.open_wanted)
        self.adjust_button.clicked.connect(self.adjust_wanted)
        self.unload_button.clicked.connect(pair_state.unload)
        self.draft_switch.chosen.connect(self.draft_mode_chosen)
        pair_state.changed.connect(self.on_pair_changed)
        pair_state.progressed.connect(self.on_load_progressed)
        self.on_pair_changed()

    def _build(self) -> None:
        names = QHBoxLayout()
        names.setSpacing(S)
        names.addWidget(self._target, 0, Qt.AlignmentFlag.AlignBaseline)
        names.addWidget(self._draft, 0, Qt.AlignmentFlag.AlignBaseline)
        for part in self._chips:
            names.addWidget(part, 0, Qt.AlignmentFlag.AlignVCenter)
        names.addStretch(1)
        below = QHBoxLayout()
        below.setSpacing(M)
        below.addWidget(self._bar)
        below.addWidget(self._sentence)
        below.addWidget(self.cancel_button)
        below.addStretch(1)
        left = QVBoxLayout()
        left.setSpacing(XS)
        left.addStretch(1)
        left.addLayout(names)
        left.addLayout(below)
        left.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(XL, S, M, S)
        row.setSpacing(S)
        row.addLayout(left, 1)
        row.addSpacing(M)
        row.addWidget(self._draft_label)
        row.addWidget(self.draft_switch)
        row.addSpacing(S)
        row.addWidget(self.start_button)
        row.addWidget(self.open_button)
        row.addWidget(self.adjust_button)
        row.addWidget(self.unload_button)
        self._target.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._draft.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(self._theme.px(72))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # Where room is short, names matter more than the words on a button.
        is_wide = self.width() >= self._theme.px(WIDE)
        words = f" {self.tr('Open model…')}" if is_wide else ""  # the space: Qt leaves too little beside the icon
        if self.open_button.text() != words:
            self.open_button.setText(words)

    def names(self) -> str:
        """What the bar says about the pair, for tests and screen readers."""
        return f"{self._target.whole_text()} {self._draft.whole_text()}".strip()

    def sentence(self) -> str:
        return self._sentence.whole_text()

    @Slot()
    def on_pair_changed(self) -> None:
        state = self._pair_state
        self.draft_switch.choose(state.draft_mode)
        is_loading = state.phase is Phase.LOADING
        pair = state.pair if state.phase in (Phase.LOADED, Phase.UNLOADING) else None
        self._bar.setVisible(is_loading)
        self.cancel_button.setVisible(is_loading)
        self.adjust_button.setVisible(pair is not None)
        self.unload_button.setVisible(pair is not None)
        self.unload_button.setEnabled(state.phase is Phase.LOADED)
        self._show_start()
        for part in self._chips:
            part.setVisible(pair is not None)
        if pair is not None:
            self._target.setText(state.title())
            self._draft.setText(self.tr("+ {0}").format(pair.draft_name or "") if pair.draft else "")
            facts = (
                pair.target_quantization.upper(),
                pair.device_name,
                self.tr("{0} context").format(numbers.count(pair.context_tokens)),
            )
            tips = (self.tr("Quantization of the target"), pair.device_description, self.tr("Tokens that fit at once"))
            for part, text, tip in zip(self._chips, facts, tips, strict=True):
                part.setText(text)
                part.setToolTip(tip)
            self._sentence.setText(state.draft_sentence())
        elif is_loading:
            self._target.setText(state.title())
            self._draft.setText("")
            self.on_load_progressed()
        else:
            self._target.setText(self.tr("No model loaded"))
            self._draft.setText("")
            self._sentence.setText(self.tr("Load the built-in model, or open a GGUF file of your own."))
        self._draft.setVisible(bool(self._draft.whole_text()))

    def offer_start(self, *, is_offered: bool) -> None:
        """Whether the bar has a button for the built-in pair; not where the page below has a bigger one."""
        self._is_start_offered = is_offered
        self._show_start()

    def _show_start(self) -> None:
        is_empty = self._pair_state.phase is Phase.EMPTY
        self.start_button.setVisible(is_empty and self._is_start_offered and self._starter is not None)

    @Slot()
    def on_load_progressed(self) -> None:
        share = self._pair_state.loading_share()
        self._bar.setValue(round((share or 0.0) * PROGRESS_STEPS))
        self._sentence.setText(
            self.tr("Loading") if share is None else self.tr("Loading, {0}").format(numbers.percent(share))
        )
