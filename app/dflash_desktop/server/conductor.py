"""What all requests share: the line, the loaded model, the loads; makes each request's Run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.template import MAX_PROMPT_CHARS
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.errors import context_exceeded, dialect_of, not_loaded
from dflash_desktop.server.generation import Run
from dflash_desktop.server.inspector import Inspector, Meta
from dflash_desktop.server.line import Line, Turn
from dflash_desktop.server.loading import Loading, LoadWish
from dflash_desktop.server.models import LoadedModel, ModelState
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.ports import EngineLane
from dflash_desktop.server.presence import Receive, while_connected
from dflash_desktop.server.prompting import PromptPlan, make_plan
from dflash_desktop.server.replay import Replays
from dflash_desktop.server.shortening import may_be_shortened


class Conductor:
    """Makes Runs. Holds what they share; lives on the server's event loop."""

    def __init__(
        self,
        engine: EngineLane,
        models: ModelState,
        loading: Loading,
        options: ServerOptions,
        inspector: Inspector,
    ) -> None:
        self.engine = engine
        self.models = models
        self.loading = loading
        self.options = options
        self.inspector = inspector
        self.line = Line(options.limits.n_waiting)
        self.replays = Replays()

    async def plan(self, request: ChatRequest, model: LoadedModel) -> PromptPlan:
        """Render and tokenize: everything that can refuse, before any work."""
        return await asyncio.to_thread(make_plan, request, model, self.replays)

    def pflash(self, request: ChatRequest) -> PflashOptions:
        """Whether and how its prompt is shortened."""
        default = self.options.pflash
        return request.pflash.over(default) if request.pflash is not None else default

    async def count(self, request: ChatRequest) -> int:
        """Prompt tokens of a request; never waits for the lane, loads nothing."""
        model = self.models.resolve(request.model_asked, takes_any_name=self.options.has_any_model_name)
        return len((await self.plan(request, model)).token_ids)

    async def prepare(self, request: ChatRequest, meta: Meta, receive: Receive) -> Run:
        """A Run whose prompt fits and which has a place in the line; raise ApiError otherwise.

        Where the request names another model than the loaded one and may do so, that is loaded first, when it is this
        request's turn. Raise ClientGone when nobody waits for it any more.
        """
        wish = await self.loading.wish_for(request.model_asked, meta.peer)
        turn = None
        if wish is not None:
            turn = self.line.enter(meta.line_key, is_short=False)
        try:
            model = self.models.loaded
            if wish is not None and turn is not None:
                model = await while_connected(receive, self._load_in_turn(wish, turn))
            if model is None:
                raise not_loaded(is_loading=self.models.is_loading)
            plan = await self.fitting_plan(request, meta, model)
            if turn is None:
                turn = self.line.enter(meta.line_key, is_short=request.is_short)
        except BaseException:
            if turn is not None:
                turn.leave()
            raise
        return Run(self, request, meta, model, plan, turn)

    async def load(self, meta: Meta, wish: LoadWish, receive: Receive, context_tokens: int | None = None) -> None:
        """Load another pair when it is this caller's turn."""
        if context_tokens is not None:
            wish = replace(wish, options=replace(wish.options, context_tokens=context_tokens))
        turn = self.line.enter(meta.line_key)
        try:
            await while_connected(receive, self._load_in_turn(wish, turn))
        finally:
            turn.leave()

    async def fitting_plan(self, request: ChatRequest, meta: Meta, model: LoadedModel) -> PromptPlan:
        """The plan of a prompt that fits, or that may still be shortened; then Run looks again."""
        if sum(len(message["content"]) for message in request.messages) > MAX_PROMPT_CHARS:  # no template takes it
            n_most = model.served.context_tokens
            raise context_exceeded(f"more than {n_most}", n_most, dialect_of(meta.path))
        plan = await self.plan(request, model)
        if not may_be_shortened(request, self.pflash(request)):
            self.check_fit(plan, meta, model)
        return plan

    def check_fit(self, plan: PromptPlan, meta: Meta, model: LoadedModel) -> None:
        """Raise ApiError when the prompt leaves no room for a reply."""
        context_tokens = model.served.context_tokens
        if len(plan.token_ids) >= context_tokens:
            raise context_exceeded(len(plan.token_ids), context_tokens, dialect_of(meta.path))

    async def plan_again(self, request: ChatRequest, meta: Meta) -> tuple[LoadedModel, PromptPlan]:
        """For a request whose turn has come after another model was loaded."""
        wish = await self.loading.wish_for(request.model_asked, meta.peer)
        model = self.models.require_loaded() if wish is None else await self.loading.fulfil(wish)
        return model, await self.fitting_plan(request, meta, model)

    async def _load_in_turn(self, wish: LoadWish, turn: Turn) -> LoadedModel:
        while not await turn.wait(3600.0):
            pass
        return await self.loading.fulfil(wish)
