"""Every refusal is told to who watches the server: client, path, status and reason, without anything of the request."""

from __future__ import annotations

from typing import Any

import pytest

from dflash_desktop.server.events import RequestArrived, RequestEnded, RequestRefused
from support.api_server import FAST, Api

CHAT = "/v1/chat/completions"
AGENT = {"User-Agent": "Cline/3"}
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
SECRET = "sk-very-secret"


@pytest.mark.parametrize(
    ("status", "method", "path", "body", "headers"),
    [
        (400, "POST", CHAT, {"messages": 3}, {}),
        (400, "POST", CHAT, b"{broken", {}),
        (404, "GET", "/v1/nothing", None, {}),
        (405, "DELETE", CHAT, None, {}),
        (403, "GET", "/v1/models", None, {"Host": "evil.example"}),
        (413, "POST", CHAT, {**HELLO, "user": "x" * FAST.body_bytes}, {}),
        (415, "POST", CHAT, HELLO, {"Content-Type": "text/plain"}),
    ],
)
def test_what_is_refused_before_it_is_read_is_told(
    api: Api, status: int, method: str, path: str, body: object, headers: dict[str, str]
) -> None:
    answer = api.call(method, path, body, {**AGENT, "Authorization": f"Bearer {SECRET}", **headers})
    assert answer.status == status
    told = of(api, RequestRefused)
    assert [(one.client, one.path, one.status) for one in told] == [("cline", path, status)]
    assert told[0].message
    assert SECRET not in repr(told[0])
    assert of(api, RequestArrived) == of(api, RequestEnded) == []


def test_a_knock_without_end_is_told_a_few_times_but_another_refusal_of_the_same_client_is_not_lost(api: Api) -> None:
    for _ in range(40):
        api.call("GET", "/nothing", None, AGENT)
    assert len(of(api, RequestRefused)) < 40
    n_told = len(of(api, RequestRefused))
    api.call("POST", CHAT, {"messages": 3}, AGENT)
    assert [one.status for one in of(api, RequestRefused)[n_told:]] == [400]


def of(api: Api, kind: type) -> list[Any]:
    return [event for event in api.events if isinstance(event, kind)]
