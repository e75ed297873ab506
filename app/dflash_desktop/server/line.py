"""The waiting line before the lane: bounded, and fair between clients and between long and short requests.

One request of ours is with the engine at a time; the others wait here, where their order can still change.
Runs on the server's event loop only: no locks.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from dflash_desktop.server.errors import queue_full

_MAX_SHORT = 2  # so many short requests of a client go in a row while a long one of its own waits


class Turn:
    """A place in the line. `wait` until it is open, then `leave` when the work is done or given up."""

    def __init__(self, line: Line, client: str, *, is_short: bool) -> None:
        self._line = line
        self.client = client
        self.is_short = is_short
        self.is_open = False
        self._opened = asyncio.Event()

    @property
    def n_ahead(self) -> int:
        """Requests that come first if nobody else arrives."""
        return self._line.n_ahead(self)

    async def wait(self, timeout_s: float) -> bool:
        """True once it is this request's turn."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._opened.wait()
        except TimeoutError:
            return False
        return True

    def open(self) -> None:
        self.is_open = True
        self._opened.set()

    def leave(self) -> None:
        self._line.leave(self)


class Line:
    """Round robin over clients; within a client short requests first, a bounded number of times."""

    def __init__(self, n_waiting: int) -> None:
        self._bound = n_waiting
        self._by_client: OrderedDict[str, list[Turn]] = OrderedDict()
        self._n_short: dict[str, int] = {}  # in a row, by client; only of clients that wait
        self._now: Turn | None = None

    @property
    def n_waiting(self) -> int:
        return sum(len(turns) for turns in self._by_client.values())

    @property
    def is_busy(self) -> bool:
        return self._now is not None

    def enter(self, client: str, *, is_short: bool = False) -> Turn:
        """Raise ApiError (queue full) past the bound."""
        if self._now is not None and self.n_waiting >= self._bound:
            raise queue_full(self.n_waiting)
        turn = Turn(self, client, is_short=is_short)
        self._by_client.setdefault(client, []).append(turn)
        self._advance()
        return turn

    def leave(self, turn: Turn) -> None:
        if turn is self._now:
            self._now = None
            self._advance()
            return
        turns = self._by_client.get(turn.client)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._by_client[turn.client]
                self._n_short.pop(turn.client, None)

    def n_ahead(self, turn: Turn) -> int:
        if turn.is_open:
            return 0
        waiting = {client: list(turns) for client, turns in self._by_client.items()}
        n_short = dict(self._n_short)
        n_before = 1 if self._now is not None else 0
        while waiting:
            for client in list(waiting):
                first = _take_next(waiting[client], n_short, client)
                if first is turn:
                    return n_before
                n_before += 1
                if not waiting[client]:
                    del waiting[client]
        return n_before

    def _advance(self) -> None:
        if self._now is not None or not self._by_client:
            return
        client, turns = next(iter(self._by_client.items()))
        turn = _take_next(turns, self._n_short, client)
        del self._by_client[client]
        if turns:
            self._by_client[client] = turns  # to the end: the next client's turn
        else:
            self._n_short.pop(client, None)
        self._now = turn
        turn.open()


def _take_next(turns: list[Turn], n_short: dict[str, int], client: str) -> Turn:
    """The oldest short one, unless enough of them went in a row: then the oldest long one."""
    short = next((turn for turn in turns if turn.is_short), None)
    long = next((turn for turn in turns if not turn.is_short), None)
    takes_short = short is not None and (long is None or n_short.get(client, 0) < _MAX_SHORT)
    turn = short if takes_short else long
    assert turn is not None
    n_short[client] = n_short.get(client, 0) + 1 if turn.is_short else 0
    turns.remove(turn)
    return turn
