"""The one-click way: a model, the port of LM Studio, the self-test, and Cline's settings if the person agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from dflash_desktop.server.shelf import SERVING_CONTEXT
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase
from dflash_desktop.ui.kit.worker import Worker
from dflash_desktop.ui.server.bridge import LargestContext
from dflash_desktop.ui.server.serving import STANDARD_PORT, ServePhase, Serving

CLOSE_S = 2.0


class Step(Enum):
    IDLE = "idle"
    PLANNING = "planning"  # which context fits
    WORKING = "working"  # loading and opening the port, side by side
    DONE = "done"


class ServeNow(QObject):
    """Starts what is missing and waits for it. Only the person's consent is left when `ready` comes."""

    ready = Signal()  # every dialect answers: set the clients up now
    stopped = Signal(object)  # why it ended early: a sentence, or nothing where the page says it already

    def __init__(
        self,
        serving: Serving,
        pair_state: PairState,
        largest_context: LargestContext,
        last_pair: Callable[[], PairFiles | None],
    ) -> None:
        super().__init__()
        self._serving = serving
        self._pair_state = pair_state
        self._largest_context = largest_context
        self._last_pair = last_pair
        self._worker = Worker("plan-context")
        self.step = Step.IDLE
        serving.changed.connect(self.on_changed)
        pair_state.changed.connect(self.on_changed)

    @Slot()
    def begin(self) -> None:
        """Do what is missing. A second click while it runs changes nothing."""
        if self.step in (Step.PLANNING, Step.WORKING) and self._serving.phase is not ServePhase.FAILED:
            return
        self.step = Step.WORKING
        if self._pair_state.phase is Phase.EMPTY:
            self.load()
        serving = self._serving
        if not serving.is_listening:
            serving.choose(replace(serving.settings, port=STANDARD_PORT))
            serving.start()
        self.on_changed()

    @Slot()
    def load(self) -> None:
        """Load the last pair, or the built-in one, with the largest sensible context."""
        files = self._last_pair()
        if files is None or self._pair_state.phase is not Phase.EMPTY:
            if files is None and self.step is Step.WORKING:
                self._stop(self.tr("There is no model to load. Open one first."))
            return
        is_whole_way = self.step is Step.WORKING
        self.step = Step.PLANNING if is_whole_way else self.step
        self._worker.do(
            partial(self._largest_context, files.target, files.draft, replace(files.options, context_tokens=0)),
            partial(self._on_planned, files),
            lambda _error: self._on_planned(files, 0),  # loading says better than planning what is wrong
        )

    def close(self) -> None:
        self._worker.close(CLOSE_S)

    def _on_planned(self, files: PairFiles, largest: int) -> None:
        if self.step is Step.PLANNING:
            self.step = Step.WORKING
        if self._pair_state.phase is Phase.EMPTY:
            context = min(largest, max(SERVING_CONTEXT, files.options.context_tokens))
            self._pair_state.load(replace(files, options=replace(files.options, context_tokens=context)))

    @Slot()
    def on_changed(self) -> None:
        """A port that is taken ends nothing: the person may choose another one, and the way goes on from there."""
        if self.step is not Step.WORKING:
            return
        phase = self._serving.phase
        if phase is ServePhase.SERVING:
            self.step = Step.DONE
            self.ready.emit()
        elif phase is ServePhase.TEST_FAILED:
            self._stop("")
        elif phase is ServePhase.NO_MODEL and self._pair_state.phase is Phase.EMPTY:
            self._stop("")  # the load was refused or cancelled; whoever asked for it is told elsewhere

    def _stop(self, sentence: str) -> None:
        self.step = Step.IDLE
        self.stopped.emit(sentence)
