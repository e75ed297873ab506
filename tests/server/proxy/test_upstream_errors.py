"""What goes wrong upstream, and how the client hears of it."""

from __future__ import annotations

import contextlib
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from dflash_desktop.server.upstream import parse_upstream
from support.patience import LONG_S
from support.ports import free_port
from support.proxied import CHAT, LONG, SHORT, ProxyApi
from support.standin_upstream import STREAM, Asked, StandIn


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
    free = free_port()
    away = start(parse_upstream(f"http://127.0.0.1:{free}")).post(CHAT, SHORT)
    assert away.status == 502 and away.json["error"]["code"] == "upstream_unreachable"
    assert f"127.0.0.1:{free}" in away.json["error"]["message"] and "--upstream" in away.json["error"]["message"]
    upstream.may_go_on.clear()
    upstream.script = lambda stand_in, handler, asked: _hang(stand_in)
    silent = start(parse_upstream(upstream.base, silence_s=0.2)).post(CHAT, SHORT)
    assert silent.status == 504 and silent.json["error"]["code"] == "upstream_timeout"


def _hang(stand_in: StandIn) -> None:
    stand_in.may_go_on.wait(LONG_S)


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
