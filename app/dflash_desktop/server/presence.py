"""Whether the client is still there: work for one that left ends at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
T = TypeVar("T")


class ClientGone(Exception):
    """Nobody waits for this answer any more."""


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """The result of `work`; raise ClientGone, after ending it, when the client disconnects first."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        for each in (task, watch):
            each.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
