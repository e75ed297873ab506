"""A proxy with a real scorer in front of a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.proxy import ProxyServer
from dflash_desktop.server.upstream import Upstream, parse_upstream
from support.api_server import FAST
from support.proxied import ALWAYS, ProxyApi
from support.real_engine import running_engine
from support.scripted_engine import ScriptedEngine
from support.standin_upstream import StandIn, standing_in


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture
def upstream() -> Iterator[StandIn]:
    with standing_in() as stand_in:
        yield stand_in


@pytest.fixture
def start(engine: Engine, upstream: StandIn) -> Iterator[Any]:
    """After `upstream`, so that the proxy closes its connections first."""
    del upstream
    running: list[ProxyServer] = []

    def started(address: Upstream, pflash: PflashOptions = ALWAYS, **options: Any) -> ProxyApi:
        events: list[Any] = []
        server = ProxyServer(engine, address, events.append)
        running.append(server)
        assert server.start(ServerOptions(**{"port": 0, "limits": FAST, "pflash": pflash, **options})), events
        return ProxyApi(ScriptedEngine(), server, events)  # type: ignore[arg-type]

    yield started
    for server in running:
        server.stop()


@pytest.fixture
def api(start: Any, upstream: StandIn) -> ProxyApi:
    proxy: ProxyApi = start(parse_upstream(upstream.base))
    return proxy
