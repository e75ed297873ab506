"""One file from the hub to the disk: goes on where it was, by itself, until its hash is right.

`hf_hub_download` of huggingface_hub 2.4 begins anew after every interruption (its partial file has a random name and
is deleted on failure), so the bytes are fetched here, over its own HTTP client. Drop this when it resumes.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from dflash_desktop import __version__
from dflash_desktop.hub.abort import Abort, watching
from dflash_desktop.hub.failures import problem_of, status_problem
from dflash_desktop.hub.models_folder import FileRecord
from dflash_desktop.hub.part_file import BLOCK_BYTES, HashKind, PartFile, hash_file
from dflash_desktop.hub.problems import PASSING, HubProblem, ProblemKind
from dflash_desktop.hub.wanted import key_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2
    from huggingface_hub.file_download import HfFileMetadata

    from dflash_desktop.hub.models_folder import ModelsFolder
    from dflash_desktop.hub.network import Network
    from dflash_desktop.hub.wanted import WantedFile

log = logging.getLogger(__name__)
USER_AGENT = f"dflash-desktop/{__version__}"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_MOST_RANGE_REFUSALS = 3
"""After so many answers that begin at 0 we read over what we have: the server cannot do better."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient a download is. Seconds and bytes."""

    block_bytes: int = BLOCK_BYTES
    retry_s: tuple[float, ...] = (1, 2, 5, 10, 30, 60)  # between tries without progress; the last one for ever
    stall_retry_s: float = 5
    watch_disk_s: float = 5  # how often a full disk or an absent drive is looked at
    slow_s: float = 30  # a connection that brings less than `slow_bytes` in this time is taken for dead
    slow_bytes: int = 8192
    reserve_bytes: int = 256 * 2**20  # room that is left on the disk


DEFAULT_PACE = Pace()


class Watcher(Protocol):
    """Who wants to know how a transfer goes. Called on its thread; must be quick."""

    def on_connecting(self) -> None: ...

    def on_reached(self, n_bytes: int) -> None:
        """So many bytes of the file are on the disk, as a look at it says."""
        ...

    def on_received(self, n_bytes: int) -> None:
        """Bytes that came over the network and are on the disk."""
        ...

    def on_checking(self, n_bytes: int) -> None:
        """Bytes that were read back from the disk."""
        ...

    def on_problem(self, problem: HubProblem, retry_in_s: float) -> None: ...


class Transfer:
    """Run once, on one thread."""

    def __init__(
        self, network: Network, folder: ModelsFolder, file: WantedFile, watcher: Watcher, pace: Pace = DEFAULT_PACE
    ) -> None:
        self._network = network
        self._folder = folder
        self._file = file
        self._watcher = watcher
        self._pace = pace
        self._needs_token = False
        self._is_described = False
        self._n_range_refusals = 0
        self.n_received_bytes = 0  # over the network, counted as they came

    def run(self, abort: Abort) -> None:
        """Return when the file is in its place. Raises Aborted, or HubProblem for what does not pass by itself."""
        with watching(abort):
            self._keep_trying(abort, PASSING, lambda: self._run_locked(abort))
        log.info("fetched %s: %d bytes came over the network", self._file.name, self.n_received_bytes)

    def _keep_trying(self, abort: Abort, kinds: frozenset[ProblemKind], step: Callable[[], object]) -> None:
        n_failures = 0
        while True:
            n_before = self.n_received_bytes
            try:
                step()
                return
            except HubProblem as problem:
                abort.check()
                if problem.kind not in kinds:
                    raise
                n_failures = 1 if self.n_received_bytes > n_before else n_failures + 1
                wait_s = self._wait_s(problem, n_failures)
                log.info("%s: %s; next try in %.0f s", self._file.name, problem, wait_s)
                self._watcher.on_problem(problem, wait_s)
                abort.wait(wait_s)

    def _wait_s(self, problem: HubProblem, n_failures: int) -> float:
        pace = self._pace
        if problem.kind in ("disk_full", "folder_missing", "busy"):
            return pace.watch_disk_s
        wait_s = pace.retry_s[min(n_failures, len(pace.retry_s)) - 1]
        if problem.kind == "stalled":
            wait_s = max(wait_s, pace.stall_retry_s)
        return max(wait_s, problem.retry_after_s or 0)

    def _run_locked(self, abort: Abort) -> None:
        self._folder.prepare()
        path = self._folder.destination(self._file)
        with self._folder.writing(path):
            if self._folder.is_ready(path, self._file):  # another program was quicker
                self._watcher.on_reached(self._file.n_bytes)
                return
            self._describe()
            file = self._file
            identity = file.sha256 or file.git_sha1 or f"{file.repo_id} {file.revision} {file.name}"
            part = PartFile(path, file.n_bytes, identity, block_bytes=self._pace.block_bytes)
            if not part.path.exists() and self._adopt(path, abort):
                return
            try:
                part.open(abort, self._watcher.on_checking)
                self._watcher.on_reached(part.n_done_bytes)
                self._keep_trying(abort, frozenset({"disk_full"}), lambda: self._check_room(part))
                self._fetch_all(part, abort)
                self._check_hash(part, abort)
                part.finish()
            finally:
                part.close()
            self._folder.write_record(path, _record(file, part.digests, self._pace.block_bytes))

    def _adopt(self, path: Path, abort: Abort) -> bool:
        """Take a file that lies there already: one that was finished just before a crash, or a copy of the person's."""
        file = self._file
        try:
            if path.stat().st_size != file.n_bytes:
                return False
            kind, wanted = _hash_of(file)
            found, digests = hash_file(path, kind, self._pace.block_bytes, abort, self._watcher.on_checking)
        except OSError:
            return False
        if found != wanted:
            return False
        self._folder.write_record(path, _record(file, digests, self._pace.block_bytes))
        self._watcher.on_reached(file.n_bytes)
        return True

    def _check_room(self, part: PartFile) -> None:
        needed = self._file.n_bytes - part.n_done_bytes
        free = self._folder.free_bytes()
        if needed and free < needed + self._pace.reserve_bytes:
            raise HubProblem("disk_full", where=str(self._folder.path), needed_bytes=needed, free_bytes=free)

    # ---- the network

    def _describe(self) -> None:
        """Ask what the file is now: its size and hash have to be those that the person agreed to."""
        if self._is_described:
            return
        self._watcher.on_connecting()
        file, found = self._file, self._metadata()
        if not found.etag or found.size is None:
            raise HubProblem("not_a_hub", where=self._network.host)
        is_sha256, is_sha1 = (bool(re.fullmatch(pattern, found.etag)) for pattern in ("[0-9a-f]{64}", "[0-9a-f]{40}"))
        if file.n_bytes not in (0, found.size) or (is_sha256 and file.sha256 not in ("", found.etag)):
            raise HubProblem("changed", where=key_of(file))
        if not (file.sha256 or file.git_sha1):
            file = structs.replace(
                file, sha256=found.etag if is_sha256 else "", git_sha1=found.etag if is_sha1 and not is_sha256 else ""
            )
        self._file = structs.replace(file, n_bytes=found.size, revision=found.commit_hash or file.revision)
        self._is_described = True

    def _metadata(self) -> HfFileMetadata:
        from huggingface_hub import get_hf_file_metadata

        self._network.session()
        while True:
            try:
                return get_hf_file_metadata(
                    self._url(),
                    token=self._token() or False,
                    timeout=self._network.limits.silence_s,
                    endpoint=self._network.endpoint,
                )
            except Exception as error:
                problem = problem_of(error, key_of(self._file))
                if isinstance(problem, HubProblem) and problem.kind == "token_needed" and self._network.token():
                    if not self._needs_token:
                        self._needs_token = True
                        continue
                raise problem from error

    def _url(self) -> str:
        from huggingface_hub import hf_hub_url

        file = self._file
        return hf_hub_url(file.repo_id, file.name, revision=file.revision, endpoint=self._network.endpoint)

    def _token(self) -> str | None:
        """The access token where the file needs it and the host may see it."""
        return self._network.token() if self._needs_token else None

    def _fetch_all(self, part: PartFile, abort: Abort) -> None:
        while part.gap() is not None:
            self._keep_trying(abort, PASSING - {"folder_missing", "busy"}, lambda: self._fetch_gap(part, abort))

    def _fetch_gap(self, part: PartFile, abort: Abort) -> None:
        gap = part.gap()
        if gap is None:
            return
        abort.check()
        self._watcher.on_connecting()
        headers = {"Range": f"bytes={gap[0]}-{gap[1] - 1}", "Accept-Encoding": "identity", "User-Agent": USER_AGENT}
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        try:
            with self._network.session().stream("GET", self._url(), headers=headers) as response:
                self._read(response, part, gap, abort)
        except Exception as error:
            abort.check()  # a connection that was shut down to stop us
            problem = problem_of(error, self._network.host)
            if isinstance(problem, HubProblem) and problem.kind == "disk_full":
                problem.needed_bytes = self._file.n_bytes - part.n_done_bytes
                problem.free_bytes = self._folder.free_bytes()
            raise problem from error

    def _read(self, response: httpx2.Response, part: PartFile, gap: tuple[int, int], abort: Abort) -> None:
        n_skipped = self._check_answer(response, gap)
        left = gap[1] - gap[0]
        window_begin, window_bytes = time.monotonic(), 0
        for piece in response.iter_raw():
            abort.check()
            self.n_received_bytes += len(piece)
            window_bytes += len(piece)
            if n_skipped:  # a server that cannot begin in the middle
                piece, n_skipped = piece[n_skipped:], max(0, n_skipped - len(piece))
            wanted = piece[:left]
            part.write(wanted)
            self._watcher.on_received(len(wanted))
            left -= len(wanted)
            if left == 0:
                return
            now = time.monotonic()
            if now - window_begin > self._pace.slow_s:
                if window_bytes < self._pace.slow_bytes:
                    raise HubProblem("stalled", where=self._network.host)
                window_begin, window_bytes = now, 0
        raise HubProblem("unreachable", "the connection ended early", where=self._network.host)

    def _check_answer(self, response: httpx2.Response, gap: tuple[int, int]) -> int:
        """How many bytes of the answer come before the gap. Raises HubProblem for an answer that is no such file."""
        file, host = self._file, self._network.host
        if response.status_code == 416:
            raise HubProblem("changed", "shorter than it was", where=key_of(file))
        if response.status_code not in (200, 206):
            raise status_problem(response, key_of(file) if response.status_code < 429 else host)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise HubProblem("server_error", "sends the file encoded", where=host)
        linked = response.history[0].headers.get("X-Linked-Etag", "") if response.history else ""
        if file.sha256 and linked and linked.strip('"') != file.sha256:
            raise HubProblem("changed", where=key_of(file))
        if response.status_code == 206:
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != gap[0]:
                raise HubProblem("server_error", "answers with other bytes than were asked for", where=host)
            if found[3] not in ("*", str(file.n_bytes)):
                raise HubProblem("changed", "another size", where=key_of(file))
            return 0
        n_bytes = response.headers.get("Content-Length", str(file.n_bytes))
        if response.headers.get("Content-Type", "").startswith("text/html") or n_bytes != str(file.n_bytes):
            raise HubProblem("not_a_hub", where=host)
        if gap[0]:
            self._n_range_refusals += 1
            if self._n_range_refusals <= _MOST_RANGE_REFUSALS:
                raise HubProblem("server_error", "begins at the start again", where=host)
        return gap[0]

    # ---- the end

    def _check_hash(self, part: PartFile, abort: Abort) -> None:
        """Return when the bytes on the disk are the hub's. What is wrong is fetched again: blocks, then everything."""
        file = self._file
        kind, wanted = _hash_of(file)
        was_fetched_anew = False
        while part.check_hash(kind, abort, self._watcher.on_checking) != wanted:
            if part.drop_bad_blocks(abort):
                log.warning("%s: blocks on the disk differ from what was received", file.name)
            elif was_fetched_anew:
                part.drop_all()
                self._watcher.on_reached(part.n_done_bytes)
                raise HubProblem("corrupt", where=key_of(file))
            else:
                log.warning("%s: what was received is not what the hub announced", file.name)
                part.drop_all()
                was_fetched_anew = True
            self._watcher.on_reached(part.n_done_bytes)
            self._fetch_all(part, abort)


def _hash_of(file: WantedFile) -> tuple[HashKind, str]:
    return ("sha256", file.sha256) if file.sha256 else ("git_sha1", file.git_sha1)


def _record(file: WantedFile, digests: tuple[str, ...], block_bytes: int) -> FileRecord:
    return FileRecord(
        repo_id=file.repo_id,
        revision=file.revision,
        name=file.name,
        n_bytes=file.n_bytes,
        sha256=file.sha256,
        git_sha1=file.git_sha1,
        block_bytes=block_bytes,
        digests=digests,
    )
