"""The OpenAPI document, made from the route table and the bodies that the routes read: GET /openapi.json."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.routing import Route

from dflash_desktop.server.anthropic_body import MessagesBody
from dflash_desktop.server.completions import CompletionBody
from dflash_desktop.server.lmstudio import LoadBody, UnloadBody
from dflash_desktop.server.lmstudio_chat import LmStudioChatBody
from dflash_desktop.server.ollama_body import OllamaBody
from dflash_desktop.server.openai_body import ChatBody
from dflash_desktop.server.pflash import PFLASH_SCHEMA
from dflash_desktop.server.responses_body import ResponsesBody

_BODIES: dict[str, type[msgspec.Struct]] = {
    "/v1/chat/completions": ChatBody,
    "/v1/chat/completions/input_tokens": ChatBody,
    "/api/v0/chat/completions": ChatBody,
    "/v1/completions": CompletionBody,
    "/api/v0/completions": CompletionBody,
    "/v1/messages": MessagesBody,
    "/v1/messages/count_tokens": MessagesBody,
    "/v1/responses": ResponsesBody,
    "/v1/responses/input_tokens": ResponsesBody,
    "/api/v1/chat": LmStudioChatBody,
    "/api/v1/models/load": LoadBody,
    "/api/v1/models/unload": UnloadBody,
    "/api/chat": OllamaBody,
    "/api/generate": OllamaBody,
}
_PLAIN: dict[str, dict[str, Any]] = {
    "/tokenize": {"content": {"type": "string"}, "parse_special": {"type": "boolean"}},
    "/detokenize": {"tokens": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
    "/api/show": {"model": {"type": "string"}},
}
_TEXT = {"type": "string"}
_MESSAGE = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant"]},
        "content": {
            "anyOf": [
                _TEXT,
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "text"}, "text": _TEXT},
                    },
                },
            ]
        },
    },
}
# What a body's own types leave open, because its reader says more precisely what is wrong.
_OPEN: dict[str, dict[str, Any]] = {
    "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
    "prompt": {"anyOf": [_TEXT, {"type": "array", "items": {"type": "integer", "minimum": 0}}]},
    "input": {"anyOf": [_TEXT, {"type": "array", "items": {"type": "object"}}]},
    "pflash": PFLASH_SCHEMA,
}
_REQUIRED: dict[type[msgspec.Struct], list[str]] = {
    ChatBody: ["messages"],
    CompletionBody: ["prompt"],
    MessagesBody: ["messages"],
    ResponsesBody: ["input"],
    LmStudioChatBody: ["input"],
}
_MANAGED = re.compile(r"/api/(pull|create|copy|push|embed|embeddings|delete)$")  # always refused: not worth a line
_SELDOM_JSON = frozenset({"/", "/metrics"})


def openapi_document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The document of these routes. Routes that only refuse are left out, and so are the second names of others."""
    components = _components()
    paths: dict[str, Any] = {}
    listed = {route.path for route in routes}
    for route in routes:
        if _MANAGED.match(route.path) or f"/v1{route.path}" in listed:
            continue
        path = re.sub(r"\{(\w+):path\}", r"{\1}", route.path)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            paths.setdefault(path, {})[method.lower()] = _operation(route, path, method)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "DFlash Desktop",
            "version": version,
            "description": "OpenAI, Anthropic, LM Studio and Ollama dialects of one local model.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


def _operation(route: Route, path: str, method: str) -> dict[str, Any]:
    words = (route.endpoint.__doc__ or route.name.replace("_", " ")).strip().splitlines()[0]
    kind = "text/plain" if path in _SELDOM_JSON else "application/json"
    content: dict[str, Any] = {kind: {}}
    body = _BODIES.get(path)
    if body is not None and "stream" in body.__struct_fields__ and "tokens" not in path.rpartition("/")[2]:
        content["application/x-ndjson" if body is OllamaBody else "text/event-stream"] = {}
    refused = {"description": "Refused; the body says why.", "content": {"application/json": {}}}
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}_{re.sub(r'[^a-z0-9]+', '_', path.lower()).strip('_') or 'root'}",
        "summary": words,
        "responses": {"200": {"description": "Done.", "content": content}, "4XX": refused, "5XX": refused},
    }
    names = re.findall(r"\{(\w+)\}", path)
    if names:
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
    schema: dict[str, Any] | None = None
    if body is not None:
        schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    elif path in _PLAIN:
        schema = {"type": "object", "properties": _PLAIN[path]}
    if schema is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _components() -> dict[str, Any]:
    kinds = list(dict.fromkeys(_BODIES.values()))
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    for kind in kinds:
        made = components[kind.__name__]
        made.pop("title", None)
        for name, schema in _OPEN.items():
            if name in made["properties"] and (name != "prompt" or kind is CompletionBody):
                made["properties"][name] = schema
        if kind is ResponsesBody:  # always refused
            made["properties"] |= {"conversation": {"type": "null"}, "prompt": {"type": "null"}}
        if kind in _REQUIRED:
            made["required"] = _REQUIRED[kind]
    return dict(components)
