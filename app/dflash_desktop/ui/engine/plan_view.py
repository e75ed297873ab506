"""What a load would take, judged: the parts against what is free, and buttons that make it fit where it does not."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.ui.engine.load_fit import LoadFit, Verdict, Way
from dflash_desktop.ui.engine.parts_bar import SCORER, SURPLUS, Part, PartsBar, pair_parts
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.palette import XS, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, label, push_button, set_tone


class PlanView(QWidget):
    """Shows a LoadFit, or why there is none."""

    way_chosen = Signal(object)  # Way

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.fit: LoadFit | None = None
        self._verdict = label(theme, "", "heading", weight=DEMI, wraps=True)
        self._words = label(theme, "", "caption", tone="muted", wraps=True)
        self.bar = PartsBar(theme)
        self._scorer = label(theme, "", "caption", wraps=True)
        self._scorer.hide()
        self._measured = label(theme, "", "caption", tone="muted", wraps=True)
        self._ways = QVBoxLayout()
        self._ways.setSpacing(XS)
        self._buttons: list[QWidget] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(S)
        column.addWidget(self._verdict)
        column.addWidget(self._words)
        column.addLayout(self._ways)
        column.addWidget(self.bar)
        column.addWidget(self._scorer)
        column.addWidget(self._measured)
        column.addStretch(1)
        self._measured.hide()
        self.show_nothing(self.tr("Choose a model to see what it takes."))

    def verdict_text(self) -> str:
        return self._verdict.text()

    def way_buttons(self) -> list[QWidget]:
        return list(self._buttons)

    def show_nothing(self, words: str) -> None:
        """No plan, and why."""
        self.fit = None
        self._verdict.setText("")
        self._verdict.hide()
        self._words.setText(words)
        self._show_ways(())
        self.bar.hide()
        self._scorer.hide()

    def _say_scorer(self, fit: LoadFit) -> None:
        """Where the scorer computes if not here, or why it will not: prompts go in whole then."""
        scorer, words, tone = fit.scorer, "", "muted"
        if fit.scorer_problem:
            words, tone = self.tr("Prompts will go in whole: {0}").format(fit.scorer_problem), "bad"
        elif scorer is not None and not fit.scorer_fits:
            words = self.tr("The scorer {0} needs {1}, more than {2} has beside the pair: prompts will go in whole.")
            words, tone = words.format(scorer.name, numbers.memory(scorer.total_bytes), scorer.device_name), "bad"
        elif scorer is not None and not scorer.is_beside_pair:
            words = self.tr("The scorer {0} takes {1} on {2}.")
            words = words.format(scorer.name, numbers.memory(scorer.total_bytes), scorer.device_name)
        self._scorer.setText(words)
        set_tone(self._scorer, tone)
        self._scorer.setVisible(bool(words))

    def show_problem(self, words: str) -> None:
        """What cannot be loaded at all, in the engine's own words."""
        self.show_nothing(words)
        self._verdict.setText(self.tr("Cannot be loaded"))
        set_tone(self._verdict, "bad")
        self._verdict.show()

    def show_fit(self, fit: LoadFit, device: Device | None) -> None:
        """`device`: the one that was planned for, for its whole memory and who uses it."""
        self.fit = fit
        verdict, tone = {
            Verdict.FITS: (self.tr("Fits"), "good"),
            Verdict.TIGHT: (self.tr("Fits, but it is tight"), "flash"),
            Verdict.TOO_BIG: (self.tr("Does not fit"), "bad"),
        }[fit.verdict]
        self._verdict.setText(verdict)
        set_tone(self._verdict, tone)
        self._verdict.show()
        words = self.tr("{0} needed, {1} of {2} free on {3}; {4} are kept for the system.").format(
            numbers.memory(fit.needed_bytes + fit.scorer_bytes),
            numbers.memory(fit.free_bytes),
            numbers.memory(device.total_bytes) if device is not None else numbers.DASH,
            fit.estimate.device_name,
            numbers.memory(fit.estimate.reserve_bytes),
        )
        if fit.estimate.draft_device_name:
            draft = self.tr("The draft takes {0} of {1} free on {2}.").format(
                numbers.memory(fit.estimate.draft_total_bytes),
                numbers.memory(fit.estimate.draft_free_bytes),
                fit.estimate.draft_device_name,
            )
            words = f"{words} {draft}"
        if fit.freed_bytes:
            freed = self.tr("The model that is loaded now goes first and frees {0}.")
            words = f"{words} {freed.format(numbers.memory(fit.freed_bytes))}"
        self._words.setText(words)
        self._show_ways(fit.ways)
        parts = pair_parts(fit.estimate)
        if fit.surplus_bytes:
            parts.append(Part(self.tr("Learned at the last load"), fit.surplus_bytes, SURPLUS))
        scorer = fit.scorer
        if scorer is not None and scorer.is_beside_pair:
            kept = scorer.residency == "kept"
            name = self.tr("PFlash's scorer") if kept else self.tr("PFlash's scorer, while it reads")
            parts.append(Part(name, scorer.total_bytes, SCORER))
        self._say_scorer(fit)
        capacity = device.total_bytes if device is not None else 0
        self.bar.show_parts(parts, capacity_bytes=capacity, others_bytes=max(0, capacity - fit.free_bytes))
        self.bar.show()

    def show_measured(self, planned_bytes: int, measured_bytes: int) -> None:
        """What the last load really took; zeros: it was never measured."""
        self._measured.setVisible(planned_bytes > 0 and measured_bytes > 0)
        if planned_bytes > 0 and measured_bytes > 0:
            share = (measured_bytes - planned_bytes) / planned_bytes
            self._measured.setText(
                self.tr("Last load: {0} planned, {1} measured ({2}).").format(
                    numbers.memory(planned_bytes), numbers.memory(measured_bytes), numbers.signed_percent(share)
                )
            )

    def _show_ways(self, ways: tuple[Way, ...]) -> None:
        for button in self._buttons:
            self._ways.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = []
        for way in ways:
            button = push_button(self._theme, self._way_words(way), "choice")
            button.clicked.connect(lambda _checked=False, chosen=way: self.way_chosen.emit(chosen))
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            self._ways.addWidget(button)
            self._buttons.append(button)

    def _way_words(self, way: Way) -> str:
        match way.kind:
            case "context":
                return self.tr("Context of {0}").format(numbers.tokens(way.options.context_tokens))
            case "kv":
                return self.tr("KV cache as {0}: smaller, a little slower").format(way.options.kv_k)
            case "no_draft":
                return self.tr("Without the draft: same answers, slower")
            case "device":
                return self.tr("On {0} instead").format(way.device_name)
