"""Another server that requests are passed on to: where it is, what is sent to it, what comes back."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from dflash_desktop.base.errors import BadInput
from dflash_desktop.server.access import is_loopback_address, own_names
from dflash_desktop.server.errors import ApiError

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade"}
)
_KEYS = frozenset({"authorization", "x-api-key", "api-key"})
# Ours to say, or of no use to another machine: which page asks is nobody else's business.
_NOT_SENT = (
    _HOP_BY_HOP | _KEYS | {"host", "content-length", "cookie", "origin", "referer", "expect", "forwarded", "via"}
)
_NOT_SENT_STARTS = ("sec-", "x-forwarded-", "access-control-", "proxy-")
_NOT_RETURNED = _HOP_BY_HOP | {"content-length", "set-cookie", "server", "date", "alt-svc", "via", "x-request-id"}
_NOT_RETURNED_STARTS = ("access-control-", "proxy-", "strict-transport-")
_SAFE = "/:@!$&'()*+,;=~-._"


@dataclass(frozen=True, slots=True)
class Upstream:
    """The base address, as the command line gave it, and how long to wait. The key is in no text of this object."""

    scheme: str
    host: str
    port: int
    path: str  # "/v1", without a final slash
    access_token: str = field(default="", repr=False)
    connect_s: float = 10.0
    silence_s: float = 600.0  # connected, and no byte comes
    token: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)  # our name in Via headers

    @property
    def base(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or is_loopback_address(self.host)

    def url(self, path: str, query: str) -> str:
        """Where a request for `path` (`/v1/...`) goes; raise ApiError for one that would leave the base."""
        rest = path.removeprefix("/v1")
        if "\\" in rest or any(part in (".", "..") for part in rest.split("/")):
            raise ApiError("This path is not passed on.", status=404, code="unknown_endpoint")
        return f"{self.base}{quote(rest, safe=_SAFE)}" + (f"?{query}" if query else "")

    def headers(
        self, asked: Iterable[tuple[bytes, bytes]], *, may_pass_key: bool, takes_x_api_key: bool = False
    ) -> Headers:
        """What is sent along: the client's own headers without its address, pages and key.

        The client's key goes on only where we have none for the upstream and ask for none ourselves. Ours goes as a
        bearer token, or with `takes_x_api_key` (Anthropic's routes) in the header in which the client's came.
        """
        sent: Headers = []
        key_header = b"authorization"
        via = [f"1.1 dflash-{self.token}"]
        has_encoding = False
        for raw_name, value in asked:
            name = raw_name.decode("latin-1").lower()
            if name == "via":
                via.insert(0, value.decode("latin-1"))
            has_encoding = has_encoding or name == "accept-encoding"
            if takes_x_api_key and name == "x-api-key":
                key_header = b"x-api-key"
            is_key = name in _KEYS and may_pass_key and not self.access_token
            if is_key or (name not in _NOT_SENT and not name.startswith(_NOT_SENT_STARTS)):
                sent.append((raw_name, value))
        if self.access_token:
            is_bearer = key_header == b"authorization"
            sent.append((key_header, f"{'Bearer ' if is_bearer else ''}{self.access_token}".encode()))
        if not has_encoding:
            sent.append((b"accept-encoding", b"identity"))  # what comes back is passed on as it is
        return [*sent, (b"via", ", ".join(via).encode("latin-1"))]

    def check_loop(self, asked: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise ApiError when the request has come through here already."""
        own = f"dflash-{self.token}".encode()
        if any(name.lower() == b"via" and own in value for name, value in asked):
            raise ApiError(
                "This request came back to the server that sent it: its upstream leads here again. "
                "Start it with the address of the server that has the model.",
                status=508,
                kind="server_error",
                code="upstream_loop",
            )


def returned_headers(answered: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The upstream's headers that the client gets; its request id under another name."""
    kept: Headers = []
    for raw_name, value in answered:
        name = raw_name.decode("latin-1").lower()
        if name == "x-request-id":
            kept.append((b"x-upstream-request-id", value))
        elif name not in _NOT_RETURNED and not name.startswith(_NOT_RETURNED_STARTS):
            kept.append((raw_name.lower(), value))
    return kept


def parse_upstream(text: str, *, access_token: str = "", silence_s: float = 600.0) -> Upstream:
    """The address of `--upstream`; without a path it means `/v1`. Raises BadInput with what to write instead."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise BadInput(f"--upstream: {error}. Give an address such as http://127.0.0.1:8080/v1.") from error
    if parts.username or parts.password:
        raise BadInput(
            "--upstream holds a name or a key. Put the key into a file and name it with --upstream-key-file."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise BadInput("--upstream must be an address such as http://127.0.0.1:8080/v1, without ? and #.")
    port = port if port is not None else 443 if parts.scheme == "https" else 80
    path = parts.path.rstrip("/") or "/v1"
    return Upstream(parts.scheme, parts.hostname, port, path, access_token, silence_s=silence_s)


def read_key(file: Path) -> str:
    """The key in `file`, without the line's end. Raises BadInput, never saying what is in it."""
    try:
        key = file.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise BadInput(
            f"The key file {file} cannot be read: {getattr(error, 'strerror', None) or 'no text'}."
        ) from None
    if not key or not key.isascii() or any(char.isspace() for char in key):
        raise BadInput(f"The key file {file} must hold one key: letters, digits and signs on one line.")
    return key


def refuse_itself(upstream: Upstream, port: int) -> None:
    """Raise BadInput when the upstream is this very server, on `port` of this machine. Asks the resolver."""
    if upstream.port != port:
        return
    try:
        found = socket.getaddrinfo(upstream.host, port, type=socket.SOCK_STREAM)
    except OSError:
        return  # nobody answers to that name now; a request will say so
    mine = own_names()
    for *_, address in found:
        name = str(address[0]).partition("%")[0].lower()
        if name in mine or is_loopback_address(name) or ipaddress.ip_address(name).is_unspecified:
            raise BadInput(
                f"--upstream {upstream.base} is this server itself. Give the address of the server that has the "
                "model, or another --port for this one."
            )
