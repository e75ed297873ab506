"""Our own listening sockets: both loopbacks or every address, and who holds a port that is taken."""

from __future__ import annotations

import errno
import http.client
import json
import socket
import sys
from dataclasses import dataclass
from typing import Literal

import psutil

_PROBE_S = 0.4
_BACKLOG = 128

OwnerKind = Literal["dflash", "lm_studio", "ollama", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class PortOwner:
    """The program that holds a port, as far as the system and the program itself tell."""

    kind: OwnerKind
    program: str | None
    process_id: int | None

    def __str__(self) -> str:
        names = {"dflash": "DFlash Desktop", "lm_studio": "LM Studio", "ollama": "Ollama"}
        name = names.get(self.kind) or self.program or "another program"
        detail = [self.program] if self.program and self.program != name else []
        if self.process_id is not None:
            detail.append(f"process {self.process_id}")
        return f"{name} ({', '.join(detail)})" if detail else name


class ListenFailed(Exception):
    """The sockets could not be opened. The text is for the person."""

    def __init__(self, message: str, *, port: int, owner: PortOwner | None, free_port: int | None) -> None:
        super().__init__(message)
        self.port = port
        self.owner = owner
        self.free_port = free_port


def listen(port: int, *, is_lan: bool) -> list[socket.socket]:
    """Listening sockets on IPv4 and, where the machine has it, IPv6; all or none.

    Port 0 takes any free one, the same for both. Raise ListenFailed naming the owner of a taken port.
    """
    if port:
        _refuse_if_answered(port)
    hosts = [(socket.AF_INET, "0.0.0.0" if is_lan else "127.0.0.1")]
    if has_ipv6():
        hosts.append((socket.AF_INET6, "::" if is_lan else "::1"))
    for _ in range(20):
        opened: list[socket.socket] = []
        try:
            for family, host in hosts:
                chosen = opened[0].getsockname()[1] if opened else port
                opened.append(_open(family, host, chosen))
            return opened
        except OSError as error:
            for sock in opened:
                sock.close()
            if port == 0 and error.errno == errno.EADDRINUSE:
                continue  # free on one family only: draw again
            raise _failure(port, host, error) from error
    raise ListenFailed("No port is free on both loopback addresses.", port=0, owner=None, free_port=None)


def addresses(sockets: list[socket.socket]) -> tuple[str, ...]:
    """`http://...` of each socket, IPv4 first."""
    found = []
    for sock in sockets:
        host, port = sock.getsockname()[:2]
        found.append(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    return tuple(found)


def _open(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # The protocol is named because asyncio switches Nagle's algorithm off only where it is; without that each
    # answer in two writes would wait 40 ms for the other side's delayed acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform == "win32":
            # Otherwise a second program may bind the same port and steal localhost traffic.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


def _refuse_if_answered(port: int) -> None:
    """Some systems let two programs bind one port on different addresses; asking first finds them."""
    for host in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((host, port), timeout=_PROBE_S).close()
        except OSError:
            continue
        raise _taken(port, host)


def _failure(port: int, host: str, error: OSError) -> ListenFailed:
    if error.errno == errno.EADDRINUSE:
        return _taken(port, host)
    if error.errno in {errno.EACCES, errno.EPERM}:
        text = f"The system does not let this app listen on port {port}. Choose one above 1023."
        return ListenFailed(text, port=port, owner=None, free_port=free_port(1235))
    text = f"Could not listen on {host}, port {port}: {error.strerror or error}."
    return ListenFailed(text, port=port, owner=None, free_port=None)


def _taken(port: int, host: str) -> ListenFailed:
    owner = port_owner(port, host)
    other = free_port(port + 1)
    advice = f" Stop it, or use port {other}." if other else " Stop it, or choose another port."
    text = f"Port {port} is in use by {owner}.{advice}"
    return ListenFailed(text, port=port, owner=owner, free_port=other)


def free_port(first: int, *, n_tries: int = 50) -> int | None:
    """The first port from `first` on that is free on every loopback address."""
    for port in range(first, min(first + n_tries, 65536)):
        opened: list[socket.socket] = []
        try:
            opened.append(_open(socket.AF_INET, "127.0.0.1", port))
            if has_ipv6():
                opened.append(_open(socket.AF_INET6, "::1", port))
            return port
        except OSError:
            continue
        finally:
            for sock in opened:
                sock.close()
    return None


def port_owner(port: int, host: str = "127.0.0.1") -> PortOwner:
    """Ask the system for the process and the port itself for what it serves."""
    process_id, program = _process_on(port)
    return PortOwner(_kind_of(host, port), program, process_id)


def _process_on(port: int) -> tuple[int | None, str | None]:
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None, None  # macOS asks for more rights than we have
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or connection.laddr[1:] != (port,) or connection.pid is None:
            continue
        try:
            return connection.pid, psutil.Process(connection.pid).name()
        except psutil.Error:
            return connection.pid, None
    return None, None


def _kind_of(host: str, port: int) -> OwnerKind:
    root = _ask(host, port, "/")
    if root is None:
        return "unknown"
    if root.startswith("DFlash Desktop"):
        return "dflash"
    if root.startswith("Ollama is running"):
        return "ollama"
    greeting = _ask(host, port, "/lmstudio-greeting") or ""
    try:
        is_lm_studio = json.loads(greeting).get("lmstudio") is True
    except (ValueError, AttributeError):
        is_lm_studio = False
    return "lm_studio" if is_lm_studio else "other"


def _ask(host: str, port: int, path: str) -> str | None:
    """The first bytes of an answer to GET `path`; None without an HTTP answer."""
    connection = http.client.HTTPConnection(host, port, timeout=_PROBE_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read(2048).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
