"""LM Studio's REST API, v0 and v1: listings, load and unload."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.bodies import meta_of, peer_of, read_object, typed
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError, may_not_unload, unknown_model
from dflash_desktop.server.inspector import Meta
from dflash_desktop.server.loading import Loading
from dflash_desktop.server.models import ServedModel, answers_to
from dflash_desktop.server.presence import Receive
from dflash_desktop.server.shelf import ShelfModel
from dflash_desktop.server.stream import json_response


class LoadBody(msgspec.Struct):
    """Members of a load; what only LM Studio's own engine has is accepted and ignored."""

    model: str | None = None
    context_length: int | None = None
    echo_load_config: bool | None = None

    eval_batch_size: Any = None
    flash_attention: Any = None
    num_experts: Any = None
    offload_kv_cache_to_gpu: Any = None


class UnloadBody(msgspec.Struct):
    instance_id: str | None = None


def entry_v0(served: ServedModel) -> dict[str, Any]:
    """Zed's parser is strict: every member of the first line is required."""
    return {
        "id": served.model_id,
        "object": "model",
        "type": "llm",
        "publisher": "local",
        "arch": served.architecture,
        "compatibility_type": "gguf",
        "quantization": served.quantization,
        "state": "loaded",
        "max_context_length": max(served.trained_context_tokens, served.context_tokens),
        "loaded_context_length": served.context_tokens,
        "capabilities": ["tool_use"],
    }


def shelf_entry_v0(model: ShelfModel) -> dict[str, Any]:
    return {
        "id": model.model_id,
        "object": "model",
        "type": "llm",
        "publisher": "local",
        "arch": model.architecture,
        "compatibility_type": "gguf",
        "quantization": model.quantization,
        "state": "not-loaded",
        "max_context_length": model.trained_context_tokens or model.context_tokens,
        "capabilities": ["tool_use"],
    }


def load_config(served: ServedModel) -> dict[str, Any]:
    return {
        "context_length": served.context_tokens,
        "eval_batch_size": 512,
        "parallel": 1,
        "flash_attention": True,
        "offload_kv_cache_to_gpu": True,
    }


def entry_v1(served: ServedModel) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"vision": False, "trained_for_tool_use": served.has_tools}
    if served.has_thinking:
        capabilities["reasoning"] = {"allowed_options": ["off", "on"], "default": "on"}
    return {
        "type": "llm",
        "publisher": "local",
        "key": served.model_id,
        "display_name": served.display_name,
        "architecture": served.architecture,
        "quantization": {"name": served.quantization, "bits_per_weight": served.bits_per_weight},
        "size_bytes": served.size_bytes,
        "params_string": served.params_text or None,
        "loaded_instances": [{"id": served.model_id, "config": load_config(served)}],
        "max_context_length": max(served.trained_context_tokens, served.context_tokens),
        "format": "gguf",
        "capabilities": capabilities,
        "description": None,
    }


def shelf_entry_v1(model: ShelfModel) -> dict[str, Any]:
    return {
        "type": "llm",
        "publisher": "local",
        "key": model.model_id,
        "display_name": model.display_name,
        "architecture": model.architecture,
        "quantization": {"name": model.quantization, "bits_per_weight": model.bits_per_weight},
        "size_bytes": model.size_bytes,
        "params_string": model.params_text or None,
        "loaded_instances": [],
        "max_context_length": model.trained_context_tokens or model.context_tokens,
        "format": "gguf",
        "capabilities": {"vision": False, "trained_for_tool_use": True},
        "description": None,
    }


async def load_named(
    conductor: Conductor, name: str, meta: Meta, receive: Receive, *, context_tokens: int | None
) -> ServedModel:
    """The model that a caller names, with at least that context, loaded if it is not; raise ApiError otherwise."""
    wish = await conductor.loading.wish_for(name, meta.peer)
    if wish is not None:
        await conductor.load(meta, wish, receive, context_tokens)
    return (await conductor.loading.ensure_context(context_tokens, meta.peer)).served


async def unload_named(conductor: Conductor, name: str, peer: str) -> ServedModel:
    """Unload the loaded model, if that is the one named; raise ApiError where its caller may not, or it works."""
    served = conductor.models.served
    if served is None or not answers_to(served, name):
        raise unknown_model(name, (served.model_id,) if served is not None else ())
    if not conductor.loading.may_load(peer):
        raise may_not_unload()
    if conductor.line.is_busy:
        raise ApiError("The model is answering a request.", status=409, code="model_busy")
    await conductor.loading.unload()
    return served


class LmStudioRoutes:
    """The draft is in no list: it would be chosen by accident."""

    def __init__(self, conductor: Conductor, loading: Loading) -> None:
        self._conductor = conductor
        self._models = conductor.models
        self._loading = loading

    async def list_v0(self, request: Request) -> Response:
        self._conductor.inspector.seen(meta_of(request))
        served = self._models.served
        data = [entry_v0(served)] if served is not None else []
        data += map(shelf_entry_v0, self._loading.loadable(peer_of(request)))
        return json_response({"object": "list", "data": data})

    async def one_v0(self, request: Request) -> Response:
        found = self._loading.listed(request.path_params["model_id"], peer_of(request))
        return json_response(shelf_entry_v0(found) if isinstance(found, ShelfModel) else entry_v0(found))

    async def list_v1(self, request: Request) -> Response:
        self._conductor.inspector.seen(meta_of(request))
        served = self._models.served
        models = [entry_v1(served)] if served is not None else []
        models += map(shelf_entry_v1, self._loading.loadable(peer_of(request)))
        return json_response({"models": models})

    async def load(self, request: Request) -> Response:
        """At once when the loaded context is large enough; Hermes asks for exactly 64000 at each start."""
        body = typed(await read_object(request), LoadBody, [])
        if body.context_length is not None and not 0 < body.context_length < 1 << 31:
            raise ApiError("context_length must be a number of tokens.", param="context_length")
        served = await load_named(
            self._conductor, body.model or "", meta_of(request), request.receive, context_tokens=body.context_length
        )
        answer: dict[str, Any] = {
            "type": "llm",
            "instance_id": served.model_id,
            "load_time_seconds": round(served.load_s, 3),
            "status": "loaded",
        }
        if body.echo_load_config:
            answer["load_config"] = load_config(served)
        return json_response(answer)

    async def unload(self, request: Request) -> Response:
        body = typed(await read_object(request), UnloadBody, [])
        served = await unload_named(self._conductor, body.instance_id or "", peer_of(request))
        return json_response({"instance_id": served.model_id})

    async def download(self, request: Request) -> Response:
        del request
        raise ApiError(
            "Models are downloaded in the app only.", status=403, kind="permission_error", code="not_allowed"
        )
