"""A hub on this machine: the paths, headers and redirects of the real one, and every fault that a network has.

Files live in `Hub.files`. A large file is answered with a redirect to another host (here: another port), as the real
hub does; what goes wrong there is said by `Hub.faults`, one per request in order, then none.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 16 * 1024
LFS_BYTES = 1000
"""Larger files are "LFS": sha256 as ETag, content behind a redirect."""


@dataclass
class Fault:
    """What is wrong with one answer for content. The default: nothing."""

    status: int = 0  # answered instead of the content
    headers: dict[str, str] = field(default_factory=dict)  # of that answer
    cut_after: int | None = None  # bytes, then the connection is closed
    silent_after: int | None = None  # bytes, then nothing comes until the client or the hub gives up
    drip_s: float = 0.0  # wait after each piece
    piece: int = PIECE
    flip_at: int | None = None  # this byte of the file is sent wrong
    ignores_range: bool = False  # 200 and the whole file
    wrong_range: bool = False  # 206 with bytes from elsewhere
    html: bool = False  # a sign-in page with status 200
    gzip_header: bool = False


@dataclass(frozen=True)
class Asked:
    """One request, for tests to judge."""

    method: str
    path: str
    begin: int | None  # of the Range header
    authorization: str


@dataclass
class HubFile:
    content: bytes
    announced_sha256: str = ""  # "" : the true one
    announced_bytes: int | None = None

    @property
    def is_lfs(self) -> bool:
        return len(self.content) > LFS_BYTES

    @property
    def sha256(self) -> str:
        return self.announced_sha256 or hashlib.sha256(self.content).hexdigest()

    @property
    def git_sha1(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_lfs else self.git_sha1

    @property
    def n_bytes(self) -> int:
        return len(self.content) if self.announced_bytes is None else self.announced_bytes


class Hub:
    """Use with `with`. `url` is its endpoint."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, HubFile]] = {}  # repository -> name -> file
        self.gated: set[str] = set()
        self.token = "hf_right"
        self.has_accepted_terms = True
        self.licences: dict[str, str] = {}
        self.faults: list[Fault] = []  # of answers with content
        self.head_faults: list[Fault] = []  # of HEAD requests and of the API
        self.asked: list[Asked] = []
        self.served: list[tuple[int, int]] = []  # [begin, end) of content that was handed to the system to send
        self.is_closing = threading.Event()
        self.silent_at: int | None = None  # the byte of the file at which the last answer fell silent
        self.on_content: Callable[[int], None] = lambda _begin: None  # called when content is asked for
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self._servers = [_Server(("127.0.0.1", 0), Handler) for _ in range(2)]
        self._threads = [
            threading.Thread(target=server.serve_forever, args=(0.02,), name="stand-in hub") for server in self._servers
        ]
        self.url, self.cdn_url = (f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closing.set()
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            server.server_close()  # joins the threads of requests
            thread.join()

    def add(self, repo_id: str, name: str, content: bytes, **announced: Any) -> HubFile:
        file = HubFile(content, **announced)
        self.files.setdefault(repo_id, {})[name] = file
        return file

    def begins(self) -> list[int]:
        """Where each request for content began."""
        return [asked.begin or 0 for asked in self.asked if asked.method == "GET" and "/cdn/" in asked.path]


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what these tests are about; anything else is a fault of this hub."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        found = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        begin = int(found[1]) if found else None
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(Asked(self.command, path, begin, self.headers.get("Authorization", "")))
        try:
            if path.startswith("/api/models"):
                self._api(path.removeprefix("/api/models").strip("/"))
            elif path.startswith("/cdn/"):
                repo_id, _, name = path.removeprefix("/cdn/").partition("/resolve/")
                self._content(self.hub.files[repo_id][name], begin)
            else:
                self._resolve(path.strip("/"), begin)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    # ---- the API

    def _api(self, rest: str) -> None:
        hub = self.hub
        if self._fails_at_once(hub.head_faults):
            return
        if not rest:
            words = parse_qs(urlsplit(self.path).query).get("search", [""])[0].lower()
            self._json([self._info(repo_id, with_files=False) for repo_id in hub.files if words in repo_id.lower()])
            return
        repo_id = rest.partition("/revision/")[0]
        if repo_id not in hub.files:
            self._refuse(404, "RepoNotFound")
            return
        self._json(self._info(repo_id, with_files=True))

    def _info(self, repo_id: str, *, with_files: bool) -> dict[str, Any]:
        licence = self.hub.licences.get(repo_id, "apache-2.0")
        info: dict[str, Any] = {
            "id": repo_id,
            "modelId": repo_id,
            "sha": COMMIT,
            "gated": "auto" if repo_id in self.hub.gated else False,
            "private": False,
            "downloads": 1234,
            "tags": ["gguf", f"license:{licence}"],
            "cardData": {"license": licence},
        }
        if with_files:
            info["siblings"] = [
                {
                    "rfilename": name,
                    "size": file.n_bytes,
                    "blobId": file.git_sha1,
                    **({"lfs": {"sha256": file.sha256, "size": file.n_bytes, "pointerSize": 1}} if file.is_lfs else {}),
                }
                for name, file in self.hub.files[repo_id].items()
            ]
        return info

    # ---- files

    def _resolve(self, path: str, begin: int | None) -> None:
        hub = self.hub
        repo_id, _, rest = path.partition("/resolve/")
        _revision, _, name = rest.partition("/")
        file = hub.files.get(repo_id, {}).get(name)
        if self.command == "HEAD" and self._fails_at_once(hub.head_faults):
            return
        if repo_id not in hub.files:
            self._refuse(404, "RepoNotFound")
            return
        if file is None:
            self._refuse(404, "EntryNotFound")
            return
        if repo_id in hub.gated and not self._may_read():
            return
        headers = {"X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if file.is_lfs:
            headers |= {"X-Linked-Etag": f'"{file.etag}"', "X-Linked-Size": str(file.n_bytes)}
            headers |= {"Location": f"{hub.cdn_url}/cdn/{quote(repo_id)}/resolve/{quote(name)}", "Content-Length": "0"}
            self._send_head(302, headers)
        elif self.command == "HEAD":
            self._send_head(200, headers | {"ETag": f'"{file.etag}"', "Content-Length": str(file.n_bytes)})
        else:
            self._content(file, begin)

    def _may_read(self) -> bool:
        said = self.headers.get("Authorization", "")
        if said == f"Bearer {self.hub.token}":
            if self.hub.has_accepted_terms:
                return True
            self._refuse(403, "GatedRepo")
        elif said:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        else:
            self._refuse(401, "GatedRepo", "Access to this model is restricted")
        return False

    def _content(self, file: HubFile, begin: int | None) -> None:
        hub = self.hub
        hub.on_content(begin or 0)
        fault = hub.faults.pop(0) if hub.faults else Fault()
        content = file.content
        if fault.status:
            self._send_head(fault.status, {"Content-Length": "0", **fault.headers})
            return
        if fault.html:
            self._page()
            return
        if begin is not None and begin >= len(content):
            self._send_head(416, {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"})
            return
        if fault.flip_at is not None:
            changed = bytearray(content)
            changed[fault.flip_at] ^= 0x55
            content = bytes(changed)
        headers = {"ETag": '"of-the-cdn"', "Accept-Ranges": "bytes"}
        if fault.gzip_header:
            headers["Content-Encoding"] = "gzip"
        start, end = 0, len(content)
        status = 200
        if begin is not None and not fault.ignores_range:
            asked = re.match(r"bytes=(\d+)-(\d*)", self.headers["Range"])
            assert asked is not None
            start, end = begin, min(len(content), int(asked[2]) + 1 if asked[2] else len(content))
            status = 206
            shown = start + 1 if fault.wrong_range else start
            headers["Content-Range"] = f"bytes {shown}-{end - 1}/{len(content)}"
        headers["Content-Length"] = str(end - start)
        self._send_head(status, headers)
        if self.command != "HEAD":
            self._send(content, start, end, fault)

    def _send(self, content: bytes, start: int, end: int, fault: Fault) -> None:
        at = start
        try:
            while at < end and not self.hub.is_closing.is_set():
                stop = min(end, at + fault.piece)
                for limit in (fault.cut_after, fault.silent_after):
                    if limit is not None:
                        stop = min(stop, start + limit)
                self.wfile.write(content[at:stop])
                at = stop
                if at < end and fault.silent_after is not None and at - start >= fault.silent_after:
                    self.hub.silent_at = at
                    self._wait_until_gone()
                    break
                if at < end and fault.cut_after is not None and at - start >= fault.cut_after:
                    break
                if fault.drip_s:
                    time.sleep(fault.drip_s)
        finally:
            self.hub.served.append((start, at))
            if at < end:
                self.close_connection = True

    # ---- faults

    def _fails_at_once(self, faults: list[Fault]) -> bool:
        fault = faults.pop(0) if faults else Fault()
        if fault.silent_after is not None:
            self._wait_until_gone()
            self.close_connection = True
            return True
        if fault.html:
            self._page()
            return True
        if fault.status:
            self._send_head(fault.status, {"Content-Length": "0", **fault.headers})
            return True
        return False

    def _wait_until_gone(self) -> None:
        """Silent, with the socket open, until the client closes it."""
        self.connection.settimeout(0.02)
        while not self.hub.is_closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _page(self) -> None:
        page = b"<html><body>Welcome to the hotel. Please sign in.</body></html>"
        self._send_head(200, {"Content-Type": "text/html", "Content-Length": str(len(page))})
        if self.command != "HEAD":
            self.wfile.write(page)

    def _refuse(self, status: int, code: str, message: str = "") -> None:
        headers = {"Content-Length": "0"}
        if code:
            headers["X-Error-Code"] = code
        if message:
            headers["X-Error-Message"] = message
        self._send_head(status, headers)

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self._send_head(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
