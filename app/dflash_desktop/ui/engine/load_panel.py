"""The load panel: device, context, KV types, drafting and threads, beside the memory that they take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QSpinBox, QVBoxLayout, QWidget

from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import PairInfo
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import DraftOptions, KvType, LoadOptions
from dflash_desktop.settings.pair_memory import PairLoad
from dflash_desktop.ui.engine.context_row import ContextRow
from dflash_desktop.ui.engine.device_picker import DevicePicker
from dflash_desktop.ui.engine.draft_place import DraftPlace
from dflash_desktop.ui.engine.draft_row import DraftRow
from dflash_desktop.ui.engine.kv_row import KvRow
from dflash_desktop.ui.engine.load_fit import USUAL_CONTEXT, LoadFit, Verdict, Wanted, Way, freed_by
from dflash_desktop.ui.engine.load_planner import LoadPlanner
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.engine.pflash_choice import PflashChoice, choice_from
from dflash_desktop.ui.engine.pflash_row import PflashRow
from dflash_desktop.ui.engine.plan_view import PlanView
from dflash_desktop.ui.engine.remembered import draft_options
from dflash_desktop.ui.engine.scorer_box import ScorerFinder
from dflash_desktop.ui.kit.palette import XL, XS, S
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import DEMI, label, style_spin

MOST_BLOCK = 64
"""What may be chosen until the draft's header was read."""


class LoadPanel(QWidget):
    """Knows one pair of files at a time. `changed` comes after every edit and every answer of the planner."""

    changed = Signal()
    draft_dropped = Signal()  # a way to fit goes without the draft
    drafting_changed = Signal(object)  # DraftOptions: counts from the next message on
    pflash_changed = Signal(object)  # PflashChoice: likewise

    def __init__(self, theme: Theme, planner: LoadPlanner | None, built_in_scorer: Path | None = None) -> None:
        super().__init__()
        self._built_in_scorer = built_in_scorer
        self._theme = theme
        self.planner = planner
        self._target: Path | None = None
        self._draft: Path | None = None
        self._remembered: PairLoad | None = None
        self._replaced: PairInfo | None = None
        self._facts: ModelFile | None = None
        self._default_context = 0
        self._is_edited = False  # since these files are shown
        self._devices: list[Device] = []
        self._has_context = False  # somebody, or the memory, said how large it shall be
        self.devices = DevicePicker(theme)
        self.context = ContextRow(theme)
        self.kv = KvRow(theme)
        self.drafting = DraftRow(theme)
        self.draft_place = DraftPlace(theme)
        finder = ScorerFinder(self, planner.inspect) if planner is not None else None
        self.pflash = PflashRow(theme, has_built_in=built_in_scorer is not None, finder=finder)
        self.threads = self._thread_spin()
        self.plan = PlanView(theme)
        self._build()
        self.context.show_tokens(USUAL_CONTEXT)
        self.devices.chosen.connect(self.on_device_chosen)
        self.context.changed.connect(self.on_context_edited)
        self.kv.changed.connect(self.on_edited)
        self.threads.valueChanged.connect(self.on_edited)
        self.drafting.changed.connect(self.on_drafting_edited)
        self.draft_place.changed.connect(self.on_edited)
        self.pflash.changed.connect(self.on_pflash_edited)
        self.plan.way_chosen.connect(self.on_way_chosen)
        if planner is not None:
            planner.facts_ready.connect(self.on_facts_ready)
            planner.fit_ready.connect(self.on_fit_ready)
            planner.draft_ready.connect(self.on_draft_ready)
            planner.refused.connect(self.on_refused)
            planner.values_ready.connect(self.kv.show_supported)

    def _build(self) -> None:
        left = QVBoxLayout()
        left.setSpacing(S)
        self._add(left, self.tr("Device"), self.devices)
        self._add(left, self.tr("Context"), self.context)
        self._add(left, self.tr("KV cache"), self.kv)
        self._add(left, self.tr("Threads of the processor"), self.threads)
        self._add(left, self.tr("Drafting"), self.drafting)
        left.addWidget(self.draft_place)
        self._add(left, self.tr("Long prompts (PFlash)"), self.pflash)
        left.addStretch(1)
        right = QVBoxLayout()
        right.setSpacing(S)
        right.addWidget(label(self._theme, self.tr("Memory"), weight=DEMI))
        right.addWidget(self.plan, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(XL)
        row.addLayout(left, 6)
        row.addLayout(right, 5)

    def _add(self, column: QVBoxLayout, name: str, field: QWidget) -> None:
        title = label(self._theme, name, weight=DEMI)
        title.setBuddy(field)
        column.addWidget(title)
        column.addWidget(field)
        column.addSpacing(XS)

    def _thread_spin(self) -> QSpinBox:
        spin = QSpinBox()
        spin.setRange(0, os.cpu_count() or 1)
        spin.setSpecialValueText(self.tr("automatic"))
        spin.setFont(self._theme.font("body"))
        spin.setMinimumHeight(self._theme.px(30))
        spin.setFixedWidth(self._theme.px(160))
        spin.setAccessibleName(self.tr("Threads of the processor"))
        style_spin(spin)
        return spin

    # ---- what is shown

    def show_devices(self, devices: Sequence[Device]) -> None:
        self.devices.show_devices(devices)
        self._devices = list(devices)
        self.draft_place.show_devices(devices, self.devices.device())
        self.pflash.show_devices(devices)
        self._ask()

    def show_replaced(self, pair: PairInfo | None) -> None:
        """The pair that a load would replace: its memory counts as free."""
        if pair != self._replaced:
            self._replaced = pair
            self._ask()

    def show_files(
        self, target: Path | None, draft: Path | None, remembered: PairLoad | None, default_context: int
    ) -> None:
        """Another pair. `remembered`: how it was last loaded; `default_context` 0: what fits, up to USUAL_CONTEXT."""
        is_new = target != self._target
        if draft != self._draft or is_new:
            self._look_at_draft(draft)
        self._target, self._draft = target, draft
        if is_new:
            self._facts = None
            self._is_edited = False
            self._remembered = remembered
            self._default_context = default_context
            self._show_remembered(remembered or PairLoad())
            self.kv.forget_supported()
            self.context.show_largest(None)
        if target is None:
            self.plan.show_nothing(self.tr("Choose a model to see what it takes."))
            if self.planner is not None:
                self.planner.forget()
        elif self.planner is None:
            self.plan.show_nothing(self.tr("The engine cannot be asked what this takes."))
        elif is_new:
            self.plan.show_nothing(self.tr("Reading the file…"))
            self.planner.look_at(target)
        else:
            self._ask()

    def show_loaded(self, pair: PairInfo) -> None:
        """The pair of these files is loaded: with this context, which the engine may have chosen."""
        if pair.target == self._target and not self._is_edited:
            self._has_context = True
            self.context.show_tokens(pair.context_tokens)
            self._ask()

    def show_drafting(self, options: DraftOptions) -> None:
        """What is in force now."""
        self.drafting.show_options(options)

    def show_pflash(self, choice: PflashChoice) -> None:
        """What is in force now."""
        if choice != self.pflash.choice():
            self.pflash.show_choice(choice)
            self._ask()

    def _look_at_draft(self, draft: Path | None) -> None:
        self.drafting.show_block_size(0 if draft is None else MOST_BLOCK)
        if draft is not None and self.planner is not None:
            self.planner.look_at_draft(draft)

    @Slot(object)
    def on_draft_ready(self, facts: ModelFile) -> None:
        if facts.path == self._draft:
            self.drafting.show_block_size(facts.block_size)

    def _show_remembered(self, load: PairLoad) -> None:
        self.devices.want(load.device)
        self.draft_place.show_devices(self._devices, self.devices.device())
        self.draft_place.want(load.draft_device)
        self._has_context = load.context_tokens > 0
        self.context.show_tokens(load.context_tokens or USUAL_CONTEXT)
        self.kv.show_types(load.kv_k, load.kv_v)
        self.kv.show_device(self.devices.device())
        with QSignalBlocker(self.threads):
            self.threads.setValue(load.n_threads)
        self.drafting.show_options(draft_options(load))
        self.pflash.show_choice(choice_from(load))
        self.plan.show_measured(load.planned_bytes, load.measured_bytes)

    # ---- what it says

    def files(self) -> PairFiles | None:
        """What Load would load; None while there is no target, or no device to load it on."""
        if self._target is None or (self.devices.rows() and self.devices.device() is None):
            return None
        return PairFiles(self._target, self._draft, self.options(), self.drafting.options(), self.pflash.choice())

    def options(self) -> LoadOptions:
        device = self.devices.device()
        kv_k, kv_v = self.kv.types()
        # Without a plan the engine chooses the context: better than a number that nobody checked.
        tokens = self.context.tokens() if self._facts is not None or self._has_context else 0
        return LoadOptions(
            device=device.id if device is not None else None,
            draft_device=self.draft_place.device() if self._draft is not None else None,
            context_tokens=tokens,
            kv_k=kv_k,
            kv_v=kv_v,
            n_threads=self.threads.value(),
        )

    def is_too_big(self) -> bool:
        return self.plan.fit is not None and self.plan.fit.verdict is Verdict.TOO_BIG

    # ---- the planner

    def _ask(self) -> None:
        if self.planner is None or self._target is None or self._facts is None:
            return
        device = self.devices.device()
        if device is None:
            self.plan.show_nothing(self.devices.problem() or self.tr("Looking for devices…"))
            return
        surplus = self._remembered.surplus_bytes if self._remembered is not None else 0
        options = self.options() if self._has_context else replace(self.options(), context_tokens=0)
        self.planner.ask(
            Wanted(self._target, self._draft, options, freed_by(self._replaced, device), surplus, self._pflash()),
            self._facts.context_tokens,
            [self.devices.rows()[n].device for n in range(len(self.devices.rows()))],
        )

    def _pflash(self) -> PflashOptions | None:
        """For the plan: None while no scorer is needed."""
        choice = self.pflash.choice()
        return choice.options(self._built_in_scorer) if choice.mode != "off" else None

    @Slot(object)
    def on_facts_ready(self, facts: ModelFile) -> None:
        if facts.path != self._target:
            return
        self._facts = facts
        self.context.show_trained(facts.context_tokens)
        self._ask()
        self.changed.emit()

    @Slot(object)
    def on_fit_ready(self, fit: LoadFit) -> None:
        if not self._has_context:
            # The first answer was for the largest context: now the usual one of those that fit.
            wish = self._default_context or USUAL_CONTEXT
            self._has_context = True
            self.context.show_tokens(min(wish, fit.max_context_tokens or fit.estimate.context_tokens))
            self.context.show_largest(fit.max_context_tokens)
            self._ask()
            return
        self.context.show_largest(fit.max_context_tokens)
        self.plan.show_fit(fit, self.devices.device())
        self.changed.emit()

    @Slot(object)
    def on_refused(self, words: str) -> None:
        self.plan.show_problem(words)
        self.changed.emit()

    # ---- edits

    @Slot(object)
    def on_device_chosen(self, device: Device) -> None:
        self.kv.forget_supported()
        self.kv.show_device(device)
        self.draft_place.show_devices(self._devices, device)
        self.on_edited()

    @Slot()
    def on_context_edited(self) -> None:
        self._has_context = True
        self.on_edited()

    @Slot()
    def on_edited(self) -> None:
        self._is_edited = True
        self._ask()
        self.changed.emit()

    @Slot()
    def on_drafting_edited(self) -> None:
        self.drafting_changed.emit(self.drafting.options())
        self.changed.emit()

    @Slot()
    def on_pflash_edited(self) -> None:
        self._ask()
        self.pflash_changed.emit(self.pflash.choice())
        self.changed.emit()

    @Slot(object)
    def on_way_chosen(self, way: Way) -> None:
        kv_k: KvType = way.options.kv_k
        self.context.show_tokens(way.options.context_tokens)
        self.kv.show_types(kv_k, way.options.kv_v)
        if way.kind == "device" and way.options.device is not None:
            self.devices.want(way.options.device)
            self.kv.show_device(self.devices.device())
            self.draft_place.show_devices(self._devices, self.devices.device())
        if way.kind == "no_draft":
            self._draft = None
            self._look_at_draft(None)
            self.draft_dropped.emit()
        self.on_edited()
