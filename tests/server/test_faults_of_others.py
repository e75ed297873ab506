"""Faults that other servers had, tried in every dialect. The ids B... are those of the log of known faults."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from dflash_desktop.server.options import ServerOptions
from support.api_server import Answer, Api, Start
from support.patience import LONG_S, received, until
from support.ports import free_port
from support.scripted_engine import Pace, ScriptedEngine, ScriptedReader

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
ASKS: dict[str, dict[str, Any]] = {
    CHAT: HELLO,
    "/api/v0/chat/completions": HELLO,
    "/v1/messages": {**HELLO, "max_tokens": 500},
    "/v1/responses": {"input": "Hi"},
    "/api/v1/chat": {"input": "Hi"},
    "/api/chat": {**HELLO, "stream": False},
}


@pytest.mark.parametrize("path", [path for path in ASKS if path != "/api/v1/chat"])
def test_b072_what_the_assistant_said_is_in_the_next_prompt(api: Api, path: str) -> None:
    turns = [("user", "What is it?"), ("assistant", "The code is 7421."), ("user", "Say it again.")]
    listed = [{"role": role, "content": text} for role, text in turns]
    assert api.post(path, {**ASKS[path], "input" if path == "/v1/responses" else "messages": listed}).status == 200
    at = [api.engine.prompts[0].index(text) for _, text in turns]
    assert at == sorted(at)


def test_b072_a_stored_conversation_keeps_what_the_assistant_said(start: Start) -> None:
    api = start(ScriptedEngine(script="The code is 7421."))
    first = api.post("/api/v1/chat", {"input": "What is it?"}).json
    api.post("/api/v1/chat", {"input": "Say it again.", "previous_response_id": first["response_id"]})
    assert "The code is 7421.<|im_end|>" in api.engine.prompts[1]


WRONG: tuple[Any, ...] = (None, "", 7, [], [None], [[]], [{}], [{"role": "x"}], [{"role": None}])


@pytest.mark.parametrize("wrong", [*WRONG, "missing"], ids=json.dumps)
@pytest.mark.parametrize(
    ("path", "name"),
    [
        (CHAT, "messages"), ("/api/v0/chat/completions", "messages"), ("/v1/messages", "messages"),
        ("/v1/messages/count_tokens", "messages"), ("/v1/responses", "input"), ("/api/v1/chat", "input"),
        ("/v1/completions", "prompt"), ("/api/chat", "messages"), ("/api/generate", "prompt"),
    ],
)  # fmt: skip
def test_b073_nothing_is_made_from_wrong_or_missing_messages(api: Api, path: str, name: str, wrong: Any) -> None:
    body = {**ASKS.get(path, {}), "stream": False, name: wrong}
    if wrong == "missing":
        del body[name]
    answer = api.post(path, body)
    loads = path in {"/api/chat", "/api/generate"} and answer.status == 200  # Ollama's way to load a model
    assert loads or (path, wrong) == ("/v1/responses", "") or (answer.status == 400 and name in answer.body.decode())
    if loads:
        assert answer.json["done_reason"] == "load" and wrong in ([], None, "", "missing")
    assert len(api.engine.jobs) == ((path, wrong) == ("/v1/responses", "")), "an empty text is Codex's warm-up"


LIST_TYPES = {
    "a": {"type": ["integer", "null"]},
    "b": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    "c": {"enum": ["x", "y"]},
    "d": {},
}
ODD_TOOLS: tuple[tuple[str, Any], ...] = (
    ("typed", {"type": "object", "properties": LIST_TYPES}),
    ("bare", None),
    ("empty", {}),
    ("untyped", {"properties": {"a": {"description": "anything"}}}),
    ("list", {"type": ["object", "null"], "properties": {}}),
)


def tools_of(path: str) -> list[dict[str, Any]]:
    """The odd tools in the words of the dialect."""
    found = []
    for name, schema in ODD_TOOLS:
        key = "input_schema" if path == "/v1/messages" else "parameters"
        tool = {"name": name} if schema is None else {"name": name, key: schema}
        if path == "/v1/responses":
            tool["type"] = "function"
        elif path != "/v1/messages":
            tool = {"type": "function", "function": tool}
        found.append(tool)
    return found


def calls_of(path: str, answer: Answer) -> list[tuple[str, Any]]:
    assert answer.status == 200, answer.body
    body = answer.json
    if path == "/v1/messages":
        return [(each["name"], each["input"]) for each in body["content"] if each["type"] == "tool_use"]
    if path == "/v1/responses":
        items = [each for each in body["output"] if each["type"] == "function_call"]
        return [(each["name"], json.loads(each["arguments"])) for each in items]
    if path == "/api/chat":
        functions = [each["function"] for each in body["message"]["tool_calls"]]
        return [(each["name"], each["arguments"]) for each in functions]
    functions = [each["function"] for each in body["choices"][0]["message"]["tool_calls"]]
    return [(each["name"], json.loads(each["arguments"])) for each in functions]


VALUES = {"a": "5", "b": "true", "c": "x", "d": "7"}


@pytest.mark.parametrize("path", [path for path in ASKS if path != "/api/v1/chat"])
def test_b065_schemas_of_every_form_are_read_and_a_call_without_arguments_is_a_call(start: Start, path: str) -> None:
    values = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in VALUES.items())
    typed = f"<tool_call>\n<function=typed>\n{values}</function>\n</tool_call>"
    none = "\n<tool_call>\n<function=bare>\n</function>\n</tool_call>"
    api = start(ScriptedEngine(script=typed + none))
    calls = calls_of(path, api.post(path, {**ASKS[path], "tools": tools_of(path)}))
    assert calls == [("typed", {"a": 5, "b": True, "c": "x", "d": 7}), ("bare", {})]
    assert all(f'"name": "{name}"' in api.engine.prompts[0] for name, _ in ODD_TOOLS)


CUT_CALL = "On it.\n<tool_call>\n<function=typed>\n<parameter=c>\n" + "word " * 60


@pytest.mark.parametrize("asks_usage", [False, True])
@pytest.mark.parametrize("script", ["Hello.", "", "Hm.\n</think>\n\nYes.", CUT_CALL, "a" * 400])
def test_b087_a_stream_has_the_shape_of_the_original_service(start: Start, script: str, asks_usage: bool) -> None:
    """The role once, the reason alone in a chunk, one id and time, usage where asked, length before tool_calls."""
    api = start(ScriptedEngine(script=script, reader=ScriptedReader(is_thinking_default="</think>" in script)))
    body = {**HELLO, "tools": tools_of(CHAT), "max_tokens": 30, "stream": True}
    *chunks, done = api.post(CHAT, {**body, "stream_options": {"include_usage": asks_usage}}).data
    assert done == "[DONE]"
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    if asks_usage:
        assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] > 0
        chunks.pop()
    assert all(len(chunk["choices"]) == 1 for chunk in chunks)
    first, *middle, last = [chunk["choices"][0] for chunk in chunks]
    assert first["delta"] == {"role": "assistant", "content": ""} and first["finish_reason"] is None
    assert last["delta"] == {} and last["finish_reason"] == ("length" if len(script) > 120 else "stop")
    for choice in middle:
        assert choice["finish_reason"] is None and choice["delta"] and "role" not in choice["delta"]
        assert all(choice["delta"].values()), "no stray empty chunk"


def test_b089_two_calls_after_text_are_blocks_of_a_message(start: Start) -> None:
    """As a whole and streamed; test_sdk_clients.py asks the same through the vendor's library."""
    one = "<tool_call>\n<function=untyped>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>"
    api = start(ScriptedEngine(script=f"Both.\n{one.format('x')}\n{one.format('é')}"))
    body = {**ASKS["/v1/messages"], "tools": tools_of("/v1/messages")}
    whole = api.post("/v1/messages", body).json
    assert whole["stop_reason"] == "tool_use"
    assert [block["type"] for block in whole["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["input"] for block in whole["content"][1:]] == [{"a": "x"}, {"a": "é"}]
    events = api.post("/v1/messages", {**body, "stream": True}).events
    starts = [data["content_block"] for name, data in events if name == "content_block_start"]
    assert [block["type"] for block in starts] == ["text", "tool_use", "tool_use"]
    assert all(block["input"] == {} for block in starts[1:])
    for index in (1, 2):
        parts = [data["delta"]["partial_json"] for name, data in events
                 if name == "content_block_delta" and data["index"] == index]  # fmt: skip
        assert json.loads("".join(parts)) == whole["content"][index]["input"]
    assert [data["index"] for name, data in events if name == "content_block_stop"] == [0, 1, 2]
    assert events[-2][1]["delta"]["stop_reason"] == "tool_use"


OFF: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/messages", {"thinking": {"type": "disabled"}}),
    ("/v1/messages", {}),  # off unless asked for, as with the original
    ("/v1/responses", {"reasoning": {"effort": "none"}}),
    ("/v1/responses", {"reasoning": {"effort": "minimal"}}),
    ("/v1/responses", {"chat_template_kwargs": {"enable_thinking": False}}),
    ("/api/chat", {"think": False}),
    ("/api/v1/chat", {"reasoning": "off"}),
    ("/api/v0/chat/completions", {"enable_thinking": False}),
    ("/api/v0/chat/completions", {"chat_template_kwargs": {"enable_thinking": False}}),
    ("/api/v0/chat/completions", {"reasoning_effort": "none"}),
)


@pytest.mark.parametrize(("path", "switch"), OFF)
def test_b103_thinking_can_be_switched_off_in_every_dialect(start: Start, path: str, switch: Any) -> None:
    """Chat Completions' seven spellings: test_every_spelling_switches_thinking_off."""
    api = start(ScriptedEngine(reader=ScriptedReader(is_thinking_default=True)))
    assert api.post(path, {**ASKS[path], **switch}).status == 200
    assert api.engine.prompts[0].endswith("<think>\n\n</think>\n\n")


def test_b103_a_template_without_the_switch_is_noted(start: Start) -> None:
    engine = ScriptedEngine(reader=ScriptedReader(has_thinking=False))
    object.__setattr__(engine.pair, "has_thinking", False)
    api = start(engine)
    assert api.post(CHAT, {**HELLO, "enable_thinking": False}).status == 200
    (ended,) = [event for event in api.events if type(event).__name__ == "RequestEnded"]
    assert any("no switch for it" in note for note in ended.notes)


def open_stream(api: Api, path: str, body: dict[str, Any]) -> socket.socket:
    raw = json.dumps({**body, "stream": True}).encode()
    sock = socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n"
    sock.sendall(head.encode() + raw)
    return sock


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/responses"])
def test_b110_a_cancel_in_the_middle_of_a_call_is_a_disconnect(start: Start, path: str) -> None:
    """The engine is idle within a step and the next request runs at once, with nothing of the half call in it."""
    call = "<tool_call>\n<function=typed>\n<parameter=c>\n" + "word " * 3000
    api = start(ScriptedEngine(script=call, pace=Pace(step_s=0.1)))
    body = {**ASKS[path], "max_tokens": 4000, "max_output_tokens": 4000, "tools": tools_of(path)}
    for _ in range(3):
        with open_stream(api, path, body) as sock:
            got = b""
            while got.count(b"word") < 3:
                got += received(sock)
        until(api.engine.idle.is_set, "the engine is idle")
    api.engine.script = "fine"
    answer = api.post(path, ASKS[path])
    assert answer.status == 200 and b"fine" in answer.body and b"word" not in answer.body
    assert api.get("/status").json["running"] == 0


def test_b095_five_hundred_requests_leave_no_handle_good_bad_or_aborted(start: Start) -> None:
    api = start(ScriptedEngine(script="ok then", pace=Pace(n_prefill_chunks=0)))
    process = psutil.Process()
    kinds: list[Callable[[], object]] = [
        partial(api.post, CHAT, HELLO),
        partial(api.post, CHAT, {**HELLO, "stream": True}),
        partial(api.post, CHAT, {}),
        partial(api.get, "/nope"),
        lambda: open_stream(api, CHAT, HELLO).close(),
    ]
    for ask in kinds * 2:
        ask()
    until(api.engine.idle.is_set, "idle")
    before = process.num_fds()
    for _ in range(100):
        for ask in kinds:
            ask()
    until(lambda: api.engine.idle.is_set() and process.num_fds() <= before, "as many handles as before")


ROUTES = ("/", "/health", "/props", "/status", "/metrics", "/openapi.json", "/v1/models", "/api/v0/models",
          "/api/v1/models", "/api/tags", "/api/ps", "/nope")  # fmt: skip


def test_b101_no_answer_and_no_error_names_a_path_or_a_person(start: Start, tmp_path: Path) -> None:
    """Also on the real engine: test_no_answer_names_a_path in test_real_engine_api.py."""
    engine = ScriptedEngine()
    object.__setattr__(engine.pair, "target", tmp_path / "Jane Doe" / "Qwen.gguf")
    api = start(engine)
    answers = [api.get(path) for path in ROUTES]
    for path, body in ASKS.items():
        answers += [api.post(path, body), api.post(path, {**body, "messages": 5, "input": 5})]
        answers.append(api.post(path, {**body, "model": engine.pair.target.name}))
        answers.append(api.call("POST", path, b"{"))
    for path in ("/api/v1/models/load", "/api/show", "/tokenize"):
        answers.append(api.post(path, {"model": "x", "context_length": "y", "content": 5}))
    told = [answer.body.decode() for answer in answers]
    assert not [text for text in told if "Jane Doe" in text or str(tmp_path) in text or str(Path.home()) in text]


ROO_TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "strict": True,
        "parameters": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": ["integer", "null"]}},
            "required": ["path", "line"],
            "additionalProperties": False,
        },
    },
}


def test_conformance_3_roo_code_over_openai_compatible(start: Start) -> None:
    """Content parts with cache_control, strict tools, parallel calls, usage in the stream; then the tool's result."""
    read = (
        "<tool_call>\n<function=read_file>\n<parameter=path>\n{}\n</parameter>\n<parameter=line>\nnull\n</parameter>\n"
    )
    script = "I read both.\n" + "\n".join(f"{read.format(name)}</function>\n</tool_call>" for name in ("a.py", "ü.py"))
    api = start(ScriptedEngine(script=lambda prompt: "Done." if "AAA" in prompt else script))
    mark = {"cache_control": {"type": "ephemeral"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": [{"type": "text", "text": "You are Roo.", **mark}]},
        {"role": "user", "content": [{"type": "text", "text": "<task>look</task>"},
                                     {"type": "text", "text": "<environment_details/>", **mark}]},
    ]  # fmt: skip
    body = {"model": "m", "messages": messages, "temperature": 0, "stream": True, "parallel_tool_calls": True,
            "stream_options": {"include_usage": True}, "tools": [ROO_TOOL], "tool_choice": "auto"}  # fmt: skip
    *chunks, done = api.post(CHAT, body, {"User-Agent": "RooCode/3.53.0", "Authorization": "Bearer noop"}).data
    assert done == "[DONE]" and chunks[-1]["usage"]["prompt_tokens"] > 0
    assert (
        "You are Roo." in api.engine.prompts[0] and "<task>look</task>\n<environment_details/>" in api.engine.prompts[0]
    )
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks[:-1]:
        for part in chunk["choices"][0]["delta"].get("tool_calls", []):
            if "id" in part:
                calls[part["index"]] = {"id": part["id"], "type": "function", "function": dict(part["function"])}
            else:
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    given = [json.loads(call["function"]["arguments"]) for call in calls.values()]
    assert given == [{"path": "a.py", "line": None}, {"path": "ü.py", "line": None}]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": [{"type": "text", "text": "AAA", **mark}]}
               for call in calls.values()]  # fmt: skip
    assistant = {"role": "assistant", "content": "I read both.", "tool_calls": list(calls.values())}
    *chunks, _ = api.post(CHAT, {**body, "messages": [*messages, assistant, *results]}).data
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1]) == "Done."
    assert chunks[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


class _LmStudio(http.server.BaseHTTPRequestHandler):
    """What LM Studio tells about itself."""

    def do_GET(self) -> None:  # the name that http.server looks for
        said = b'{"lmstudio":true}' if self.path == "/lmstudio-greeting" else b'{"error":"Unexpected endpoint"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


def test_b093_lm_studio_on_its_port_is_named_and_the_port_is_ours_once_it_is_free(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dummy, and our own program: test_http.py. The switch and its one click: tests/ui/server/test_serving.py."""
    monkeypatch.setattr("dflash_desktop.server.sockets._PROBE_S", LONG_S)
    api = start()
    api.server.stop()
    with http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), _LmStudio) as other:
        port = other.server_address[1]
        answering = threading.Thread(target=other.serve_forever)
        answering.start()
        assert not api.server.start(ServerOptions(port=port))
        failed = api.events[-1]
        assert failed.owner.kind == "lm_studio" and "LM Studio" in failed.message and str(api.server.state) == "failed"
        assert failed.free_port not in (None, port)
        other.shutdown()
        answering.join()
    assert api.server.start(ServerOptions(port=port)) and str(api.server.state) == "running"
    assert api.get("/health").status == 200


def test_conformance_2_clines_lm_studio_provider(start: Start) -> None:
    """Listing without a header although there is a key, a limit beyond the room, a tool round trip, an overflow."""
    call = "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>"
    api = start(ScriptedEngine(script=lambda prompt: "Done." if "AAA" in prompt else call), access_token="k")
    (model,) = api.get("/api/v0/models").json["data"]
    assert (model["loaded_context_length"], model["max_context_length"]) == (4096, 262144)
    headers = {"Authorization": "Bearer k"}
    assert api.post(CHAT, HELLO).status == 401
    body = {**HELLO, "model": model["id"], "max_tokens": model["max_context_length"], "tools": [ROO_TOOL]}
    message = api.post(CHAT, body, headers).json["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "AAA"}
    *chunks, _ = api.post(
        CHAT, {**body, "messages": [*HELLO["messages"], message, result], "stream": True}, headers
    ).data
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Done."
    refused = api.post(CHAT, {**body, "messages": [{"role": "user", "content": "x" * 50_000}]}, headers)
    assert refused.status == 400 and refused.json["error"]["code"] == "context_length_exceeded"
