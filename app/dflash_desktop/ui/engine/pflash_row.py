"""PFlash in the load panel: off, auto or always, how much is kept, and, under More, which scorer and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QHBoxLayout, QSlider, QSpinBox, QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.pflash.options import DEFAULT_CURVE, PflashMode
from dflash_desktop.engine.pflash.selection import Curve
from dflash_desktop.ui.chats.calm_line_edit import CalmLineEdit
from dflash_desktop.ui.engine.pflash_choice import PflashChoice, parsed_curve
from dflash_desktop.ui.engine.scorer_box import ScorerBox, ScorerFile, ScorerFinder
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import XS, M, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import SegmentedControl, label, push_button, style_spin

LEAST_PERCENT = 2
MODES: dict[str, PflashMode] = {"off": "off", "auto": "auto", "always": "always"}


class PflashRow(QWidget):
    """`changed` comes for what the person does."""

    changed = Signal()

    def __init__(self, theme: Theme, *, has_built_in: bool, finder: ScorerFinder | None = None) -> None:
        super().__init__()
        self._theme = theme
        self._choice = PflashChoice()
        self.finder = finder
        choices = [("off", self.tr("Off")), ("auto", self.tr("Auto")), ("always", self.tr("Always"))]
        self.mode = SegmentedControl(theme, choices, self.tr("PFlash"))
        self.threshold = self._threshold_spin()
        self.keep = QSlider(Qt.Orientation.Horizontal)
        self.keep.setRange(LEAST_PERCENT, 100)
        self.keep.setAccessibleName(self.tr("Share that is kept"))
        self._keep_words = label(theme, "", "caption", tone="muted")
        self.more_button = push_button(theme, self.tr("More"), "link")
        self.more_button.setCheckable(True)
        self.curve = CalmLineEdit(theme, self.tr("Keep curve"))
        self.curve.setToolTip(
            self.tr(
                "One ratio such as 0.2, or points TOKENS:RATIO, ascending: 16384:0.3,65536:0.25. Between points the "
                "ratio moves evenly. Empty: the usual curve."
            )
        )
        self._curve_problem = label(theme, "", "caption", tone="bad", wraps=True)
        self._curve_problem.hide()
        self.scorer = ScorerBox(theme, has_built_in=has_built_in)
        self.scorer.setAccessibleName(self.tr("Scorer"))
        self._scorer_problem = label(theme, "", "caption", tone="bad", wraps=True)
        self._scorer_problem.hide()
        self.device = QComboBox()
        self.device.setFont(theme.font("body"))
        self.device.setMinimumHeight(theme.px(30))
        self.device.setAccessibleName(self.tr("Device of the scorer"))
        self.device.addItem(self.tr("as the target"), "")
        self.keeps = self._check(self.tr("Keep the scorer loaded"))
        self.keeps.setToolTip(
            self.tr("Off: it is loaded for a prompt and released after it. On: the next prompt starts sooner.")
        )
        self.asks = self._check(self.tr("Show what is kept before sending"))
        self._build()
        self._connect()
        self.show_choice(PflashChoice())

    def _build(self) -> None:
        words = self.tr(
            "A small model chooses what of a long prompt is read. Faster, and something may be missed. The system "
            "prompt and your own words stay; requests with tools are never shortened."
        )
        self._more = QWidget()
        grid = QGridLayout(self._more)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(M)
        grid.setVerticalSpacing(XS)
        rows = (
            (self.tr("Keep curve"), self.curve, self._curve_problem),
            (self.tr("Scorer"), self.scorer, self._scorer_problem),
            (self.tr("Device of the scorer"), self.device, None),
        )
        for place, (name, field, problem) in enumerate(rows):
            title = label(self._theme, name, "caption", tone="muted")
            title.setBuddy(field)
            grid.addWidget(title, 2 * place, 0)
            grid.addWidget(field, 2 * place, 1)
            if problem is not None:
                grid.addWidget(problem, 2 * place + 1, 1)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self.keeps, 6, 0, 1, 2)
        self._details = QWidget()
        column = QVBoxLayout(self._details)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(S)
        self._threshold_title = label(self._theme, self.tr("From"), "caption", tone="muted")
        self._threshold_title.setBuddy(self.threshold)
        keep_title = label(self._theme, self.tr("Keep"), "caption", tone="muted")
        keep_title.setBuddy(self.keep)
        line = QHBoxLayout()
        line.setSpacing(M)
        line.addWidget(self._threshold_title)
        line.addWidget(self.threshold)
        line.addStretch(1)
        keep_line = QHBoxLayout()
        keep_line.setSpacing(M)
        keep_line.addWidget(keep_title)
        keep_line.addWidget(self.keep, 1)
        keep_line.addWidget(self._keep_words)
        column.addLayout(line)
        column.addLayout(keep_line)
        column.addWidget(self.asks)
        column.addWidget(self.more_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._more)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(S)
        whole.addWidget(self.mode)
        whole.addWidget(label(self._theme, words, "caption", tone="muted", wraps=True))
        whole.addWidget(self._details)
        self._more.hide()

    def _connect(self) -> None:
        self.mode.chosen.connect(self.on_edited)
        self.threshold.valueChanged.connect(self.on_edited)
        self.keep.valueChanged.connect(self.on_keep_moved)
        self.more_button.toggled.connect(self.on_more_toggled)
        self.curve.editingFinished.connect(self.on_curve_edited)
        self.scorer.chosen.connect(self.on_scorer_chosen)
        self.device.activated.connect(self.on_edited)
        self.keeps.toggled.connect(self.on_edited)
        self.asks.toggled.connect(self.on_edited)
        if self.finder is not None:
            self.scorer.file_wanted.connect(self.finder.ask)
            self.finder.found.connect(self.on_scorer_found)
            self.finder.refused.connect(self.on_scorer_refused)

    # ---- what it shows and says

    def choice(self) -> PflashChoice:
        return self._choice

    def show_choice(self, choice: PflashChoice) -> None:
        """Show it without telling anybody."""
        self._choice = choice
        with (
            QSignalBlocker(self.threshold),
            QSignalBlocker(self.keep),
            QSignalBlocker(self.keeps),
            QSignalBlocker(self.asks),
        ):
            self.mode.choose(choice.mode)
            self.threshold.setValue(choice.threshold_tokens)
            self.keep.setValue(round(100 * choice.ratio(choice.threshold_tokens)))
            self.keeps.setChecked(choice.keep_loaded)
            self.asks.setChecked(choice.asks_first)
        if not self.curve.hasFocus():
            self.curve.setText(choice.curve if choice.curve != DEFAULT_CURVE else "")
            self.curve.setPlaceholderText(DEFAULT_CURVE)
        if self.scorer.scorer() != choice.scorer:
            self.scorer.show_scorer(choice.scorer)
        self.device.setCurrentIndex(max(0, self.device.findData(choice.device or "")))
        self._details.setVisible(choice.mode != "off")
        self._threshold_title.setVisible(choice.mode == "auto")
        self.threshold.setVisible(choice.mode == "auto")
        self._say_keep()

    def show_devices(self, devices: Sequence[Device]) -> None:
        wanted = self._choice.device or ""
        while self.device.count() > 1:
            self.device.removeItem(1)
        for device in devices:
            self.device.addItem(device.name, device.id)
        if wanted and self.device.findData(wanted) < 0:
            self.device.addItem(wanted, wanted)
        self.device.setCurrentIndex(max(0, self.device.findData(wanted)))

    def show_scorers(self, files: Sequence[ScorerFile]) -> None:
        self.scorer.show_files(files)

    def _say_keep(self) -> None:
        points = parsed_curve(self._choice.curve).points
        if len(points) == 1:
            words = numbers.percent(points[0][1])
        else:
            words = self.tr("{0} to {1}, by length").format(
                numbers.percent(points[0][1]), numbers.percent(points[-1][1])
            )
        self._keep_words.setText(words)

    # ---- what the person does

    def _take(self, choice: PflashChoice) -> None:
        if choice != self._choice:
            self.show_choice(choice)
            self.changed.emit()

    @Slot()
    def on_edited(self) -> None:
        self._take(
            replace(
                self._choice,
                mode=MODES[self.mode.choice()],
                threshold_tokens=self.threshold.value(),
                device=self.device.currentData() or None,
                keep_loaded=self.keeps.isChecked(),
                asks_first=self.asks.isChecked(),
            )
        )

    @Slot(int)
    def on_keep_moved(self, percent: int) -> None:
        """One ratio for all lengths, in place of a curve."""
        self._curve_problem.hide()
        self._take(replace(self._choice, curve=f"{percent / 100:.2f}"))

    @Slot()
    def on_curve_edited(self) -> None:
        text = self.curve.text().strip() or DEFAULT_CURVE
        try:
            Curve.parse(text)
        except ValueError as error:
            self._curve_problem.setText(self.tr("This curve cannot be used: {0}.").format(error))
            self._curve_problem.show()
            return
        self._curve_problem.hide()
        self._take(replace(self._choice, curve=text))

    @Slot()
    def on_scorer_chosen(self) -> None:
        self._scorer_problem.hide()
        self._take(replace(self._choice, scorer=self.scorer.scorer()))

    @Slot(object)
    def on_scorer_found(self, path: object) -> None:
        self._scorer_problem.hide()
        self._take(replace(self._choice, scorer=path))  # type: ignore[arg-type]

    @Slot(object)
    def on_scorer_refused(self, words: str) -> None:
        self._scorer_problem.setText(words)
        self._scorer_problem.show()

    @Slot(bool)
    def on_more_toggled(self, is_on: bool) -> None:
        self._more.setVisible(is_on)
        words = self.tr("Less") if is_on else self.tr("More")
        self.more_button.setText(words)
        self.more_button.setAccessibleName(words)

    # ---- parts

    def _threshold_spin(self) -> QSpinBox:
        spin = QSpinBox()
        spin.setRange(512, 1 << 22)
        spin.setSingleStep(1024)
        spin.setGroupSeparatorShown(True)
        spin.setKeyboardTracking(False)
        spin.setSuffix(self.tr(" tokens"))
        spin.setFont(self._theme.font("body"))
        spin.setMinimumHeight(self._theme.px(30))
        spin.setFixedWidth(self._theme.px(150))
        spin.setAccessibleName(self.tr("Shorten from so many tokens on"))
        spin.setToolTip(self.tr("What may be left out of a conversation, in tokens: below this it is read whole."))
        style_spin(spin)
        return spin

    def _check(self, words: str) -> QCheckBox:
        box = QCheckBox(words)
        box.setFont(self._theme.font("body"))
        box.setAccessibleName(words)
        return box
