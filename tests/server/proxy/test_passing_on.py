"""What the proxy passes on beside chats: other routes, keys and headers; and whom it lets in."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.server.upstream import parse_upstream, read_key
from support.ports import free_port
from support.proxied import CHAT, SHORT, ProxyApi
from support.sdk_socket import Rejected, SdkSocket
from support.standin_upstream import StandIn

KEY = "sk-upstream-s3cret"


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


def test_sockets_are_refused(api: ProxyApi, upstream: StandIn) -> None:
    for path in ("/llm", "/v1/realtime"):
        with pytest.raises(Rejected) as rejected:
            SdkSocket(api.server.port, path)
        assert rejected.value.status == 404
    assert not upstream.asked


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


def test_the_rules_about_hosts_pages_and_keys_are_the_servers_own(start: Any, upstream: StandIn) -> None:
    api = start(parse_upstream(upstream.base))
    assert api.post(CHAT, SHORT, {"Host": "evil.example"}).json["error"]["code"] == "host_not_allowed"
    assert api.post(CHAT, SHORT, {"Origin": "https://evil.example"}).json["error"]["code"] == "origin_not_allowed"
    keyed = start(parse_upstream(upstream.base), access_token="k")
    assert keyed.post(CHAT, SHORT).status == 401
    assert upstream.asked == []


def test_two_proxies_that_point_at_each_other_are_noticed_when_the_request_comes_back(start: Any) -> None:
    port = free_port()
    second = start(parse_upstream(f"http://127.0.0.1:{port}"))
    first = start(parse_upstream(f"http://127.0.0.1:{second.server.port}"), port=port)
    answer = first.post(CHAT, SHORT)
    assert answer.status == 508 and answer.json["error"]["code"] == "upstream_loop"
