"""A real server on a loopback port with a scripted engine behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.server import ApiServer
from dflash_desktop.server.shelf import Shelf
from support.api_server import FAST, Api, Start
from support.scripted_engine import ScriptedEngine


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server: `start(ScriptedEngine(...), port=..., limits=...)`."""
    running: list[Api] = []

    def started(
        engine: ScriptedEngine | None = None, *, is_loaded: bool = True, shelf: Shelf | None = None, **options: Any
    ) -> Api:
        engine = engine or ScriptedEngine()
        engine.start()
        events: list[Any] = []
        server = ApiServer(engine, events.append, shelf=shelf)
        api = Api(engine, server, events)
        running.append(api)
        if is_loaded:
            api.load()
        assert server.start(ServerOptions(**{"port": 0, "limits": FAST, **options})), events
        return api

    yield started
    for api in running:
        api.server.stop()
        api.engine.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name == "dflash-server"]


@pytest.fixture
def api(start: Start) -> Api:
    return start()
