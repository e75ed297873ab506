"""A call of the SDK protocol as a client makes it, for the self-test: blocking, on a socket of its own."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError


def call_sdk(host: str, port: int, path: str, endpoint: str, *, key: str, agent: str, timeout_s: float) -> Any:
    """What a call without a parameter results in; raise OSError when it comes to nothing."""
    with socket.create_connection((host, port), timeout=timeout_s) as sock:
        probe = _Probe(sock)
        headers = [(b"User-Agent", agent.encode())]
        probe.put(Request(host=f"{host}:{port}", target=path, extra_headers=headers))
        probe.wait_until_open()
        probe.send({"authVersion": 1, "clientIdentifier": agent, "clientPasskey": key})
        admitted = probe.receive()
        if admitted.get("success") is not True:
            raise ConnectionRefusedError(str(admitted.get("error")))
        probe.send({"type": "rpcCall", "endpoint": endpoint, "callId": 0})
        answer = probe.receive()
        with contextlib.suppress(OSError, ProtocolError):
            probe.put(CloseConnection(code=1000))
    if answer.get("type") != "rpcResult":
        raise ConnectionAbortedError(str(answer.get("error", answer))[:200])
    return answer["result"]


class _Probe:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._is_open = False
        self._text = ""
        self._packets: list[dict[str, Any]] = []

    def put(self, event: Event) -> None:
        self._sock.sendall(self._connection.send(event))

    def send(self, packet: dict[str, Any]) -> None:
        self.put(Message(data=json.dumps(packet)))

    def wait_until_open(self) -> None:
        while not self._is_open:
            self._take()

    def receive(self) -> dict[str, Any]:
        while not self._packets:
            self._take()
        return self._packets.pop(0)

    def _take(self) -> None:
        data = self._sock.recv(65536)
        if not data:
            raise ConnectionAbortedError("the connection ended")
        try:
            self._connection.receive_data(data)
        except ProtocolError as error:
            raise ConnectionAbortedError(f"an answer of another protocol: {error}") from error
        for event in self._connection.events():
            match event:
                case AcceptConnection():
                    self._is_open = True
                case RejectConnection():
                    raise ConnectionRefusedError(f"the upgrade was answered with {event.status_code}")
                case CloseConnection():
                    raise ConnectionAbortedError(f"closed with {event.code}: {event.reason}")
                case Ping():
                    self._sock.sendall(self._connection.send(event.response()))
                case TextMessage():
                    self._text += event.data
                    if event.message_finished:
                        self._packets.append(json.loads(self._text))
                        self._text = ""
