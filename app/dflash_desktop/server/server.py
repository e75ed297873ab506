"""The server as the app sees it: hand in the engine, start, stop, listen to events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dflash_desktop.engine.events import Event
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.server.conductor import Conductor
from dflash_desktop.server.events import ServerSubscriber
from dflash_desktop.server.front import App
from dflash_desktop.server.http import HttpServer, ServerState
from dflash_desktop.server.inspector import Inspector
from dflash_desktop.server.loading import Loading, SubmitLoad
from dflash_desktop.server.models import ModelState
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.ports import EngineLane
from dflash_desktop.server.routes import make_routes
from dflash_desktop.server.self_test import SelfTestLine, run_self_test, self_test_lines
from dflash_desktop.server.shelf import Shelf


class ApiServer:
    """One per app. `subscriber` hears ServerEvents on the server's thread (start and stop: the caller's)."""

    def __init__(
        self,
        engine: EngineLane,
        subscriber: ServerSubscriber,
        *,
        submit_load: SubmitLoad | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        """`submit_load`: how a load that a client asked for is submitted; default is the engine's own submit.

        `shelf`: the models that clients may name although they are not loaded.
        """
        self._engine = engine
        self._submit_load = submit_load or engine.submit
        self._shelf = shelf
        self._options = ServerOptions()
        self._inspector = Inspector(subscriber)
        self._conductor: Conductor | None = None
        self._http = HttpServer(self._make_routes, subscriber)
        self.models = ModelState()

    @property
    def state(self) -> ServerState:
        return self._http.state

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def addresses(self) -> tuple[str, ...]:
        return self._http.addresses

    def on_engine_event(self, event: Event) -> None:
        """Hand in the events of every LoadPair and UnloadPair; any thread."""
        self.models.on_engine_event(event)

    def expect_load(self) -> None:
        """A load follows at once: until its end /health and refusals say that it is under way. Before `start`."""
        self.models.expect_load()

    def start(self, options: ServerOptions) -> bool:
        """Open the sockets; False after a ServerFailed event. Blocks for well under a second."""
        if self._http.state != "running":
            self._options = options
        return self._http.start(options)

    def use_pflash(self, pflash: PflashOptions) -> None:
        """For later requests that say nothing about it; no restart is needed. Any thread."""
        self._options = replace(self._options, pflash=pflash)
        if self._conductor is not None:
            self._conductor.options = replace(self._conductor.options, pflash=pflash)

    def stop(self) -> None:
        """Cancel what runs, close everything; returns when it is done."""
        self._http.stop()

    def self_test(self) -> list[SelfTestLine]:
        """Try every dialect over the socket. Blocks for seconds: call it from a thread of its own."""
        return run_self_test(self._http.port, self._options.access_token)

    def self_test_lines(self, *, timeout_s: float = 120.0) -> Iterator[SelfTestLine]:
        """The same, a line as each check ends; leave it at any line."""
        return self_test_lines(self._http.port, self._options.access_token, timeout_s=timeout_s)

    def _make_routes(self) -> App:
        loading = Loading(self._submit_load, self.models, self._options, self._shelf)
        if self._shelf is not None:
            self._shelf.models()  # the first look, in the background
        self._conductor = Conductor(self._engine, self.models, loading, self._options, self._inspector)
        return make_routes(self._conductor)
