"""The small routes: root, health, listings of the OpenAI form, props, status, metrics, tokenize."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from dflash_desktop.server.bodies import meta_of, peer_of, read_object
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.figures import timings
from dflash_desktop.server.inspector import exact
from dflash_desktop.server.models import ServedModel
from dflash_desktop.server.pflash import pflash_settings
from dflash_desktop.server.shelf import ShelfModel
from dflash_desktop.server.stream import json_response


def app_version() -> str:
    try:
        return version("dflash-desktop")
    except PackageNotFoundError:
        return "0.1.0"


def model_entry(served: ServedModel) -> dict[str, Any]:
    """One entry of /v1/models: satisfies OpenAI, Anthropic and context-seeking clients together."""
    return {
        "id": served.model_id,
        "object": "model",
        "created": served.loaded_at_s,
        "owned_by": "local",
        "type": "model",
        "display_name": served.display_name,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(served.loaded_at_s)),
        "context_length": served.context_tokens,
        "max_context_length": served.trained_context_tokens,
        "max_model_len": served.context_tokens,
        "max_output_tokens": served.max_output_tokens,
        "max_input_tokens": served.context_tokens,  # this and the next: Anthropic's names
        "max_tokens": served.max_output_tokens,
        "capabilities": ["tool_use"],
        "loaded": True,
        "meta": {
            "n_ctx_train": served.trained_context_tokens,
            "n_ctx": served.context_tokens,
            "n_params": served.n_params,
            "size": served.size_bytes,
        },
    }


def shelf_entry(model: ShelfModel) -> dict[str, Any]:
    """The same for a model that is not loaded: its context is the one it would be loaded with."""
    return {
        "id": model.model_id,
        "object": "model",
        "created": model.changed_at_s,
        "owned_by": "local",
        "type": "model",
        "display_name": model.display_name,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(model.changed_at_s)),
        "context_length": model.context_tokens,
        "max_context_length": model.trained_context_tokens,
        "max_model_len": model.context_tokens,
        "max_output_tokens": max(1, model.context_tokens // 2),
        "max_input_tokens": model.context_tokens,
        "max_tokens": max(1, model.context_tokens // 2),
        "capabilities": ["tool_use"],
        "loaded": False,
        "meta": {
            "n_ctx_train": model.trained_context_tokens,
            "n_ctx": model.context_tokens,
            "n_params": model.n_params,
            "size": model.size_bytes,
        },
    }


def codex_entry(served: ServedModel) -> dict[str, Any]:
    """The catalogue form of Codex."""
    return {
        "slug": served.model_id,
        "display_name": served.display_name,
        "description": None,
        "context_window": served.context_tokens,
        "shell_type": "default",
        "visibility": "list",
        "supported_in_api": True,
        "priority": 0,
        "truncation_policy": {"mode": "bytes", "limit": 10000},
        "input_modalities": ["text"],
        "base_instructions": "",
        "support_verbosity": False,
        "default_verbosity": None,
        "supports_parallel_tool_calls": False,
        "supports_reasoning_summaries": False,
        "default_reasoning_level": None,
        "supported_reasoning_levels": [],
        "experimental_supported_tools": [],
    }


class SmallRoutes:
    """None of these waits for the lane."""

    def __init__(self, conductor: Conductor, *, is_lm_studio: bool) -> None:
        self._conductor = conductor
        self._models = conductor.models
        self._is_lm_studio = is_lm_studio

    async def root(self, request: Request) -> Response:
        del request
        return PlainTextResponse(f"DFlash Desktop {app_version()}\nHealth: /health\n")

    async def greeting(self, request: Request) -> Response:
        del request
        if not self._is_lm_studio:
            raise ApiError("Not found.", status=404, code="unknown_endpoint")
        return json_response({"lmstudio": True})

    async def health(self, request: Request) -> Response:
        del request
        if self._models.is_loading:
            body = {"status": "loading model", "progress": round(self._models.progress, 3)}
            return json_response(body, status=503)
        # A model that was unloaded comes back with the next request.
        has_model = self._models.served is not None or self._models.last is not None
        return json_response({"status": "ok" if has_model else "no model loaded"})

    async def list_models(self, request: Request) -> Response:
        self._conductor.inspector.seen(meta_of(request))
        served = self._models.served
        if "client_version" in request.query_params:
            return json_response({"models": [codex_entry(served)] if served is not None else []})
        data = [model_entry(served)] if served is not None else []
        data += map(shelf_entry, self._conductor.loading.loadable(peer_of(request)))
        ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
        return json_response({"object": "list", "data": data, "has_more": False, **ends})

    async def one_model(self, request: Request) -> Response:
        found = self._conductor.loading.listed(request.path_params["model_id"], peer_of(request))
        return json_response(shelf_entry(found) if isinstance(found, ShelfModel) else model_entry(found))

    async def props(self, request: Request) -> Response:
        del request
        served = self._models.require()
        waiting = self._conductor.line
        return json_response(
            {
                "default_generation_settings": {"n_ctx": served.context_tokens},
                "total_slots": 1,
                "model_path": served.file_name,
                "model_alias": served.model_id,
                "chat_template": "",
                "is_sleeping": False,
                "build_info": f"dflash-{app_version()}",
                "modalities": {"vision": False, "audio": False},
                "capabilities": {"tools": True, "reasoning": served.has_thinking},
                "speculative": {"enabled": served.draft_id is not None, "draft": served.draft_id},
                "pflash": pflash_settings(self._conductor.options.pflash),
                "queue": {"running": int(waiting.is_busy), "waiting": waiting.n_waiting},
            }
        )

    def _prefix_limit_bytes(self) -> int:
        pair = self._models.pair
        return pair.most_prefix_bytes if pair is not None else 0

    async def status(self, request: Request) -> Response:
        """Counts only: no prompt and no answer is shown here."""
        del request
        served, totals, line = self._models.served, self._conductor.inspector.totals, self._conductor.line
        return json_response(
            {
                "status": "loading" if self._models.is_loading else "ready" if served is not None else "no_model",
                "model": served.model_id if served is not None else None,
                "context_length": served.context_tokens if served is not None else 0,
                "notices": list(self._models.pair.notices) if self._models.pair is not None else [],
                "running": int(line.is_busy),
                "waiting": line.n_waiting,
                "requests": totals.n_requests,
                "prompt_tokens": totals.n_prompt_tokens,
                "cached_tokens": totals.n_reused_tokens,
                "prefix_cache": {
                    "hits": totals.n_prefix_hits,
                    "restored_tokens": totals.n_restored_tokens,
                    "bytes": totals.prefix_cache.used_bytes,
                    "limit_bytes": self._prefix_limit_bytes(),
                },
                "completion_tokens": totals.n_reply_tokens,
                "acceptance_length": round(totals.n_reply_tokens / totals.n_steps, 3) if totals.n_steps else 0.0,
                "last": timings(totals.last),
            }
        )

    async def metrics(self, request: Request) -> Response:
        del request
        totals, line, served = self._conductor.inspector.totals, self._conductor.line, self._models.served
        rows = [
            ("prompt_tokens_total", "counter", totals.n_prompt_tokens),
            ("prompt_tokens_cached_total", "counter", totals.n_reused_tokens),
            ("reply_tokens_total", "counter", totals.n_reply_tokens),
            ("steps_total", "counter", totals.n_steps),
            ("drafted_tokens_total", "counter", totals.n_drafted),
            ("accepted_tokens_total", "counter", totals.n_accepted),
            ("prefill_seconds_total", "counter", totals.prefill_s),
            ("decode_seconds_total", "counter", totals.decode_s),
            ("queue_seconds_total", "counter", totals.queue_s),
            ("requests_running", "gauge", int(line.is_busy)),
            ("requests_waiting", "gauge", line.n_waiting),
            ("context_tokens", "gauge", served.context_tokens if served is not None else 0),
            ("last_acceptance_length", "gauge", totals.last.acceptance_length),
            ("last_decode_tokens_per_second", "gauge", totals.last.decode_tps),
            ("last_prefill_tokens_per_second", "gauge", totals.last.prefill_tps),
        ]
        lines = [f"# TYPE dflash_{name} {kind}\ndflash_{name} {exact(value)}" for name, kind, value in rows]
        lines += totals.prefix_rows() + totals.pflash_rows()
        lines.append("# TYPE dflash_requests_total counter")
        lines += [f'dflash_requests_total{{outcome="{key}"}} {n}' for key, n in sorted(totals.n_requests.items())]
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def tokenize(self, request: Request) -> Response:
        body = await read_object(request)
        content = body.get("content", "")
        if not isinstance(content, str):
            raise ApiError("content must be a text.", param="content")
        special = body.get("parse_special", True) is True
        reader = self._models.require_reader()
        ids = await asyncio.to_thread(reader.tokenize, content, has_control_tokens=special)
        return json_response({"tokens": list(ids)})

    async def detokenize(self, request: Request) -> Response:
        ids = (await read_object(request)).get("tokens")
        is_list = isinstance(ids, list) and all(type(each) is int and 0 <= each < 1 << 31 for each in ids)
        if not isinstance(ids, list) or not is_list:
            raise ApiError("tokens must be a list of token ids.", param="tokens")
        n_vocab = self._models.require().n_vocab
        if any(each >= n_vocab for each in ids):
            raise ApiError(f"tokens must be below {n_vocab}.", param="tokens")
        text = await asyncio.to_thread(self._models.require_reader().detokenize, ids)
        return json_response({"content": text.decode("utf-8", "replace")})

    async def no_embeddings(self, request: Request) -> Response:
        del request
        raise ApiError("No embedding model is loaded here.", status=404, code="model_not_found")

    async def telemetry(self, request: Request) -> Response:
        """Claude Code may post its event log to the base URL: taken, and nothing is kept."""
        del request
        return json_response({})
