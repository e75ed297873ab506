"""A small HTTP client for tests of a running server, and what they are handed."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dflash_desktop.server.options import Limits, ServerOptions
from dflash_desktop.server.server import ApiServer
from support.patience import LONG_S
from support.scripted_engine import ScriptedEngine

FAST = Limits(first_beat_s=0.05, beat_s=0.1, body_bytes=1_000_000)
HASTY = replace(FAST, head_s=0.5, body_gap_s=0.5, body_s=3.0)
"""For slow senders. A good one on a busy machine may be as slow: it needs a server of its own."""


@dataclass
class Answer:
    """A whole HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str | None, Any]]:
        """Server-sent events as (name, data); comments are left out, [DONE] is the text itself."""
        found = []
        for block in self.body.decode().split("\n\n"):
            lines = block.split("\n")
            name = next((line[7:] for line in lines if line.startswith("event: ")), None)
            data = next((line[6:] for line in lines if line.startswith("data: ")), None)
            if data is not None:
                found.append((name, data if data == "[DONE]" else json.loads(data)))
        return found

    @property
    def data(self) -> list[Any]:
        return [data for _, data in self.events]

    @property
    def comments(self) -> int:
        return sum(1 for block in self.body.decode().split("\n\n") if block.startswith(":"))


@dataclass
class Api:
    """The server, its engine, and a small client."""

    engine: ScriptedEngine
    server: ApiServer
    events: list[Any] = field(default_factory=list)  # ServerEvents, in order

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def load(self) -> None:
        self.server.on_engine_event(self.engine.loaded_event())

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        *,
        host: str = "127.0.0.1",
    ) -> Answer:
        connection = http.client.HTTPConnection(host, self.server.port, timeout=LONG_S)
        try:
            raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            kind = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, raw, {**kind, **(headers or {})})
            response = connection.getresponse()
            found = {key.lower(): value for key, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return self.call("GET", path, None, headers)

    def post(self, path: str, body: object, headers: dict[str, str] | None = None) -> Answer:
        return self.call("POST", path, body, headers)


Start = Callable[..., Api]


@contextmanager
def served_script(engine: ScriptedEngine) -> Iterator[tuple[ScriptedEngine, ApiServer, list[Any]]]:
    """The engine, loaded, behind a server with the limits that users have; and what the server tells."""
    events: list[Any] = []
    engine.start()
    server = ApiServer(engine, events.append)
    server.on_engine_event(engine.loaded_event())
    assert server.start(ServerOptions(port=0))
    yield engine, server, events
    server.stop()
    engine.close()
