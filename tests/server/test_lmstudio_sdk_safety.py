"""Who gets in over LM Studio's SDK protocol, what hurts nobody there, and what ends when a client leaves."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_desktop.server.events import RequestEnded, RequestRefused
from dflash_desktop.server.inspector import SDK_PATHS
from dflash_desktop.server.lmstudio_sdk.sockets import SdkSockets
from dflash_desktop.server.options import Limits
from support.api_server import FAST, Api, Start
from support.patience import LONG_S, in_time, until
from support.scripted_engine import Pace, ScriptedEngine
from support.sdk_socket import Closed, Rejected, SdkSocket, prediction, specifier

KEY = "k" * 24
ENDLESS = "word " * 3000
SLOW = Pace(step_s=0.1)


def limits(**changed: Any) -> Limits:
    return replace(FAST, **changed)


def closing_code(sock: SdkSocket) -> int | None:
    try:
        while True:
            sock.receive()
    except Closed as closed:
        return closed.code


def test_foreign_names_and_web_pages_are_refused_before_the_upgrade(api: Api) -> None:
    with pytest.raises(Rejected) as rejected:
        SdkSocket(api.server.port, "/llm", host="evil.example")
    assert rejected.value.status == 403 and b"--allow-host" in rejected.value.body
    for origin in (b"https://evil.example", b"null"):
        with pytest.raises(Rejected) as rejected:
            SdkSocket(api.server.port, "/llm", headers=((b"Origin", origin),))
        assert rejected.value.status == 403 and b"origin_not_allowed" in rejected.value.body
    with pytest.raises(Rejected):
        SdkSocket(api.server.port, "/llm", headers=((b"Sec-Fetch-Site", b"cross-site"),))
    for origin in (b"http://localhost:5173", b"vscode-webview://abc"):
        with SdkSocket(api.server.port, "/llm", headers=((b"Origin", origin),)) as llm:
            assert llm.result("listLoaded")
    assert any(isinstance(event, RequestRefused) and event.status == 403 for event in api.events)


def test_there_are_no_other_sockets_and_none_where_we_are_not_lm_studio(start: Start, api: Api) -> None:
    other = start(is_lm_studio=False)
    for port, path in ((api.server.port, "/nonsense"), (api.server.port, "/v1/models"), (other.server.port, "/llm")):
        with pytest.raises(Rejected) as rejected:
            SdkSocket(port, path)
        assert rejected.value.status == 404 and json.loads(rejected.value.body)["error"]["code"] == "unknown_endpoint"
    assert api.get("/llm").status == 404


def test_the_paths_that_tell_a_client_are_those_that_are_served(api: Api) -> None:
    conductor = api.server._conductor
    assert conductor is not None
    assert set(SdkSockets(conductor).paths) == SDK_PATHS


def test_an_upgrade_of_another_kind_is_a_bad_request(api: Api) -> None:
    for headers in ("Upgrade: websocket", "Upgrade: websocket\r\nSec-WebSocket-Version: 7\r\nSec-WebSocket-Key: eA=="):
        with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock:
            sock.sendall(f"GET /llm HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n{headers}\r\n\r\n".encode())
            assert sock.recv(64).split(b" ", 2)[1] in {b"400", b"426"}
    assert api.get("/health").status == 200


def test_without_the_key_a_program_of_this_computer_may_list_and_nothing_else(start: Start) -> None:
    api = start(access_token=KEY)
    with SdkSocket(api.server.port, "/system") as system, SdkSocket(api.server.port) as llm:
        assert system.result("listDownloadedModels") and llm.result("listLoaded")
        assert llm.result("getModelInfo", {"specifier": specifier(), "throwIfNotFound": True})
        assert "clientPasskey" in llm.error("unloadModel", {"identifier": "qwen3.5-27b"})["title"]
        assert "key" in llm.error("tokenize", {"specifier": specifier(), "inputString": "a"})["title"]
        (refused,) = llm.stream("predict", prediction())
        assert "key is missing or wrong" in refused["error"]["title"]
    assert not api.engine.jobs and api.engine.is_loaded
    assert any(isinstance(event, RequestRefused) and event.status == 401 for event in api.events)


def test_the_key_is_taken_from_the_first_packet_or_from_a_header(start: Start) -> None:
    api = start(access_token=KEY, needs_key_here=True)
    for shown in (
        {"passkey": KEY},
        {"identifier": KEY},
        {"headers": ((b"Authorization", f"Bearer {KEY}".encode()),)},
        {"headers": ((b"X-Api-Key", KEY.encode()),)},
    ):
        with SdkSocket(api.server.port, **shown) as llm:
            assert llm.admitted == {"success": True}
            assert llm.stream("predict", prediction())[-1]["type"] == "success"
    with SdkSocket(api.server.port) as llm:
        assert llm.admitted["success"] is False and "key" in llm.admitted["error"]
        assert closing_code(llm) == 1008
    lm_studio_token = start(access_token="sk-lm-abcdefgh:12345678901234567890", needs_key_here=True)
    with SdkSocket(lm_studio_token.server.port, identifier="abcdefgh", passkey="12345678901234567890") as llm:
        assert llm.result("listLoaded")


@pytest.mark.parametrize(
    "first",
    ["", "nonsense", "[]", "{}", '"text"', '{"authVersion": 2, "clientIdentifier": "a", "clientPasskey": "b"}',
     '{"authVersion": 1}', '{"type": "rpcCall", "endpoint": "listLoaded", "callId": 1}', "[" * 100_000],
)  # fmt: skip
def test_a_first_packet_that_is_no_authentication_is_answered_and_closed(api: Api, first: str) -> None:
    with SdkSocket(api.server.port, passkey=None) as llm:
        llm.send_text(first)
        answer = llm.receive()
        assert answer["success"] is False and answer["error"]
        assert closing_code(llm) == 1008


def test_who_says_nothing_is_closed_and_who_is_admitted_may_be_silent(start: Start) -> None:
    api = start(limits=limits(head_s=2.0))
    with SdkSocket(api.server.port) as admitted, SdkSocket(api.server.port, passkey=None) as silent:
        assert closing_code(silent) == 1008  # after as long as a request's head may take
        assert admitted.result("listLoaded")


def test_packets_that_cannot_be_read_are_warned_of_and_then_enough(api: Api) -> None:
    with SdkSocket(api.server.port) as llm:
        for packet in ("{", '{"type": "rpcCall"}', '{"type": "rpcCall", "callId": 1e300}', '{"type": "unheard"}'):
            llm.send_text(packet)
            warning = llm.receive()
            assert warning["type"] == "communicationWarning" and warning["warning"]
        assert llm.result("listLoaded")
        llm.send_text("\x00")
        assert llm.receive()["type"] == "communicationWarning"
        assert closing_code(llm) == 1008
    assert api.get("/health").status == 200


@pytest.mark.parametrize("parameter", [None, 1, [], "x", {"modelSpecifier": 1}, {"modelSpecifier": {"type": []}}])
def test_parameters_of_a_wrong_shape_are_errors(api: Api, parameter: Any) -> None:
    with SdkSocket(api.server.port) as llm:
        for endpoint in ("getModelInfo", "unloadModel", "tokenize", "applyPromptTemplate"):
            assert llm.error(endpoint, parameter)["title"]
        for endpoint in ("predict", "loadModel", "getOrLoad"):
            (answer,) = llm.stream(endpoint, parameter)
            assert answer["type"] == "channelError"
        for history in ([1], [{"role": "user"}], [{"role": "user", "content": "text"}], [{"role": 5, "content": []}]):
            (answer,) = llm.stream("predict", prediction(history))  # type: ignore[arg-type]
            assert answer["type"] == "channelError", history
        assert llm.result("listLoaded")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_LAST = 77_777  # the number of a call
_KINDS = (
    "rpcCall",
    "channelCreate",
    "channelSend",
    "channelAck",
    "keepAlive",
    "signalSubscribe",
    "writableSignalUpdate",
)
_ENDPOINTS = ("predict", "getOrLoad", "loadModel", "getModelInfo", "tokenize", "applyPromptTemplate", "unloadModel")
_PACKETS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.sampled_from(_KINDS) | _VALUES},
    optional={
        "endpoint": st.sampled_from(_ENDPOINTS) | _VALUES,
        "callId": st.integers(0, 5) | _VALUES,
        "channelId": st.integers(0, 5) | _VALUES,
        "subscribeId": st.integers(0, 5) | _VALUES,
        "parameter": st.fixed_dictionaries({}, optional={"specifier": _VALUES, "history": _VALUES}) | _VALUES,
        "creationParameter": st.fixed_dictionaries(
            {},
            optional={
                "modelSpecifier": st.just({"type": "query"}) | _VALUES,
                "history": st.builds(dict, messages=st.lists(_VALUES, max_size=3)) | _VALUES,
                "predictionConfigStack": st.just({"layers": []}) | _VALUES,
            },
        )
        | _VALUES,
        "message": _VALUES,
    },
)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(packets=st.lists(_PACKETS, min_size=1, max_size=4))
def test_no_packets_make_the_server_silent_or_a_bug(
    api: Api, caplog: pytest.LogCaptureFixture, packets: list[Any]
) -> None:
    with SdkSocket(api.server.port) as llm:
        for packet in packets:
            llm.send(packet)
        llm.send({"type": "rpcCall", "endpoint": "listLoaded", "callId": _LAST})
        while (answer := llm.receive()).get("callId") != _LAST:
            assert answer["type"]
    assert "failed as" not in caplog.text


def test_too_large_a_packet_closes_its_socket_only(start: Start) -> None:
    api = start(limits=limits(packet_bytes=10_000))
    with SdkSocket(api.server.port) as other, SdkSocket(api.server.port) as llm:
        llm.send({"type": "rpcCall", "endpoint": "tokenize", "callId": 1, "parameter": "x" * 20_000})
        assert closing_code(llm) in {1009, None}  # None: we were still writing
        assert other.result("listLoaded")


def test_calls_past_the_bound_are_refused_and_the_others_go_on(start: Start) -> None:
    api = start(ScriptedEngine(script=ENDLESS, pace=SLOW), limits=limits(n_calls=3))
    with SdkSocket(api.server.port) as llm:
        channels = [llm.open("predict", prediction()) for _ in range(5)]
        refused: list[int] = []
        while len(refused) < 2:
            packet = llm.receive()
            if packet["type"] == "channelError":
                assert "calls are open" in packet["error"]["title"]
                refused.append(packet["channelId"])
        assert refused == channels[3:]
        llm.open("predict", prediction())
        llm.send({"type": "channelCreate", "endpoint": "predict", "channelId": channels[0], "creationParameter": {}})
        while llm.receive()["type"] != "communicationWarning":
            pass
    assert api.engine.idle.wait(LONG_S)


def test_the_longest_idle_socket_gives_way_and_one_at_work_does_not(start: Start) -> None:
    api = start(ScriptedEngine(script=ENDLESS, pace=SLOW), limits=limits(n_sockets=2))
    with SdkSocket(api.server.port) as busy, SdkSocket(api.server.port) as idle:
        channel = busy.open("predict", prediction())
        assert busy.receive()["channelId"] == channel
        with SdkSocket(api.server.port) as third:
            assert closing_code(idle) == 1001
            assert third.result("listLoaded")
            third.open("predict", prediction())
            third.receive()
            with pytest.raises(Rejected) as rejected:
                SdkSocket(api.server.port)
            assert rejected.value.status == 503
            assert api.get("/health").status == 200
    assert api.engine.idle.wait(LONG_S)


@pytest.mark.parametrize("phase", ["prefill", "decode", "waiting"])
def test_a_client_that_leaves_stops_its_generation(start: Start, phase: str) -> None:
    pace = Pace(prefill_s=0.05, n_prefill_chunks=20_000) if phase == "prefill" else SLOW
    api = start(ScriptedEngine(script=ENDLESS, pace=pace))
    with SdkSocket(api.server.port) as llm:
        llm.open("predict", prediction())
        if phase == "waiting":
            with SdkSocket(api.server.port) as other:
                other.open("predict", prediction("Other"))
                other.receive()
            until(lambda: any(isinstance(event, RequestEnded) for event in api.events), "the one that waited ended")
            assert not api.engine.idle.is_set()
        while phase == "decode" and llm.receive()["message"]["type"] != "fragment":
            pass
        until(lambda: api.engine.prompts, "the engine is at work")
    assert api.engine.idle.wait(LONG_S)
    assert {event.outcome for event in api.events if isinstance(event, RequestEnded)} == {"cancelled"}


def test_a_client_that_is_gone_without_a_word_is_found_out(start: Start) -> None:
    """Its connection stays, but it answers no ping."""
    api = start(ScriptedEngine(script=ENDLESS, pace=SLOW), limits=limits(ping_s=0.2))
    with SdkSocket(api.server.port, answers_pings=False) as llm:
        llm.open("predict", prediction())
        assert closing_code(llm) in {1011, None}
    assert api.engine.idle.wait(LONG_S)
    patient = start(limits=limits(ping_s=2.0))
    with SdkSocket(patient.server.port) as llm:
        llm.raw.settimeout(0.05)
        while llm.n_pings < 2:
            with contextlib.suppress(TimeoutError):
                llm.receive()  # which answers the pings
        llm.raw.settimeout(LONG_S)
        assert llm.result("listLoaded")


def test_a_client_that_reads_nothing_is_dropped(start: Start) -> None:
    chatty = ScriptedEngine(script="w" * 400_000, pace=Pace(chars_per_step=4000))
    chatty.pair = replace(chatty.pair, context_tokens=200_000)
    api = start(chatty, limits=limits(send_gap_s=0.3, n_sockets=1))
    with SdkSocket(api.server.port, receive_buffer_bytes=4096) as llm:
        for _ in range(8):
            llm.open("predict", prediction())

        def is_given_up() -> bool:
            return any(isinstance(event, RequestEnded) and event.outcome == "cancelled" for event in api.events)

        until(is_given_up, "a reply was given up")
        assert api.engine.idle.wait(LONG_S)
        runner = api.server._http._runner
        assert runner is not None
        until(lambda: not runner.server_state.connections, "nothing is kept for it")
        with SdkSocket(api.server.port) as another:
            assert another.result("listLoaded")


@in_time(5)
def test_stopping_the_server_closes_sockets_and_ends_their_work(start: Start, within_s: float) -> None:
    api = start(ScriptedEngine(script=ENDLESS, pace=SLOW))
    with SdkSocket(api.server.port) as llm, SdkSocket(api.server.port, "/system") as idle:
        llm.open("predict", prediction())
        llm.receive()
        began = time.monotonic()
        api.server.stop()
        assert time.monotonic() - began < within_s
        assert closing_code(llm) in {1012, None} and closing_code(idle) in {1012, None}
    assert api.engine.idle.wait(LONG_S)


def test_a_bug_in_a_call_is_an_error_packet_and_the_socket_lives_on(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(peer: str) -> Any:
        raise ZeroDivisionError

    conductor = api.server._conductor
    assert conductor is not None
    monkeypatch.setattr(conductor.loading, "loadable", broken)
    with SdkSocket(api.server.port, "/system") as system:
        assert "made a mistake" in system.error("listDownloadedModels")["title"]
        assert system.result("version")
    assert "ZeroDivisionError" in caplog.text
