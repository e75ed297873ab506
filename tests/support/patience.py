"""How long tests wait for what has to come, on a machine that is slow, busy with other things, or stands still.

A wait ends as soon as its condition holds, so a generous limit costs nothing. What a person was promised in seconds is
measured where nothing else runs: `pytest -m slow`, with one process.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

LONG_S = 300.0
LONG_MS = 300_000
NEVER_S = 3600.0
"""For a limit of the program's own that is not to be reached while a test waits."""


def in_time(promise_s: float, *, at_all_s: float = LONG_S) -> pytest.MarkDecorator:
    """Run the test with `within_s`: such that only what never comes is late, and, as a slow test, with the promise."""
    return pytest.mark.parametrize(
        "within_s", [pytest.param(at_all_s, id="at all"), pytest.param(promise_s, id="in time", marks=pytest.mark.slow)]
    )


def until(condition: Callable[[], object], what: str, *, within_s: float = LONG_S) -> None:
    """Wait for `condition`; `what` is said when it never comes."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)


def received(sock: socket.socket) -> bytes:
    """The next bytes. Fails where the other side has closed: whoever looked for more would look for ever."""
    data = sock.recv(65536)
    assert data, "the other side has closed"
    return data
