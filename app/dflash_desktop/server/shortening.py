"""A request's prompt on its way through PFlash: an engine job of its own before the reply's, with heartbeats."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dflash_desktop.engine.events import JobCancelled, JobFailed
from dflash_desktop.engine.pflash.compress import Compression
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed, ScoreProgress
from dflash_desktop.engine.requests import ChatPrompt, CompressPrompt
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.feed import EventFeed
from dflash_desktop.server.messages import LATE_SYSTEM
from dflash_desktop.server.options import Limits
from dflash_desktop.server.pflash import PflashFacts
from dflash_desktop.server.pieces import Beat, Piece
from dflash_desktop.server.ports import EngineLane

Messages = Sequence[Mapping[str, Any]]


def may_be_shortened(request: ChatRequest, options: PflashOptions) -> bool:
    """Whether its prompt can come out shorter; if not, it has to fit as it is."""
    if options.mode == "off" or options.scorer is None or request.raw is not None:
        return False
    uses_tools = any(message["role"] == "tool" or message.get("tool_calls") for message in request.messages)
    return not request.tools and not uses_tools


def compress_job(
    request: ChatRequest, options: PflashOptions, subscriber: Callable[[Any], None], *, counts_by_scorer: bool = False
) -> CompressPrompt:
    """What the engine is asked. A system message that was moved into a user's turn is never touched there."""
    if request.raw is not None:
        return CompressPrompt(request.raw, options, subscriber)
    late = [i for i, message in enumerate(request.messages) if _is_late_system(message.get("content"))]
    prompt = ChatPrompt(request.messages, request.tools, continue_last=request.continue_last)
    chosen = (*options.chosen, *((i, 1.0) for i in late))
    return CompressPrompt(prompt, replace(options, chosen=chosen), subscriber, counts_by_scorer=counts_by_scorer)


def _is_late_system(content: object) -> bool:
    return isinstance(content, str) and content.startswith(LATE_SYSTEM)


class Shortener:
    """Of one request. Iterate `beats` to the end; then `messages` is what is left, or None with `why_not`."""

    def __init__(self, engine: EngineLane, options: PflashOptions, limits: Limits) -> None:
        self._engine = engine
        self._scorer_name = options.scorer.stem if options.scorer is not None else ""
        self._limits = limits
        self._done: PromptCompressed | None = None
        self._why_not = ""

    @property
    def compression(self) -> Compression | None:
        """What was done to the conversation; None: the prompt goes in whole."""
        return self._done.compression if self._done is not None else None

    @property
    def messages(self) -> Messages | None:
        """The shortened conversation; None: the prompt goes in whole."""
        found = self.compression
        return found.messages if found is not None else None

    def facts(self, n_before: int, n_after: int) -> PflashFacts:
        """For the answer, once both prompts are counted."""
        done, found = self._done, self.compression
        if done is None or found is None:
            if done is None:
                return PflashFacts(n_before, n_before, scorer_name=self._scorer_name, why_not=self._why_not)
            return PflashFacts(n_before, n_before, scorer_name=done.scorer_name, why_not=done.why_not)
        return PflashFacts(
            n_before,
            n_after,
            n_droppable_tokens=found.n_droppable,
            n_kept_tokens=found.n_kept,
            n_recalled_tokens=found.n_recalled,
            scorer_name=done.scorer_name,
            load_s=done.load_s,
            score_s=done.score_s,
        )

    async def beats(
        self, make_job: Callable[[Callable[[Any], None]], CompressPrompt], watch: Callable[[float], None]
    ) -> AsyncGenerator[list[Piece], None]:
        """Heartbeats until the engine has decided; `watch` hears how much the scorer has read, 0 to 1.

        Left early, it cancels the job. Raise ApiError when somebody else cancels it; whatever else goes wrong means
        that the prompt goes in whole.
        """
        feed = EventFeed(asyncio.get_running_loop())
        job_id: int | None = self._engine.submit(make_job(feed.put))
        beat_s = self._limits.first_beat_s
        beaten_s = time.monotonic()
        try:
            while job_id is not None:
                for event in await feed.next(max(0.0, beaten_s + beat_s - time.monotonic())):
                    match event:
                        case PromptCompressed():
                            self._done = event
                            job_id = None
                        case ScoreProgress():
                            watch(event.n_done_tokens / max(1, event.n_total_tokens))
                        case JobFailed():
                            self._why_not = f"The prompt could not be shortened, so it goes in whole. {event.message}"
                            job_id = None
                        case JobCancelled():
                            job_id = None
                            raise ApiError(
                                "The request was cancelled in the app.",
                                status=503,
                                kind="server_error",
                                code="cancelled",
                            )
                        case _:
                            pass
                if job_id is not None and time.monotonic() - beaten_s >= beat_s:
                    beaten_s, beat_s = time.monotonic(), self._limits.beat_s
                    yield [Beat()]
        finally:
            if job_id is not None:
                self._engine.cancel(job_id)
