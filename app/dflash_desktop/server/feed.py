"""The way of engine events from the lane's thread to the server's event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    PairLoaded,
    PairUnloaded,
)

_LAST = (GenerationDone, JobFailed, JobCancelled, PairLoaded, PairUnloaded)


class EventFeed:
    """Events of one job. `put` is a Subscriber: any thread, never blocks, never raises.

    The loop is woken once per batch and not once per event: while nobody takes events, more of them cost it nothing.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._events: deque[Event] = deque()
        self._has_come = asyncio.Event()
        self._is_over = asyncio.Event()
        self._is_signalled = False

    def put(self, event: Event) -> None:
        self._events.append(event)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            if isinstance(event, _LAST):
                self._loop.call_soon_threadsafe(self._is_over.set)
            if not self._is_signalled:
                self._is_signalled = True
                self._loop.call_soon_threadsafe(self._has_come.set)

    async def next(self, timeout_s: float) -> list[Event]:
        """What has come, at least one event; empty after `timeout_s` of silence."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._events:  # a wake-up may be for an event that was taken with the ones before
                    await self._has_come.wait()
                    self._has_come.clear()
                    self._is_signalled = False
        except TimeoutError:
            return []
        events = []
        while self._events:
            events.append(self._events.popleft())
        return events

    async def rest(self, pause_s: float) -> None:
        """Let events gather for a while; the job's last one ends the pause."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._is_over.wait()
