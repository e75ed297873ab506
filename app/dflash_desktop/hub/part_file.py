"""A file while it arrives: its bytes, and a log of what arrived that a crash cannot turn into a lie.

`NAME.part` holds the bytes at their final places. `NAME.part.log` has a first line that says which file it is, then one
line per block that arrived whole, with a digest of what was received. Nothing has to reach the disk in order: after a
restart every block is read again and those that differ from the log are fetched again, whoever damaged them.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from dflash_desktop.hub.failures import disk_problem
from dflash_desktop.hub.wanted import PART_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflash_desktop.hub.abort import Abort

HashKind = Literal["sha256", "git_sha1"]
BLOCK_BYTES = 4 * 2**20
"""What is lost at most when the program is killed."""

_READ_BYTES = 2**20
_VERSION = 1


class PartFile:
    """Used from one thread. Raises HubProblem when the disk refuses."""

    def __init__(self, destination: Path, n_bytes: int, identity: str, *, block_bytes: int = BLOCK_BYTES) -> None:
        """`identity` names the content (its hash, its commit): bytes of another one are thrown away."""
        self.destination = destination
        self.path = destination.with_name(destination.name + PART_SUFFIX)
        self.log_path = self.path.with_name(self.path.name + ".log")
        self._head = {"version": _VERSION, "n_bytes": n_bytes, "identity": identity, "block_bytes": block_bytes}
        self._n_bytes = n_bytes
        self._block_bytes = block_bytes
        self._n_blocks = -(-n_bytes // block_bytes)
        self._digests: dict[int, str] = {}  # block -> digest of what was received
        self._open_block = 0  # the block that is being filled
        self._open_bytes = 0
        self._open_hash = _new_hash()
        self._data: BinaryIO | None = None
        self._log: BinaryIO | None = None

    @property
    def n_done_bytes(self) -> int:
        """Bytes that need not be fetched again."""
        return sum(self._block_size(block) for block in self._digests) + self._open_bytes

    @property
    def digests(self) -> tuple[str, ...]:
        """One per block, once all are there."""
        return tuple(self._digests[block] for block in range(self._n_blocks))

    def open(self, abort: Abort, progress: Callable[[int], object] = lambda _n_bytes: None) -> None:
        """Take up what an earlier run left, after reading it through; begin anew where it left nothing of use.

        `progress` is told how many bytes were read.
        """
        try:
            self.destination.parent.mkdir(parents=True, exist_ok=True)
            records = self._read_log()
            self._data = self.path.open("r+b" if self.path.exists() else "w+b", buffering=0)
            self._check_records(records, abort, progress)
            self._rewrite_log()
            self._find_open_block()
        except OSError as error:
            self.close()
            raise disk_problem(error, self.destination.parent) from error
        except BaseException:
            self.close()
            raise

    def gap(self) -> tuple[int, int] | None:
        """The next bytes to fetch, [begin, end); None when all are there."""
        if self._open_block >= self._n_blocks:
            return None
        begin = self._open_block * self._block_bytes + self._open_bytes
        end = self._open_block + 1
        while end < self._n_blocks and end not in self._digests:
            end += 1
        return begin, min(end * self._block_bytes, self._n_bytes)

    def write(self, piece: bytes) -> None:
        """Append to the gap. A piece that does not fit on the disk counts as not received."""
        assert self._data is not None
        view = memoryview(piece)
        try:
            while view:
                room = self._block_size(self._open_block) - self._open_bytes
                now = view[:room]
                self._data.seek(self._open_block * self._block_bytes + self._open_bytes)
                _write_all(self._data, now)
                self._open_hash.update(now)
                self._open_bytes += len(now)
                view = view[len(now) :]
                if len(now) == room:
                    self._end_block()
        except OSError as error:
            raise disk_problem(error, self.destination.parent) from error

    def check_hash(self, kind: HashKind, abort: Abort, progress: Callable[[int], object]) -> str:
        """The hash of the whole content as it lies on the disk."""
        assert self._data is not None
        try:
            self._data.seek(0)
            return _read_through(self._data, self._n_bytes, kind, self._block_bytes, abort, progress)[0]
        except OSError as error:
            raise disk_problem(error, self.destination.parent) from error

    def drop_bad_blocks(self, abort: Abort) -> int:
        """Forget the blocks that are not on the disk as they were received; how many there were."""
        before = len(self._digests)
        try:
            self._check_records({str(block): [self._block_size(block), d] for block, d in self._digests.items()}, abort)
            self._rewrite_log()
        except OSError as error:
            raise disk_problem(error, self.destination.parent) from error
        self._find_open_block()
        return before - len(self._digests)

    def drop_all(self) -> None:
        """Forget everything: what was received is not what the hub has."""
        self._digests = {}
        self._open_block, self._open_bytes, self._open_hash = 0, 0, _new_hash()
        try:
            self._rewrite_log()
        except OSError as error:
            raise disk_problem(error, self.destination.parent) from error

    def finish(self) -> None:
        """Give the file its name. Only after the hash is right."""
        assert self._data is not None
        try:
            self._data.truncate(self._n_bytes)
            os.fsync(self._data.fileno())
            self.close()
            self.path.replace(self.destination)
            with suppress(OSError):
                self.log_path.unlink()
        except OSError as error:
            raise disk_problem(error, self.destination.parent) from error

    def close(self) -> None:
        """Leave everything so that `open` goes on at the very byte."""
        if self._log is not None and self._data is not None and self._open_bytes:
            with suppress(OSError):  # a full disk: the block is fetched again then
                self._note(self._open_block, self._open_bytes, self._open_hash.hexdigest())
        for file in (self._data, self._log):
            if file is not None:
                with suppress(OSError):
                    file.close()
        self._data = self._log = None

    def discard(self) -> int:
        """Delete what arrived; how many bytes that frees."""
        self.close()
        n_bytes = 0
        for path in (self.path, self.log_path):
            with suppress(OSError):
                n_bytes += path.stat().st_size
                path.unlink()
        return n_bytes

    # ---- blocks

    def _block_size(self, block: int) -> int:
        return min(self._block_bytes, self._n_bytes - block * self._block_bytes)

    def _end_block(self) -> None:
        digest = self._open_hash.hexdigest()
        self._note(self._open_block, self._open_bytes, digest)
        self._digests[self._open_block] = digest
        self._find_open_block()

    def _find_open_block(self) -> None:
        block = 0 if self._open_block in self._digests or self._open_bytes == 0 else self._open_block
        while block in self._digests:
            block += 1
        if block != self._open_block:
            self._open_block, self._open_bytes, self._open_hash = block, 0, _new_hash()
        elif self._open_bytes == 0:
            self._open_hash = _new_hash()

    def _check_records(
        self, records: dict[str, Any], abort: Abort, progress: Callable[[int], object] = lambda _n_bytes: None
    ) -> None:
        """Keep the blocks whose bytes are on the disk as the log says."""
        assert self._data is not None
        self._digests = {}
        self._open_block, self._open_bytes, self._open_hash = 0, 0, _new_hash()
        for name, (n_bytes, digest) in sorted(records.items(), key=lambda record: int(record[0])):
            block = int(name)
            found = self._hash_block(block, n_bytes, abort, progress)
            if found is None or found.hexdigest() != digest:
                continue
            if n_bytes == self._block_size(block):
                self._digests[block] = digest
            elif self._open_bytes == 0:
                self._open_block, self._open_bytes, self._open_hash = block, n_bytes, found

    def _hash_block(
        self, block: int, n_bytes: int, abort: Abort, progress: Callable[[int], object]
    ) -> hashlib.blake2b | None:
        assert self._data is not None
        self._data.seek(block * self._block_bytes)
        found, left = _new_hash(), n_bytes
        while left:
            abort.check()
            piece = self._data.read(min(_READ_BYTES, left))
            if not piece:
                return None
            found.update(piece)
            left -= len(piece)
            progress(len(piece))
        return found

    # ---- the log

    def _read_log(self) -> dict[str, Any]:
        """Block -> [bytes, digest]; empty when the log is of another file, or there is none."""
        try:
            head, *lines = self.log_path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        if _parsed(head) != self._head:
            return {}
        records: dict[str, Any] = {}
        for line in lines:
            match _parsed(line):  # the last line may be torn
                case [int(block), int(n_bytes), str(digest)] if 0 <= block < self._n_blocks:
                    if 0 < n_bytes <= self._block_size(block):
                        records[str(block)] = [n_bytes, digest]
                case _:
                    continue
        return records

    def write_log(self, digests: Sequence[str]) -> None:
        """Say of every block what it should be, before `open`."""
        self._digests = dict(enumerate(digests))
        self._rewrite_log()
        self.close()

    def _rewrite_log(self) -> None:
        if self._log is not None:
            self._log.close()
        lines: list[Any] = [
            self._head,
            *([block, self._block_size(block), digest] for block, digest in self._digests.items()),
        ]
        if self._open_bytes:
            lines.append([self._open_block, self._open_bytes, self._open_hash.hexdigest()])
        temporary = self.log_path.with_name(self.log_path.name + ".new")
        temporary.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        temporary.replace(self.log_path)
        self._log = self.log_path.open("ab", buffering=0)

    def _note(self, block: int, n_bytes: int, digest: str) -> None:
        assert self._log is not None
        _write_all(self._log, memoryview(json.dumps([block, n_bytes, digest]).encode() + b"\n"))


def hash_file(
    path: Path, kind: HashKind, block_bytes: int, abort: Abort, progress: Callable[[int], object]
) -> tuple[str, tuple[str, ...]]:
    """The hash of a finished file and the digests of its blocks. Raises OSError."""
    with path.open("rb", buffering=0) as file:
        return _read_through(file, path.stat().st_size, kind, block_bytes, abort, progress)


def make_part_of(path: Path, n_bytes: int, identity: str, block_bytes: int, digests: Sequence[str]) -> None:
    """Turn a finished file into one that arrives, so that its damaged blocks are found and fetched again.

    Raises OSError.
    """
    part = PartFile(path, n_bytes, identity, block_bytes=block_bytes)
    part.write_log(digests)
    path.replace(part.path)


def _read_through(
    file: BinaryIO, n_bytes: int, kind: HashKind, block_bytes: int, abort: Abort, progress: Callable[[int], object]
) -> tuple[str, tuple[str, ...]]:
    whole = hashlib.sha256()
    if kind == "git_sha1":
        whole = hashlib.sha1(b"blob %d\0" % n_bytes, usedforsecurity=False)
    digests = []
    left = n_bytes
    while left > 0:
        block = _new_hash()
        left_in_block = min(block_bytes, left)
        while left_in_block and (piece := file.read(min(_READ_BYTES, left_in_block))):
            abort.check()
            whole.update(piece)
            block.update(piece)
            left_in_block -= len(piece)
            progress(len(piece))
        digests.append(block.hexdigest())
        left -= block_bytes
    return whole.hexdigest(), tuple(digests)


def _new_hash() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while data:
        n_written = file.write(data)
        data = data[n_written:]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
