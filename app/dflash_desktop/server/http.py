"""The server as an object: our sockets, one thread with uvicorn on it, start and stop with the true state."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Literal

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from dflash_desktop.server import sockets
from dflash_desktop.server.access import Gate
from dflash_desktop.server.events import ServerFailed, ServerStarted, ServerStopped, ServerSubscriber
from dflash_desktop.server.front import App, Front
from dflash_desktop.server.options import Limits, ServerOptions

log = logging.getLogger(__name__)

ServerState = Literal["stopped", "starting", "running", "stopping", "failed"]

_START_S = 10.0
_STOP_S = 5.0


class HttpServer:
    """Serves `make_routes()` on loopback or the LAN. Start and stop from any one thread, as often as wanted."""

    def __init__(
        self,
        make_routes: Callable[[], App],
        subscriber: ServerSubscriber,
        *,
        on_stop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`on_stop` is awaited on the server's event loop when all requests have ended."""
        self._make_routes = make_routes
        self._on_stop = on_stop
        self._tell = subscriber
        self._state: ServerState = "stopped"
        self._runner: _Runner | None = None
        self._thread: threading.Thread | None = None
        self.port = 0
        self.addresses: tuple[str, ...] = ()

    @property
    def state(self) -> ServerState:
        """What the sockets do, never what was wished."""
        return self._state

    def start(self, options: ServerOptions) -> bool:
        """Open the sockets and serve. False, after a ServerFailed event, if that is not possible."""
        if self._thread is not None:
            return self._state == "running"
        if options.is_lan and not options.access_token:
            return self._fail("A server for the network needs a key. Set one first.", options.port)
        self._state = "starting"
        try:
            opened = sockets.listen(options.port, is_lan=options.is_lan)
        except sockets.ListenFailed as error:
            return self._fail(str(error), error.port, owner=error.owner, free_port=error.free_port)
        self.port = opened[0].getsockname()[1]
        self.addresses = sockets.addresses(opened)
        front = Front(self._make_routes(), Gate(options), options.limits, self._tell)
        self._runner = _Runner(front, options.limits, self._on_stop)
        self._thread = threading.Thread(target=self._serve, args=(opened,), name="dflash-server", daemon=True)
        self._thread.start()
        if not self._runner.is_ready.wait(_START_S) or not self._runner.started:
            self.stop()
            return self._fail("The server did not start. The log says why.", self.port)
        self._state = "running"
        self._tell(ServerStarted(self.addresses, self.port, options.is_lan, bool(options.access_token)))
        return True

    def stop(self) -> None:
        """Close the sockets and every connection; returns when the thread has ended."""
        thread, runner = self._thread, self._runner
        if thread is None or runner is None:
            return
        self._state = "stopping"
        runner.ask_to_exit()
        thread.join(_STOP_S)
        if thread.is_alive():
            runner.force_exit = True
            thread.join(_STOP_S)
        self._thread = self._runner = None
        self.addresses = ()
        self._state = "stopped"
        self._tell(ServerStopped())

    def _serve(self, opened: list[socket.socket]) -> None:
        runner = self._runner
        assert runner is not None
        try:
            runner.run(sockets=opened)
        except Exception:
            log.exception("the server thread failed")
        finally:
            for sock in opened:
                sock.close()
            runner.is_ready.set()

    def _fail(
        self,
        message: str,
        port: int,
        *,
        owner: sockets.PortOwner | None = None,
        free_port: int | None = None,
    ) -> bool:
        self._state = "failed"
        self._tell(ServerFailed(message, port, owner, free_port))
        return False


CLOSING_TURNS = 5
_CLOSE_S = 1.0  # a closed socket waits so long for its client's word


class _Runner(uvicorn.Server):
    """uvicorn with a start signal; it installs no signal handlers outside the main thread."""

    def __init__(self, app: App, limits: Limits, on_stop: Callable[[], Awaitable[None]] | None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_protocol(limits),
                ws=_socket_protocol(limits),
                ws_max_size=limits.packet_bytes,
                ws_ping_interval=limits.ping_s,
                ws_ping_timeout=limits.ping_s,
                ws_per_message_deflate=False,  # a small packet must not become a large one
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="critical",  # our front logs bugs itself; bad requests are no news
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=limits.keep_alive_s,
                limit_concurrency=limits.n_connections,
                h11_max_incomplete_event_size=limits.head_bytes,
            )
        )
        self._on_stop = on_stop
        self.is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exit_asked = asyncio.Event()

    def ask_to_exit(self) -> None:
        """Any thread."""
        self.should_exit = True
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(self._exit_asked.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.is_ready.set()

    async def main_loop(self) -> None:
        """Wake once a second for the Date header, and at once to exit; uvicorn's own loop polls ten times a second."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._exit_asked.wait()

    async def _stop_accepting(self) -> None:
        """A connection that came a turn ago joins its server first: asyncio leaves it open when that is closed."""
        loop = asyncio.get_running_loop()
        for server in self.servers:
            for sock in server.sockets:
                with contextlib.suppress(NotImplementedError):  # Windows' loop has no readers, and no such gap
                    loop.remove_reader(sock.fileno())
        for _ in range(2):
            await asyncio.sleep(0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the sockets, end what runs, close the connections: no waiting for clients as in uvicorn's own."""
        await self._stop_accepting()
        for server in self.servers:
            server.close()
        for sock in sockets or []:
            sock.close()
        tasks = set(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)
        if self._on_stop is not None:
            await self._on_stop()
        for turn in range(CLOSING_TURNS):  # some were accepted just now, and each is closed a turn of the loop later
            for connection in list(self.server_state.connections):
                connection.shutdown()
                if connection.transport is not None:
                    (connection.transport.abort if turn else connection.transport.close)()
            await asyncio.sleep(0)


def _protocol(limits: Limits) -> type[H11Protocol]:
    class Protocol(H11Protocol):
        """A connection that sends half a request head and then sleeps is closed."""

        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._head_timer = self.loop.call_later(limits.head_s, transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_head_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._end_head_timer()
            elif self._head_timer is None and not self.transport.is_closing():
                self._head_timer = self.loop.call_later(limits.head_s, self.transport.close)

        def _end_head_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

    return Protocol


def _socket_protocol(limits: Limits) -> type[WSProtocol]:
    class SocketProtocol(WSProtocol):
        """A client that doesn't take what is left for it when we are done loses it."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.close_timeout = _CLOSE_S

        def on_task_complete(self, task: asyncio.Task[None]) -> None:
            super().on_task_complete(task)
            self.loop.call_later(limits.send_gap_s, self.transport.abort)

    return SocketProtocol
