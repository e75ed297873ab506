"""Who gets in: Host, Origin, key, CORS, limits. A refused request starts no work."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from dflash_desktop.server.access import Caller, Gate, host_name
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.front import repaired_path
from dflash_desktop.server.options import ServerOptions
from support.api_server import HASTY, Api, Start
from support.patience import LONG_S, until
from support.scripted_engine import Pace, ScriptedEngine

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
FOREIGN = {"Origin": "https://evil.example"}


def raw(port: int, request: bytes, *, timeout_s: float = LONG_S, host: str = "127.0.0.1") -> bytes:
    """Everything the server says to these bytes until it closes or is silent."""
    with socket.create_connection((host, port), timeout=timeout_s) as sock:
        sock.sendall(request)
        said = b""
        try:
            while part := sock.recv(65536):
                said += part
        except (TimeoutError, ConnectionResetError):
            pass
        return said


def raw_to_its_end(port: int, request: bytes) -> bytes:
    """The same, of a server that has to be the one who closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_S) as sock:
        sock.sendall(request)
        said = b""
        while part := sock.recv(65536):
            said += part
        return said


def status(said: bytes) -> int:
    return int(said.split(b" ", 2)[1]) if said else 0


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1:{port}", True), ("[::1]:{port}", True), ("localhost:{port}", True), ("LOCALHOST", True),
        ("localhost.", True), ("host.docker.internal:{port}", True), ("127.0.0.1", True),
        ("evil.example", False), ("127.0.0.1.evil.example", False), ("localhost.evil.example", False),
        ("", False), ("evil.example:{port}", False), ("127.0.0.1@evil.example", False), ("192.168.1.7:{port}", False),
        ("localhost:port", False), ("[::1", False), ("0.0.0.0", False), ("lоcalhost", False),
    ],
)  # fmt: skip
def test_only_our_own_names_are_answered(api: Api, host: Any, is_known: Any) -> None:
    """Conformance 10, B091: nothing is done for a foreign name."""
    name = host.format(port=api.server.port).encode()
    said = raw(api.server.port, b"GET /v1/models HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\n\r\n")
    assert status(said) == (200 if is_known else 403) or (not is_known and status(said) == 400)
    if status(said) == 403:
        assert b"--allow-host" in said  # names what lets it in
    assert not api.engine.jobs


def test_two_host_lines_and_none_are_refused(api: Api) -> None:
    """B091."""
    two = b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert status(raw(api.server.port, two)) == 400
    assert status(raw(api.server.port, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400
    assert status(raw(api.server.port, b"GET / HTTP/1.0\r\n\r\n")) == 403


def test_lan_names_are_learned_and_users_can_add_some() -> None:
    """Conformance 10."""
    gate = Gate(
        ServerOptions(is_lan=True, access_token="k", allowed_hosts=("Box.example",)), frozenset({"192.168.1.7"})
    )
    for host in ("192.168.1.7:1234", "box.example", "localhost"):
        gate.check_host(Caller.read([(b"host", host.encode())], "192.168.1.9"))
    with pytest.raises(ApiError):
        gate.check_host(Caller.read([(b"host", b"192.168.1.8")], "192.168.1.9"))
    assert host_name("[fe80::1]:1234") == "fe80::1"


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil", "file://", "x", ""],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_foreign_origins_get_nothing_and_start_nothing(api: Api, origin: Any, method: Any) -> None:
    """Conformance 10."""
    answer = api.call(method, CHAT if method != "GET" else "/v1/models", HELLO, {"Origin": origin})
    assert answer.status == 403 and "access-control-allow-origin" not in answer.headers
    assert answer.json["error"]["code"] == "origin_not_allowed"
    assert not api.engine.jobs


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080", "vscode-webview://abc", "app://obsidian.md"],
)
def test_local_origins_are_served_with_exact_cors_headers(api: Api, origin: Any) -> None:
    """Conformance 10."""
    answer = api.post(CHAT, HELLO, {"Origin": origin})
    assert answer.status == 200 and answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["vary"] == "Origin"
    refused = api.post(CHAT, {}, {"Origin": origin})
    assert refused.status == 400 and refused.headers["access-control-allow-origin"] == origin


def test_a_script_element_of_another_site_is_refused(api: Api) -> None:
    answer = api.get("/v1/models", {"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403


def test_preflight_echoes_what_was_asked(api: Api) -> None:
    """Conformance 10."""
    headers = {
        "Origin": "http://localhost:3000",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-stainless-os, anthropic-version",
        "Access-Control-Request-Private-Network": "true",
    }
    answer = api.call("OPTIONS", CHAT, None, headers)
    assert answer.status == 204
    assert answer.headers["access-control-allow-headers"] == "x-stainless-os, anthropic-version"
    assert answer.headers["access-control-allow-private-network"] == "true"
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    assert answer.headers["access-control-max-age"] == "600"


def test_users_can_allow_origins(start: Start) -> None:
    api = start(allowed_origins=("https://chat.example",))
    assert api.post(CHAT, HELLO, {"Origin": "https://chat.example"}).status == 200
    assert api.post(CHAT, HELLO, FOREIGN).status == 403


@pytest.mark.parametrize(
    ("headers", "status_wanted"),
    [
        ({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Basic s3cret"}, 401), ({"Authorization": "Bearer s3cret"}, 200),
        ({"authorization": "bearer s3cret"}, 200), ({"x-api-key": "s3cret"}, 200), ({"api-key": "s3cret"}, 200),
        ({"Authorization": "Bearer wrong", "x-api-key": "s3cret"}, 200), ({"x-api-key": "s3cre"}, 401),
        ({"x-api-key": "s3cret\t"}, 200), ({"x-api-key": "\xff"}, 401),
    ],
)  # fmt: skip
def test_keys(start: Start, headers: Any, status_wanted: Any) -> None:
    api = start(access_token="s3cret")
    answer = api.post(CHAT, HELLO, headers)
    assert answer.status == status_wanted
    if status_wanted == 401:
        assert answer.headers["www-authenticate"] == "Bearer" and answer.json["error"]["code"] == "invalid_api_key"
        assert not api.engine.jobs


def test_without_a_key_any_key_is_welcome(api: Api) -> None:
    for value in ("Bearer ", "Bearer noop", "Bearer sk-any"):
        assert api.post(CHAT, HELLO, {"Authorization": value}).status == 200


def test_listings_stay_open_here_unless_the_person_says_otherwise(start: Start) -> None:
    api = start(access_token="k")
    assert api.get("/v1/models").status == 200 and api.get("/props").status == 401
    assert api.get("/health").status == 200 and api.get("/").status == 200
    strict = start(access_token="k", needs_key_here=True)
    assert strict.get("/v1/models").status == 401 and strict.get("/health").status == 200


def test_the_network_needs_a_key(start: Start) -> None:
    api = start()
    api.server.stop()
    assert not api.server.start(ServerOptions(port=0, is_lan=True))
    assert "needs a key" in api.events[-1].message and api.server.state == "failed"


@pytest.mark.parametrize(
    ("path", "repaired"),
    [
        ("/v1/models", "/v1/models"), ("//v1//models/", "/v1/models"), ("/v1/v1/models", "/v1/models"), ("/", "/"),
        ("/v1/api/v0/models", "/api/v0/models"), ("/v1/api/v1/chat", "/api/v1/chat"), ("", "/"), ("/v1", "/v1"),
        ("/v1x/v1/models", "/v1x/v1/models"),
    ],
)  # fmt: skip
def test_pasted_paths_are_forgiven(path: Any, repaired: Any) -> None:
    assert repaired_path(path) == repaired


@pytest.mark.parametrize(
    "path", ["/nope", "/../etc/passwd", "/v1/..%2f..%2fetc/passwd", "/v1/models%00", "/%ff", "/v1/chat"]
)
def test_unknown_paths_are_404_in_json(api: Api, path: Any) -> None:
    answer = api.get(path)
    assert answer.status == 404 and answer.json["error"]["message"]


def test_wrong_method_is_405(api: Api) -> None:
    assert api.get(CHAT).status == 405
    assert api.post("/v1/models", {}).status == 405


def test_form_types_are_refused_and_a_missing_type_is_fine(api: Api) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded; charset=utf-8"):
        assert api.post(CHAT, HELLO, {"Content-Type": kind}).status == 415
    own = f"http://127.0.0.1:{api.server.port}"
    for page in ({"Origin": own}, {"Sec-Fetch-Mode": "navigate"}):
        assert api.post(CHAT, HELLO, {**form, **page}).status == 415
    assert api.post(CHAT, HELLO, form).status == 200  # what `curl -d` says of JSON
    assert api.post(CHAT, HELLO, {"Content-Type": "application/json; charset=utf-8"}).status == 200
    body = b'{"messages": [{"role": "user", "content": "x"}]}'
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    assert status(raw(api.server.port, head.encode() + body)) == 200


def test_a_body_over_the_limit_is_413_and_is_not_kept(api: Api) -> None:
    answer = api.call("POST", CHAT, b"x" * 3_000_000)
    assert answer.status == 413 and answer.json["error"]["code"] == "request_too_large"
    answer = api.call("POST", "/v1/messages", b"x" * 3_000_000)
    assert answer.status == 413
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunk = b"40000\r\n" + b"y" * 0x40000 + b"\r\n"
    assert status(raw(api.server.port, head.encode() + chunk * 8 + b"0\r\n\r\n")) == 413


@pytest.mark.parametrize("n_mib", [100])
def test_a_hundred_megabytes_are_refused(start: Start, n_mib: Any) -> None:
    from dflash_desktop.server.options import Limits

    api = start(limits=Limits())
    answer = api.call("POST", CHAT, b"x" * (n_mib * 1024 * 1024))
    assert answer.status == 413
    assert api.post(CHAT, HELLO).status == 200


def test_half_a_head_and_half_a_body_are_not_waited_for(start: Start) -> None:
    api = start(limits=HASTY)
    assert raw_to_its_end(api.server.port, b"GET / HTTP/1.1\r\nHost: localh") == b""
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{"
    assert status(raw_to_its_end(api.server.port, head.encode())) == 408
    assert raw_to_its_end(api.server.port, b"") == b""


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /\r\nSet-Cookie: x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_broken_requests_do_no_harm(api: Api, request_bytes: Any) -> None:
    assert status(raw(api.server.port, request_bytes, timeout_s=1)) in {0, 400, 403, 404, 405, 431}
    assert api.get("/health").status == 200


def test_answers_name_no_path_of_this_machine(api: Api) -> None:
    """B101."""
    texts = [api.get(path).body.decode() for path in ("/", "/props", "/v1/models", "/status", "/metrics", "/nope")]
    assert not [text for text in texts if "models/" in text or "/home" in text]


def test_many_requests_leave_no_file_handle(start: Start) -> None:
    """B095; five hundred: test_faults_of_others.py."""
    psutil = pytest.importorskip("psutil")
    api = start(ScriptedEngine(script="ok", pace=Pace(n_prefill_chunks=0)))
    process = psutil.Process()
    for _ in range(5):
        api.post(CHAT, HELLO)
    before = process.num_fds()
    for i in range(60):
        api.post(CHAT, HELLO if i % 3 else {})
        raw(api.server.port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    until(lambda: process.num_fds() <= before + 2, "about as many handles as before")
