"""Ports that nobody else takes meanwhile."""

from __future__ import annotations

import errno
import itertools
import os
import socket

_FIRST, _N = 20_000, 12_000
"""Below what systems give to those who ask for any: a free port from there may be another program's a moment later."""

_counter = itertools.count()


def free_port() -> int:
    """A free port, and another one at each call; processes that run side by side begin in different places."""
    while True:
        port = _FIRST + (os.getpid() * 97 + next(_counter)) % _N
        if not _is_taken(socket.AF_INET, "127.0.0.1", port) and not _is_taken(socket.AF_INET6, "::1", port):
            return port


def _is_taken(family: socket.AddressFamily, host: str, port: int) -> bool:
    try:
        with socket.socket(family) as probe:
            probe.bind((host, port))
    except OSError as error:  # or the machine has no such addresses
        return error.errno in (errno.EADDRINUSE, errno.EACCES)
    return False
