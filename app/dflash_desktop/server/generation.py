"""One reply from request to last token: the waiting line, the engine job, the parsers, the thinking budget.

A Run is an async generator of batches of pieces. Closing it early (the client is gone) cancels the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.engine.requests import Generate, TokenPrompt
from dflash_desktop.server.cards import CLOSING_THOUGHT, default_sampling
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.errors import ApiError, from_failed_job
from dflash_desktop.server.events import Outcome, Phase, RequestMoved, RequestRendered
from dflash_desktop.server.feed import EventFeed
from dflash_desktop.server.inspector import Meta
from dflash_desktop.server.line import Turn
from dflash_desktop.server.models import LoadedModel, ServedModel
from dflash_desktop.server.parsing.reasoning import CLOSE_TAG
from dflash_desktop.server.pieces import Beat, Finished, Piece, Prefilled, PromptRead, Reply, ReplyFinish, Waiting
from dflash_desktop.server.prompting import PromptPlan
from dflash_desktop.server.shaping import Shaper
from dflash_desktop.server.shortening import Shortener, compress_job
from dflash_desktop.server.tally import Tally

if TYPE_CHECKING:
    from dflash_desktop.server.conductor import Conductor
    from dflash_desktop.server.pieces import Usage

_JOIN_S = 1 / 40  # steps that are faster than this are joined: each write costs the lane a moment of the interpreter
_MAX_PLANS = 3  # so often a request is read anew because the model changed under it
_DRAIN_S = 30.0  # to wait for the engine's last word after we ended a reply ourselves


class _PairChanged(Exception):
    """The engine refused a job because another pair, or none, is loaded."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


class Run:
    """One reply. Iterate `batches` once, to the end or until the client is gone."""

    def __init__(
        self,
        conductor: Conductor,
        request: ChatRequest,
        meta: Meta,
        model: LoadedModel,
        plan: PromptPlan,
        turn: Turn,
    ) -> None:
        self.request = request
        self.meta = meta
        self.reply = Reply()
        self.n_reused_tokens = 0
        self._conductor = conductor
        self._turn = turn
        self._job_id: int | None = None
        self._is_started = False
        self._use(model, plan)

    def _use(self, model: LoadedModel, plan: PromptPlan) -> None:
        self._model = model
        self.plan = plan
        self._shaper = Shaper(self.request, plan)
        self._tally = Tally(n_prompt_tokens=len(plan.token_ids))
        room = max(1, model.served.context_tokens - len(plan.token_ids))
        self._limit = min(self.request.max_tokens or room, self._conductor.options.max_reply_tokens or room, room)
        temperature = self._conductor.options.default_temperature
        default = default_sampling(model.served, thinks=plan.starts_in_thoughts, temperature=temperature)
        # Without a seed every request draws its own; at temperature 0 it changes nothing.
        self._sampling = self.request.sampling.over(replace(default, seed=secrets.randbits(31)))

    @property
    def served(self) -> ServedModel:
        return self._model.served

    @property
    def n_prompt_tokens(self) -> int:
        return len(self.plan.token_ids)

    @property
    def usage(self) -> Usage:
        """Of the whole reply, or so far."""
        return self.reply.finish.usage if self.reply.finish is not None else self._tally.usage()

    @property
    def send_gap_s(self) -> float:
        return self._conductor.options.limits.send_gap_s

    @property
    def verdict(self) -> str | None:
        """What the check of a JSON answer found: empty if valid, None if none was asked."""
        return self._shaper.verdict

    def abandon(self) -> None:
        """Give the place in the line back without having started."""
        if not self._is_started:
            self._turn.leave()

    async def batches(self) -> AsyncGenerator[list[Piece], None]:
        """Pieces as they become certain; the last is Finished. Raise ApiError when the engine fails."""
        self._is_started = True
        self._conductor.loading.enter()
        started_s = time.monotonic()
        inspector = self._conductor.inspector
        inspector.arrived(self.meta, self.request)
        inspector.rendered(self._rendered_event())
        outcome: Outcome = "cancelled"
        message = ""
        try:
            async for batch in self._batches():
                for piece in batch:
                    self.reply.add(piece)
                yield batch
            finish = self.reply.finish
            self._conductor.replays.remember(self.reply, self._shaper.raw_answer)
            if finish is not None:
                outcome = "stop" if finish.reason == "stop_string" else finish.reason
        except ApiError as error:
            outcome, message = "failed", error.message
            raise
        finally:
            if self._job_id is not None:
                self._conductor.engine.cancel(self._job_id)
            self._turn.leave()
            self._conductor.loading.leave(self.request.idle_unload_s)
            inspector.ended(
                self.meta,
                outcome,
                reply=self.reply,
                usage=self.usage,
                total_s=time.monotonic() - started_s,
                message=message,
                notes=(*self.plan.notes, *self._shaper.notes),
            )

    async def _batches(self) -> AsyncGenerator[list[Piece], None]:
        limits = self._conductor.options.limits
        beat_s = limits.first_beat_s
        if not self._turn.is_open:
            yield [Waiting(self._turn.n_ahead)]
        while not self._turn.is_open:
            if not await self._turn.wait(beat_s):
                self._moved("waiting")
                yield [Beat()]
            beat_s = limits.beat_s
        if self._conductor.models.loaded is not self._model:
            async for beat in self._plan_again():
                yield beat
        else:
            async for beat in self._shorten():
                yield beat
        written = self._shaper.begin()
        if written:
            yield list(written)
        token_ids = self.plan.token_ids
        is_first, n_tries = True, 0
        while True:
            feed = EventFeed(asyncio.get_running_loop())
            self._job_id = self._conductor.engine.submit(self._job(token_ids, feed, is_first=is_first))
            done: GenerationDone | None = None
            try:
                async for batch in self._job_batches(feed):
                    if isinstance(batch, GenerationDone):
                        done = batch
                    else:
                        yield batch
            except _PairChanged as changed:  # before anything of this job came
                n_tries += 1
                if not is_first or n_tries > _MAX_PLANS:
                    raise changed.error from None
                async for beat in self._plan_again():
                    yield beat
                token_ids = self.plan.token_ids
                continue
            is_first = False
            assert done is not None
            self._job_id = None
            self._tally.add(done)
            if not self._must_close_thoughts(done):
                break
            closing = f"{CLOSING_THOUGHT}{CLOSE_TAG}\n\n"
            closing_ids = self._model.reader.tokenize(closing, has_control_tokens=True)
            token_ids = (*token_ids, *done.token_ids, *closing_ids)
            yield list(self._shaper.feed(closing))
        yield [*self._shaper.finish(), Finished(*self._finish_reason(done), self._tally.usage())]

    async def _plan_again(self) -> AsyncGenerator[list[Piece], None]:
        """Another model was loaded while this request waited: load its own again, or read the prompt with that one."""
        limits = self._conductor.options.limits
        task = asyncio.ensure_future(self._conductor.plan_again(self.request, self.meta))
        try:
            while not (await asyncio.wait({task}, timeout=limits.beat_s))[0]:
                yield [Beat()]
            self._use(*task.result())
        finally:
            task.cancel()
        async for beat in self._shorten():
            yield beat

    async def _shorten(self) -> AsyncGenerator[list[Piece], None]:
        """Through PFlash, if it is on: afterwards the plan is that of the shortened prompt, or fits as it was."""
        options = self._conductor.pflash(self.request)
        if options.mode == "off":
            return
        shortener = Shortener(self._conductor.engine, options, self._conductor.options.limits)
        whole = self.plan
        beats = shortener.beats(lambda hear: compress_job(self.request, options, hear), self._scored)
        async with contextlib.aclosing(beats):
            async for beat in beats:
                yield beat
        if shortener.messages is not None:
            asked = replace(self.request, messages=shortener.messages)
            self._use(self._model, await self._conductor.plan(asked, self._model))
        self._conductor.check_fit(self.plan, self.meta, self._model)
        self._tally.pflash = shortener.facts(len(whole.token_ids), self.n_prompt_tokens)
        self._conductor.inspector.rendered(self._rendered_event())

    def _scored(self, share: float) -> None:
        self._moved("prefill", n_prefilled=int(share * self.n_prompt_tokens))

    async def _job_batches(self, feed: EventFeed) -> AsyncGenerator[list[Piece] | GenerationDone, None]:
        """Batches of one engine job, then its GenerationDone."""
        limits = self._conductor.options.limits
        beat_s = limits.first_beat_s
        ended_s: float | None = None
        while True:
            events = await feed.next(beat_s)
            beat_s = limits.beat_s
            if not events:
                if ended_s is not None and time.monotonic() - ended_s > _DRAIN_S:
                    raise ApiError(
                        "The engine did not end the reply.", status=500, kind="server_error", code="engine_error"
                    )
                yield [Beat()]
                continue
            batch: list[Piece] = []
            for event in self._joined(events):
                match event:
                    case GenerationDone():
                        if not self._shaper.own_finish:
                            batch += self._shaper.feed(self._tally.unseen_text(event))
                        if batch:
                            yield batch
                        yield event
                        return
                    case JobFailed():
                        self._job_id = None
                        if event.kind == "no_pair":
                            raise _PairChanged(from_failed_job(event))
                        raise from_failed_job(event)
                    case JobCancelled():
                        self._job_id = None
                        text = "The request was cancelled in the app."
                        raise ApiError(text, status=503, kind="server_error", code="cancelled")
                    case _:
                        batch += self._pieces_of(event)
            if self._shaper.own_finish and ended_s is None and self._job_id is not None:
                ended_s = time.monotonic()
                self._conductor.engine.cancel(self._job_id)
            if batch:
                yield batch
            if any(isinstance(event, StepDone) for event in events):
                await feed.rest(_JOIN_S)

    def _joined(self, events: list[Event]) -> Iterator[Event]:
        """The events, with the texts of steps that came together in one: parsing them one by one would be work only.

        Not where each step counts for itself: in thoughts and with log-probabilities.
        """
        waiting: StepDone | None = None
        texts: list[str] = []
        for event in events:
            if isinstance(event, StepDone) and not self.request.want_logprobs and not self._shaper.is_in_thoughts:
                if waiting is not None:
                    self._tally.count(waiting)
                waiting = event
                texts.append(event.text)
                continue
            if waiting is not None:
                yield replace(waiting, text="".join(texts))
                waiting, texts = None, []
            yield event
        if waiting is not None:
            yield replace(waiting, text="".join(texts))

    def _pieces_of(self, event: Event) -> list[Piece]:
        match event:
            case PromptReady():
                self.n_reused_tokens = event.n_reused_tokens
                if not self._tally.n_reply_tokens:  # a later job finds what the earlier one read
                    self._tally.n_reused_tokens = event.n_reused_tokens
                    self._tally.n_restored_tokens = event.n_restored_tokens
                self._moved("prefill")
                return [PromptRead(event.n_prompt_tokens, event.n_reused_tokens)]
            case PrefillProgress():
                self._moved("prefill", n_prefilled=event.n_done_tokens)
                return [Prefilled(event.n_done_tokens, event.n_total_tokens, self.n_reused_tokens, event.elapsed_s)]
            case StepDone():
                self._tally.step(event, is_in_thoughts=self._shaper.is_in_thoughts)
                self._moved("decode")
                if self._shaper.own_finish:
                    return []
                pieces: list[Piece] = list(self._shaper.feed(event.text))
                if self.request.want_logprobs and event.logprobs and not self._shaper.is_in_thoughts:
                    pieces.append(self._shaper.logprobs(event, self._model.reader))
                return pieces
            case _:
                return []

    def _job(self, token_ids: tuple[int, ...], feed: EventFeed, *, is_first: bool) -> Generate:
        request, plan = self.request, self.plan
        return Generate(
            prompt=TokenPrompt(token_ids),
            subscriber=feed.put,
            sampling=self._sampling,
            max_tokens=self._phase_limit(),
            stop=() if plan.starts_in_thoughts else request.stop,
            want_logprobs=request.want_logprobs,
            n_top_logprobs=request.n_top_logprobs,
            constraint=plan.follow(is_first) if plan.follow is not None else None,
            for_pair=self._model.pair,
        )

    def _phase_limit(self) -> int:
        asked = self._limit - self._tally.n_reply_tokens
        budget = self.plan.think_budget
        if budget is not None and self._shaper.is_in_thoughts:
            asked = min(asked, budget)
        return max(1, asked)

    def _must_close_thoughts(self, done: GenerationDone) -> bool:
        if self.plan.think_budget is None or not self._shaper.is_in_thoughts or self._shaper.own_finish:
            return False
        return done.finish_reason == "length" and self._tally.n_reply_tokens + 16 < self._limit

    def _finish_reason(self, done: GenerationDone) -> tuple[ReplyFinish, str | None]:
        own = self._shaper.own_finish
        if own is not None:
            return own, self._shaper.stop_string
        if done.finish_reason in {"length", "context"}:
            return ("length" if done.finish_reason == "length" else "context"), None
        if self._shaper.has_complete_call:
            return "tool_calls", None
        if done.stop_string is not None:
            return "stop_string", done.stop_string
        return ("cancelled" if done.finish_reason == "cancelled" else "stop"), None

    def _rendered_event(self) -> RequestRendered:
        names = tuple(str(tool["function"]["name"]) for tool in self.plan.tools)
        return RequestRendered(
            self.meta.request_id,
            self.plan.text,
            self.n_prompt_tokens,
            names,
            self._limit,
            self._sampling.temperature,
            self.plan.notes,
        )

    def _moved(self, phase: Phase, *, n_prefilled: int = 0) -> None:
        if not self._conductor.inspector.is_due(self.meta.request_id):
            return
        usage = self._tally.usage()
        self._conductor.inspector.moved(
            RequestMoved(
                self.meta.request_id,
                phase,
                self._turn.n_ahead,
                self.n_reused_tokens,
                n_prefilled,
                self.n_prompt_tokens,
                usage.n_reply_tokens,
                usage.acceptance_length,
                usage.decode_tps,
            )
        )
