"""A client of LM Studio's SDK protocol that shows every packet: a blocking WebSocket with wsproto's state machine."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
from collections.abc import Iterator
from typing import Any, Self

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.events import Message as WsMessage
from wsproto.utilities import LocalProtocolError

from support.patience import LONG_S


class Rejected(Exception):
    """The server answered the upgrade with an ordinary HTTP answer."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body


class Closed(Exception):
    """The server closed the socket. The code is None when the connection just ended."""

    def __init__(self, code: int | None, reason: str | None = None) -> None:
        super().__init__(code, reason)
        self.code = code


class SdkSocket:
    """Open on `path`, and authenticated unless `passkey` is None. Answers pings unless told not to."""

    def __init__(
        self,
        port: int,
        path: str = "/llm",
        *,
        passkey: str | None = "made-up",
        identifier: str = "test",
        headers: tuple[tuple[bytes, bytes], ...] = (),
        host: str = "127.0.0.1",
        answers_pings: bool = True,
        timeout_s: float = LONG_S,
        receive_buffer_bytes: int = 0,
    ) -> None:
        self._ids = itertools.count(1)
        self._answers_pings = answers_pings
        self._packets: list[Any] = []
        self.n_pings = 0
        self._text = ""
        self._body = b""
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.raw.settimeout(timeout_s)
        if receive_buffer_bytes:
            self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.raw.connect(("127.0.0.1", port))
        self._connection = WSConnection(ConnectionType.CLIENT)
        request = Request(host=f"{host}:{port}", target=path, extra_headers=list(headers))
        self.raw.sendall(self._connection.send(request))
        try:
            self._take_events_until_open()
        except BaseException:
            self.raw.close()
            raise
        if passkey is not None:
            self.send({"authVersion": 1, "clientIdentifier": identifier, "clientPasskey": passkey})
            self.admitted = self.receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.raw.close()

    def send(self, packet: Any) -> None:
        """A JSON packet; a text goes out as it is."""
        self.send_text(packet if isinstance(packet, str) else json.dumps(packet))

    def send_text(self, text: str) -> None:
        self.raw.sendall(self._connection.send(WsMessage(data=text)))

    def receive(self) -> Any:
        """The next packet; raise Closed."""
        while not self._packets:
            self._take_events()
        packet = self._packets.pop(0)
        if isinstance(packet, Closed):
            self._packets.append(packet)
            raise packet
        return packet

    def call(self, endpoint: str, parameter: Any = None) -> dict[str, Any]:
        """The packet that answers a call."""
        call_id = next(self._ids)
        self.send({"type": "rpcCall", "endpoint": endpoint, "callId": call_id, "parameter": parameter})
        answer = self.receive()
        assert answer["callId"] == call_id, answer
        return dict(answer)

    def result(self, endpoint: str, parameter: Any = None) -> Any:
        answer = self.call(endpoint, parameter)
        assert answer["type"] == "rpcResult", answer
        return answer.get("result")

    def error(self, endpoint: str, parameter: Any = None) -> dict[str, Any]:
        answer = self.call(endpoint, parameter)
        assert answer["type"] == "rpcError", answer
        return dict(answer["error"])

    def open(self, endpoint: str, parameter: Any = None) -> int:
        """A channel's number."""
        channel_id = next(self._ids)
        self.send(
            {"type": "channelCreate", "endpoint": endpoint, "channelId": channel_id, "creationParameter": parameter}
        )
        return channel_id

    def cancel(self, channel_id: int) -> None:
        self.send({"type": "channelSend", "channelId": channel_id, "message": {"type": "cancel"}})

    def messages(self, channel_id: int) -> Iterator[dict[str, Any]]:
        """What comes on a channel, to its end; an error is the last, as it came."""
        while True:
            packet = self.receive()
            assert packet["channelId"] == channel_id, packet
            match packet["type"]:
                case "channelSend":
                    yield packet["message"]
                case "channelError":
                    yield packet
                    return
                case _:
                    assert packet["type"] == "channelClose", packet
                    return

    def stream(self, endpoint: str, parameter: Any = None) -> list[dict[str, Any]]:
        return list(self.messages(self.open(endpoint, parameter)))

    def _take_events_until_open(self) -> None:
        self._is_open = False
        while not self._is_open:
            self._take_events()
            if self._packets and isinstance(self._packets[0], Closed):
                raise self._packets[0]

    def _take_events(self) -> None:
        try:
            data = self.raw.recv(65536)
        except (ConnectionResetError, ConnectionAbortedError):
            data = b""
        if not data:
            self._packets.append(Closed(None))
            return
        self._connection.receive_data(data)
        for event in self._connection.events():
            match event:
                case AcceptConnection():
                    self._is_open = True
                case RejectConnection():
                    self._status = event.status_code
                case RejectData():
                    self._body += bytes(event.data)
                    if event.body_finished:
                        raise Rejected(self._status, self._body)
                case TextMessage():
                    self._text += event.data
                    if event.message_finished:
                        self._packets.append(json.loads(self._text))
                        self._text = ""
                case Ping() if self._answers_pings:
                    self.n_pings += 1
                    self.raw.sendall(self._connection.send(event.response()))
                case CloseConnection():
                    with contextlib.suppress(OSError, LocalProtocolError):  # it is gone already, or we closed first
                        self.raw.sendall(self._connection.send(event.response()))
                    self._packets.append(Closed(event.code, event.reason))


def specifier(name: str = "") -> dict[str, Any]:
    return {"type": "query", "query": {"identifier": name} if name else {}}


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def stack(layer: str = "apiOverride", /, **settings: Any) -> dict[str, Any]:
    """Settings as a client sends them. A double underscore in a name is a dot."""
    fields = [{"key": key.replace("__", "."), "value": value} for key, value in settings.items()]
    return {"layers": [{"layerName": layer, "config": {"fields": fields}}]}


def prediction(text: str | list[dict[str, Any]] = "Hi", name: str = "", **settings: Any) -> dict[str, Any]:
    """The parameter of `predict`; settings without their common beginning."""
    messages = [text_message("user", text)] if isinstance(text, str) else text
    full = {f"llm.prediction.{key.replace('__', '.')}": value for key, value in settings.items()}
    return {
        "modelSpecifier": specifier(name),
        "history": {"messages": messages},
        "predictionConfigStack": stack(**full),
    }


def text_of(messages: list[dict[str, Any]]) -> str:
    return "".join(each["fragment"]["content"] for each in messages if each["type"] == "fragment")
