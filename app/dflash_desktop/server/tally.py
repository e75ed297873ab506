"""Adds up the numbers of one reply, which may take more than one engine job."""

from __future__ import annotations

from dataclasses import dataclass

from dflash_desktop.engine.events import GenerationDone, PrefixCacheUse, StepDone
from dflash_desktop.server.pflash import PflashFacts
from dflash_desktop.server.pieces import Usage


@dataclass(slots=True)
class Tally:
    """Whole jobs, plus the steps of the one that runs."""

    n_prompt_tokens: int
    pflash: PflashFacts | None = None
    n_reused_tokens: int = 0
    n_reasoning_tokens: int = 0
    n_restored_tokens: int = 0
    _prefix_cache: PrefixCacheUse | None = None
    _n_done_tokens: int = 0
    _n_steps: int = 0
    _n_drafted: int = 0
    _n_accepted: int = 0
    _now_tokens: int = 0
    _now_steps: int = 0
    _now_drafted: int = 0
    _now_accepted: int = 0
    _now_chars: int = 0
    _first_s: float = 0.0
    _last_s: float = 0.0
    _queue_s: float = 0.0
    _ttft_s: float = 0.0
    _prefill_s: float = 0.0
    _decode_s: float = 0.0

    @property
    def n_reply_tokens(self) -> int:
        return self._n_done_tokens + self._now_tokens

    def step(self, event: StepDone, *, is_in_thoughts: bool) -> None:
        """A step and its text."""
        self._now_chars += len(event.text)
        self.count(event)
        if is_in_thoughts:
            self.n_reasoning_tokens += event.n_committed

    def count(self, event: StepDone) -> None:
        """A step whose text comes with a later one."""
        self._now_tokens += event.n_committed
        self._now_steps += 1
        self._now_drafted += event.n_drafted
        self._now_accepted += event.n_accepted
        self._first_s = self._first_s or event.elapsed_s
        self._last_s = event.elapsed_s

    def unseen_text(self, done: GenerationDone) -> str:
        """What the last word adds to the steps' texts (characters held back until the end)."""
        return done.text[self._now_chars :]

    def add(self, done: GenerationDone) -> None:
        """The job is over: its own sums count, not ours."""
        if not self._n_steps and not self._n_done_tokens:
            self._queue_s, self._ttft_s = done.queue_s, done.ttft_s
        self._n_done_tokens += done.n_committed
        self._n_steps += done.n_steps
        self._n_drafted += done.n_drafted
        self._n_accepted += done.n_accepted
        self._prefill_s += done.prefill_s
        self._decode_s += done.decode_s
        self._prefix_cache = done.prefix_cache or self._prefix_cache
        self._now_tokens = self._now_steps = self._now_drafted = self._now_accepted = self._now_chars = 0
        self._first_s = self._last_s = 0.0

    def usage(self) -> Usage:
        scored_s = self.pflash.load_s + self.pflash.score_s if self.pflash is not None else 0.0
        return Usage(
            n_prompt_tokens=self.n_prompt_tokens,
            n_reused_tokens=min(self.n_reused_tokens, self.n_prompt_tokens),
            n_reply_tokens=self.n_reply_tokens,
            n_reasoning_tokens=min(self.n_reasoning_tokens, self.n_reply_tokens),
            n_steps=self._n_steps + self._now_steps,
            n_drafted=self._n_drafted + self._now_drafted,
            n_accepted=self._n_accepted + self._now_accepted,
            queue_s=self._queue_s,
            ttft_s=self._ttft_s + scored_s if self._ttft_s else 0.0,
            prefill_s=self._prefill_s,
            decode_s=self._decode_s + (self._last_s - self._first_s),
            pflash=self.pflash,
            n_restored_tokens=self.n_restored_tokens,
            prefix_cache=self._prefix_cache,
        )
