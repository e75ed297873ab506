"""The other end of a socket as calls see it: who it is, what it may, and its channels."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from dflash_desktop.server.inspector import Meta, client_of


@dataclass(slots=True)
class Wishes:
    """What a client said once for all that follows on its socket."""

    idle_unload_s: float | None = None  # of its last load


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `may_only_list`: it showed no key, and its address may list models without one."""

    path: str
    peer: str
    user_agent: str
    wishes: Wishes = field(default_factory=Wishes)
    may_only_list: bool = False
    request_id: str = ""

    def asking(self) -> Caller:
        """The same with an id for one request."""
        return replace(self, request_id=f"req_{secrets.token_hex(12)}")

    def meta(self, first_words: str = "") -> Meta:
        client = client_of(self.user_agent, self.path, first_words)
        return Meta(self.request_id, client, self.user_agent, self.path, self.peer)


class Channel:
    """A stream of packets to the client, which it may cancel. `send` raises ClientGone when nobody is there."""

    def __init__(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self._send = send
        self._left = asyncio.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._left.is_set()

    def cancel(self) -> None:
        self._left.set()

    async def send(self, message: dict[str, Any]) -> None:
        await self._send(message)

    async def receive(self) -> MutableMapping[str, Any]:
        """As in ASGI: returns when the client wants no more of it."""
        await self._left.wait()
        return {"type": "http.disconnect"}
