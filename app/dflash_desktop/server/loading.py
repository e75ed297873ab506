"""Loads that clients ask for: one at a time, the asked model and context or a clear refusal, never a silent change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from dflash_desktop.engine.events import Event, JobCancelled, JobFailed, PairInfo, PairLoaded, PairUnloaded
from dflash_desktop.engine.requests import LoadOptions, LoadPair, UnloadPair
from dflash_desktop.server.access import is_loopback_address
from dflash_desktop.server.errors import ApiError, not_loaded, unknown_model
from dflash_desktop.server.feed import EventFeed
from dflash_desktop.server.models import LoadedModel, ModelState, ServedModel, answers_to
from dflash_desktop.server.naming import folded, means_any
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.shelf import SERVING_CONTEXT, Shelf, ShelfModel

T = TypeVar("T")

SubmitLoad = Callable[[LoadPair | UnloadPair], int]
"""Engine.submit, or a wrapper of it that lets the rest of the app hear the job's events too."""


@dataclass(frozen=True, slots=True)
class LoadWish:
    """A pair that has to be loaded for a request. `options.context_tokens` 0: a good one for serving."""

    target: Path
    draft: Path | None
    options: LoadOptions
    trained_context_tokens: int = 0


class Loading:
    """Loads what clients name, reloads with another context, unloads. Lives on the server's event loop."""

    def __init__(
        self, submit: SubmitLoad, models: ModelState, options: ServerOptions, shelf: Shelf | None = None
    ) -> None:
        self._submit = submit
        self._models = models
        self._options = options
        self._shelf = shelf
        self._lock = asyncio.Lock()
        self._on_demand: LoadedModel | None = None  # what a client's wish loaded
        self._n_users = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def may_load(self, peer: str) -> bool:
        """Whether a caller at that address may change what is loaded."""
        is_near = is_loopback_address(peer) or self._options.can_lan_clients_load
        return self._options.can_clients_reload and is_near

    def loadable(self, peer: str) -> list[ShelfModel]:
        """What listings show besides the loaded model."""
        if self._shelf is None or not (self._options.loads_on_demand and self.may_load(peer)):
            return []
        loaded = self._models.loaded
        if loaded is None:
            return list(self._shelf.models())
        here, served_id = loaded.pair.target.resolve(), loaded.served.model_id  # a link to it, or a copy: not twice
        return [each for each in self._shelf.models() if each.model_id != served_id and each.target.resolve() != here]

    def listed(self, asked: str, peer: str) -> ServedModel | ShelfModel:
        """The loaded or loadable model of that name; raise ApiError when there is none."""
        loaded, others = self._models.loaded, self.loadable(peer)
        if loaded is not None and answers_to(loaded.served, asked):
            return loaded.served
        found = next((model for model in others if model.answers_to(folded(asked))), None)
        if found is not None:
            return found
        if loaded is None and not others:
            raise not_loaded(is_loading=self._models.is_loading)
        known = [loaded.served.model_id] if loaded is not None else []
        raise unknown_model(asked, (*known, *(model.model_id for model in others)))

    async def wish_for(self, asked: str, peer: str) -> LoadWish | None:
        """What has to be loaded for a request that names `asked`; None: the loaded model serves it.

        Raise ApiError when nothing here does.
        """
        loaded = self._models.loaded
        if loaded is not None and answers_to(loaded.served, asked):
            return None
        is_allowed = self._options.loads_on_demand and self.may_load(peer)
        if is_allowed and self._shelf is not None and not means_any(asked):
            found = await asyncio.to_thread(self._shelf.find, asked)
            if found is not None:
                return self._wish(found)
        any_will_do = self._options.has_any_model_name or means_any(asked)
        if loaded is not None and any_will_do:
            return None
        last = self._models.last
        if loaded is None and is_allowed and last is not None and not self._models.is_loading and any_will_do:
            return LoadWish(last.target, last.draft, replace(last.options, context_tokens=last.context_tokens))
        if loaded is None and any_will_do:
            raise not_loaded(is_loading=self._models.is_loading)
        known = [loaded.served.model_id] if loaded is not None else []
        raise unknown_model(asked, (*known, *(model.model_id for model in self.loadable(peer))))

    async def fulfil(self, wish: LoadWish) -> LoadedModel:
        """The pair of `wish`, loaded if it is not; raise ApiError if it cannot be.

        A load that has begun goes on when its caller is cancelled: others may wait for it.
        """
        return await self._to_its_end(self._fulfil(wish))

    async def ensure_context(self, context_tokens: int | None, peer: str) -> LoadedModel:
        """The loaded model with at least that context, loaded anew if need be; raise ApiError if it cannot be."""
        return await self._to_its_end(self._ensure_context(context_tokens, peer))

    async def _to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever still waits gets it; nobody else misses it

    async def _fulfil(self, wish: LoadWish) -> LoadedModel:
        async with self._lock:  # whoever comes second finds the work done
            loaded = self._models.loaded
            if loaded is not None and loaded.pair.target.resolve() == wish.target.resolve():
                return loaded
            before = loaded.pair if loaded is not None else None
            last = await self._load(wish.target, wish.draft, self._with_context(wish))
            if isinstance(last, JobFailed) and last.kind == "out_of_memory":  # once more with what the engine chooses
                last = await self._load(wish.target, wish.draft, replace(wish.options, context_tokens=0))
            if isinstance(last, PairLoaded):
                self._on_demand = self._models.require_loaded()
                return self._on_demand
            await self._restore(before)
            raise ApiError(
                f"The model could not be loaded: {_reason(last)}",
                status=503,
                kind="server_error",
                code="model_not_loaded",
                param="model",
                anthropic_status=529,
            )

    async def _ensure_context(self, context_tokens: int | None, peer: str) -> LoadedModel:
        async with self._lock:
            loaded = self._models.require_loaded()
            served, pair = loaded.served, loaded.pair
            if context_tokens is None or served.context_tokens >= context_tokens:
                return loaded
            if not self.may_load(peer):
                raise ApiError(
                    f"The model is loaded with a context of {served.context_tokens} tokens, {context_tokens} were "
                    "asked for. In the window, Serve > Access > Programs may load models lets clients change that; "
                    "dflash-desktop serve does so without --no-reload.",
                    code="context_not_loaded",
                    param="context_length",
                )
            # Device, KV types and threads stay as the person chose them.
            last = await self._load(pair.target, pair.draft, replace(pair.options, context_tokens=context_tokens))
            if isinstance(last, PairLoaded):
                return self._models.require_loaded()
            await self._restore(pair)
            is_memory = isinstance(last, JobFailed) and last.kind == "out_of_memory"
            raise ApiError(
                f"A context of {context_tokens} tokens could not be loaded: {_reason(last)} "
                f"{served.context_tokens} tokens were loaded before.",
                code="insufficient_memory" if is_memory else "invalid_value",
                param="context_length",
            )

    async def unload(self) -> None:
        async with self._lock:
            self._models.require_loaded()
            feed = EventFeed(asyncio.get_running_loop())
            self._submit(UnloadPair(self._both(feed)))
            await self._last(feed)

    # ---- idle time ---------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """A request uses the model."""
        self._n_users += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def leave(self, asked_s: float | None = None) -> None:
        """It is done. `asked_s`: after so many idle seconds its client wants the model gone; below 0: never.

        That wish counts for models that a client's request loaded; what the person loaded stays.
        """
        self._n_users -= 1
        idle_s = self._options.idle_unload_s
        if asked_s is not None and self._on_demand is not None and self._on_demand is self._models.loaded:
            idle_s = asked_s if asked_s >= 0 else 0.0
        if self._n_users == 0 and idle_s > 0:
            self._timer = asyncio.get_running_loop().call_later(idle_s, self._on_idle)

    def _on_idle(self) -> None:
        self._timer = None
        if self._n_users == 0 and self._models.loaded is not None:
            task = asyncio.ensure_future(self._unload_quietly())
            self._tasks.add(task)
            task.add_done_callback(self._forget)

    async def _unload_quietly(self) -> None:
        try:
            await self.unload()
        except ApiError:
            return  # somebody else was faster

    # ---- jobs --------------------------------------------------------------------------------------------------

    def _wish(self, found: ShelfModel) -> LoadWish:
        """With the settings of the last load, except its context, which was chosen for another model."""
        last = self._models.last
        options = replace(last.options, context_tokens=0) if last is not None else LoadOptions()
        return LoadWish(found.target, found.draft, options, found.trained_context_tokens)

    def _with_context(self, wish: LoadWish) -> LoadOptions:
        if wish.options.context_tokens or not wish.trained_context_tokens:
            return wish.options
        return replace(wish.options, context_tokens=min(SERVING_CONTEXT, wish.trained_context_tokens))

    async def _restore(self, pair: PairInfo | None) -> None:
        """Load what was there before, if the failed load freed it."""
        if pair is not None and self._models.loaded is None:
            options = replace(pair.options, context_tokens=pair.context_tokens)
            await self._load(pair.target, pair.draft, options)

    async def _load(self, target: Path, draft: Path | None, options: LoadOptions) -> Event:
        feed = EventFeed(asyncio.get_running_loop())
        self._submit(LoadPair(target, draft, options, self._both(feed)))
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


def _reason(last: Event) -> str:
    return last.message if isinstance(last, JobFailed) else "the load was cancelled in the app."
