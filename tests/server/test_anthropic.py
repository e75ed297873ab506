"""Anthropic Messages against a running server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api_server import Api, Start
from support.scripted_engine import Pace, ScriptedEngine, pair_info

PATH = "/v1/messages"
HELLO = {"model": "claude-x", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
TOOLS = [
    {
        "name": "Read",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    },
    {"type": "web_search_20250305", "name": "web_search"},
]
CALL = "Look.\n<tool_call>\n<function=Read>\n<parameter=file_path>\na.py\n</parameter>\n</function>\n</tool_call>"


def test_whole_answer(api: Api) -> None:
    body = api.post(PATH, HELLO).json
    assert body["type"] == "message" and body["model"] == "claude-x" and body["stop_reason"] == "end_turn"
    assert body["content"] == [{"type": "text", "text": "Hello from the script."}]
    assert set(body["usage"]) == {
        "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
    }  # fmt: skip
    assert api.engine.prompts[0].endswith("<think>\n\n</think>\n\n")  # off unless asked


def test_stream_order(start: Start) -> None:
    """B089, with thoughts before and two calls."""
    api = start(ScriptedEngine(script=f"Hm.\n</think>\n\n{CALL}\n{CALL}"))
    body = {**HELLO, "tools": TOOLS, "stream": True, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    events = api.post(f"{PATH}?beta=true", body).events
    assert all(name == data["type"] for name, data in events)
    names = [name for name, _ in events if name != "ping"]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    open_index = None
    blocks: list[dict[str, Any]] = []
    for name, data in events:
        if name == "content_block_start":
            assert open_index is None and data["index"] == len(blocks)
            open_index = data["index"]
            blocks.append({**data["content_block"], "json": ""})
        elif name == "content_block_delta":
            assert data["index"] == open_index
            delta = data["delta"]
            key = {"thinking_delta": "thinking", "text_delta": "text", "input_json_delta": "partial_json"}.get(
                delta["type"]
            )
            if key == "partial_json":
                blocks[-1]["json"] += delta[key]
            elif key is not None:
                blocks[-1][key] += delta[key]
            else:
                blocks[-1]["signature"] = delta["signature"]
        elif name == "content_block_stop":
            assert data["index"] == open_index
            open_index = None
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "text", "tool_use"]
    assert blocks[0]["thinking"] == "Hm." and blocks[0]["signature"] == "local" and blocks[1]["text"] == "Look."
    assert [json.loads(block["json"]) for block in blocks if block["type"] == "tool_use"] == [{"file_path": "a.py"}] * 2
    assert all(block["id"].startswith("toolu_") for block in blocks if block["type"] == "tool_use")
    delta = events[-2][1]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None} and delta["usage"]["output_tokens"] > 0


def test_whole_answer_has_the_blocks_of_the_stream(start: Start) -> None:
    api = start(ScriptedEngine(script=CALL))
    body = api.post(PATH, {**HELLO, "tools": TOOLS}).json
    assert body["stop_reason"] == "tool_use"
    text, call = body["content"]
    assert text == {"type": "text", "text": "Look."}
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "Read", {"file_path": "a.py"})


def test_history_of_blocks_reaches_the_template(api: Api) -> None:
    """B058: call, arguments and results, as text, blocks or error, in the order in which they came."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "read a", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "must read", "signature": "local"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "b.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and then?"},
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "AAA"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "gone", "is_error": True},
            ],
        },
    ]
    assert api.post(PATH, {**HELLO, "messages": messages, "tools": TOOLS}).status == 200
    prompt = api.engine.prompts[0]
    order = ["read a", "must read", "Reading.", "<function=Read>", "a.py", "b.py", "AAA", "Error: gone", "and then?"]
    at = [prompt.index(text) for text in order]
    assert at == sorted(at)


def test_the_billing_line_is_dropped_and_the_second_turn_is_cached(api: Api) -> None:
    """Conformance 6, B080."""

    def body(nonce: str) -> dict[str, Any]:
        system = [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=1; cch={nonce}"},
            {"type": "text", "text": "You are helpful. " * 20, "cache_control": {"type": "ephemeral"}},
        ]
        return {**HELLO, "system": system}

    api.post(PATH, body("aaa"))
    second = api.post(PATH, body("bbb")).json["usage"]
    assert "billing" not in api.engine.prompts[0] and second["cache_read_input_tokens"] > 0
    counts = [api.post(f"{PATH}/count_tokens", body(nonce)).json["input_tokens"] for nonce in ("c", "dddddddd")]
    assert counts[0] == counts[1] == second["input_tokens"] + second["cache_read_input_tokens"]


def test_count_tokens_equals_the_sum_of_message_start(api: Api) -> None:
    """Conformance 6."""
    body = {**HELLO, "tools": TOOLS, "system": "Be brief."}
    counted = api.post(f"{PATH}/count_tokens", {key: body[key] for key in body if key != "max_tokens"}).json
    usage = api.post(PATH, {**body, "stream": True}).events[0][1]["message"]["usage"]
    assert counted["input_tokens"] == sum(usage[key] for key in usage if "input" in key)


def test_limits_and_stop_sequences(api: Api) -> None:
    assert api.post(PATH, {**HELLO, "max_tokens": 2}).json["stop_reason"] == "max_tokens"
    body = api.post(PATH, {**HELLO, "stop_sequences": ["script"]}).json
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "script")
    assert api.post(PATH, {"messages": HELLO["messages"]}).json["stop_reason"] == "end_turn"
    events = api.post(PATH, {**HELLO, "max_tokens": 2, "stream": True}).events
    assert events[-2][1]["delta"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(
    "body",
    [
        {}, {"messages": []}, {"messages": [None]}, {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": 5}]}, {"messages": [{"role": "user", "content": [5]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]}, {**HELLO, "max_tokens": "5"},
        {**HELLO, "tools": [{"name": 5}]}, {**HELLO, "tool_choice": {"type": "tool", "name": "x"}},
        {**HELLO, "tool_choice": {"type": {}}}, {**HELLO, "system": [5]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
    ],
)  # fmt: skip
def test_errors_have_the_dialects_form(api: Api, body: Any) -> None:
    answer = api.post(PATH, body)
    assert answer.status == 400
    error = answer.json
    assert error["type"] == "error" and error["error"]["type"] == "invalid_request_error" and error["error"]["message"]
    assert error["request_id"] == answer.headers["request-id"]
    assert not api.engine.jobs


def test_overflow_uses_the_words_clients_look_for(start: Start) -> None:
    api = start(ScriptedEngine(pair=pair_info(context_tokens=256)))
    messages = [{"role": "user", "content": "x" * 5000}]
    error = api.post(PATH, {**HELLO, "messages": messages}).json["error"]
    assert error["message"].startswith("prompt is too long: ") and error["message"].endswith("tokens > 256 maximum")


def test_access_errors_have_the_dialects_form(start: Start) -> None:
    api = start(access_token="k")
    answer = api.post(PATH, HELLO)
    assert answer.status == 401 and answer.json["error"]["type"] == "authentication_error"
    answer = api.post(PATH, HELLO, {"Origin": "https://evil.example"})
    assert answer.status == 403 and answer.json["error"]["type"] == "permission_error"
    assert api.post(PATH, HELLO, {"x-api-key": "k"}).status == 200


def test_pings_during_a_long_prefill(start: Start) -> None:
    api = start(ScriptedEngine(pace=Pace(prefill_s=0.4, n_prefill_chunks=1)))
    events = api.post(PATH, {**HELLO, "stream": True}).events
    assert [name for name, _ in events].count("ping") >= 3 and events[0][0] == "message_start"


def test_a_forced_tool_and_none(start: Start) -> None:
    api = start(ScriptedEngine(script="<parameter=file_path>\nz\n</parameter>\n</function>\n</tool_call>"))
    body = {**HELLO, "tools": TOOLS, "tool_choice": {"type": "tool", "name": "Read"}}
    assert api.post(PATH, body).json["content"][0]["input"] == {"file_path": "z"}
    api.post(PATH, {**body, "tool_choice": {"type": "none"}})
    assert "<tools>" not in api.engine.prompts[-1]


def test_a_late_system_message_keeps_its_place_in_the_next_request(api: Api) -> None:
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": "Do it."},
        {"role": "system", "content": "A reminder. " * 20},
    ]
    api.post(PATH, {**HELLO, "messages": turns})
    turns += [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
    ]
    api.post(PATH, {**HELLO, "messages": turns})
    first, second = (prompt.partition("<|im_start|>assistant")[0] for prompt in api.engine.prompts)
    assert first == second and "A reminder." in first
