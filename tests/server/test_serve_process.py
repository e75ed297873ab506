"""`dflash-desktop serve` as a process: a signal ends it at once, whatever it does, and frees what it held (B019)."""

from __future__ import annotations

import http.client
import json
import signal
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.served import Served, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGTERM to one process")

PAIR = ("--target", QWEN35_MINI, "--draft", QWEN35_MINI_DRAFT, "--context", "8192", "--threads", "1")
LONG = "The sea is wide and the ships are small. " * 700  # seconds of prefill on one thread


def begin(served: Served, text: str) -> http.client.HTTPConnection:
    """A streamed request, up to the head of its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    body = {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": 4000, "temperature": 1}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    return connection


def status(served: Served) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/status")
    answer: dict[str, int] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(*PAIR) as served:
        yield served


@pytest.mark.parametrize("state", ["idle", "prefill", "streaming"])
def test_b019_sigterm_ends_the_server_within_five_seconds_in_every_state(served: Served, state: str) -> None:
    connection = None
    if state == "prefill":
        connection = begin(served, LONG)
        deadline = time.monotonic() + 60
        while not status(served)["running"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(event["event"] == "RequestEnded" for event in served.events)
    elif state == "streaming":
        connection = begin(served, "Write a long story about a lighthouse keeper.")
        assert b"content" in connection.getresponse().read(600)
    children = psutil.Process(served.process.pid).children(recursive=True)
    started_s = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(30) == 0
    assert time.monotonic() - started_s < 5
    assert not [child for child in children if child.is_running()]
    if connection is not None:
        connection.close()
    with serving(*PAIR, "--port", str(served.port)) as again:  # the port is free at once
        assert again.port == served.port and status(again)["running"] == 0
