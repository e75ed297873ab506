"""Plans loads in a thread while somebody moves sliders: the newest wish wins, and nothing waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.requests import KvType
from dflash_desktop.ui.engine.load_fit import KV_TYPES, LoadFit, Wanted, judge, supported_values
from dflash_desktop.ui.kit.pace import PLAN_MS
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.parts import EngineTools


class LoadPlanner(QObject):
    """Answers by signals. What was asked before the newest question is not answered any more."""

    facts_ready = Signal(object)  # ModelFile of the target
    drafts_ready = Signal(object)  # list of ModelFile: the drafts on this machine that were made for the target
    fit_ready = Signal(object)  # LoadFit
    draft_ready = Signal(object)  # ModelFile of the draft that was looked at
    refused = Signal(object)  # str: why these files or settings cannot be loaded
    values_ready = Signal(object, object)  # a type of keys, and the frozenset of types of values that go with it

    def __init__(self, tools: EngineTools) -> None:
        super().__init__()
        self._tools = tools
        self._worker = Worker("load-planner")
        self._finder = Worker("draft-finder")  # may walk through large folders: no plan shall wait for it
        self._n_asked = 0
        self._target: Path | None = None
        self._draft: Path | None = None
        self._wanted: Wanted | None = None
        self._trained_tokens = 0
        self._devices: Sequence[Device] = ()
        self._probed: object = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PLAN_MS)
        self._timer.timeout.connect(self._plan)

    def close(self) -> None:
        """No more answers; returns when the thread has ended."""
        self._timer.stop()
        self._n_asked += 1
        self._finder.close(timeout_s=5.0)
        self._worker.close(timeout_s=5.0)

    def inspect(self, file: Path, then: Callable[[ModelFile], object], failed: Callable[[Exception], object]) -> None:
        """Read a file's header, of whatever model."""
        self._worker.do(partial(self._tools.inspect, file), then, failed)

    def look_at(self, target: Path) -> None:
        """Read the target's header and look for its drafts; `facts_ready` and `drafts_ready`, or `refused`, follow."""
        self._target = target
        self._worker.do(
            partial(self._tools.inspect, target),
            lambda facts: self.facts_ready.emit(facts) if self._target == target else None,
            lambda error: self.refused.emit(str(error)) if self._target == target else None,
        )
        self._finder.do(
            partial(self._find_drafts, target),
            lambda drafts: self.drafts_ready.emit(drafts) if self._target == target else None,
            lambda _error: None,  # a target that cannot be read was refused above
        )

    def look_at_draft(self, draft: Path) -> None:
        """Read the draft's header; `draft_ready` follows, or nothing: an unsound one is refused by the plan."""
        self._draft = draft
        self._worker.do(
            partial(self._tools.inspect, draft),
            lambda facts: self.draft_ready.emit(facts) if self._draft == draft else None,
            lambda _error: None,
        )

    def ask(self, wanted: Wanted, trained_tokens: int, devices: Sequence[Device]) -> None:
        """Plan this soon; `fit_ready` or `refused` follows, unless another question comes first."""
        self._wanted = wanted
        self._trained_tokens = trained_tokens
        self._devices = devices
        self._n_asked += 1
        self._timer.start()

    def forget(self) -> None:
        """There is no question any more."""
        self._timer.stop()
        self._n_asked += 1
        self._target = None

    def _find_drafts(self, target: Path) -> list[ModelFile]:
        return list(self._tools.drafts_for(target)) if self._target == target else []

    @Slot()
    def _plan(self) -> None:
        wanted, number = self._wanted, self._n_asked
        if wanted is None:
            return
        self._worker.do(
            lambda: self._judge(wanted, number, self._trained_tokens, self._devices),
            lambda fit: self._answer(fit, number),
            lambda error: self.refused.emit(str(error)) if number == self._n_asked else None,
        )
        probe = (wanted.target, wanted.draft, wanted.options.device)
        if probe != self._probed:
            self._probed = probe
            self._probe_next(wanted, probe, list(KV_TYPES))

    def _probe_next(self, wanted: Wanted, probe: object, rest: list[KvType]) -> None:
        """Ask for one type of keys, then for the next: plans that are asked meanwhile come between."""
        if rest and probe == self._probed:
            self._worker.do(
                partial(self._probe_values, wanted, rest[0], probe),
                partial(self._answer_values, wanted, rest, probe),
                lambda _error: None,
            )

    def _judge(self, wanted: Wanted, number: int, trained_tokens: int, devices: Sequence[Device]) -> LoadFit | None:
        if number != self._n_asked:  # a whole number, only ever growing: reading it from this thread is safe
            return None
        fit = judge(self._tools.plan, wanted, devices, trained_tokens)
        if wanted.pflash is None or self._tools.plan_scored is None:
            return fit
        options = replace(wanted.options, context_tokens=fit.estimate.context_tokens)
        try:
            scored = self._tools.plan_scored(wanted.target, wanted.draft, options, wanted.pflash)
        except AppError as error:
            return replace(fit, scorer_problem=str(error))
        return replace(fit, scorer=scored.scorer)

    def _probe_values(self, wanted: Wanted, kv_k: KvType, probe: object) -> frozenset[KvType] | None:
        return supported_values(self._tools.plan, wanted, kv_k) if probe == self._probed else None

    def _answer(self, fit: LoadFit | None, number: int) -> None:
        if fit is not None and number == self._n_asked:
            self.fit_ready.emit(fit)

    def _answer_values(
        self, wanted: Wanted, rest: list[KvType], probe: object, values: frozenset[KvType] | None
    ) -> None:
        if values is not None and probe == self._probed:
            self.values_ready.emit(rest[0], values)
            self._probe_next(wanted, probe, rest[1:])
