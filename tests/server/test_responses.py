"""OpenAI Responses against a running server, with Codex's rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api_server import Api, Start
from support.scripted_engine import Pace, ScriptedEngine, pair_info

PATH = "/v1/responses"
SHELL = {
    "type": "function",
    "name": "shell",
    "description": "Run.",
    "strict": False,
    "parameters": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}},
}
CALL = '<tool_call>\n<function=shell>\n<parameter=command>\n["ls"]\n</parameter>\n</function>\n</tool_call>'


def test_whole_answer(api: Api) -> None:
    body = api.post(PATH, {"model": "m", "input": "Hi", "instructions": "Be brief."}).json
    assert body["object"] == "response" and body["status"] == "completed" and body["error"] is None
    (item,) = body["output"]
    assert item["content"][0]["text"] == "Hello from the script." and item["role"] == "assistant"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert "system\nBe brief.<|im_end|>" in api.engine.prompts[0]


def test_stream_follows_codexs_rules(start: Start) -> None:
    """Conformance 5."""
    api = start(ScriptedEngine(script=f"Hm.\n</think>\n\nOn it.\n{CALL}"))
    body = {"input": "Hi", "tools": [SHELL], "stream": True, "reasoning": {"effort": "high"}}
    events = api.post(PATH, body).events
    assert all(name == data["type"] for name, data in events)
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    names = [name for name, _ in events if name != "response.in_progress"]
    assert names[0] == "response.created" and names[-1] == "response.completed"
    for kind in ("reasoning_text", "output_text"):
        added = names.index("response.output_item.added")
        assert added < names.index(f"response.{kind}.delta") < names.index(f"response.{kind}.done")
    done = [data["item"] for name, data in events if name == "response.output_item.done"]
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]
    assert done[0]["content"][0]["text"] == "Hm." and done[0]["summary"] == []
    assert done[1]["content"][0]["text"] == "On it."
    assert done[2]["name"] == "shell" and json.loads(done[2]["arguments"]) == {"command": ["ls"]}
    final = events[-1][1]["response"]
    assert final["output"] == done and final["usage"]["output_tokens"] > 0 and final["status"] == "completed"
    deltas = [data for name, data in events if name == "response.function_call_arguments.delta"]
    assert "".join(data["delta"] for data in deltas) == done[2]["arguments"]
    assert all(data["output_index"] == 2 for data in deltas)


def test_codexs_warm_up(api: Api) -> None:
    """Conformance 5."""
    answer = api.post(PATH, {"model": "m", "input": "", "max_output_tokens": 1})
    assert answer.status == 200 and answer.json["status"] == "incomplete"
    assert answer.json["incomplete_details"] == {"reason": "max_output_tokens"}


def test_two_turns_with_call_and_output(api: Api) -> None:
    """B090, B108: calls and results in order; ids of items that nobody knows here are no matter."""
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "list"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "use ls"}]},
        {
            "type": "function_call",
            "id": "fc_unknown",
            "call_id": "c1",
            "name": "shell",
            "arguments": '{"command": ["ls"]}',
        },
        {"type": "function_call", "call_id": "c2", "name": "shell", "arguments": '{"command": ["pwd"]}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a.py"}]},
        {"type": "function_call_output", "call_id": "c2", "output": "/here"},
        {"type": "custom_tool_call", "call_id": "c3", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "ok"},
        {"type": "web_search_call", "id": "w"},
        {"type": "compaction", "encrypted_content": "x"},
    ]
    assert api.post(PATH, {"input": items, "tools": [SHELL]}).status == 200
    prompt = api.engine.prompts[0]
    order = ["list", "use ls", '["ls"]', '["pwd"]', "a.py", "/here", "*** Begin", "tool\nok"]
    at = [prompt.index(text) for text in order]
    assert at == sorted(at)
    assert prompt.count("<|im_start|>assistant") == 3  # both calls in one turn, the patch, the reply


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search"}, {"type": "local_shell"}, {"type": "tool_search"}, {"type": "image_generation"},
        {"type": "mcp", "server_label": "x"}, {"type": "file_search"}, {"type": "computer_use_preview"}, {"type": 7},
    ],
)  # fmt: skip
def test_unknown_tools_are_skipped(api: Api, tool: Any) -> None:
    """Conformance 5, B090."""
    assert api.post(PATH, {"input": "x", "tools": [tool, SHELL], "tool_choice": {"type": "web_search"}}).status == 200
    assert '"name": "shell"' in api.engine.prompts[0]


def test_custom_tools_answer_with_their_own_item(start: Start) -> None:
    """B090."""
    api = start(
        ScriptedEngine(
            script="<tool_call>\n<function=apply_patch>\n<parameter=input>\n*** Begin\n+x\n</parameter>\n"
            "</function>\n</tool_call>"
        )
    )
    tool = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "definition": "start: LINE"}}
    events = api.post(PATH, {"input": "x", "tools": [tool], "stream": True}).events
    (item,) = [data["item"] for name, data in events if name == "response.output_item.done"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** Begin\n+x")
    deltas = [data["delta"] for name, data in events if name == "response.custom_tool_call_input.delta"]
    assert deltas == ["*** Begin\n+x"] and "start: LINE" in api.engine.prompts[0]


def test_namespaces_are_flattened_and_restored(start: Start) -> None:
    """B090."""
    api = start(ScriptedEngine(script="<tool_call>\n<function=git__log>\n</function>\n</tool_call>"))
    tool = {"type": "namespace", "name": "git", "description": "", "tools": [{"type": "function", "name": "log"}]}
    (item,) = [
        each for each in api.post(PATH, {"input": "x", "tools": [tool]}).json["output"] if each["type"] != "message"
    ]
    assert (item["type"], item["name"], item["namespace"], item["arguments"]) == ("function_call", "log", "git", "{}")


def test_overflow_is_told_inside_the_stream(start: Start) -> None:
    api = start(ScriptedEngine(pair=pair_info(context_tokens=256)))
    body: dict[str, Any] = {"input": "x" * 5000}
    answer = api.post(PATH, {**body, "stream": True})
    assert answer.status == 200
    (first, _), (last, data) = answer.events
    assert (first, last) == ("response.created", "response.failed")
    assert data["response"]["error"]["code"] == "context_length_exceeded"
    answer = api.post(PATH, body)
    assert answer.status == 400 and answer.json["error"]["code"] == "context_length_exceeded"


def test_heartbeats_are_real_events(start: Start) -> None:
    """Conformance 5 and 8, B106."""
    api = start(ScriptedEngine(pace=Pace(prefill_s=0.4, n_prefill_chunks=1)))
    answer = api.post(PATH, {"input": "x", "stream": True})
    assert [name for name, _ in answer.events].count("response.in_progress") >= 3 and answer.comments == 0


def test_stored_conversations_continue(api: Api) -> None:
    first = api.post(PATH, {"input": "My name is Ada.", "store": True}).json
    api.post(PATH, {"input": "Who am I?", "previous_response_id": first["id"]})
    prompt = api.engine.prompts[1]
    assert prompt.index("Ada") < prompt.index("Hello from the script.") < prompt.index("Who am I?")
    assert api.get(f"{PATH}/{first['id']}").json["id"] == first["id"]
    assert api.call("DELETE", f"{PATH}/{first['id']}").json["deleted"] is True
    answer = api.post(PATH, {"input": "x", "previous_response_id": first["id"]})
    assert answer.status == 404 and answer.json["error"]["code"] == "previous_response_not_found"


def test_json_schema_through_text_format(start: Start) -> None:
    api = start(ScriptedEngine(script='"a": "b"} rest'))
    wish = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "strict": True}}
    assert api.post(PATH, {"input": "x", "text": wish}).json["output"][0]["content"][0]["text"] == '{"a": "b"}'


@pytest.mark.parametrize(
    "body",
    [
        {}, {"input": 5}, {"input": [5]}, {"input": [{"role": "x"}]}, {"input": [{"role": {}}]},
        {"input": [{"type": "function_call"}]}, {"input": "x", "tools": [5]}, {"input": "x", "max_output_tokens": "1"},
        {"input": "x", "text": {"format": {"type": "grammar"}}}, {"input": [{"role": "user", "content": {}}]},
    ],
)  # fmt: skip
def test_wrong_bodies_are_refused(api: Api, body: Any) -> None:
    answer = api.post(PATH, body)
    assert answer.status == 400 and answer.json["error"]["message"]
    assert not api.engine.jobs


def test_input_tokens(api: Api) -> None:
    counted = api.post(f"{PATH}/input_tokens", {"input": "Hi"}).json["input_tokens"]
    assert counted == api.post(PATH, {"input": "Hi"}).json["usage"]["input_tokens"]
