"""The route table: one place that says which path is which function."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router, WebSocketRoute

from dflash_desktop.server.anthropic import MessageRoutes
from dflash_desktop.server.completions import CompletionRoutes
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.lmstudio import LmStudioRoutes
from dflash_desktop.server.lmstudio_chat import LmStudioChatRoutes
from dflash_desktop.server.lmstudio_sdk.sockets import SdkSockets
from dflash_desktop.server.ollama import OllamaRoutes
from dflash_desktop.server.openai import ChatRoutes
from dflash_desktop.server.openapi import openapi_document
from dflash_desktop.server.responses import ResponsesRoutes
from dflash_desktop.server.small import SmallRoutes, app_version

_MANAGED = ("pull", "create", "copy", "push", "embed", "embeddings")


def make_routes(conductor: Conductor) -> Router:
    """Every route on one port. ApiError and HTTPException pass through to the front, which words them."""
    small = SmallRoutes(conductor, is_lm_studio=conductor.options.is_lm_studio)
    chat = ChatRoutes(conductor)
    anthropic = MessageRoutes(conductor)
    responses = ResponsesRoutes(conductor)
    loading = conductor.loading
    lm_studio = LmStudioRoutes(conductor, loading)
    lm_studio_chat = LmStudioChatRoutes(conductor, loading)
    ollama = OllamaRoutes(conductor)
    completions = CompletionRoutes(conductor)
    routes = [
        Route("/", small.root, methods=["GET"]),
        Route("/lmstudio-greeting", small.greeting, methods=["GET"]),
        Route("/health", small.health, methods=["GET"]),
        Route("/props", small.props, methods=["GET"]),
        Route("/status", small.status, methods=["GET"]),
        Route("/metrics", small.metrics, methods=["GET"]),
        Route("/tokenize", small.tokenize, methods=["POST"]),
        Route("/detokenize", small.detokenize, methods=["POST"]),
        Route("/api/event_logging/batch", small.telemetry, methods=["POST"]),
        Route("/v1/embeddings", small.no_embeddings, methods=["POST"]),
        *_both("/v1/models", small.list_models, methods=["GET"]),
        Route("/v1/models/{model_id:path}", small.one_model, methods=["GET"]),
        *_both("/v1/chat/completions", chat.chat, methods=["POST"]),
        Route("/v1/chat/completions/input_tokens", chat.count, methods=["POST"]),
        *_both("/v1/completions", completions.complete, methods=["POST"]),
        Route("/v1/messages", anthropic.messages, methods=["POST"]),
        Route("/v1/messages/count_tokens", anthropic.count_tokens, methods=["POST"]),
        *_both("/v1/responses", responses.create, methods=["POST"]),
        Route("/v1/responses/input_tokens", responses.count, methods=["POST"]),
        Route("/v1/responses/{response_id}", responses.get, methods=["GET"]),
        Route("/v1/responses/{response_id}", responses.delete, methods=["DELETE"]),
        Route("/v1/responses/{response_id}/cancel", responses.cancel, methods=["POST"]),
        Route("/api/v0/models", lm_studio.list_v0, methods=["GET"]),
        Route("/api/v0/models/{model_id:path}", lm_studio.one_v0, methods=["GET"]),
        Route("/api/v0/chat/completions", chat.chat_v0, methods=["POST"]),
        Route("/api/v0/completions", completions.complete_v0, methods=["POST"]),
        Route("/api/v0/embeddings", small.no_embeddings, methods=["POST"]),
        Route("/api/v1/models", lm_studio.list_v1, methods=["GET"]),
        Route("/api/v1/models/load", lm_studio.load, methods=["POST"]),
        Route("/api/v1/models/unload", lm_studio.unload, methods=["POST"]),
        Route("/api/v1/models/download", lm_studio.download, methods=["POST"]),
        Route("/api/v1/models/download/status/{job_id}", lm_studio.download, methods=["GET"]),
        Route("/api/v1/chat", lm_studio_chat.chat, methods=["POST"]),
        Route("/api/version", ollama.version, methods=["GET"]),
        Route("/api/tags", ollama.tags, methods=["GET"]),
        Route("/api/ps", ollama.running, methods=["GET"]),
        Route("/api/show", ollama.show, methods=["POST"]),
        Route("/api/chat", ollama.chat, methods=["POST"]),
        Route("/api/generate", ollama.generate, methods=["POST"]),
        *[Route(f"/api/{each}", ollama.managed, methods=["POST"]) for each in _MANAGED],
        Route("/api/delete", ollama.managed, methods=["DELETE"]),
    ]
    document = msgspec.json.encode(openapi_document(routes, app_version()))

    async def openapi(request: Request) -> Response:
        del request
        return Response(document, media_type="application/json")

    sdk = SdkSockets(conductor)
    sockets = [WebSocketRoute(path, sdk) for path in sdk.paths] if conductor.options.is_lm_studio else []
    return Router([*routes, *sockets, Route("/openapi.json", openapi, methods=["GET"])], redirect_slashes=False)


def _both(path: str, endpoint: object, *, methods: list[str]) -> list[Route]:
    """With and without `/v1`."""
    return [Route(each, endpoint, methods=methods) for each in (path, path.removeprefix("/v1"))]  # type: ignore[arg-type]
