"""One reply, pulled event by event: prompt, prefill, steps, end. The lane decides when to pull."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import BadInput
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import Cancelled
from dflash_desktop.binding.native import sized
from dflash_desktop.engine.events import (
    DraftTree,
    FinishReason,
    GenerationDone,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.engine.loaded import code_of
from dflash_desktop.engine.reply_text import ReplyText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dflash_desktop.engine.events import Event, PrefixCacheUse, StepReason
    from dflash_desktop.engine.loaded import LoadedPair
    from dflash_desktop.engine.requests import Generate

TopLogprobs = tuple[tuple[tuple[int, float], ...], ...]

_FINISH: dict[int, FinishReason] = {
    abi.Finish.STOP: "stop",
    abi.Finish.LENGTH: "length",
    abi.Finish.CONTEXT: "context",
}
_REASONS: dict[int, StepReason] = {
    abi.Reason.NO_DRAFT: "no_draft",
    abi.Reason.OFF: "off",
    abi.Reason.FIXED: "fixed",
    abi.Reason.BEST: "best",
    abi.Reason.PLAIN_FASTER: "plain_faster",
    abi.Reason.PROBE: "probe",
    abi.Reason.NO_ROOM: "no_room",
    abi.Reason.MEASURE: "measure",
}


@dataclass
class _Counts:
    n_steps: int = 0
    n_first_committed: int = 0
    n_plain_steps: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    draft_us: int = 0
    verify_us: int = 0


@dataclass
class Reply:
    """A reply in the making. `run` yields its events; the last one is GenerationDone.

    Times are of time.perf_counter. Whatever `run` raises, `text` is what was said so far.
    """

    job_id: int
    request: Generate
    pair: LoadedPair
    accepted_at: float
    is_cancelled: Callable[[], bool]
    _counts: _Counts = field(default_factory=_Counts)
    _token_ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._started_at = time.perf_counter()
        self._begun_at = self._prefilled_at = self._first_at = self._last_at = 0.0
        self._n_prompt = self._n_reused = self._n_restored = 0
        self._prefix_cache: PrefixCacheUse | None = None
        self._text = ReplyText(self.pair.reader.tokenizer.token_bytes, self.request.stop)

    @property
    def text(self) -> str:
        """What was said so far."""
        return self._text.text

    def run(self) -> Iterator[Event]:
        """Pull the reply. A cancel ends it with what was said so far; raises AppError or NativeError."""
        finish: FinishReason = "cancelled"
        try:
            yield from self._begin()
            while not self.is_cancelled():
                progress = self.pair.session.prefill()
                yield PrefillProgress(self.job_id, progress.n_done, progress.n_total, self._elapsed())
                if progress.is_complete:
                    break
            self._prefilled_at = time.perf_counter()
            while not self.is_cancelled():
                event, ended = self._step()
                yield event
                if ended is not None:
                    finish = ended
                    break
        except Cancelled:
            finish = "cancelled"
        yield self._done(finish)

    def _begin(self) -> Iterator[Event]:
        context = self.pair.info.context_tokens
        prompt = self.pair.reader.render(self.request.prompt, context_tokens=context).token_ids
        if not prompt:
            raise BadInput("The prompt is empty.")
        self._n_prompt = len(prompt)
        self._begun_at = time.perf_counter()
        begun = self.pair.session.begin(prompt, generation_params(self.request))
        self._n_reused, self._n_restored = begun.n_reused, begun.n_restored
        self._prefix_cache = self.pair.prefix_cache()
        yield PromptReady(
            self.job_id,
            begun.n_prompt,
            begun.n_reused,
            context,
            begun.max_tokens,
            begun.n_restored,
            begun.reuse_us / 1e6,
        )

    def _step(self) -> tuple[StepDone, FinishReason | None]:
        step, top = self._pull()
        now = time.perf_counter()
        self._first_at = self._first_at or now
        self._last_at = now
        tokens = list(step.tokens[: step.n_committed])
        ended = _FINISH.get(step.finish)
        text, n_kept = self._read(tokens, has_stop_token=ended == "stop")
        if self._text.stop_string is not None:
            ended = "stop"
        if ended is not None:
            text += self._text.finish(is_cut=ended != "stop")
        kept = tuple(tokens[:n_kept])
        self._token_ids += kept
        counts = self._counts
        counts.n_drafted += step.n_drafted
        counts.n_accepted += step.n_accepted
        counts.n_plain_steps += step.n_drafted == 0
        counts.draft_us += step.draft_us
        counts.verify_us += step.verify_us
        if not counts.n_steps:
            counts.n_first_committed = n_kept
        counts.n_steps += 1
        event = StepDone(
            job_id=self.job_id,
            step_index=counts.n_steps - 1,
            text=text,
            token_ids=kept,
            logprobs=tuple(step.logprobs[:n_kept]) if self.request.want_logprobs else (),
            n_drafted=step.n_drafted,
            n_accepted=step.n_accepted,
            n_committed=n_kept,
            n_reply_tokens=len(self._token_ids),
            n_context_tokens=step.n_positions,
            reason=_REASONS.get(step.reason, "fixed"),
            draft_us=step.draft_us,
            verify_us=step.verify_us,
            commit_us=step.commit_us,
            host_us=step.host_us,
            expected_committed=step.expected_committed,
            expected_us=step.expected_us,
            plain_us=step.plain_us,
            speed_up=step.speed_up,
            block_size=step.block_size,
            elapsed_s=now - self.accepted_at,
            tree=_tree(step),
            top_logprobs=top[:n_kept],
        )
        return event, ended

    def _pull(self) -> tuple[abi.Step, TopLogprobs]:
        """The next step; with a constraint only what it allows of it."""
        session, constraint, n_top = self.pair.session, self.request.constraint, self.request.n_top_logprobs
        if constraint is None and not n_top:
            return session.step(), ()
        proposal = session.propose()
        tokens = proposal.tokens[: proposal.n_committed]
        n_keep = len(tokens) if constraint is None else constraint.n_allowed(tokens)
        n_places = min(n_keep + 1, len(tokens))  # the token after the kept ones is chosen anew, if there is one
        top = tuple(tuple(session.likeliest(i, n_top)) for i in range(n_places)) if n_top else ()
        if constraint is None or n_keep == len(tokens):
            step = session.settle(n_keep)
        else:
            step = session.settle(n_keep, constraint.allowed_after(tokens[:n_keep]))
        if constraint is not None:
            constraint.commit(step.tokens[: step.n_committed])
        return step, top

    def _read(self, tokens: list[int], *, has_stop_token: bool) -> tuple[str, int]:
        """The text of a step, and how many of its tokens the reply keeps: all, or up to the end of a stop string."""
        text = ""
        for index, token in enumerate(tokens):
            if has_stop_token and index == len(tokens) - 1:
                break  # it ended the reply; it is no part of what was said, even where it has a text
            text += self._text.add(token)
            if self._text.stop_string is not None:
                return text, index + 1
        return text, len(tokens)

    def _elapsed(self) -> float:
        return time.perf_counter() - self.accepted_at

    def _done(self, finish: FinishReason) -> GenerationDone:
        counts = self._counts
        now = time.perf_counter()
        return GenerationDone(
            job_id=self.job_id,
            text=self.text,
            token_ids=tuple(self._token_ids),
            finish_reason=finish,
            stop_string=self._text.stop_string,
            n_prompt_tokens=self._n_prompt,
            n_reused_tokens=self._n_reused,
            n_steps=counts.n_steps,
            n_drafted=counts.n_drafted,
            n_accepted=counts.n_accepted,
            n_committed=len(self._token_ids),
            queue_s=self._started_at - self.accepted_at,
            ttft_s=self._first_at - self.accepted_at if self._first_at else 0.0,
            prefill_s=(self._prefilled_at or now) - (self._begun_at or now),
            decode_s=self._last_at - self._first_at,
            n_plain_steps=counts.n_plain_steps,
            draft_s=counts.draft_us / 1e6,
            verify_s=counts.verify_us / 1e6,
            n_first_committed=counts.n_first_committed,
            n_restored_tokens=self._n_restored,
            prefix_cache=self._prefix_cache,
        )


def generation_params(request: Generate) -> abi.Generation:
    """The request in the engine's terms. Raises BadInput for numbers that mean nothing (C would wrap them around)."""
    sampling, draft = request.sampling, request.draft
    for name in ("temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty"):
        if not math.isfinite(getattr(sampling, name)):
            raise BadInput(f"{name} must be a number, not {getattr(sampling, name)}.")
    counts = {
        "max_tokens": request.max_tokens,
        "top_k": sampling.top_k,
        "tree_budget": draft.tree_budget,
        "block_size": draft.block_size,
    }
    for name, count in counts.items():
        if count < 0:
            raise BadInput(f"{name} must be 0 or more, not {count}.")
    if sampling.penalty_window < -1:
        raise BadInput(f"penalty_window must be -1 (all) or more, not {sampling.penalty_window}.")
    most = 2**31 - 1
    return sized(
        abi.Generation,
        max_tokens=min(request.max_tokens, most),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        top_k=min(sampling.top_k, most),
        repeat_penalty=sampling.repeat_penalty,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        penalty_window=min(sampling.penalty_window, most),
        seed=sampling.seed % 2**64,
        draft_mode=code_of(abi.DraftModeCode, draft.mode),
        tree_budget=min(draft.tree_budget, most),
        block_size=min(draft.block_size, most),
        ignore_stop=int(request.ignore_stop),
        want_logprobs=int(request.want_logprobs),
        no_reuse=int(not request.reuse_prefix),
    )


def _tree(step: abi.Step) -> DraftTree | None:
    if not step.n_drafted:
        return None
    n_rows = step.n_drafted + 1
    return DraftTree(
        tokens=tuple(step.node_tokens[:n_rows]),
        parents=tuple(step.node_parents[:n_rows]),
        path_logprobs=tuple(step.node_logprobs[:n_rows]),
        accepted_rows=tuple(step.path[: step.n_accepted + 1]),
    )
