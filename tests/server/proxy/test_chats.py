"""Chats through the proxy: shortened, streamed, left by their client, and answered by a server of ours."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import Job, LoadOptions
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.proxy import ProxyServer
from dflash_desktop.server.server import ApiServer
from dflash_desktop.server.upstream import parse_upstream
from support.fixtures import QWEN35_MINI
from support.patience import LONG_S, received
from support.proxied import ALWAYS, ASKED, CHAT, LONG, NEEDLE, PARAGRAPHS, PICTURE, QUESTION, SHORT, ProxyApi
from support.real_engine import try_load
from support.standin_upstream import STREAM, StandIn


class Lane:
    """The real lane; tells when it was asked for something and when that was cancelled."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.was_asked = threading.Event()
        self.was_cancelled = threading.Event()

    def submit(self, job: Job) -> int:
        job_id = self._engine.submit(job)
        self.was_asked.set()
        return job_id

    def cancel(self, job_id: int) -> None:
        self._engine.cancel(job_id)
        self.was_cancelled.set()


def test_a_long_chat_is_shortened_and_everything_else_of_it_stays(api: ProxyApi, upstream: StandIn) -> None:
    answer = api.post(CHAT, LONG)
    assert (
        answer.status == 200
        and answer.body == b'{ "object":"chat.completion", "choices":[], "usage": {"prompt_tokens": 7} }'
    )
    (asked,) = upstream.asked
    (message,) = asked.json["messages"]
    assert (
        NEEDLE in message["content"]
        and message["content"].endswith(QUESTION)
        and PARAGRAPHS[2] not in message["content"]
    )
    assert {**asked.json, "messages": 0} == {**LONG, "messages": 0} and message["name"] == "ann"
    assert answer.headers["x-pflash"] == "shortened"
    assert int(answer.headers["x-pflash-tokens-after"]) < 0.25 * int(answer.headers["x-pflash-tokens-before"])
    assert api.forwarded[-1].pflash is not None and api.forwarded[-1].pflash.is_shortened
    assert 'dflash_pflash_prompts_total{outcome="shortened"} 1' in api.get("/metrics").body.decode()


def test_a_stream_comes_through_byte_for_byte_and_as_it_comes(api: ProxyApi, upstream: StandIn) -> None:
    upstream.may_go_on.clear()
    body = json.dumps({**LONG, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock:
        sock.sendall(_head(body) + body)
        heard = b""
        while STREAM[0] not in heard:
            heard += received(sock)
        assert STREAM[1] not in heard
        upstream.may_go_on.set()
        while b"\r\n0\r\n\r\n" not in heard:
            heard += received(sock)
    answer = api.post(CHAT, {**LONG, "stream": True})
    assert answer.body == b"".join(STREAM)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["x-upstream-request-id"] == "theirs" and answer.headers["x-request-id"].startswith("req_")
    assert "cookie" not in upstream.asked[-1].headers
    assert "set-cookie" not in answer.headers and "access-control-allow-origin" not in answer.headers


def _head(body: bytes) -> bytes:
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode()


def test_a_client_that_leaves_ends_the_upstreams_work(api: ProxyApi, upstream: StandIn) -> None:
    upstream.may_go_on.clear()
    body = json.dumps({**SHORT, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock:
        sock.sendall(_head(body) + body)
        heard = b""
        while STREAM[0] not in heard:
            heard += received(sock)
    assert upstream.was_left.wait(LONG_S)


def test_a_client_that_leaves_while_the_scorer_reads_ends_that_and_nothing_is_passed_on(
    engine: Engine, upstream: StandIn
) -> None:
    lane = Lane(engine)
    server = ProxyServer(lane, parse_upstream(upstream.base), lambda event: None)
    assert server.start(ServerOptions(port=0, pflash=replace(ALWAYS, keep_loaded=False)))
    try:
        body = json.dumps({"messages": [{"role": "user", "content": f"{ASKED} {ASKED} Well?"}]}).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=LONG_S) as sock:
            sock.sendall(_head(body) + body)
            assert lane.was_asked.wait(LONG_S)
        assert lane.was_cancelled.wait(LONG_S)
        assert upstream.asked == []
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"messages": SHORT["messages"]}, "long enough"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"functions": [{"name": "f"}]}, "tools"),
        ({"messages": [PICTURE]}, "more than text"),
        ({"messages": "Hi"}, "none that could be read"),
        (
            {"messages": [{"role": "user", "content": f"New: {ASKED}"}, {"role": "assistant", "content": "7"}]},
            "continued",
        ),
    ],
)
def test_what_is_not_shortened_arrives_byte_for_byte_and_is_told_why(
    api: ProxyApi, upstream: StandIn, change: dict[str, Any], why: str
) -> None:
    sent = json.dumps({**LONG, **change}, indent=3).encode()
    answer = api.post(CHAT, sent)
    assert answer.status == 200
    assert upstream.asked[-1].body == sent
    assert answer.headers["x-pflash"] == "whole" and why in answer.headers["x-pflash-reason"]


def test_switched_off_requests_arrive_byte_for_byte(start: Any, upstream: StandIn) -> None:
    api = start(parse_upstream(upstream.base), PflashOptions("off", QWEN35_MINI))
    sent = json.dumps(LONG, indent=2).encode()
    answer = api.post(CHAT, sent)
    assert upstream.asked[-1].body == sent and "x-pflash" not in answer.headers
    asked = api.post(CHAT, {**LONG, "pflash": 0.1})
    assert asked.headers["x-pflash"] == "shortened" and "pflash" not in upstream.asked[-1].json
    assert api.post(CHAT, {**LONG, "pflash": "off"}).status == 200 and upstream.asked[-1].json == LONG
    assert api.post(CHAT, {**LONG, "pflash": 3}).json["error"]["param"] == "pflash"


def test_pictures_of_earlier_turns_stay_where_they_are(api: ProxyApi, upstream: StandIn) -> None:
    turns = [PICTURE, {"role": "assistant", "content": "7391"}, *LONG["messages"]]
    assert api.post(CHAT, {**LONG, "messages": turns}).headers["x-pflash"] == "shortened"
    first, _, last = upstream.asked[-1].json["messages"]
    assert first == PICTURE and len(last["content"]) < 0.4 * len(ASKED)


def test_messages_that_say_nothing_are_passed_on_as_they_are(api: ProxyApi, upstream: StandIn) -> None:
    for silent in ({"role": "assistant"}, {"role": "assistant", "content": None}, {"role": "user", "content": 5}):
        answer = api.post(CHAT, {**LONG, "messages": [silent, *LONG["messages"]]})
        assert answer.status == 200
        assert upstream.asked[-1].json["messages"][0] == silent


def test_a_scorer_that_fails_costs_no_request(start: Any, upstream: StandIn, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(QWEN35_MINI.read_bytes()[:5000])
    api = start(parse_upstream(upstream.base), PflashOptions("always", broken))
    answer = api.post(CHAT, LONG)
    assert answer.status == 200 and "goes in whole" in answer.headers["x-pflash-reason"]
    assert upstream.asked[-1].json == LONG


def test_our_own_server_as_upstream_answers_from_the_shortened_chat(start: Any, engine: Engine) -> None:
    loaded = try_load(engine, QWEN35_MINI, None, LoadOptions(context_tokens=2048, n_threads=1))
    assert isinstance(loaded, PairLoaded), loaded
    server = ApiServer(engine, lambda event: None)
    server.on_engine_event(loaded)
    assert server.start(ServerOptions(port=0))
    try:
        api = start(parse_upstream(f"http://127.0.0.1:{server.port}"))
        body = {**LONG, "max_tokens": 3, "temperature": 0}
        short = api.post(CHAT, body)
        whole = api.post(CHAT, {**body, "pflash": "off"})
        assert short.json["usage"]["prompt_tokens"] < 0.5 * whole.json["usage"]["prompt_tokens"]
        stream = api.post(CHAT, {**body, "stream": True})
        said = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in stream.data[:-1])
        assert said == short.json["choices"][0]["message"]["content"]
        for path, asked in (
            ("/v1/messages", {"messages": [{"role": "user", "content": ASKED}], "max_tokens": 3}),
            ("/v1/responses", {"input": ASKED, "max_output_tokens": 3}),
        ):
            used = [api.post(path, {**asked, "pflash": mode}).json["usage"] for mode in ("always", "off")]
            read = [each["input_tokens"] + each.get("cache_read_input_tokens", 0) for each in used]
            assert read[0] < 0.5 * read[1]
        assert api.get("/v1/models").json["data"][0]["id"] == server.models.require().model_id
    finally:
        server.stop()
