"""`dflash-desktop serve` as a process: a signal ends it at once, whatever it does, and frees what it held (B019)."""

from __future__ import annotations

import http.client
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.patience import LONG_S, in_time, until
from support.ports import free_port
from support.served import Served, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGTERM to one process")

PAIR = ("--target", QWEN35_MINI, "--draft", QWEN35_MINI_DRAFT, "--context", "8192", "--threads", "1")
LONG = "The sea is wide and the ships are small. " * 700  # seconds of prefill on one thread


def begin(served: Served, text: str) -> http.client.HTTPConnection:
    """A streamed request, up to the head of its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LONG_S)
    body = {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": 4000, "temperature": 1}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    return connection


def status(served: Served) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LONG_S)
    connection.request("GET", "/status")
    answer: dict[str, int] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(*PAIR, "--port", str(free_port())) as served:
        yield served


@in_time(5)
@pytest.mark.parametrize("state", ["idle", "prefill", "streaming"])
def test_b019_sigterm_ends_the_server_within_five_seconds_in_every_state(
    served: Served, state: str, within_s: float
) -> None:
    connection = None
    if state == "prefill":
        connection = begin(served, LONG)
        until(lambda: status(served)["running"], "it is answered")
        assert not any(event["event"] == "RequestEnded" for event in served.events)
    elif state == "streaming":
        connection = begin(served, "Write a long story about a lighthouse keeper.")
        assert b"content" in connection.getresponse().read(600)
    children = psutil.Process(served.process.pid).children(recursive=True)
    started_s = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(LONG_S) == 0
    assert time.monotonic() - started_s < within_s
    ends = [event for event in served.events if event["event"] == "RequestEnded"]
    assert all(event["outcome"] == "cancelled" for event in ends), "the reply was waited for"
    assert not [child for child in children if child.is_running()]
    if connection is not None:
        connection.close()
    with serving(*PAIR, "--port", str(served.port)) as again:  # the port is free at once
        assert again.port == served.port and status(again)["running"] == 0


def healths(port: int, found: list[tuple[int, str]]) -> None:
    """What /health says from the first answer on, until it says that all is well."""
    deadline = time.monotonic() + 2 * LONG_S
    while time.monotonic() < deadline and (200, "ok") not in found:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_S)
        try:
            connection.request("GET", "/health")
            answer = connection.getresponse()
            found.append((answer.status, json.loads(answer.read())["status"]))
        except OSError:
            time.sleep(0.002)  # it does not listen yet
        finally:
            connection.close()


def test_health_is_true_from_the_first_answer_and_the_size_of_the_prefix_cache_arrives() -> None:
    port, found = free_port(), list[tuple[int, str]]()
    watcher = threading.Thread(target=healths, args=(port, found))
    watcher.start()
    with serving(*PAIR, "--port", str(port), "--cache-ram", "9MiB") as served:
        watcher.join()
        assert found[0] == (503, "loading model") and set(found[:-1]) == {found[0]} and found[-1] == (200, "ok")
        connection = begin(served, "Hello")
        assert connection.getresponse().status == 200
        connection.close()
        served.wait_until_idle()
        cache: Any = status(served)["prefix_cache"]
        assert cache["limit_bytes"] == 9 << 20
