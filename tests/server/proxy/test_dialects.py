"""The dialects of the proxy beside chats: Anthropic's messages, OpenAI's responses and completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.server.upstream import parse_upstream
from support.fixtures import QWEN35_MINI
from support.proxied import ASKED, NEEDLE, PARAGRAPHS, QUESTION, ProxyApi
from support.standin_upstream import STREAM, StandIn

MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
PASTED = ASKED.removesuffix(f"\n\n{QUESTION}")
CACHED = {"cache_control": {"type": "ephemeral"}}
ANTHROPIC: dict[str, Any] = {
    "model": "big-model",
    "max_tokens": 50,
    "system": [{"type": "text", "text": "Be brief.", **CACHED}],
    "messages": [
        {"role": "user", "content": "Hello there"},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
        {"role": "user", "content": [{"type": "text", "text": PASTED, **CACHED}, {"type": "text", "text": QUESTION}]},
    ],
    "metadata": {"user_id": "ann"},
}
OPENAI: dict[str, Any] = {
    "model": "big-model",
    "instructions": "Be brief.",
    "input": [
        {"role": "developer", "content": "Speak plainly."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes?"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKED}], "id": "msg_1"},
    ],
    "store": False,
    "reasoning": {"effort": "low"},
}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


def test_messages_are_shortened_and_every_block_keeps_its_members(api: ProxyApi, upstream: StandIn) -> None:
    answer = api.post(MESSAGES, ANTHROPIC)
    assert answer.status == 200
    assert answer.headers["x-pflash"] == "shortened"
    (asked,) = upstream.asked
    assert asked.path == MESSAGES
    assert {**asked.json, "messages": 0} == {**ANTHROPIC, "messages": 0}
    assert asked.json["messages"][:2] == ANTHROPIC["messages"][:2]
    pasted, question = asked.json["messages"][2]["content"]
    assert NEEDLE in pasted["text"]
    assert len(pasted["text"]) < 0.4 * len(PASTED)
    assert not pasted["text"].endswith("\n\n")
    assert {**pasted, "text": 0} == {"type": "text", "text": 0, **CACHED}
    assert question == {"type": "text", "text": QUESTION}


def test_responses_are_shortened_in_both_forms_of_their_input(api: ProxyApi, upstream: StandIn) -> None:
    assert api.post(RESPONSES, OPENAI).headers["x-pflash"] == "shortened"
    sent = upstream.asked[-1].json
    assert {**sent, "input": 0} == {**OPENAI, "input": 0}
    assert sent["input"][:3] == OPENAI["input"][:3]
    last = sent["input"][3]
    (part,) = last["content"]
    assert part["type"] == "input_text"
    assert {**last, "content": 0} == {**OPENAI["input"][3], "content": 0}
    assert api.post("/responses", {**OPENAI, "input": ASKED}).headers["x-pflash"] == "shortened"
    assert upstream.asked[-1].path == RESPONSES
    for text in (part["text"], upstream.asked[-1].json["input"]):
        assert NEEDLE in text
        assert text.endswith(QUESTION)
        assert PARAGRAPHS[2] not in text


def test_a_conversation_is_shortened_once_in_every_dialect(api: ProxyApi, upstream: StandIn) -> None:
    """Its next question finds the beginning as it was, so that the upstream's KV cache holds."""
    for path, body, member in ((MESSAGES, ANTHROPIC, "messages"), (RESPONSES, OPENAI, "input")):
        api.post(path, body)
        first = upstream.asked[-1].json[member]
        more = [{"role": "assistant", "content": "7391."}, {"role": "user", "content": "Which year was the first?"}]
        assert api.post(path, {**body, member: [*body[member], *more]}).headers["x-pflash"] == "shortened"
        again = upstream.asked[-1].json[member]
        assert again[: len(first)] == first
        assert again[-1]["content"].endswith(more[-1]["content"])


@pytest.mark.parametrize(
    ("path", "body", "change", "why"),
    [
        (MESSAGES, ANTHROPIC, {"tools": [TOOL]}, "tools"),
        (MESSAGES, ANTHROPIC, {"mcp_servers": [{"type": "url", "url": "http://a"}]}, "tools"),
        (
            MESSAGES,
            ANTHROPIC,
            {
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ASKED}]},
                    *ANTHROPIC["messages"][1:],
                ]
            },
            "tools",
        ),
        (
            MESSAGES,
            ANTHROPIC,
            {
                "messages": [
                    {"role": "user", "content": "Look it up."},
                    {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search"}]},
                    ANTHROPIC["messages"][2],
                ]
            },
            "tools",
        ),
        (
            MESSAGES,
            ANTHROPIC,
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": ASKED}, {"type": "image", "source": {}}]}
                ]
            },
            "more than text",
        ),
        (MESSAGES, ANTHROPIC, {"messages": [{"role": "wizard", "content": ASKED}]}, "messages[0].role"),
        (MESSAGES, ANTHROPIC, {"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (MESSAGES, ANTHROPIC, {"messages": {}}, "none that could be read"),
        (
            MESSAGES,
            ANTHROPIC,
            {"messages": [{"role": "user", "content": f"Go on: {ASKED}"}, {"role": "assistant", "content": "It is"}]},
            "continued",
        ),
        (RESPONSES, OPENAI, {"tools": [{"type": "web_search"}]}, "tools"),
        (RESPONSES, OPENAI, {"input": [CALL, *OPENAI["input"]]}, "tools"),
        (RESPONSES, OPENAI, {"input": [{"type": "item_reference", "id": "i"}, *OPENAI["input"]]}, "item_reference"),
        (RESPONSES, OPENAI, {"previous_response_id": "resp_1"}, "previous_response_id"),
        (RESPONSES, OPENAI, {"input": [7]}, "must be an object"),
        (RESPONSES, OPENAI, {"input": None}, "none that could be read"),
        (
            RESPONSES,
            OPENAI,
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": ASKED}, {"type": "input_image"}]},
                ]
            },
            "more than text",
        ),
        (RESPONSES, OPENAI, {"input": "Hi"}, "long enough"),
        ("/v1/completions", {"prompt": ASKED}, {}, "Only conversations"),
        ("/completions", {"prompt": [1, 2, 3]}, {}, "Only conversations"),
    ],
)
def test_what_is_not_shortened_arrives_byte_for_byte_and_is_told_why(
    api: ProxyApi, upstream: StandIn, path: str, body: dict[str, Any], change: dict[str, Any], why: str
) -> None:
    sent = json.dumps({**body, **change}, indent=3).encode()
    answer = api.post(path, sent)
    assert answer.status == 200
    assert upstream.asked[-1].body == sent
    assert answer.headers["x-pflash"] == "whole"
    assert why in answer.headers["x-pflash-reason"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", MESSAGES, RESPONSES, "/v1/completions"])
def test_bodies_that_are_no_json_are_the_upstreams_to_refuse(api: ProxyApi, upstream: StandIn, path: str) -> None:
    upstream.script = lambda stand_in, handler, asked: stand_in.say(handler, 400, b'{"error": {"message": "what?"}}')
    for sent in (b"{", b"[1]", b"\xff\xfe"):
        answer = api.post(path, sent)
        assert answer.body == b'{"error": {"message": "what?"}}'
        assert "could not be read" in answer.headers["x-pflash-reason"]
        assert upstream.asked[-1].body == sent


def test_the_member_pflash_is_ours_in_every_dialect(start: Any, upstream: StandIn) -> None:
    api = start(parse_upstream(upstream.base), PflashOptions("off", QWEN35_MINI))
    for path, body in ((MESSAGES, ANTHROPIC), (RESPONSES, OPENAI), ("/v1/completions", {"prompt": ASKED})):
        assert "x-pflash" not in api.post(path, body).headers
        assert "x-pflash" in api.post(path, {**body, "pflash": 0.1}).headers
        assert "pflash" not in upstream.asked[-1].json
    refused = api.post(MESSAGES, {**ANTHROPIC, "pflash": 3})
    assert refused.status == 400
    assert refused.json["type"] == "error"


def test_routes_that_count_go_through_untouched(api: ProxyApi, upstream: StandIn) -> None:
    for path, body in (("/v1/messages/count_tokens", ANTHROPIC), ("/v1/responses/input_tokens", OPENAI)):
        assert "x-pflash" not in api.post(path, body).headers
        assert upstream.asked[-1].json == body


def test_a_key_of_the_upstreams_stands_where_the_client_put_its_own(start: Any, upstream: StandIn) -> None:
    api = start(parse_upstream(upstream.base, access_token="sk-theirs"), access_token="sk-ours")
    api.post(MESSAGES, ANTHROPIC, {"x-api-key": "sk-ours", "anthropic-version": "2023-06-01"})
    headers = upstream.asked[-1].headers
    assert headers["x-api-key"] == "sk-theirs"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers
    for path, ours in ((MESSAGES, {"Authorization": "Bearer sk-ours"}), (RESPONSES, {"x-api-key": "sk-ours"})):
        api.post(path, {}, ours)
        headers = upstream.asked[-1].headers
        assert headers["authorization"] == "Bearer sk-theirs"
        assert "x-api-key" not in headers


def test_errors_are_told_in_the_words_of_their_dialect(api: ProxyApi, upstream: StandIn) -> None:
    upstream.script = lambda stand_in, handler, asked: stand_in.say(handler, 500, b"<html>oops</html>")
    assert api.post(MESSAGES, ANTHROPIC).json["error"]["type"] == "api_error"
    upstream.script = lambda stand_in, handler, asked: stand_in.stream(handler, pieces=STREAM[:1], breaks=True)
    broken = api.post(MESSAGES, {**ANTHROPIC, "stream": True})
    assert b"\nevent: error\ndata: " in broken.body
    assert broken.data[-1]["type"] == "error"
    assert "broke off" in broken.data[-1]["error"]["message"]
    assert broken.data[-1]["request_id"] == broken.headers["x-request-id"]
    told = api.post(RESPONSES, {**OPENAI, "stream": True}).data[-1]
    assert (told["type"], told["code"]) == ("error", "upstream_broke_off")
