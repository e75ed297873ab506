"""The numbers of the reply that is running, kept as events bring them and read by whoever paints."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QObject, Slot

from dflash_desktop.engine import metrics
from dflash_desktop.engine.events import (
    GenerationDone,
    JobFailed,
    PairLoaded,
    PairUnloaded,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.ui.bridge import EngineBridge

KEPT_STEPS = 2000
MEAN_STEPS = 16
"""The moving average of the acceptance length runs over this many steps."""
RATE_WINDOW_S = 1.0
PREFILL_MARKS = 6
KEPT_RECORDS = 200
"""Whole steps, with their trees, that one can go back through."""


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One step, as the plots need it."""

    n_committed: int
    n_drafted: int
    n_accepted: int
    moving_mean: float
    elapsed_s: float


class LiveFigures(QObject):
    """Read by plots at their own pace: `version` moves whenever something changed."""

    def __init__(self, bridge: EngineBridge) -> None:
        super().__init__()
        self.version = 0
        self.steps: deque[StepFigures] = deque(maxlen=KEPT_STEPS)
        self.records: deque[StepDone] = deque(maxlen=KEPT_RECORDS)
        self.is_running = False
        self._recent: deque[int] = deque(maxlen=MEAN_STEPS)
        self._prefill_marks: deque[tuple[float, int]] = deque(maxlen=PREFILL_MARKS)
        self._reset()
        bridge.engine_event.connect(self.on_engine_event)
        bridge.served_event.connect(self.on_engine_event)  # one engine: replies of other programs are drawn too

    def _reset(self) -> None:
        self.steps.clear()
        self.records.clear()
        self._recent.clear()
        self._prefill_marks.clear()
        self.job_id: int | None = None  # whose reply these are
        self.n_steps = 0
        self.n_plain_steps = 0
        self.n_drafted = 0
        self.n_accepted = 0
        self.n_committed = 0
        self.n_context_tokens = 0
        self.context_tokens = 0
        self.n_prompt_tokens = 0
        self.ttft_s: float | None = None
        self.prefill_tps: float | None = None
        self.mean_tps: float | None = None
        self.speed_up: float | None = None  # what drafting brings over plain decoding, as the engine measures it
        self.n_prefilled = 0
        self.n_prefill_total = 0
        self.prefill_left_s: float | None = None
        self._first_committed = 0

    def acceptance_length(self) -> float | None:
        """Tokens committed per step over this reply; None before the first step."""
        return self.n_committed / self.n_steps if self.n_steps else None

    @property
    def is_drafting(self) -> bool:
        """Whether most steps had a draft: a probe now and then makes no drafting."""
        return self.n_plain_steps * 2 < self.n_steps

    def current_tps(self) -> float | None:
        """Tokens per second over the last second of the reply; after its end, its mean."""
        if not self.is_running or len(self.steps) < 2:
            return self.mean_tps
        last = self.steps[-1]
        begin = last
        n_tokens = 0
        for step in reversed(self.steps):
            if last.elapsed_s - step.elapsed_s > RATE_WINDOW_S:
                break
            begin = step
            n_tokens += step.n_committed
        n_tokens -= begin.n_committed  # they came before the span that this step opens
        span = last.elapsed_s - begin.elapsed_s
        return n_tokens / span if span > 0 and n_tokens > 0 else self.mean_tps

    @Slot(object)
    def on_engine_event(self, event: object) -> None:
        match event:
            case PromptReady():
                self._reset()
                self.is_running = True
                self.job_id = event.job_id
                self.n_prompt_tokens = event.n_prompt_tokens
                self.n_context_tokens = event.n_reused_tokens
                self.context_tokens = event.context_tokens
            case PrefillProgress():
                self._prefill(event)
                if event.elapsed_s > 0 and event.n_done_tokens > 0:
                    self.prefill_tps = event.n_done_tokens / event.elapsed_s
            case StepDone():
                self._add(event)
            case GenerationDone():
                self._finish(event)
            case JobFailed():
                self.is_running = False
            case PairLoaded() | PairUnloaded():
                self._reset()
                self.is_running = False
            case _:
                return
        self.version += 1

    @property
    def is_prefilling(self) -> bool:
        """Whether the prompt is being read and no token has come yet."""
        return self.is_running and self.n_steps == 0 and self.n_prefilled < self.n_prefill_total

    def _prefill(self, progress: PrefillProgress) -> None:
        self.n_prefilled, self.n_prefill_total = progress.n_done_tokens, progress.n_total_tokens
        self._prefill_marks.append((progress.elapsed_s, progress.n_done_tokens))
        (begin_s, n_begin), (end_s, n_end) = self._prefill_marks[0], self._prefill_marks[-1]
        # The last chunks only: attention makes later ones slower than the first.
        is_known = end_s > begin_s and n_end > n_begin
        n_left = progress.n_total_tokens - progress.n_done_tokens
        self.prefill_left_s = n_left * (end_s - begin_s) / (n_end - n_begin) if is_known else None

    def _add(self, step: StepDone) -> None:
        if self.ttft_s is None and step.n_committed:
            self.ttft_s = step.elapsed_s
            self._first_committed = step.n_committed
        self._recent.append(step.n_committed)
        self.n_steps += 1
        self.n_plain_steps += not step.n_drafted
        self.n_drafted += step.n_drafted
        self.n_accepted += step.n_accepted
        self.n_committed += step.n_committed
        self.n_context_tokens = step.n_context_tokens
        mean = sum(self._recent) / len(self._recent)
        self.steps.append(StepFigures(step.n_committed, step.n_drafted, step.n_accepted, mean, step.elapsed_s))
        self.records.append(step)
        self.speed_up = step.speed_up if step.speed_up > 0 else None
        if self.ttft_s is not None and step.elapsed_s > self.ttft_s:
            self.mean_tps = (self.n_committed - self._first_committed) / (step.elapsed_s - self.ttft_s)

    def _finish(self, done: GenerationDone) -> None:
        self.is_running = False
        self.prefill_tps = metrics.prefill_tps(done) or self.prefill_tps
        self.ttft_s = metrics.ttft(done) or self.ttft_s
        self.mean_tps = metrics.decode_tps(done)
