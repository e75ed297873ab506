"""Loads that a client asks for over a socket, with their progress."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.lmstudio import load_named
from dflash_desktop.server.lmstudio_sdk.caller import Caller, Channel
from dflash_desktop.server.lmstudio_sdk.infos import instance_info, model_info
from dflash_desktop.server.lmstudio_sdk.packets import Query, naming
from dflash_desktop.server.lmstudio_sdk.prediction_body import LOADED_CONTEXT, Stack
from dflash_desktop.server.models import ModelState, ServedModel, answers_to, served_model
from dflash_desktop.server.presence import while_connected

_PROGRESS_S = 0.25


class LoadBody(msgspec.Struct, rename="camel"):
    """`identifier`, a name for the new instance, has no meaning: a model is loaded once, under its id."""

    model_key: str
    load_config_stack: Stack
    identifier: str | None = None
    ttl_ms: float | None = None


class GetOrLoadBody(msgspec.Struct, rename="camel"):
    identifier: str
    load_config_stack: Stack
    load_ttl_ms: float | None = None


@dataclass(frozen=True, slots=True)
class _Words:
    """The names of the packets: the two channels have their own."""

    started: str
    progress: str
    done: str


_LOAD = _Words("resolved", "progress", "success")
_GET_OR_LOAD = _Words("startLoading", "loadProgress", "loadSuccess")


async def load_model(conductor: Conductor, channel: Channel, body: LoadBody, caller: Caller) -> None:
    """Like LM Studio's REST load: at once when the model is there with enough context."""
    caller.wishes.idle_unload_s = _seconds(body.ttl_ms)
    await _load(conductor, channel, body.model_key, body.load_config_stack, caller, _LOAD)


async def get_or_load(conductor: Conductor, channel: Channel, body: GetOrLoadBody, caller: Caller) -> None:
    """What is loaded stays as it is; the settings count for a load only."""
    caller.wishes.idle_unload_s = _seconds(body.load_ttl_ms)
    with naming(Query(identifier=body.identifier), conductor.models):
        wish = await conductor.loading.wish_for(body.identifier, caller.peer)
    if wish is None:
        await channel.send({"type": "alreadyLoaded", "info": instance_info(conductor.models.require())})
        return
    await _load(conductor, channel, body.identifier, body.load_config_stack, caller, _GET_OR_LOAD)


async def _load(conductor: Conductor, channel: Channel, name: str, stack: Stack, caller: Caller, words: _Words) -> None:
    context_tokens = _context_tokens(stack)
    with naming(Query(identifier=name), conductor.models):
        info = _info_of(conductor, name, caller.peer)
        if info is not None:
            await channel.send({"type": words.started, "identifier": info["modelKey"], "info": info})
        work = load_named(conductor, name, caller.meta(), channel.receive, context_tokens=context_tokens)
        task = asyncio.ensure_future(while_connected(channel.receive, work))
        conductor.loading.enter()
        try:
            while not (await asyncio.wait({task}, timeout=_PROGRESS_S))[0]:
                await channel.send({"type": words.progress, "progress": _progress(conductor.models)})
            served = task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            conductor.loading.leave(caller.wishes.idle_unload_s)
    await channel.send({"type": words.done, "info": instance_info(served)})


def _info_of(conductor: Conductor, name: str, peer: str) -> dict[str, Any] | None:
    """Of the model that `name` will get; None where that is not known before the load."""
    try:
        return model_info(conductor.loading.listed(name, peer))
    except ApiError:
        last = conductor.models.last
    served: ServedModel | None = served_model(last, 0.0) if last is not None else None
    return model_info(served) if served is not None and answers_to(served, name) else None


def _progress(models: ModelState) -> float:
    return round(models.progress, 4) if models.is_loading else 0.0  # 0: still in line


def _context_tokens(stack: Stack) -> int | None:
    asked = stack.fields().get(LOADED_CONTEXT)
    if asked is None:
        return None
    if isinstance(asked, bool) or not isinstance(asked, int) or not 0 < asked < 1 << 31:
        raise ApiError("contextLength must be a number of tokens.", param="contextLength")
    return asked


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1000 if milliseconds is not None and 0 < milliseconds < 1e12 else None
