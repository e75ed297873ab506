"""The compression proxy in front of a stand-in, and in front of our own server with a real model."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import Job, LoadOptions
from dflash_desktop.server.events import RequestForwarded
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.proxy import ProxyServer
from dflash_desktop.server.server import ApiServer
from dflash_desktop.server.upstream import Upstream, parse_upstream, read_key
from support.api_server import FAST, Api
from support.fixtures import QWEN35_MINI
from support.real_engine import running_engine, try_load
from support.scripted_engine import ScriptedEngine
from support.standin_upstream import STREAM, Asked, StandIn, standing_in

CHAT = "/v1/chat/completions"
KEY = "sk-upstream-s3cret"
NEEDLE = "The secret code for the blue vault is 7391."
QUESTION = "What is the secret code for the blue vault?"
PARAGRAPHS = [
    f"In {1900 + i} the town council met {i % 7 + 1} times and spoke about roads and bread." for i in range(40)
]
ASKED = "\n\n".join([*PARAGRAPHS[:23], NEEDLE, *PARAGRAPHS[23:], QUESTION])
LONG: dict[str, Any] = {
    "model": "big-model",
    "messages": [{"role": "user", "content": ASKED, "name": "ann"}],
    "seed": 7,
}
SHORT: dict[str, Any] = {"model": "big-model", "messages": [{"role": "user", "content": "Hi"}]}
PICTURE: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "text", "text": ASKED}, {"type": "image_url", "image_url": {"url": "data:"}}],
}
ALWAYS = PflashOptions("always", QWEN35_MINI, "0.2", keep_loaded=True)


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


class ProxyApi(Api):
    """The small client in front of a proxy."""

    @property
    def forwarded(self) -> list[RequestForwarded]:
        return [event for event in self.events if isinstance(event, RequestForwarded)]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture
def upstream() -> Iterator[StandIn]:
    with standing_in() as stand_in:
        yield stand_in


@pytest.fixture
def start(engine: Engine, upstream: StandIn) -> Iterator[Any]:
    """After `upstream`, so that the proxy closes its connections first."""
    del upstream
    running: list[ProxyServer] = []

    def started(address: Upstream, pflash: PflashOptions = ALWAYS, **options: Any) -> ProxyApi:
        events: list[Any] = []
        server = ProxyServer(engine, address, events.append)
        running.append(server)
        assert server.start(ServerOptions(**{"port": 0, "limits": FAST, "pflash": pflash, **options})), events
        return ProxyApi(ScriptedEngine(), server, events)  # type: ignore[arg-type]

    yield started
    for server in running:
        server.stop()


@pytest.fixture
def api(start: Any, upstream: StandIn) -> ProxyApi:
    proxy: ProxyApi = start(parse_upstream(upstream.base))
    return proxy


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
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=20) as sock:
        sock.sendall(_head(body) + body)
        heard = b""
        while STREAM[0] not in heard:
            heard += sock.recv(4096)
        assert STREAM[1] not in heard
        upstream.may_go_on.set()
        while b"\r\n0\r\n\r\n" not in heard:
            heard += sock.recv(4096)
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
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=20) as sock:
        sock.sendall(_head(body) + body)
        heard = b""
        while STREAM[0] not in heard:
            heard += sock.recv(4096)
    assert upstream.was_left.wait(20)


def test_a_client_that_leaves_while_the_scorer_reads_ends_that_and_nothing_is_passed_on(
    engine: Engine, upstream: StandIn
) -> None:
    lane = Lane(engine)
    server = ProxyServer(lane, parse_upstream(upstream.base), lambda event: None)
    assert server.start(ServerOptions(port=0, pflash=replace(ALWAYS, keep_loaded=False)))
    try:
        body = json.dumps({"messages": [{"role": "user", "content": f"{ASKED} {ASKED} Well?"}]}).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
            sock.sendall(_head(body) + body)
            assert lane.was_asked.wait(20)
        assert lane.was_cancelled.wait(20)
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


def test_other_routes_are_passed_through(api: ProxyApi, upstream: StandIn) -> None:
    assert api.get("/v1/models").body == b'{"object": "list",   "data": [{"id": "big-model"}]}'
    assert api.get("/models/big%20model?full=1").status == 200
    assert api.post("/v1/embeddings", {"input": "x"}).status == 200
    assert api.call("DELETE", "/v1/files/f-1").status == 200
    assert [(asked.method, asked.path) for asked in upstream.asked] == [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/big%20model?full=1"),
        ("POST", "/v1/embeddings"),
        ("DELETE", "/v1/files/f-1"),
    ]
    assert api.get("/health").json["status"] == "ok" and api.get("/props").json["pflash"]["mode"] == "always"
    for path in ("/v1/../admin", "/v1/%2e%2e/admin", "/v1/a/..%5c..", "/admin"):
        assert api.get(path).status == 404, path
    assert len(upstream.asked) == 4


def test_the_key_goes_to_the_upstream_only_and_into_no_log(
    start: Any, upstream: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n", "utf-8")
    address = parse_upstream(upstream.base, access_token=read_key(file))
    api = start(address, access_token="sk-ours")
    ours = {"Authorization": "Bearer sk-ours", "Cookie": "a=b", "Origin": "http://localhost:3000", "X-Title": "Ann"}
    answer = api.post(CHAT, SHORT, ours)
    headers = upstream.asked[-1].headers
    assert headers["authorization"] == f"Bearer {KEY}" and headers["x-title"] == "Ann"
    assert not {"cookie", "origin", "referer"} & set(headers)
    assert "sk-ours" not in repr(headers) and headers["host"] == f"127.0.0.1:{upstream.port}"
    upstream.script = lambda stand_in, handler, asked: stand_in.say(handler, 401, b'{"error": {"message": "no"}}')
    refused = api.post(CHAT, SHORT, ours)
    assert refused.status == 502 and "--upstream-key-file" in refused.json["error"]["message"]
    assert api.get("/v1/models").status == 401  # a listing would be asked for with our key
    told = " ".join([caplog.text, repr(api.events), repr(address), repr(answer), repr(refused)])
    assert KEY not in told


def test_without_a_key_of_its_own_the_clients_key_goes_on(api: ProxyApi, upstream: StandIn) -> None:
    api.post(CHAT, SHORT, {"Authorization": "Bearer sk-client"})
    assert upstream.asked[-1].headers["authorization"] == "Bearer sk-client"
    upstream.script = lambda stand_in, handler, asked: stand_in.say(handler, 401, b'{"error": {"message": "wrong"}}')
    assert api.post(CHAT, SHORT).status == 401


@pytest.mark.parametrize(
    ("status", "body", "expected", "words"),
    [
        (429, b'{"error": {"message": "slow down", "code": "x"}}', 429, "slow down"),
        (500, b"<html>oops</html>", 500, "HTTP 500"),
        (404, b"", 404, "--upstream"),
        (302, b"", 502, "--upstream"),
    ],
)
def test_errors_of_the_upstream_are_told_in_openais_words(
    api: ProxyApi, upstream: StandIn, status: int, body: bytes, expected: int, words: str
) -> None:
    upstream.script = lambda stand_in, handler, asked: stand_in.say(
        handler, status, body, Retry_After="3", Location="http://127.0.0.1:1/"
    )
    answer = api.post(CHAT, LONG)
    assert answer.status == expected and words in answer.json["error"]["message"]
    assert status != 429 or (answer.body == body and answer.headers["retry-after"] == "3")


def test_an_upstream_that_is_away_or_silent_is_named_with_what_to_do(start: Any, upstream: StandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    away = start(parse_upstream(f"http://127.0.0.1:{free}")).post(CHAT, SHORT)
    assert away.status == 502 and away.json["error"]["code"] == "upstream_unreachable"
    assert f"127.0.0.1:{free}" in away.json["error"]["message"] and "--upstream" in away.json["error"]["message"]
    upstream.may_go_on.clear()
    upstream.script = lambda stand_in, handler, asked: _hang(stand_in)
    silent = start(parse_upstream(upstream.base, silence_s=0.2)).post(CHAT, SHORT)
    assert silent.status == 504 and silent.json["error"]["code"] == "upstream_timeout"


def _hang(stand_in: StandIn) -> None:
    stand_in.may_go_on.wait(30)


def test_an_answer_that_breaks_off_is_an_error_and_no_silence(api: ProxyApi, upstream: StandIn) -> None:
    upstream.script = lambda stand_in, handler, asked: stand_in.stream(handler, pieces=STREAM[:1], breaks=True)
    broken = api.post(CHAT, {**SHORT, "stream": True})
    assert broken.body.startswith(STREAM[0])
    assert broken.data[-1]["error"]["code"] == "upstream_broke_off"

    def half(stand_in: StandIn, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        stand_in.say(handler, 200, b"{", Content_Length="100")
        handler.close_connection = True

    upstream.script = half
    assert api.post(CHAT, SHORT).status == 502


def test_a_scorer_that_fails_costs_no_request(start: Any, upstream: StandIn, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(QWEN35_MINI.read_bytes()[:5000])
    api = start(parse_upstream(upstream.base), PflashOptions("always", broken))
    answer = api.post(CHAT, LONG)
    assert answer.status == 200 and "goes in whole" in answer.headers["x-pflash-reason"]
    assert upstream.asked[-1].json == LONG


def test_the_rules_about_hosts_pages_and_keys_are_the_servers_own(start: Any, upstream: StandIn) -> None:
    api = start(parse_upstream(upstream.base))
    assert api.post(CHAT, SHORT, {"Host": "evil.example"}).json["error"]["code"] == "host_not_allowed"
    assert api.post(CHAT, SHORT, {"Origin": "https://evil.example"}).json["error"]["code"] == "origin_not_allowed"
    keyed = start(parse_upstream(upstream.base), access_token="k")
    assert keyed.post(CHAT, SHORT).status == 401
    assert upstream.asked == []


def test_two_proxies_that_point_at_each_other_are_noticed_when_the_request_comes_back(start: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    second = start(parse_upstream(f"http://127.0.0.1:{port}"))
    first = start(parse_upstream(f"http://127.0.0.1:{second.server.port}"), port=port)
    answer = first.post(CHAT, SHORT)
    assert answer.status == 508 and answer.json["error"]["code"] == "upstream_loop"


def test_messages_that_say_nothing_are_passed_on_as_they_are(api: ProxyApi, upstream: StandIn) -> None:
    for silent in ({"role": "assistant"}, {"role": "assistant", "content": None}, {"role": "user", "content": 5}):
        answer = api.post(CHAT, {**LONG, "messages": [silent, *LONG["messages"]]})
        assert answer.status == 200
        assert upstream.asked[-1].json["messages"][0] == silent


@pytest.mark.parametrize(
    ("head", "status", "words"),
    [
        (b"503 No\r\nRetry-After: \xb2\r\nContent-Length: 0", 503, "HTTP 503"),
        (b"503 No\r\nRetry-After: " + b"9" * 5000 + b"\r\nContent-Length: 0", 503, "HTTP 503"),
        (b"999 Odd\r\nContent-Length: 0", 502, "999"),
        (b"200 OK\r\nContent-Length: -5", 502, "broke off"),
        (b"200 OK\r\nX-A: " + b"a" * 200_000 + b"\r\nContent-Length: 2", 502, "broke off"),
        (b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz", 502, "broke off"),
    ],
)
def test_answers_that_are_no_http_are_errors_of_the_upstream(
    api: ProxyApi, upstream: StandIn, head: bytes, status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    def say(stand_in: StandIn, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        with contextlib.suppress(OSError):  # the other side may have heard enough
            handler.wfile.write(b"HTTP/1.1 " + head + b"\r\n\r\n")
        handler.close_connection = True

    upstream.script = say
    answer = api.post(CHAT, SHORT)
    assert answer.status == status and words in answer.json["error"]["message"]
    assert "Traceback" not in caplog.text
    upstream.script = None
    assert api.post(CHAT, SHORT).status == 200


def test_a_stream_by_another_spelling_is_passed_on_as_it_comes(api: ProxyApi, upstream: StandIn) -> None:
    def say(stand_in: StandIn, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nContent-Length: 50\r\n\r\n"
        handler.wfile.write(head + b"data: 1\n\n")
        handler.close_connection = True

    upstream.script = say
    answer = api.post(CHAT, SHORT)
    assert answer.body.startswith(b"data: 1\n\n")
    assert answer.data[-1]["error"]["code"] == "upstream_broke_off"


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
        assert api.get("/v1/models").json["data"][0]["id"] == server.models.require().model_id
    finally:
        server.stop()
