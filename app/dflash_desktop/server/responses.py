"""OpenAI Responses: JSON <-> requests and pieces."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dflash_desktop.server.bodies import first_words, meta_of, read_object
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.figures import pflash_member, timings
from dflash_desktop.server.generation import Run
from dflash_desktop.server.messages import tool_call
from dflash_desktop.server.pieces import Call, Usage
from dflash_desktop.server.responses_body import ResponsesRequest, responses_request
from dflash_desktop.server.responses_stream import ResponseStream
from dflash_desktop.server.stored import Stored
from dflash_desktop.server.stream import json_response, sse, streamed, whole


class Answer:
    """The response object of one run, at every stage of it."""

    def __init__(self, run: Run, asked: ResponsesRequest) -> None:
        self.run = run
        self.asked = asked
        self.response_id = f"resp_{secrets.token_hex(12)}"
        self._created_at = int(time.time())

    def body(self, status: str, output: list[dict[str, Any]], *, error: dict[str, str] | None = None) -> dict[str, Any]:
        finish = self.run.reply.finish
        is_cut = status == "completed" and finish is not None and finish.reason in {"length", "context"}
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self._created_at,
            "status": "incomplete" if is_cut else status,
            "model": self.run.served.model_id,
            "error": error,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            **self.asked.echo,
            "output": output,
            "usage": usage_json(finish.usage) if finish is not None else None,
            **({"timings": timings(finish.usage)} if finish is not None else {}),
        }

    def call_item(self, call: Call, item_id: str, *, status: str) -> dict[str, Any]:
        """A function_call or custom_tool_call item under the name the client knows."""
        tool = self.asked.offered.get(call.name)
        item: dict[str, Any] = {"id": item_id, "call_id": f"call_{call.call_id}", "status": status}
        if tool is not None and tool.is_custom:
            return {"type": "custom_tool_call", **item, "name": tool.name, "input": custom_input(call.arguments)}
        item |= {"name": tool.name if tool is not None else call.name, "arguments": call.arguments}
        if tool is not None and tool.namespace is not None:
            item["namespace"] = tool.namespace
        return {"type": "function_call", **item}

    def is_custom(self, name: str) -> bool:
        tool = self.asked.offered.get(name)
        return tool is not None and tool.is_custom

    def output(self) -> list[dict[str, Any]]:
        """The items of a finished reply."""
        reply, items = self.run.reply, []
        if reply.reasoning:
            items.append(reasoning_item(new_id("rs"), reply.reasoning))
        calls = [call for call in reply.calls if call.is_complete]
        if reply.text or not calls:
            items.append(message_item(new_id("msg"), reply.text, status="completed"))
        items += [self.call_item(call, new_id("fc"), status="completed") for call in calls]
        return items

    def turns(self) -> list[dict[str, Any]]:
        """The whole conversation with this reply, for previous_response_id."""
        reply = self.run.reply
        turn: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.reasoning:
            turn["reasoning_content"] = reply.reasoning
        calls = [
            tool_call(call.name, call.arguments, f"call_{call.call_id}") for call in reply.calls if call.is_complete
        ]
        if calls:
            turn["tool_calls"] = calls
        return [*self.asked.turns, turn]


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.n_asked_tokens,
        "input_tokens_details": {"cached_tokens": usage.n_reused_tokens},
        "output_tokens": usage.n_reply_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.n_reasoning_tokens},
        "total_tokens": usage.n_asked_tokens + usage.n_reply_tokens,
        **pflash_member(usage),
    }


def reasoning_item(item_id: str, text: str) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
        "encrypted_content": None,
    }


def message_item(item_id: str, text: str, *, status: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": item_id, "role": "assistant", "status": status, "content": [part]}


def custom_input(arguments: str) -> str:
    """The freeform text out of the one argument we offered."""
    try:
        value = json.loads(arguments).get("input", "")
    except (ValueError, AttributeError):
        return arguments
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class ResponsesRoutes:
    """/v1/responses and what belongs to it. The last few stored conversations are kept in memory only."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._stored: Stored[tuple[list[dict[str, Any]], dict[str, Any]]] = Stored()

    async def create(self, request: Request) -> Response:
        raw = self._resolved(await read_object(request))
        asked = responses_request(raw, self._earlier(raw))
        asked.n_bytes = len(await request.body())
        meta = meta_of(request, first_words(raw.get("input")))
        self._conductor.inspector.seen(meta)
        try:
            run = await self._conductor.prepare(asked.chat, meta, request.receive)
            answer = Answer(run, asked)

            def finish(_: Run) -> dict[str, Any]:
                body = answer.body("completed", answer.output())
                self._store(answer, body)
                return body

            if not asked.chat.is_stream:
                return await whole(request, run, finish)
            return await streamed(run, ResponseStream(answer, self._store))
        except ApiError as error:
            if asked.chat.is_stream and error.code == "context_length_exceeded":
                return _overflow_stream(asked, error)
            raise

    async def count(self, request: Request) -> Response:
        """POST /v1/responses/input_tokens."""
        raw = self._resolved(await read_object(request))
        asked = responses_request(raw, self._earlier(raw))
        n_tokens = await self._conductor.count(asked.chat)
        return json_response({"object": "response.input_tokens", "input_tokens": n_tokens})

    async def get(self, request: Request) -> Response:
        return json_response(self._stored.find(request.path_params["response_id"])[1])

    async def cancel(self, request: Request) -> Response:
        """Only what runs in the background could be cancelled by its id, and nothing does."""
        self._stored.find(request.path_params["response_id"])
        raise ApiError(
            "This response is complete. One that still runs ends when its client closes the connection.",
            param="response_id",
        )

    async def delete(self, request: Request) -> Response:
        response_id = request.path_params["response_id"]
        self._stored.find(response_id)
        self._stored.drop(response_id)
        return json_response({"id": response_id, "object": "response", "deleted": True})

    def _earlier(self, raw: dict[str, Any]) -> list[dict[str, Any]]:
        previous = raw.get("previous_response_id")
        return self._stored.find(previous)[0] if isinstance(previous, str) and previous else []

    def _resolved(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The body with what its input only refers to: items of earlier answers, by their ids, as AI SDKs send them."""
        items = raw.get("input")
        wanted = {_referred(item) for item in items} - {None} if isinstance(items, list) else set()
        if not isinstance(items, list) or not wanted:
            return raw
        kept = {item["id"]: item for _, body in self._stored.values() for item in body["output"]}
        return {**raw, "input": [kept.get(_referred(item), item) for item in items]}

    def _store(self, answer: Answer, body: dict[str, Any]) -> None:
        if answer.asked.is_stored:
            n_bytes = answer.asked.n_bytes + len(msgspec.json.encode(body["output"]))
            self._stored.keep(answer.response_id, (answer.turns(), body), n_bytes)


def _referred(item: object) -> str | None:
    """The id of what an item stands for."""
    is_reference = isinstance(item, Mapping) and (item.get("type") == "item_reference" or set(item) == {"id"})
    found = item.get("id") if is_reference and isinstance(item, Mapping) else None
    return found if isinstance(found, str) else None


def _overflow_stream(asked: ResponsesRequest, error: ApiError) -> Response:
    """Codex takes "the context is full" only from inside a stream."""
    body = {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": asked.chat.model_asked,
        "output": [],
        **asked.echo,
    }
    created = {"type": "response.created", "sequence_number": 0, "response": {**body, "status": "in_progress"}}
    failure = {"code": error.code, "message": error.message}
    failed = {
        "type": "response.failed",
        "sequence_number": 1,
        "response": {**body, "status": "failed", "error": failure},
    }
    text = sse(created, event="response.created") + sse(failed, event="response.failed")
    return Response(text, media_type="text/event-stream", headers={"cache-control": "no-cache"})
