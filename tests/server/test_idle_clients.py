"""Clients that give up after a silence: a prefill of 400 s with limits of 300 s, all of it 60 times faster (B106)."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from dflash_desktop.server.options import Limits
from support.api_server import Api, Start
from support.scripted_engine import Pace, ScriptedEngine

SCALE = 60  # of what is left a busy machine may take a part, too
IDLE_S = 300 / SCALE  # Node's fetch, Cline, Codex
PREFILL_S = 400 / SCALE
SCALED = Limits(first_beat_s=Limits().first_beat_s / SCALE, beat_s=Limits().beat_s / SCALE)
HELLO = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
Counts = Callable[[bytes], bool]


class GaveUp(Exception):
    """The client's patience is at its end."""


def any_bytes(line: bytes) -> bool:
    return bool(line)


def an_event(line: bytes) -> bool:
    """Codex and the vendors' libraries count events that they can read; comments are nothing to them."""
    return line.startswith(b"data: ") and isinstance(json.loads(line[6:]), dict)


def a_json_line(line: bytes) -> bool:
    return isinstance(json.loads(line), dict)


CLIENTS: dict[str, tuple[str, dict[str, object], Counts, bytes]] = {
    "chat": ("/v1/chat/completions", HELLO, any_bytes, b"[DONE]"),
    "completions": ("/v1/completions", {"prompt": "Hi", "stream": True}, any_bytes, b"[DONE]"),
    "responses": ("/v1/responses", {"input": "Hi", "stream": True}, an_event, b"response.completed"),
    "messages": ("/v1/messages", {**HELLO, "max_tokens": 99}, an_event, b"message_stop"),
    "lm studio": ("/api/v1/chat", {"input": "Hi", "stream": True}, an_event, b"chat.end"),
    "ollama": ("/api/chat", HELLO, a_json_line, b'"done":true'),
}


def ask(api: Api, client: str) -> bytes:
    """The whole stream, read as `client` does: raise GaveUp after IDLE_S without anything that counts for it."""
    path, body, counts, _ = CLIENTS[client]
    connection = http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=IDLE_S)
    try:
        heard_s = time.monotonic()
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "User-Agent": client})
        answer = connection.getresponse()
        assert answer.status == 200
        said = b""
        while line := answer.readline():
            now_s = time.monotonic()
            if now_s - heard_s > IDLE_S:
                raise GaveUp
            said += line
            if counts(line):
                heard_s = now_s
        return said
    except TimeoutError:
        raise GaveUp from None
    finally:
        connection.close()


def ask_all(apis: dict[str, Api]) -> dict[str, bytes | None]:
    """What each client heard, all at the same time and each from a server of its own; None: it gave up."""

    def heard(client: str) -> bytes | None:
        try:
            return ask(apis[client], client)
        except GaveUp:
            return None

    with ThreadPoolExecutor(len(apis)) as pool:
        return dict(zip(apis, pool.map(heard, apis), strict=True))


def slow() -> ScriptedEngine:
    return ScriptedEngine(pace=Pace(prefill_s=PREFILL_S, n_prefill_chunks=1))


def test_conformance_8_b106_clients_with_an_idle_limit_outlive_a_long_prefill(start: Start) -> None:
    apis = {client: start(slow(), limits=SCALED) for client in CLIENTS}
    started_s = time.monotonic()
    for client, said in ask_all(apis).items():
        assert said is not None and CLIENTS[client][3] in said, client
    assert time.monotonic() - started_s >= PREFILL_S > IDLE_S


def test_b106_and_a_long_wait_in_the_line(start: Start) -> None:
    apis = {client: start(slow(), limits=SCALED) for client in CLIENTS}
    firsts = [threading.Thread(target=ask, args=(api, "chat")) for api in apis.values()]
    for first, api in zip(firsts, apis.values(), strict=True):
        first.start()
        while not api.engine.prompts:
            time.sleep(0.001)
        api.engine.pace = Pace()
    for client, said in ask_all(apis).items():
        assert said is not None and CLIENTS[client][3] in said, client
    for first in firsts:
        first.join()


def test_without_heartbeats_the_same_clients_give_up(start: Start) -> None:
    """Else the tests above would prove nothing."""
    limits = Limits(first_beat_s=SCALED.first_beat_s, beat_s=60.0)
    apis = {client: start(slow(), limits=limits) for client in CLIENTS}
    assert ask_all(apis) == dict.fromkeys(CLIENTS)


def test_the_real_heartbeats_are_as_often_as_the_contract_says() -> None:
    assert Limits().first_beat_s <= 1.0 and Limits().beat_s <= 5.0
