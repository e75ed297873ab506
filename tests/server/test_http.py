"""Start, stop and the state of the sockets; clients that leave; the waiting line."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from dflash_desktop.engine.events import GenerationDone, JobFailed
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.events import RequestArrived, RequestEnded, RequestMoved, RequestRendered, ServerStarted
from dflash_desktop.server.line import Line
from dflash_desktop.server.options import Limits, ServerOptions
from dflash_desktop.server.redact import redacted_copy
from support.api_server import Answer, Api, Start
from support.patience import LONG_S, in_time, until
from support.ports import free_port
from support.scripted_engine import Pace, ScriptedEngine, pair_info

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}


def open_request(port: int, body: object, path: str = CHAT) -> socket.socket:
    raw = json.dumps(body).encode()
    sock = socket.create_connection(("127.0.0.1", port), timeout=LONG_S)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n"
    sock.sendall(head.encode() + raw)
    return sock


def _is_seen(api: Api, number: int) -> bool:
    return len(api.engine.prompts) > number or api.engine.idle.is_set()


def endless(pace: Pace) -> ScriptedEngine:
    return ScriptedEngine(script="word " * 3000, pace=pace)


def _answer_between_two_steps(api: Api, asks: Sequence[Callable[[], Answer]]) -> bool:
    n_steps = api.engine.n_steps
    return [ask().status for ask in asks] == [200] * len(asks) and api.engine.n_steps <= n_steps + 1


def test_both_loopbacks_answer(api: Api) -> None:
    """Conformance 13, B094."""
    assert api.call("GET", "/health").status == 200
    assert api.call("GET", "/health", host="::1").status == 200
    assert api.server.addresses == (api.base, f"http://[::1]:{api.server.port}")
    started = api.events[0]
    assert isinstance(started, ServerStarted) and started.port == api.server.port


def test_start_and_stop_tell_the_truth_and_can_repeat(start: Start) -> None:
    api = start(port=free_port())
    port = api.server.port
    for _ in range(3):
        api.server.stop()
        assert str(api.server.state) == "stopped"
        assert api.server.addresses == ()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=LONG_S)
        assert api.server.start(ServerOptions(port=port))
        assert str(api.server.state) == "running"
        assert api.get("/health").status == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_a_taken_port_is_named_with_its_owner(start: Start, host: Any) -> None:
    """Conformance 13, B093, B094: also where only ::1 is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as other:
        other.bind((host, 0))
        other.listen()
        port = other.getsockname()[1]
        api = start()
        api.server.stop()
        assert not api.server.start(ServerOptions(port=port))
        failed = api.events[-1]
        assert api.server.state == "failed" and f"Port {port} is in use by" in failed.message
        assert "python" in failed.message.lower() and failed.free_port and failed.free_port != port
        assert api.server.start(ServerOptions(port=failed.free_port))


def test_a_second_instance_recognises_the_first(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """B093."""
    monkeypatch.setattr("dflash_desktop.server.sockets._PROBE_S", LONG_S)
    first, second = start(), start()
    second.server.stop()
    assert not second.server.start(ServerOptions(port=first.server.port))
    assert "DFlash Desktop" in second.events[-1].message and second.events[-1].owner.kind == "dflash"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_client_that_leaves_ends_its_run_within_a_step(start: Start, stream: Any, phase: Any) -> None:
    """Conformance 9, B085."""
    pace = Pace(prefill_s=0.05, n_prefill_chunks=20_000 if phase == "prefill" else 1, step_s=0.2)
    api = start(endless(pace))
    sock = open_request(api.server.port, {**HELLO, "stream": stream})
    until(lambda: api.engine.prompts, "the job runs")
    until(lambda: phase == "prefill" or api.engine.n_steps > 1, "it decodes")
    sock.close()
    until(api.engine.idle.is_set, "the engine is idle")
    (done,) = api.engine.finished
    # To its end it would have run for ten minutes and more.
    assert isinstance(done, GenerationDone) and done.finish_reason == "cancelled"
    until(lambda: any(isinstance(event, RequestEnded) for event in api.events), "the UI hears of the end")
    ended = next(event for event in api.events if isinstance(event, RequestEnded))
    assert ended.outcome == "cancelled"


def test_a_client_that_leaves_while_waiting_leaves_the_line(start: Start) -> None:
    """Conformance 9."""
    api = start(endless(Pace(step_s=0.2)))
    first = open_request(api.server.port, {**HELLO, "stream": True})
    until(lambda: api.engine.prompts, "the first runs")
    second = open_request(api.server.port, {**HELLO, "stream": True})
    until(lambda: api.get("/status").json["waiting"] == 1, "the second waits")
    second.close()
    until(lambda: api.get("/status").json["waiting"] == 0, "the second left")
    first.close()
    until(api.engine.idle.is_set, "idle")
    assert len(api.engine.jobs) == 1


def test_fifty_clients_that_leave_cost_nothing(start: Start) -> None:
    api = start(endless(Pace(step_s=0.001)))
    for i in range(50):
        sock = open_request(api.server.port, {**HELLO, "stream": i % 2 == 0})
        if i % 3:
            until(partial(_is_seen, api, i), "seen")
        sock.close()
    until(lambda: api.engine.idle.is_set() and api.get("/status").json["running"] == 0, "idle")
    api.engine.script = "fine"
    assert api.post(CHAT, HELLO).json["choices"][0]["message"]["content"] == "fine"
    assert threading.active_count() < 12


@in_time(4)
def test_stop_ends_running_requests(start: Start, within_s: float) -> None:
    api = start(endless(Pace(step_s=0.2)))
    sock = open_request(api.server.port, {**HELLO, "stream": True})
    until(lambda: api.engine.prompts, "it runs")
    started = time.monotonic()
    api.server.stop()
    assert time.monotonic() - started < within_s
    until(api.engine.idle.is_set, "idle")
    (done,) = api.engine.finished
    assert isinstance(done, GenerationDone) and done.finish_reason == "cancelled"
    sock.close()


def test_past_the_bound_requests_are_refused_with_retry_after(start: Start) -> None:
    api = start(endless(Pace(step_s=0.2)))
    running = [open_request(api.server.port, {**HELLO, "stream": True}) for _ in range(9)]
    until(lambda: api.get("/status").json["waiting"] == 8, "eight wait")
    answer = api.post(CHAT, HELLO)
    assert answer.status == 429 and answer.headers["retry-after"] == "5"
    assert "rate limit" not in answer.body.decode()
    for sock in running:
        sock.close()
    until(api.engine.idle.is_set, "idle")


def test_listings_answer_at_once_while_the_engine_is_busy(start: Start) -> None:
    """Conformance 14."""
    api = start(endless(Pace(step_s=0.2)))
    sock = open_request(api.server.port, {**HELLO, "stream": True})
    until(lambda: api.engine.prompts, "it runs")
    counting = partial(api.post, "/v1/chat/completions/input_tokens", HELLO)
    asks = [*(partial(api.get, path) for path in ("/health", "/v1/models", "/props", "/status")), counting]
    n_steps = api.engine.n_steps
    assert [ask().status for ask in asks] == [200] * 5
    # They waited neither for the reply, which takes ten minutes, nor for a step of it each.
    assert not api.engine.finished
    until(lambda: _answer_between_two_steps(api, asks), "five answers while one step is made")
    until(lambda: api.engine.n_steps > n_steps, "another step: the engine was at work")
    sock.close()
    until(api.engine.idle.is_set, "idle")


def test_a_reader_that_stops_reading_is_dropped(start: Start) -> None:
    engine = ScriptedEngine(script="x" * 4_000_000, pace=Pace(chars_per_step=40_000))
    engine.pair = pair_info(context_tokens=2_000_000)
    api = start(engine, limits=Limits(send_gap_s=0.3))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", api.server.port))
    raw = json.dumps({**HELLO, "stream": True}).encode()
    sock.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
    until(lambda: any(isinstance(event, RequestEnded) for event in api.events), "dropped")
    sock.close()
    until(lambda: api.get("/status").json["running"] == 0, "free again")


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("context_exceeded", 400, "context_length_exceeded"),
        ("bad_request", 400, "invalid_value"),
        ("out_of_memory", 503, "insufficient_vram"),
        ("device", 500, "engine_error"),
        ("bug", 500, "engine_error"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_engine_failures_become_http_errors(start: Start, kind: Any, status: Any, code: Any, stream: Any) -> None:
    api = start(ScriptedEngine(failure=JobFailed(0, "It went wrong.", kind)), limits=Limits(first_beat_s=LONG_S))
    answer = api.post(CHAT, {**HELLO, "stream": stream})
    assert answer.status == status and answer.json["error"]["code"] == code
    assert "It went wrong." in answer.json["error"]["message"]


def test_the_ui_hears_each_step_of_a_request(api: Api) -> None:
    api.post(CHAT, {**HELLO, "model": "gpt-x"}, {"User-Agent": "codex_cli_rs/1"})
    arrived, rendered, *moved, ended = [event for event in api.events if hasattr(event, "request_id")]
    assert isinstance(arrived, RequestArrived) and (arrived.client, arrived.model_asked) == ("codex", "gpt-x")
    assert isinstance(rendered, RequestRendered) and "<|im_start|>user\nHi" in rendered.prompt_text
    assert all(isinstance(event, RequestMoved) for event in moved)
    assert isinstance(ended, RequestEnded) and ended.outcome == "stop" and ended.reply_text.startswith("Hello")
    assert ended.acceptance_length > 0 and ended.n_reply_tokens > 0


def test_a_failing_listener_costs_no_answer(start: Start) -> None:
    api = start()

    class Broken(Exception):
        pass

    def fail(event: object) -> None:
        raise Broken

    api.server._inspector._subscriber = fail
    assert api.post(CHAT, HELLO).status == 200


def test_small_routes(api: Api) -> None:
    assert api.get("/health").json == {"status": "ok"}
    assert api.get("/").body.startswith(b"DFlash Desktop") and api.call("HEAD", "/").status == 200
    (entry,) = api.get("/v1/models").json["data"]
    assert entry["id"] == "qwen3.5-27b" and entry["context_length"] == entry["meta"]["n_ctx"] == 4096
    assert api.get("/models").json == api.get("/v1/models").json
    assert api.get(f"/v1/models/{entry['id']}").json["id"] == entry["id"]
    assert api.get("/v1/models/unknown").status == 404
    assert api.get("/v1/models?client_version=1").json["models"][0]["slug"] == entry["id"]
    assert api.get("/props").json["default_generation_settings"]["n_ctx"] == 4096
    api.post(CHAT, HELLO)
    metrics = api.get("/metrics").body.decode()
    assert 'dflash_requests_total{outcome="stop"} 1' in metrics and "dflash_last_acceptance_length" in metrics
    assert api.post("/v1/embeddings", {}).status == 404
    assert api.post("/api/event_logging/batch", {"events": []}).json == {}
    tokens = api.post("/tokenize", {"content": "Hello"}).json["tokens"]
    assert api.post("/detokenize", {"tokens": tokens}).json["content"] == "Hello"
    assert api.post("/detokenize", {"tokens": ["x"]}).status == 400


def test_model_names(start: Start) -> None:
    api = start(has_any_model_name=False)
    for name in ("qwen3.5-27b", "default", "", "Qwen3.5-27B-Q4_K_M.gguf", "qwen3.5-27b:latest"):
        assert api.post(CHAT, {**HELLO, "model": name}).status == 200
    answer = api.post(CHAT, {**HELLO, "model": "gpt-4"})
    assert answer.status == 404 and "qwen3.5-27b" in answer.json["error"]["message"]


def test_keep_alive_connections_serve_request_after_request(api: Api) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=LONG_S)
    for stream in (False, True, False):
        connection.request("POST", CHAT, json.dumps({**HELLO, "stream": stream}), {"Content-Type": "application/json"})
        assert b"Hell" in connection.getresponse().read()
    connection.close()


def test_the_line_is_fair_between_clients_and_for_short_requests() -> None:
    line = Line(10)
    running = line.enter("a")
    long_a = [line.enter("a") for _ in range(3)]
    short_a = [line.enter("a", is_short=True) for _ in range(4)]
    late_b = line.enter("b")
    assert late_b.n_ahead == 2
    order = []
    turns = {turn: f"long{i}" for i, turn in enumerate(long_a)}
    turns |= {turn: f"short{i}" for i, turn in enumerate(short_a)} | {late_b: "b"}
    now = running
    while turns:
        now.leave()
        now = next(turn for turn in turns if turn.is_open)
        order.append(turns.pop(now))
    assert order == ["short0", "b", "short1", "long0", "short2", "short3", "long1", "long2"]


def test_the_line_is_bounded_and_forgets_who_left() -> None:
    line = Line(2)
    first, second, third = (line.enter("a") for _ in range(3))
    with pytest.raises(ApiError):
        line.enter("b")
    second.leave()
    second.leave()
    fourth = line.enter("b")
    first.leave()
    assert (third.is_open, fourth.is_open) == (True, False)
    third.leave()
    assert (fourth.is_open, line.n_waiting) == (True, 0)
    fourth.leave()
    assert not line.is_busy


def test_a_redacted_copy_holds_no_words_of_people(api: Api) -> None:
    api.post(CHAT, {"messages": [{"role": "user", "content": "s3cret"}]})
    copy = redacted_copy(api.events)
    assert "s3cret" not in copy and "Hello from" not in copy
    assert '"n_prompt_text"' in copy and '"acceptance_length"' in copy


def test_without_a_seed_each_request_draws_its_own(api: Api) -> None:
    for _ in range(2):
        api.post(CHAT, {**HELLO, "temperature": 0.8})
    assert len({job.sampling.seed for job in api.engine.jobs}) == 2


def test_answers_on_a_kept_connection_are_not_held_back(api: Api) -> None:
    """Nagle's algorithm and delayed acknowledgements together cost 40 ms per answer."""
    connection = http.client.HTTPConnection("127.0.0.1", api.server.port, timeout=LONG_S)
    took: list[float] = []

    def is_quicker_than_a_held_back_one() -> bool:
        """On a busy machine not the first one is."""
        started = time.monotonic()
        connection.request("GET", "/health")
        connection.getresponse().read()
        took.append(time.monotonic() - started)
        return len(took) > 11 and min(took[1:]) < 0.02

    until(is_quicker_than_a_held_back_one, "an answer sooner than a delayed acknowledgement")
    connection.close()
