"""Loads that clients ask for: one at a time, the asked context or a clear refusal, never a silent change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dflash_desktop.engine.events import Event, JobCancelled, JobFailed, PairInfo, PairLoaded, PairUnloaded
from dflash_desktop.engine.requests import LoadOptions, LoadPair, UnloadPair
from dflash_desktop.server.errors import ApiError, not_loaded
from dflash_desktop.server.feed import EventFeed
from dflash_desktop.server.models import ModelState, ServedModel

SubmitLoad = Callable[[LoadPair | UnloadPair], int]
"""Engine.submit, or a wrapper of it that lets the rest of the app hear the job's events too."""


class Loading:
    """Reloads the loaded pair with another context, and unloads it. Lives on the server's event loop."""

    def __init__(self, submit: SubmitLoad, models: ModelState, *, is_allowed: bool) -> None:
        self._submit = submit
        self._models = models
        self._is_allowed = is_allowed
        self._lock = asyncio.Lock()

    async def ensure(self, context_tokens: int | None) -> ServedModel:
        """The loaded model with at least that context, loaded anew if need be; raise ApiError if it cannot be."""
        async with self._lock:  # whoever comes second finds the work done
            served, pair = self._models.require(), self._models.pair
            if context_tokens is None or served.context_tokens >= context_tokens or pair is None:
                return served
            if not self._is_allowed:
                raise ApiError(
                    f"The model is loaded with a context of {served.context_tokens} tokens, {context_tokens} were "
                    "asked for. Settings > Server > Clients may reload lets clients change that.",
                    code="context_not_loaded",
                    param="context_length",
                )
            before = served.context_tokens
            last = await self._load(pair, context_tokens)
            if isinstance(last, PairLoaded):
                return self._models.require()
            reason = last.message if isinstance(last, JobFailed) else "the load was cancelled in the app"
            if self._models.served is None:
                await self._load(pair, before)  # what was there before
            raise ApiError(
                f"A context of {context_tokens} tokens could not be loaded: {reason} "
                f"{before} tokens were loaded before.",
                code="insufficient_memory",
                param="context_length",
            )

    async def unload(self) -> None:
        async with self._lock:
            if self._models.served is None:
                raise not_loaded(is_loading=False)
            feed = EventFeed(asyncio.get_running_loop())
            self._submit(UnloadPair(self._both(feed)))
            await self._last(feed)

    async def _load(self, pair: PairInfo, context_tokens: int) -> Event:
        feed = EventFeed(asyncio.get_running_loop())
        options = LoadOptions(context_tokens=context_tokens)
        self._submit(LoadPair(pair.target, pair.draft, options, self._both(feed)))
        return await self._last(feed)

    def _both(self, feed: EventFeed) -> Callable[[Event], None]:
        def hear(event: Event) -> None:
            self._models.on_engine_event(event)
            feed.put(event)

        return hear

    async def _last(self, feed: EventFeed) -> Event:
        while True:
            for event in await feed.next(3600.0):
                if isinstance(event, PairLoaded | PairUnloaded | JobFailed | JobCancelled):
                    return event
