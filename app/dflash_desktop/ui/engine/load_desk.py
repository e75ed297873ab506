"""What belongs to loading, for the whole window: panels, their planners, the record of loads, driver problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.base.presence import has_file, is_there
from dflash_desktop.engine.device_users import DriverProblem, driver_problems
from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import PairInfo
from dflash_desktop.engine.requests import DraftOptions
from dflash_desktop.settings.pair_memory import PairLoad, PairMemory
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.load_panel import LoadPanel
from dflash_desktop.ui.engine.load_planner import LoadPlanner
from dflash_desktop.ui.engine.load_record import LoadRecord
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase, StarterPair
from dflash_desktop.ui.engine.remembered import load_options
from dflash_desktop.ui.engine.scorer_box import ScorerFile
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.parts import Parts


class LoadDesk(QObject):
    """Panels come and go with their windows; `close` ends its threads."""

    driver_problems_found = Signal(object)  # list of DriverProblem

    def __init__(
        self, bridge: EngineBridge, theme: Theme, pair_state: PairState, settings: SettingsStore, parts: Parts
    ) -> None:
        super().__init__()
        self._theme = theme
        self._pair_state = pair_state
        self._settings = settings
        self._tools = parts.engine_tools
        self._memory = parts.pair_memory or PairMemory(None)
        marker = parts.home.marker if parts.home is not None else None
        self.record = LoadRecord(pair_state, bridge, self._tools, self._memory, marker)
        self.devices: Sequence[Device] = ()
        self.problems: list[DriverProblem] = []
        self._scorers: Sequence[ScorerFile] = ()
        self._planners: list[LoadPlanner] = []
        self._panels: list[LoadPanel] = []
        self._live_panels: list[LoadPanel] = []
        self._worker = Worker("driver-problems")
        bridge.devices_listed.connect(self.on_devices_listed)
        pair_state.changed.connect(self.on_pair_changed)

    def close(self) -> None:
        for planner in self._planners:
            planner.close()
        self._planners = []
        self.record.close()
        self._worker.close(timeout_s=5.0)

    def make_panel(self, *, is_live: bool) -> LoadPanel:
        """A panel with a planner of its own. `is_live`: it is about the loaded pair, and drafting counts at once."""
        planner = LoadPlanner(self._tools) if self._tools is not None else None
        if planner is not None:
            self._planners.append(planner)
        panel = LoadPanel(self._theme, planner, self._pair_state.built_in_scorer)
        panel.pflash.show_scorers(self._scorers)
        if is_live:
            self._live_panels.append(panel)
            panel.drafting_changed.connect(self.on_drafting_changed)
            panel.pflash_changed.connect(self._pair_state.set_pflash)
        panel.show_devices(self.devices)
        panel.show_replaced(self._loaded())
        self._panels.append(panel)
        return panel

    def drop_panel(self, panel: LoadPanel) -> None:
        """It is about to be deleted."""
        if panel in self._panels:
            self._panels.remove(panel)
        if panel in self._live_panels:
            self._live_panels.remove(panel)
        planner = panel.planner
        if planner in self._planners and planner is not None:
            self._planners.remove(planner)
            planner.close()

    def drop_panels(self) -> None:
        """Their window goes."""
        for panel in list(self._panels):
            self.drop_panel(panel)

    def show_scorers(self, files: Sequence[ScorerFile]) -> None:
        """The models of this machine that can rate prompts."""
        self._scorers = files
        for panel in self._panels:
            panel.pflash.show_scorers(files)

    def recall(self, target: Path) -> PairLoad | None:
        return self._memory.recall(target)

    def default_context(self) -> int:
        return self._settings.values.default_context_tokens

    def last_pair(self) -> PairFiles | None:
        """The pair that was loaded last, if its files are still there."""
        target = self._memory.last_target
        load = self._memory.recall(target) if target is not None else None
        if target is None or load is None or not has_file(target):
            return None
        draft = Path(load.draft) if load.draft else None
        return PairFiles(target, draft if draft is not None and is_there(draft) else None)

    def pair_to_serve(self, starter: StarterPair | None) -> PairFiles | None:
        """What to load when somebody wants to serve and nothing is loaded: as the last time, or the built-in pair."""
        files = self.last_pair() or self._pair_state.asked
        load = self.recall(files.target) if files is not None else None
        if files is not None and load is not None:
            return replace(files, options=load_options(load))
        if files is None and starter is not None:
            return PairFiles(starter.target, starter.draft)
        return files

    def _loaded(self) -> PairInfo | None:
        return self._pair_state.pair if self._pair_state.phase is Phase.LOADED else None

    @Slot(object)
    def on_drafting_changed(self, options: DraftOptions) -> None:
        self._pair_state.set_drafting(options)
        self._settings.change(draft_mode=self._pair_state.draft_mode)

    @Slot(object, object)
    def on_devices_listed(self, devices: Sequence[Device], _problem: str) -> None:
        self.devices = devices
        for panel in self._panels:
            panel.show_devices(devices)
        if self._tools is not None:
            self._worker.do(lambda: driver_problems(devices), self._tell_problems, lambda _error: None)

    def _tell_problems(self, problems: list[DriverProblem]) -> None:
        self.problems = problems
        self.driver_problems_found.emit(problems)

    @Slot()
    def on_pair_changed(self) -> None:
        pair = self._loaded()
        for panel in self._panels:
            panel.show_replaced(pair)
        for panel in self._live_panels:
            panel.show_drafting(self._pair_state.chosen_drafting())
            panel.show_pflash(self._pair_state.pflash)
