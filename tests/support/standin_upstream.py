"""An OpenAI-compatible server that says what a test tells it to, byte by byte, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.patience import LONG_S

STREAM = (
    b'data: {"id":"1",  "choices":[{"delta":{"content":"Gr\xc3\xbc"}}]}\r\n\r\n',
    b": a comment\n\nevent: odd\ndata: {\n",
    b"data: }\n\n",
    b"data: [DONE]\n\n",
)
"""Nothing that a server of ours would write: only bytes that are passed on can come out alike."""


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]  # lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class StandIn:
    """`script` answers; without one there is a small model list, a reply or STREAM."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    script: Callable[[StandIn, BaseHTTPRequestHandler, Asked], None] | None = None
    may_go_on: threading.Event = field(default_factory=threading.Event)  # STREAM waits for it after its first piece
    was_left: threading.Event = field(default_factory=threading.Event)  # the other side closed before the end

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, handler: BaseHTTPRequestHandler, asked: Asked) -> None:
        self.asked.append(asked)
        if self.script is not None:
            self.script(self, handler, asked)
        elif asked.body and asked.json.get("stream"):
            self.stream(handler)
        elif asked.path.startswith("/v1/models"):
            self.say(handler, 200, b'{"object": "list",   "data": [{"id": "big-model"}]}')
        else:
            self.say(handler, 200, b'{ "object":"chat.completion", "choices":[], "usage": {"prompt_tokens": 7} }')

    def say(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, kind: str = "application/json", **more: str
    ) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    def stream(
        self, handler: BaseHTTPRequestHandler, *, pieces: tuple[bytes, ...] = STREAM, breaks: bool = False
    ) -> None:
        handler.send_response(200)
        for name, value in (
            ("Content-Type", "text/event-stream; charset=utf-8"),
            ("Transfer-Encoding", "chunked"),
            ("X-Request-Id", "theirs"),
            ("Set-Cookie", "a=b"),
            ("Access-Control-Allow-Origin", "*"),
        ):
            handler.send_header(name, value)
        handler.end_headers()
        try:
            for at, piece in enumerate(pieces):
                if at == 1:
                    self._wait_or_notice(handler)
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
            if not breaks:
                handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.was_left.set()
        handler.close_connection = True

    def _wait_or_notice(self, handler: BaseHTTPRequestHandler) -> None:
        """Until the stream may go on, or the reader has closed."""
        handler.connection.settimeout(0.02)
        while not self.may_go_on.is_set():
            with contextlib.suppress(TimeoutError):
                if handler.connection.recv(1) == b"":
                    raise ConnectionResetError
        handler.connection.settimeout(LONG_S)


@contextlib.contextmanager
def standing_in() -> Iterator[StandIn]:
    """A stand-in on a free port; streams go on at once unless `may_go_on` is cleared."""
    stand_in = StandIn()
    stand_in.may_go_on.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = LONG_S

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            stand_in.answer(self, Asked(self.command, self.path, headers, body))

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    for method in ("GET", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    server.block_on_close = True
    stand_in.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="stand-in")
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.may_go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
