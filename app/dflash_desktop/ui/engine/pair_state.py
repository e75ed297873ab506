"""Which pair is loaded, loading or refused, and what the draft does: the state that every view shows, in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.engine.events import (
    JobCancelled,
    JobFailed,
    LoadProgress,
    PairInfo,
    PairLoaded,
    PairUnloaded,
    StepDone,
)
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import DraftMode, DraftOptions, LoadOptions, LoadPair, UnloadPair
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.engine.pflash_choice import PflashChoice, choice_from, with_choice
from dflash_desktop.ui.engine.remembered import draft_options, load_options
from dflash_desktop.ui.kit.cause_words import told
from dflash_desktop.ui.kit.numbers import decimal

_MODES: dict[str, DraftMode] = {"auto": "auto", "off": "off"}


@dataclass(frozen=True, slots=True)
class StarterPair:
    """The pair that comes with the program."""

    title: str
    target: Path
    draft: Path | None
    n_bytes: int
    licence: str


@dataclass(frozen=True, slots=True)
class PairFiles:
    """What was asked to be loaded."""

    target: Path
    draft: Path | None
    options: LoadOptions = LoadOptions()
    drafting: DraftOptions | None = None  # None: as it is
    pflash: PflashChoice | None = None  # None: as this pair had it last


class Phase(Enum):
    EMPTY = "empty"
    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"


class DraftSpeed(Enum):
    """What the engine's own measurement says about drafting on this device."""

    UNKNOWN = "unknown"
    PAYS = "pays"
    COSTS = "costs"


class PairState(QObject):
    """Asks the engine to load and unload, and keeps what it answered."""

    changed = Signal()  # phase, pair, draft mode or sentence
    progressed = Signal()  # bytes while loading
    failed = Signal(object)  # JobFailed of a load
    loaded = Signal(object)  # PairInfo
    load_began = Signal(object)  # PairFiles, with the settings in force

    def __init__(
        self,
        bridge: EngineBridge,
        starter: StarterPair | None,
        draft_mode: str = "auto",
        memory: PairMemory | None = None,
    ) -> None:
        """`memory`: how each pair was last loaded, for loads that say nothing about it."""
        super().__init__()
        self._memory = memory
        self.drafting = DraftOptions("tree")  # how to draft when it is on; its sizes count for Auto too
        self.pflash = PflashChoice()
        self._bridge = bridge
        self._starter = starter
        self._draft_refusal: JobFailed | None = None
        self._job_id: int | None = None
        self._adopted: dict[int, PairFiles | None] = {}  # loads that clients of the server asked for; None: an unload
        self.phase = Phase.EMPTY
        self.pair: PairInfo | None = None
        self.reader: PromptReader | None = None
        self.asked: PairFiles | None = None
        self.progress: LoadProgress | None = None
        self.draft_mode = draft_mode if draft_mode in ("auto", "on", "off") else "auto"
        self._is_mode_newer = False  # chosen while nothing was loaded: counts for the next load, whatever is remembered
        self.draft_speed = DraftSpeed.UNKNOWN
        bridge.engine_event.connect(self.on_engine_event)
        bridge.served_event.connect(self.on_served_event)
        bridge.load_adopted.connect(self.on_load_adopted)

    def load(self, files: PairFiles) -> None:
        """Load these files, in place of what is loaded or loading."""
        self.cancel_load()
        self.pflash = self._recalled_pflash(files)
        chosen_mode = self.draft_mode if self._is_mode_newer and files.drafting is None else None
        self._is_mode_newer = False
        files = replace(self._recalled(files), pflash=None)  # from here on it is changed by set_pflash alone
        if files.drafting is not None:
            self.set_drafting(files.drafting)
        self.draft_mode = chosen_mode or self.draft_mode
        if files.draft is not None:
            self._draft_refusal = None
        self.asked = files
        self.progress = None
        self.phase = Phase.LOADING
        self._job_id = self._bridge.load(files.target, files.draft, files.options)
        self.load_began.emit(files)
        self.changed.emit()

    def load_again(self) -> None:
        """The same files once more: after a device failed."""
        if self.asked is not None:
            self.load(self.asked)

    def load_again_without_draft(self) -> None:
        """What the person chooses when the draft was refused."""
        if self.asked is not None:
            self.load(replace(self.asked, draft=None))

    def cancel_load(self) -> None:
        if self.phase is Phase.LOADING and self._job_id is not None:
            self._bridge.cancel(self._job_id)

    def unload(self) -> None:
        if self.phase is Phase.LOADED:
            self.phase = Phase.UNLOADING
            self._job_id = self._bridge.unload()
            self.changed.emit()

    def set_draft_mode(self, mode: str) -> None:
        """auto, on or off; counts from the next message on, and is remembered for this pair."""
        if mode == self.draft_mode:
            return
        self.draft_mode = mode
        self._is_mode_newer = self.phase is Phase.EMPTY
        if self._memory is not None and self.asked is not None and self.phase is not Phase.EMPTY:
            load = self._memory.recall(self.asked.target)
            if load is not None:
                self._memory.remember(self.asked.target, replace(load, draft_method=self.chosen_drafting().mode))
        self.changed.emit()

    def set_drafting(self, options: DraftOptions) -> None:
        """How to draft from the next message on; Tree and Chain mean On."""
        self.drafting = replace(options, mode=options.mode if options.mode in ("tree", "chain") else self.drafting.mode)
        self.draft_mode = {"auto": "auto", "off": "off"}.get(options.mode, "on")
        self.changed.emit()

    def set_pflash(self, choice: PflashChoice) -> None:
        """How long prompts are treated from the next message on; remembered for this pair."""
        if choice == self.pflash:
            return
        self.pflash = choice
        if self._memory is not None and self.asked is not None:
            load = self._memory.recall(self.asked.target)
            if load is not None:
                self._memory.remember(self.asked.target, with_choice(load, choice))
        self.changed.emit()

    @property
    def built_in_scorer(self) -> Path | None:
        """The model that rates where no other was chosen; None in a build without one."""
        return self._starter.target if self._starter is not None else None

    def _recalled_pflash(self, files: PairFiles) -> PflashChoice:
        if files.pflash is not None:
            return files.pflash
        load = self._memory.recall(files.target) if self._memory is not None else None
        if load is not None:
            return choice_from(load)
        return self.pflash if self.asked is not None and self.asked.target == files.target else PflashChoice()

    def chosen_drafting(self) -> DraftOptions:
        """What set_drafting would be given to choose what is in force now."""
        return self.drafting if self.draft_mode == "on" else replace(self.drafting, mode=_MODES[self.draft_mode])

    def _recalled(self, files: PairFiles) -> PairFiles:
        """The files with the settings they had last time, where nobody asked for others."""
        if files.options != LoadOptions() or files.drafting is not None or self._memory is None:
            return files
        load = self._memory.recall(files.target)
        if load is None:
            return files
        return replace(files, options=load_options(load), drafting=draft_options(load))

    def draft_options(self) -> DraftOptions:
        """Auto leaves the size of each step to the engine's measurements; On drafts in every step, come what may."""
        if self.draft_mode == "on":
            return replace(self.drafting, tree_budget=self.drafting.tree_budget or self._most_nodes())
        if self.draft_mode == "off":
            return DraftOptions(mode="off")
        return replace(self.drafting, mode="auto")

    def _most_nodes(self) -> int:
        # As many rows as the draft's own block: verifying them costs what a chain costs.
        return max(1, self.pair.block_size - 1) if self.pair else 1

    def title(self) -> str:
        """The name of the pair that is loaded or loading: the built-in one's own, else what the file says."""
        pair = self.pair if self.phase is not Phase.LOADING else None
        target = pair.target if pair else self.asked.target if self.asked else None
        if self._starter is not None and target == self._starter.target:
            return self._starter.title
        return pair.target_name if pair else target.stem if target else ""

    def loading_share(self) -> float | None:
        """Done part of the load, 0 to 1; None while it is not known."""
        if self.progress is None or self.progress.n_total_bytes <= 0:
            return None
        return min(1.0, self.progress.n_done_bytes / self.progress.n_total_bytes)

    def token_text(self, token: int) -> str:
        """How the loaded target spells a token, parts of a character as \\xe5; empty when nobody knows."""
        return self.reader.detokenize([token]).decode("utf-8", errors="backslashreplace") if self.reader else ""

    def draft_sentence(self) -> str:
        """The state of the draft, in words; empty while there is nothing to say."""
        if self.phase is not Phase.LOADED or self.pair is None:
            return ""
        if self.pair.draft is None:
            if (refusal := self._draft_refusal) is not None:
                return self.tr("Draft refused: {0}").format(told(refusal.cause, refusal.message))
            return self.tr("No draft is loaded: the target decodes alone.")
        if self.draft_mode == "off":
            return self.tr("Draft loaded, switched off: the target decodes alone.")
        probe = self.pair.draft_probe
        if probe is not None and not probe.is_match:
            words = self.tr("This draft doesn't match this target: acceptance length {0}, where 1 means no gain.")
            return words.format(decimal(probe.acceptance_length, 2))
        if self.draft_speed is DraftSpeed.COSTS and self.draft_mode == "auto":
            return self.tr("Drafting is slower than plain decoding on this device: Auto uses plain decoding.")
        if self.draft_mode == "on":
            words = self.tr("Draft on: it proposes up to {0} tokens per step.")
            return words.format(self.draft_options().tree_budget)
        if self.draft_speed is DraftSpeed.PAYS:
            return self.tr("Draft loaded: Auto is using it, it is faster here.")
        return self.tr("Draft loaded: Auto uses it where it is faster.")

    @Slot(object, object)
    def on_load_adopted(self, job_id: int, job: LoadPair | UnloadPair) -> None:
        """A client asked for this load. Until its turn comes in the lane, nothing changes."""
        self._adopted[job_id] = PairFiles(job.target, job.draft, job.options) if isinstance(job, LoadPair) else None

    @Slot(object)
    def on_served_event(self, event: object) -> None:
        if isinstance(event, StepDone):
            self._watch_speed(event)

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        self._take_adopted(event)
        if isinstance(event, StepDone):
            self._watch_speed(event)
            return
        if isinstance(event, JobFailed) and event.kind == "no_pair" and self.phase is Phase.LOADED:
            self._end(Phase.EMPTY, None)
            self.changed.emit()
            return
        if getattr(event, "job_id", None) != self._job_id or self._job_id is None:
            return
        match event:
            case LoadProgress():
                self.pair = None  # both at once may not fit: the old pair is gone when the new one's first bytes move
                self.progress = event
                self.progressed.emit()
            case PairLoaded():
                self._end(Phase.LOADED, event.pair)
                self.draft_speed = DraftSpeed.UNKNOWN
                self.reader = event.reader
                self.changed.emit()
                self.loaded.emit(event.pair)
            case PairUnloaded():
                self._end(Phase.EMPTY, None)
                self.changed.emit()
            case JobCancelled():
                self._after_no_load()
            case JobFailed():
                if event.kind != "bad_request":  # it passed the checks, so the old pair was let go
                    self.pair = None
                if self.asked is not None and self.asked.draft is not None:
                    self._draft_refusal = event
                self._after_no_load()
                self.failed.emit(event)
            case _:
                pass

    def _take_adopted(self, event: object) -> None:
        """Follow a client's load like one of our own, unless one of ours waits behind it and will replace it."""
        job_id = getattr(event, "job_id", None)
        if job_id not in self._adopted:
            return
        if self._job_id is None and isinstance(event, (LoadProgress, PairLoaded, PairUnloaded)):
            self._job_id = job_id
            if (files := self._adopted[job_id]) is not None:
                self.pflash = self._recalled_pflash(files)
                self.asked = files
                self.phase = Phase.LOADING
                self.changed.emit()
        elif self._job_id != job_id and isinstance(event, (PairLoaded, PairUnloaded)):
            self.pair = event.pair if isinstance(event, PairLoaded) else None
            self.reader = event.reader if isinstance(event, PairLoaded) else None
        if isinstance(event, (PairLoaded, PairUnloaded, JobFailed, JobCancelled)):
            del self._adopted[job_id]

    def _after_no_load(self) -> None:
        # Files that are refused when they are checked leave the old pair loaded (engine.py).
        self._end(Phase.LOADED if self.pair is not None else Phase.EMPTY, self.pair)
        self.changed.emit()

    def _end(self, phase: Phase, pair: PairInfo | None) -> None:
        self._job_id = None
        self.progress = None
        self.phase = phase
        self.pair = pair

    def _watch_speed(self, step: StepDone) -> None:
        speed = self.draft_speed
        if step.reason == "plain_faster":
            speed = DraftSpeed.COSTS
        elif step.reason == "best":
            speed = DraftSpeed.PAYS if step.n_drafted else DraftSpeed.COSTS
        if speed is not self.draft_speed:
            self.draft_speed = speed
            self.changed.emit()
