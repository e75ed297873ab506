"""Remembers every load with what was planned and what it really took, and notes for the next start what is going on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.run_marker import RunMarker
from dflash_desktop.engine.events import GenerationDone, JobFailed, PairInfo, PromptReady
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase
from dflash_desktop.ui.engine.pflash_choice import with_choice
from dflash_desktop.ui.engine.process_memory import resident_bytes
from dflash_desktop.ui.engine.remembered import pair_load
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.parts import EngineTools

SANE = (0.5, 2.0)
"""A measurement outside these shares of the plan measured something else: another program came or went meanwhile."""


@dataclass(frozen=True, slots=True)
class _Before:
    """What was planned, and how much of the device was in use before the load, without the pair that it replaced."""

    device_name: str
    is_cpu: bool
    planned_bytes: int
    used_bytes: int


class LoadRecord(QObject):
    """Listens to PairState. `measured` says that the memory of pairs has a new measurement."""

    measured = Signal()

    def __init__(
        self,
        pair_state: PairState,
        bridge: EngineBridge,
        tools: EngineTools | None,
        memory: PairMemory | None,
        marker: RunMarker | None,
    ) -> None:
        super().__init__()
        self._pair_state = pair_state
        self._tools = tools
        self._memory = memory
        self._marker = marker
        self._worker = Worker("measure-load")
        self._files: PairFiles | None = None
        self._before: _Before | None = None
        self._idle_bytes = resident_bytes()  # of this process without a pair
        pair_state.load_began.connect(self.on_load_began)
        pair_state.loaded.connect(self.on_loaded)
        pair_state.changed.connect(self.on_pair_changed)
        bridge.engine_event.connect(self.on_engine_event)
        bridge.served_event.connect(self.on_engine_event)

    def close(self) -> None:
        self._worker.close(timeout_s=5.0)

    @Slot(object)
    def on_load_began(self, files: PairFiles) -> None:
        self._files = files
        self._before = None
        pair = self._pair_state.pair
        if pair is None:
            self._idle_bytes = resident_bytes()
        self._note("load", files.target.name, files.options.device or "")
        tools = self._tools
        if tools is not None:
            work: Callable[[], _Before] = partial(self._look, tools, files, pair, self._idle_bytes)
            self._worker.do(work, self._keep, lambda _error: None)

    def _look(self, tools: EngineTools, files: PairFiles, replaced: PairInfo | None, idle_bytes: int) -> _Before:
        plan = tools.plan(files.target, files.draft, files.options)
        device = tools.read_device(plan.device_name)
        if device.kind == "cpu":
            return _Before(device.name, True, plan.total_bytes, idle_bytes)
        freed = replaced.memory.total_bytes if replaced is not None and replaced.device_name == device.name else 0
        return _Before(device.name, False, plan.total_bytes, device.total_bytes - device.free_bytes - freed)

    def _keep(self, before: _Before) -> None:
        self._before = before

    @Slot(object)
    def on_loaded(self, info: PairInfo) -> None:
        files = self._files
        if files is None or files.target != info.target or self._memory is None:
            return  # a client of the server loaded it: its settings are not the person's
        options = replace(files.options, context_tokens=info.context_tokens)
        drafting = self._pair_state.chosen_drafting()
        load = with_choice(pair_load(files.draft, options, drafting), self._pair_state.pflash)
        self._memory.remember(info.target, load)
        if self._tools is not None:
            # After the plan, which may still wait in the same thread.
            self._worker.do(
                partial(self._measure, self._tools), partial(self._remember_measured, info), lambda _e: None
            )

    def _measure(self, tools: EngineTools) -> dict[str, int]:
        """Bytes in use now, by device, with this process's own as `""`."""
        used = {"": resident_bytes()}
        before = self._before
        if before is not None and not before.is_cpu:
            try:
                device = tools.read_device(before.device_name)
            except AppError:
                return used
            used[device.name] = device.total_bytes - device.free_bytes
        return used

    def _remember_measured(self, info: PairInfo, used: dict[str, int]) -> None:
        before, memory = self._before, self._memory
        if before is None or memory is None or before.device_name != info.device_name or not before.planned_bytes:
            return
        now = used.get("" if before.is_cpu else before.device_name, 0)
        measured = now - before.used_bytes
        if not SANE[0] <= measured / before.planned_bytes <= SANE[1]:
            return
        load = memory.recall(info.target)
        if load is not None:
            memory.remember(info.target, replace(load, planned_bytes=before.planned_bytes, measured_bytes=measured))
            self.measured.emit()

    @Slot()
    def on_pair_changed(self) -> None:
        if self._pair_state.phase is not Phase.LOADING:
            self._note("idle")

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        match event:
            case PromptReady():
                pair = self._pair_state.pair
                self._note("reply", pair.target.name if pair else "", pair.device_name if pair else "")
            case GenerationDone() | JobFailed():
                self._note("idle")
            case _:
                pass

    def _note(self, activity: str, target: str = "", device: str = "") -> None:
        if self._marker is None:
            return
        if activity == "load":
            self._marker.note("load", target=target, device=device)
        elif activity == "reply":
            self._marker.note("reply", target=target, device=device)
        else:
            self._marker.note("idle")
