"""Odd bodies, broken requests, clients that come and go: no 5xx, no hang, nothing left behind, same answers."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import socket
import threading
from dataclasses import replace
from typing import Any

import psutil
import pytest

from support.api_server import HASTY, Api, Start
from support.patience import LONG_S, until
from support.scripted_engine import Pace, ScriptedEngine

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}}
CHAT: dict[str, Any] = {
    "model": "m", "messages": [
        {"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"}, {"role": "user", "content": "b"}],
    "stream": False, "stream_options": {"include_usage": True}, "max_tokens": 3, "max_completion_tokens": 3,
    "temperature": 0.1, "top_p": 0.9, "top_k": 3, "seed": 1, "stop": ["x"], "tools": [TOOL], "tool_choice": "auto",
    "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}, "n": 1, "logprobs": True,
    "reasoning": {"effort": "low", "max_tokens": 5}, "thinking": {"type": "enabled", "budget_tokens": 4},
    "chat_template_kwargs": {"enable_thinking": True}, "parallel_tool_calls": False,
}  # fmt: skip
MESSAGES: dict[str, Any] = {
    "model": "m", "max_tokens": 3, "system": [{"type": "text", "text": "s"}], "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "x"},
                                          {"type": "tool_use", "id": "i", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text", "text": "r"}]}]}],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 9}, "stop_sequences": ["x"], "stream": False,
}  # fmt: skip
RESPONSES: dict[str, Any] = {
    "model": "m", "instructions": "i", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "r"}],
    "tools": [{"type": "function", "name": "f", "parameters": {}}, {"type": "custom", "name": "p"},
              {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]}],
    "max_output_tokens": 3, "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}, "store": True,
    "tool_choice": {"type": "function", "name": "f"}, "metadata": {}, "stream": False,
}  # fmt: skip
OLLAMA: dict[str, Any] = {
    "model": "m", "messages": CHAT["messages"], "prompt": "p", "system": "s", "stream": False, "tools": [TOOL],
    "options": {"num_predict": 3, "stop": ["x"], "temperature": 0.5, "num_ctx": 9}, "format": "json", "think": True,
}  # fmt: skip
LM_STUDIO: dict[str, Any] = {
    "model": "m", "input": [{"type": "text", "content": "a"}], "system_prompt": "s", "max_output_tokens": 3,
    "reasoning": "on", "store": True, "stream": False, "context_length": 100,
}  # fmt: skip
LOAD: dict[str, Any] = {"model": "m", "context_length": 100, "echo_load_config": True, "instance_id": "i"}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT, "/api/v0/chat/completions": CHAT, "/v1/chat/completions/input_tokens": CHAT,
    "/v1/completions": {"prompt": "p", "max_tokens": 3, "logprobs": 2, "stop": "x", "n": 1, "echo": False},
    "/v1/messages": MESSAGES, "/v1/messages/count_tokens": MESSAGES, "/v1/responses": RESPONSES,
    "/v1/responses/input_tokens": RESPONSES, "/api/chat": OLLAMA, "/api/generate": OLLAMA,
    "/api/show": {"model": "default"},
    "/api/v1/chat": LM_STUDIO, "/api/v1/models/load": LOAD, "/tokenize": {"content": "x", "parse_special": True},
    "/detokenize": {"tokens": [0, 1]},
}  # fmt: skip
JUNK: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**62, -(2**62), 1e308, "", "x", "\u0000", "😀" * 9, [], {}, [None], [[]],
    {"": None},
    {"type": {}}, {"type": "text"}, {"type": "text", "text": 5}, [{"type": "image_url"}], {"name": []}, "none", "auto",
)  # fmt: skip


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            found += places(inner, (*path, i))
    return found


def spoiled(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """`body` with one to three values replaced, removed or added."""
    body = copy.deepcopy(body)
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(places(body) or [("odd",)])
        inner: Any = body
        for key in path[:-1]:
            inner = inner[key]
        if chance.random() < 0.15 and isinstance(inner, dict):
            inner.pop(path[-1], None)
        elif chance.random() < 0.1 and isinstance(inner, dict):
            inner[chance.choice(["type", "stream", "odd", "content"])] = copy.deepcopy(chance.choice(JUNK))
        else:
            inner[path[-1]] = copy.deepcopy(chance.choice(JUNK))
    return body


def spoil_all(api: Api, n_cases: int, seed: int) -> None:
    chance = random.Random(seed)
    counts: dict[int, int] = {}
    for _ in range(n_cases):
        path = chance.choice(list(BODIES))
        body = spoiled(BODIES[path], chance)
        answer = api.post(path, body)
        counts[answer.status] = counts.get(answer.status, 0) + 1
        assert answer.status in {200, 400, 404}, (path, body, answer.body[:500])
        if answer.status != 200:
            assert answer.json["error"], (path, body)
    assert set(counts) >= {200, 400} and api.engine.idle.wait(LONG_S)


@pytest.fixture
def quick(start: Start) -> Api:
    return start(ScriptedEngine(script="ok then", pace=Pace(n_prefill_chunks=0)))


def test_untouched_bodies_are_good(quick: Api) -> None:
    for path, body in BODIES.items():
        assert quick.post(path, body).status == 200, path
        assert quick.post(path, {**body, "stream": True}).status == 200, path


def test_spoiled_bodies_never_break_the_server(quick: Api) -> None:
    """Conformance 16; ten thousand: below."""
    spoil_all(quick, 400, seed=5)


@pytest.mark.slow
def test_many_spoiled_bodies_never_break_the_server(quick: Api) -> None:
    spoil_all(quick, 10_000, seed=6)


@pytest.mark.parametrize("path", BODIES)
def test_bodies_that_are_no_objects(quick: Api, path: str) -> None:
    for raw in (
        b"",
        b"null",
        b"[]",
        b"5",
        b'"x"',
        b"{",
        b'{"a":1}}',
        b"\xff",
        b'{"messages":"\xed\xa0\x80"}',
        b"{} {}",
    ):
        assert quick.call("POST", path, raw).status in {200, 400, 404}, raw


def break_bytes(api: Api, n_cases: int, seed: int) -> None:
    """Send a good request with bytes changed, cut out and put in, on a new connection each."""
    chance = random.Random(seed)
    good = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 44\r\n\r\n{"messages":[{"role":"user","content":"x"}]}'
    )
    for _ in range(n_cases):
        raw = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(raw))
            match chance.randint(0, 2):
                case 0:
                    raw[at] = chance.randrange(256)
                case 1:
                    del raw[at : at + chance.randint(1, 30)]
                case _:
                    raw[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 20)))
        with (
            socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock,
            contextlib.suppress(OSError),
        ):
            sock.sendall(bytes(raw))
            if chance.random() < 0.3:
                sock.settimeout(0.02)
                sock.recv(100)


def drip(api: Api, raw: bytes, gap_s: float) -> int:
    """Write `raw` a byte at a time until the server has enough of it; return how many bytes those were."""
    n_written = 0
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock, contextlib.suppress(OSError):
        sock.settimeout(gap_s)
        for i in range(len(raw)):
            sock.sendall(raw[i : i + 1])
            n_written += 1
            with contextlib.suppress(TimeoutError):
                if sock.recv(1000) == b"":
                    break
    return n_written


def test_broken_bytes_do_not_break_the_server(start: Start) -> None:
    api = start()
    break_bytes(api, 150, seed=7)
    assert api.get("/health").status == 200 and api.engine.idle.wait(LONG_S)
    assert api.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}).status == 200


def test_slow_writers_are_not_waited_for(start: Start) -> None:
    api = start(limits=replace(HASTY, body_s=0.8))
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n"
    taken: list[float] = []  # of what each has to write, which would take it a minute and more
    raws = [head * 100, head + b"\r\n" + b"x" * 9000]  # the first never ends its head, the second never its body

    def write(raw: bytes) -> None:
        taken.append(drip(api, raw, 0.01) / len(raw))

    threads = [threading.Thread(target=write, args=(raw,)) for raw in raws * 4]
    threads += [threading.Thread(target=drip, args=(api, raws[1][: len(head) + 30], 0.01))]  # and one that leaves
    for thread in threads:
        thread.start()
    assert api.get("/health").status == 200, "others are answered meanwhile"
    for thread in threads:
        thread.join()
    assert len(taken) == 8 and max(taken) < 1
    assert not api.engine.jobs


@pytest.mark.slow
def test_two_thousand_malformed_requests_and_slow_writers_leave_nothing_behind(start: Start) -> None:
    api = start(limits=HASTY)
    process = psutil.Process()
    break_bytes(api, 200, seed=8)
    api.engine.idle.wait(LONG_S)
    memory, handles = process.memory_info().rss, process.num_fds()
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    writers = [threading.Thread(target=drip, args=(api, head * 9, 0.02)) for _ in range(40)]
    for writer in writers:
        writer.start()
    break_bytes(api, 2000, seed=9)
    for writer in writers:
        writer.join()
    assert api.get("/health").status == 200 and api.engine.idle.wait(LONG_S)
    until(lambda: process.num_fds() <= handles, "as many handles as before")
    assert threading.active_count() < 12  # asyncio keeps a few for later
    assert process.memory_info().rss - memory < 20 * 2**20


def test_eight_clients_at_once_get_the_answers_they_would_get_alone(start: Start) -> None:
    api = start(ScriptedEngine(script=lambda prompt: f"You said: {prompt[-60:]}", pace=Pace(step_s=0.0005)))
    chance = random.Random(3)
    wrong: list[Any] = []

    def ask(text: str, *, stream: bool) -> str:
        body = {"messages": [{"role": "user", "content": text}], "stream": stream, "temperature": 0}
        answer = api.post("/v1/chat/completions", body)
        if not stream:
            return str(answer.json["choices"][0]["message"]["content"])
        return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in answer.data[:-1])

    alone = {f"text {i} 资料": ask(f"text {i} 资料", stream=False) for i in range(8)}

    def work(text: str, seed: int) -> None:
        own = random.Random(seed)
        for _ in range(5):
            if own.random() < 0.3:
                raw = json.dumps({"messages": [{"role": "user", "content": "leaves"}], "stream": True}).encode()
                with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock:
                    head = (
                        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n"
                    )
                    sock.sendall(head.encode() + raw)
            if (said := ask(text, stream=own.random() < 0.5)) != alone[text]:
                wrong.append((text, said))

    threads = [threading.Thread(target=work, args=(text, chance.randrange(99))) for text in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert api.engine.idle.wait(LONG_S) and api.get("/status").json["waiting"] == 0
