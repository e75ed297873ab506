"""Every call and channel that is served, by subject. What is not here is answered with an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from dflash_desktop.server.bodies import typed
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.lmstudio import unload_named
from dflash_desktop.server.lmstudio_sdk.caller import Caller, Channel
from dflash_desktop.server.lmstudio_sdk.infos import instance_info, load_fields, model_info
from dflash_desktop.server.lmstudio_sdk.loads import GetOrLoadBody, LoadBody, get_or_load, load_model
from dflash_desktop.server.lmstudio_sdk.packets import Query, Specifier, naming
from dflash_desktop.server.lmstudio_sdk.prediction import predict
from dflash_desktop.server.lmstudio_sdk.prediction_body import History, PredictionBody, Stack, prediction_request
from dflash_desktop.server.models import LoadedModel, ServedModel, answers_to

Body = TypeVar("Body", bound=msgspec.Struct)
Call = Callable[[Any, Caller], Awaitable[object]]
OpenChannel = Callable[[Any, Channel, Caller], Awaitable[None]]

NOTHING: Final = object()
"""The result of a call that has none."""

_LEVEL = "0.3.26"  # the release of LM Studio whose packets these are, not our own


@dataclass(frozen=True, slots=True)
class Subject:
    """What one socket offers. `listings`: what a program of this computer may ask for without the key."""

    calls: dict[str, Call]
    channels: dict[str, OpenChannel]
    listings: frozenset[str] = frozenset()
    otherwise: str = ""  # why nothing else is served


class UnloadBody(msgspec.Struct):
    identifier: str


class InfoBody(msgspec.Struct, rename="camel"):
    specifier: Specifier
    throw_if_not_found: bool = True


class TextBody(msgspec.Struct, rename="camel"):
    specifier: Specifier
    input_string: str


class TemplateBody(msgspec.Struct, rename="camel"):
    specifier: Specifier
    history: History
    prediction_config_stack: Stack
    opts: Any = None


def subjects(conductor: Conductor) -> dict[str, Subject]:
    """By the path of their socket, without the slash."""
    models = _ModelCalls(conductor)
    return {
        "system": Subject(
            {
                "listDownloadedModels": models.list_downloaded,
                "version": _version,
                "getExperimentFlags": _nothing_listed,
            },
            {"alive": _alive},
            frozenset({"listDownloadedModels", "version", "getExperimentFlags", "alive"}),
            "The app itself is not controlled over this socket.",
        ),
        "llm": Subject(
            {
                "listLoaded": models.list_loaded,
                "getModelInfo": models.info,
                "getLoadConfig": models.load_config,
                "getInstanceProcessingState": models.state,
                "unloadModel": models.unload,
                "tokenize": models.tokenize,
                "countTokens": models.count,
                "applyPromptTemplate": models.template,
            },
            {"predict": models.predict, "loadModel": models.load, "getOrLoad": models.get_or_load},
            frozenset({"listLoaded", "getModelInfo", "getLoadConfig", "getInstanceProcessingState"}),
            "A draft is loaded together with its target.",
        ),
        "embedding": Subject(
            {"listLoaded": _nothing_listed, "getModelInfo": models.no_embedding},
            {},
            frozenset({"listLoaded"}),
            "There is no embedding model here.",
        ),
        "files": Subject({}, {}, otherwise="Models here read text only: put the text of a file into the message."),
        "repository": Subject({}, {}, otherwise="Models are searched for and downloaded in the app only."),
        "diagnostics": Subject({}, {}, otherwise="Requests are listed on the app's Serve page."),
        "plugins": Subject({}, {}, otherwise="Plugins run in LM Studio only."),
    }


def not_served(path: str, subject: Subject, endpoint: str) -> ApiError:
    text = f"{path.strip('/')}.{endpoint[:60]} is not served here. {subject.otherwise}"
    return ApiError(text.rstrip(), status=404, code="unknown_endpoint")


def read(parameter: object, kind: type[Body]) -> Body:
    """A call's parameter as `kind`; raise ApiError naming the member that does not fit."""
    if not isinstance(parameter, dict):
        raise ApiError("The parameter must be an object.", code="invalid_value", param="parameter")
    return typed(parameter, kind, [])


async def _version(parameter: object, caller: Caller) -> object:
    del parameter, caller
    return {"version": _LEVEL, "build": 1}


async def _nothing_listed(parameter: object, caller: Caller) -> object:
    del parameter, caller
    return []


async def _alive(parameter: object, channel: Channel, caller: Caller) -> None:
    """Open as long as the socket is."""
    del parameter, caller
    await channel.receive()


class _ModelCalls:
    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._models = conductor.models
        self._loading = conductor.loading

    async def list_downloaded(self, parameter: object, caller: Caller) -> object:
        """The loaded model first. The draft is in no list: it would be chosen by accident."""
        del parameter
        self._conductor.inspector.seen(caller.meta())
        served = self._models.served
        infos = [model_info(served)] if served is not None else []
        return [*infos, *map(model_info, self._loading.loadable(caller.peer))]

    async def list_loaded(self, parameter: object, caller: Caller) -> object:
        del parameter
        self._conductor.inspector.seen(caller.meta())
        served = self._models.served
        return [instance_info(served)] if served is not None else []

    async def info(self, parameter: object, caller: Caller) -> object:
        del caller
        body = read(parameter, InfoBody)
        try:
            return instance_info(self._loaded(body.specifier))
        except ApiError:
            if body.throw_if_not_found:
                raise
            return NOTHING

    async def no_embedding(self, parameter: object, caller: Caller) -> object:
        del caller
        body = read(parameter, InfoBody)
        if not body.throw_if_not_found:
            return NOTHING
        with naming(body.specifier.query or Query(), self._models):
            raise ApiError("There is no embedding model here.", status=404, code="model_not_found", param="model")

    async def load_config(self, parameter: object, caller: Caller) -> object:
        del caller
        return load_fields(self._loaded(read(parameter, InfoBody).specifier), self._models.pair)

    async def state(self, parameter: object, caller: Caller) -> object:
        del caller
        self._loaded(read(parameter, InfoBody).specifier)
        line = self._conductor.line
        return {"status": "generating" if line.is_busy else "idle", "queued": line.n_waiting}

    async def unload(self, parameter: object, caller: Caller) -> object:
        name = read(parameter, UnloadBody).identifier
        with naming(Query(identifier=name), self._models):
            await unload_named(self._conductor, name, caller.peer)
        return NOTHING

    async def tokenize(self, parameter: object, caller: Caller) -> object:
        del caller
        return {"tokens": await self._tokens(read(parameter, TextBody))}

    async def count(self, parameter: object, caller: Caller) -> object:
        del caller
        return {"tokenCount": len(await self._tokens(read(parameter, TextBody)))}

    async def template(self, parameter: object, caller: Caller) -> object:
        """The prompt as the model reads it. Begin and end tokens are part of it, whatever `opts` says."""
        del caller
        body = read(parameter, TemplateBody)
        asked = PredictionBody(body.specifier, body.history, body.prediction_config_stack)
        plan = await self._conductor.plan(prediction_request(asked), self._resolved(body.specifier))
        return {"formatted": plan.text}

    async def predict(self, parameter: object, channel: Channel, caller: Caller) -> None:
        await predict(self._conductor, channel, read(parameter, PredictionBody), caller)

    async def load(self, parameter: object, channel: Channel, caller: Caller) -> None:
        await load_model(self._conductor, channel, read(parameter, LoadBody), caller)

    async def get_or_load(self, parameter: object, channel: Channel, caller: Caller) -> None:
        await get_or_load(self._conductor, channel, read(parameter, GetOrLoadBody), caller)

    async def _tokens(self, body: TextBody) -> list[int]:
        reader = self._resolved(body.specifier).reader
        ids = await asyncio.to_thread(reader.tokenize, body.input_string, has_control_tokens=True)
        return list(ids)

    def _loaded(self, specifier: Specifier) -> ServedModel:
        """The loaded model, if that is the one; raise ApiError otherwise."""
        with naming(specifier.query or Query(identifier=specifier.name), self._models):
            specifier.check_kind()
            served = self._models.served
            if served is None or not answers_to(served, specifier.name):
                named = f"{specifier.name[:200]!r} is" if specifier.name else "No model is"
                text = f"{named} not loaded." if specifier.name else f"{named} loaded."
                raise ApiError(text, status=404, code="model_not_found", param="model")
            return served

    def _resolved(self, specifier: Specifier) -> LoadedModel:
        """Likewise, but any name will do where the options say so. Loads nothing."""
        with naming(specifier.query or Query(identifier=specifier.name), self._models):
            specifier.check_kind()
            takes_any = self._conductor.options.has_any_model_name
            return self._models.resolve(specifier.name, takes_any_name=takes_any)
