"""Who may call: Host, Origin and key, checked before a body is read or any work starts."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.options import ServerOptions

HeaderList = Iterable[tuple[bytes, bytes]]

_LOOPBACK_NAMES = frozenset({"localhost", "host.docker.internal"})
_APP_SCHEMES = ("vscode-webview://", "vscode-file://", "app://", "tauri://")  # no web page can claim these
_ORIGIN = re.compile(r"[a-z][a-z0-9+.\-]*://[^\s/\\?#@\"'<>]*")
_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~\- ,]{0,4096}")
_NAMES_S = 5.0  # this machine's own names are looked up at most this often
_OPEN_PATHS = frozenset({"/", "/health", "/lmstudio-greeting"})
_LISTINGS = re.compile(
    r"/(v1/models|models|api/v0/models|api/v1/models)(/.*)?|/api/(tags|version|ps)",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """What the headers say about the one who calls."""

    host: str | None  # None: none, empty or several
    origins: tuple[str, ...]
    keys: tuple[str, ...]
    is_cross_site: bool  # the browser says that another site's page caused this request
    is_loopback: bool

    @staticmethod
    def read(headers: HeaderList, peer: str | None) -> Caller:
        hosts: list[str] = []
        origins: list[str] = []
        keys: list[str] = []
        is_cross_site = False
        for name, raw in headers:
            value = raw.decode("latin-1").strip()
            match name.lower():
                case b"host":
                    hosts.append(value)
                case b"origin":
                    origins.append(value)
                case b"authorization":
                    scheme, _, key = value.partition(" ")
                    if scheme.lower() == "bearer":
                        keys.append(key.strip())
                case b"x-api-key" | b"api-key":
                    keys.append(value)
                case b"sec-fetch-site":
                    is_cross_site = value.lower() not in {"same-origin", "none"}
        host = hosts[0] if len(hosts) == 1 and hosts[0] else None
        return Caller(host, tuple(origins), tuple(keys), is_cross_site, is_loopback_address(peer))


class Gate:
    """Who may call, by Host, Origin and key, for one set of options."""

    def __init__(self, options: ServerOptions, lan_names: frozenset[str] | None = None) -> None:
        self._options = options
        self._needs_key = bool(options.access_token)
        self._key = options.access_token.encode()
        self._names = frozenset(name.lower().rstrip(".") for name in options.allowed_hosts) | _LOOPBACK_NAMES
        self._own_names = lan_names or frozenset()
        self._own_names_at_s = float("inf") if lan_names is not None else 0.0
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allowed_origins)

    def check_host(self, caller: Caller) -> None:
        if caller.host is None or not self._is_known_host(caller.host):
            raise ApiError(
                "This address is not one of the server's names. `dflash-desktop serve --allow-host NAME` adds one.",
                status=403,
                kind="permission_error",
                code="host_not_allowed",
            )

    def check_origin(self, caller: Caller) -> None:
        if caller.origins:
            if self.allowed_origin(caller) is not None:
                return
        elif not caller.is_cross_site:
            return
        raise ApiError(
            "Web pages from this origin may not use the server. Add it in the window under Serve > Access > "
            "Web pages, or with `dflash-desktop serve --cors ORIGIN`.",
            status=403,
            kind="permission_error",
            code="origin_not_allowed",
        )

    def check_key(self, caller: Caller, *, method: str, path: str) -> None:
        """Compare every key sent, in constant time; any match is fine."""
        if not self._needs_key or (method in {"GET", "HEAD"} and path in _OPEN_PATHS):
            return
        matches = [hmac.compare_digest(key.encode("latin-1"), self._key) for key in caller.keys]
        if any(matches):
            return
        is_listing = method in {"GET", "HEAD"} and _LISTINGS.fullmatch(path) is not None
        if is_listing and caller.is_loopback and not self._options.needs_key_here:
            return
        raise ApiError(
            "The key is missing or wrong. Copy it in the window under Serve > Access, or ask who started the server.",
            status=401,
            kind="authentication_error",
            code="invalid_api_key",
        )

    def allowed_origin(self, caller: Caller) -> str | None:
        """The origin to answer with in CORS headers, or None."""
        if len(caller.origins) != 1:
            return None
        origin = caller.origins[0]
        folded = origin.lower()
        if folded == "null":
            return origin if self._options.has_any_origin or "null" in self._origins else None
        if _ORIGIN.fullmatch(folded) is None:
            return None
        if self._options.has_any_origin or folded in self._origins:
            return origin
        if folded.startswith(_APP_SCHEMES):
            return origin
        scheme, _, authority = folded.partition("://")
        if scheme in {"http", "https"} and _is_own_loopback(host_name(authority)):
            return origin
        return None

    def _is_known_host(self, host: str) -> bool:
        name = host_name(host.lower())
        if name is None:
            return False
        if name in self._names or _is_own_loopback(name):
            return True
        if not self._options.is_lan:
            return False
        now_s = time.monotonic()
        if name not in self._own_names and now_s - self._own_names_at_s > _NAMES_S:
            self._own_names, self._own_names_at_s = own_names(), now_s  # the network may have changed
        return name in self._own_names


def host_name(authority: str) -> str | None:
    """`name[:port]` without the port and the final dot; None if it is neither a name nor an address."""
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9_.\-]*[a-z0-9_])?\.?)(?::\d{1,5})?", authority)
    if match is None:
        return None
    return match.group(1).strip("[]").rstrip(".")


def is_loopback_address(address: str | None) -> bool:
    if address is None:
        return False
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)


def _is_own_loopback(name: str | None) -> bool:
    return name is not None and (name == "localhost" or is_loopback_address(name))


def own_names() -> frozenset[str]:
    """This machine's host names and addresses, lower case, without brackets."""
    host = socket.gethostname().lower()
    names = {host, f"{host}.local", host.partition(".")[0]}
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family in {socket.AF_INET, socket.AF_INET6}:
                names.add(address.address.partition("%")[0].lower())
    return frozenset(name for name in names if name)


def cors_headers(origin: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"request-id, x-request-id, retry-after"),
        (b"vary", b"Origin"),
    ]


def preflight_headers(origin: str, *, asked_headers: str, is_private_asked: bool) -> list[tuple[bytes, bytes]]:
    """The answer to a preflight: exact origin, echo of the asked headers."""
    headers = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"vary", b"Origin"),
        (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
        (b"access-control-max-age", b"600"),
    ]
    if asked_headers and _HEADER_NAMES.fullmatch(asked_headers):
        headers.append((b"access-control-allow-headers", asked_headers.encode("latin-1")))
    if is_private_asked:
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers
