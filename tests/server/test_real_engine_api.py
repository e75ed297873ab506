"""The server on the real engine: scripted models (F1) whose reply is known to the byte, and the small real pair."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.binding.native import Library
from dflash_desktop.engine import loaded
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from dflash_desktop.engine.planning import LoadEstimate, plan_load
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.server.events import RequestEnded
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.server import ApiServer
from support.api_server import Answer, Api
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.patience import LONG_S, until
from support.real_engine import running_engine, try_load
from support.scripted_engine import ScriptedEngine
from support.scripted_model import CHATML, cut, scripted_words, write_scripted

CALL_TEXT = (
    "I will write.\n<tool_call>\n<function=write_file>\n<parameter=path>\n资料/résumé 😀.txt\n</parameter>\n"
    '<parameter=text>\nC:\\new\\table "x" \\u00e9 if a < b && c > "d": <b>\n</parameter>\n</function>\n</tool_call>'
)
ARGUMENTS = {"path": "资料/résumé 😀.txt", "text": 'C:\\new\\table "x" \\u00e9 if a < b && c > "d": <b>'}
THOUGHT = "Ich 😀 denke.\n</think>\n\nDie Antwort: 家庭"
THINKING = CHATML.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
COUNTING = [f"{i}-".encode() for i in range(10, 90)]
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}


class RealApi(Api):
    """The same small client, in front of the real engine."""

    def load_files(self, engine: Engine, target: Path, draft: Path | None = None, *, context: int = 512) -> None:
        last = try_load(engine, target, draft, LoadOptions(context_tokens=context, n_threads=1))
        assert isinstance(last, PairLoaded), last
        self.server.on_engine_event(last)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture
def api(engine: Engine) -> Iterator[RealApi]:
    events: list[Any] = []
    server = ApiServer(engine, events.append)
    assert server.start(ServerOptions(port=0))
    yield RealApi(ScriptedEngine(), server, events)
    server.stop()


def scripted(folder: Path, text: str, *, size: int = 3) -> Path:
    return write_scripted(folder / f"{size}.gguf", cut(text.encode(), size))


def chat(api: Api, **body: Any) -> tuple[dict[str, Any], Answer]:
    whole = api.post("/v1/chat/completions", {**HELLO, **body})
    assert whole.status == 200, whole.body
    return whole.json["choices"][0], api.post("/v1/chat/completions", {**HELLO, **body, "stream": True})


def joined(answer: Answer, key: str) -> str:
    return "".join(chunk["choices"][0]["delta"].get(key, "") for chunk in answer.data[:-1] if chunk["choices"])


@pytest.mark.parametrize("size", [2, 3, 5])
def test_b063_b064_arguments_arrive_byte_exact(engine: Engine, api: RealApi, tmp_path: Path, size: int) -> None:
    """Conformance 11: characters cut anywhere, in arguments."""
    api.load_files(engine, scripted(tmp_path, CALL_TEXT, size=size))
    tool = {"type": "function", "function": {"name": "write_file", "parameters": SCHEMA}}
    choice, stream = chat(api, tools=[tool])
    (call,) = choice["message"]["tool_calls"]
    assert choice["message"]["content"] == "I will write." == joined(stream, "content")
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS and choice["finish_reason"] == "tool_calls"
    fragments = [f for chunk in stream.data[:-1] for f in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert "".join(f["function"]["arguments"] for f in fragments) == call["function"]["arguments"]
    body = {**HELLO, "max_tokens": 400, "tools": [{"name": "write_file", "input_schema": SCHEMA}]}
    assert api.post("/v1/messages", body).json["content"][1]["input"] == ARGUMENTS
    tool = {"type": "function", "name": "write_file", "parameters": SCHEMA}
    item = api.post("/v1/responses", {"input": "Hi", "tools": [tool]}).json["output"][1]
    assert json.loads(item["arguments"]) == ARGUMENTS


def test_b059_the_reply_starts_in_the_thoughts_that_the_template_opened(
    engine: Engine, api: RealApi, tmp_path: Path
) -> None:
    """Conformance 11: characters cut anywhere, in thoughts and text."""
    words = replace(scripted_words(pieces := cut(THOUGHT.encode(), 2)), template=THINKING)
    api.load_files(engine, write_scripted(tmp_path / "think.gguf", pieces, words=words))
    choice, stream = chat(api)
    expected = {"role": "assistant", "content": "Die Antwort: 家庭", "reasoning_content": "Ich 😀 denke."}
    assert choice["message"] == expected
    assert joined(stream, "reasoning_content") == expected["reasoning_content"]
    assert joined(stream, "content") == expected["content"]


def test_b083_b084_limits_are_exact_in_every_dialect(engine: Engine, api: RealApi, tmp_path: Path) -> None:
    api.load_files(engine, write_scripted(tmp_path / "count.gguf", COUNTING))
    for n in (1, 2, 5):
        chat_body = api.post("/v1/chat/completions", {**HELLO, "max_tokens": n}).json
        assert chat_body["usage"]["completion_tokens"] == n and chat_body["choices"][0]["finish_reason"] == "length"
        assert chat_body["choices"][0]["message"]["content"] == "".join(f"{10 + i}-" for i in range(n))
        last = api.post("/v1/chat/completions", {**HELLO, "max_tokens": n, "stream": True}).data[-2]
        assert last["choices"][0]["finish_reason"] == "length" and last["usage"]["completion_tokens"] == n
        assert api.post("/v1/messages", {**HELLO, "max_tokens": n}).json["stop_reason"] == "max_tokens"
        assert api.post("/v1/responses", {"input": "x", "max_output_tokens": n}).json["status"] == "incomplete"
        body = {**HELLO, "options": {"num_predict": n}, "stream": False}
        assert api.post("/api/chat", body).json["done_reason"] == "length"
    assert api.post("/v1/chat/completions", {**HELLO, "max_tokens": 0}).json["choices"][0]["finish_reason"] == "stop"


def test_stop_strings_across_tokens(engine: Engine, api: RealApi, tmp_path: Path) -> None:
    api.load_files(engine, write_scripted(tmp_path / "count.gguf", COUNTING))
    choice, stream = chat(api, stop=["-15-1", "zz"])
    assert choice["message"]["content"] == "10-11-12-13-14" == joined(stream, "content")
    assert choice["finish_reason"] == "stop"


def test_b099_a_prompt_of_every_length_around_the_context(engine: Engine, api: RealApi, tmp_path: Path) -> None:
    api.load_files(engine, write_scripted(tmp_path / "count.gguf", COUNTING), context=256)
    base = api.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": ""}]}).json["input_tokens"]
    for n in (254, 255, 256, 257, 5000):
        body = {"messages": [{"role": "user", "content": "x" * (n - base)}], "max_tokens": 5}
        answer = api.post("/v1/chat/completions", body)
        if n < 256:
            assert answer.status == 200 and answer.json["usage"]["prompt_tokens"] == n
        else:
            assert answer.status == 400 and answer.json["error"]["code"] == "context_length_exceeded"
            assert str(n) in answer.json["error"]["message"] and "256" in answer.json["error"]["message"]
            assert api.post("/v1/messages", body).json["error"]["message"].startswith("prompt is too long")


def test_b085_a_client_that_leaves_frees_the_engine(engine: Engine, api: RealApi) -> None:
    api.load_files(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, context=2048)
    raw = json.dumps({**HELLO, "stream": True, "max_tokens": 1500, "temperature": 1.0}).encode()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n"
            sock.sendall(head.encode() + raw)
            assert sock.recv(200)
        until(lambda: not api.get("/status").json["running"], "the engine is free")
    assert api.post("/v1/chat/completions", {**HELLO, "max_tokens": 1}).status == 200
    ends = [event for event in api.events if isinstance(event, RequestEnded)]
    assert [event.outcome for event in ends] == ["cancelled"] * 3 + ["length"]


def test_b080_b107_the_next_turn_reuses_the_prefix(engine: Engine, api: RealApi) -> None:
    api.load_files(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, context=2048)
    first = api.post("/v1/chat/completions", {**HELLO, "max_tokens": 12, "temperature": 0}).json
    turns = [*HELLO["messages"], first["choices"][0]["message"], {"role": "user", "content": "And then?"}]
    body = {"messages": turns, "max_tokens": 4, "temperature": 0}
    second = api.post("/v1/chat/completions", body).json
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    alone = api.post("/v1/chat/completions", {**body, "max_tokens": 4}).json
    assert alone["choices"][0]["message"] == second["choices"][0]["message"]


def test_the_self_test_passes_on_the_small_pair(engine: Engine, api: RealApi) -> None:
    api.load_files(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, context=2048)
    assert [line for line in api.server.self_test() if not line.passed] == []


def test_no_answer_names_a_path(engine: Engine, api: RealApi) -> None:
    """B101."""
    api.load_files(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, context=512)
    texts = [api.get(path).body.decode() for path in ("/props", "/v1/models", "/api/v1/models", "/api/tags", "/status")]
    texts.append(api.post("/v1/chat/completions", {**HELLO, "max_tokens": 1}).body.decode())
    texts.append(
        api.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 9000}]}).body.decode()
    )
    folder = str(QWEN35_MINI.parent)
    assert not [text for text in texts if folder in text or str(Path.home()) in text]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/models/load", {"context_length": 1024}),  # takes more memory than there is
        ("/api/v1/models/load", {"context_length": (1 << 24) + 1}),  # more than the engine takes
        ("/api/v1/chat", {"input": "Hi", "context_length": 1_000_000_000}),
    ],
    ids=["no memory", "out of range", "in a chat"],
)
def test_a_context_that_cannot_be_had_costs_nobody_the_model(
    engine: Engine, api: RealApi, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    def planned(target: Path, draft: Path | None, options: LoadOptions, library: Library) -> LoadEstimate:
        estimate = plan_load(target, draft, options, library)
        return replace(estimate, free_bytes=1) if options.context_tokens == 1024 else estimate

    api.load_files(engine, QWEN35_MINI)
    monkeypatch.setattr(loaded, "plan_load", planned)
    refused = api.post(path, body)
    assert refused.status == 400, refused.body
    assert refused.json["error"]["param"] == "context_length" and "512 tokens" in refused.json["error"]["message"]
    whole, _ = chat(api, max_tokens=1)
    assert whole["finish_reason"] == "length"
    assert api.get("/v1/models").json["data"][0]["context_length"] == 512
