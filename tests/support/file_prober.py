"""Open changed copies of a model file in a child process; a crash, a hang or a hunger for memory ends only the child.

As a program: reads JSON jobs from stdin, writes a JSON line before and after each file. `probe_files` is the parent.
"""

from __future__ import annotations

import json
import random
import signal
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOSTILE = (
    0,
    1,
    2,
    255,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**42 + 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 32,
    2**64 - 1,
)
SECONDS_EACH = 60  # milliseconds are enough, unless the machine stands still
SPARE_BYTES = 512 << 20


@dataclass(frozen=True)
class Outcome:
    """What the engine said of one file: its status (0: opened), and the sentence when it refused."""

    name: str
    status: int
    message: str


def mutate(original: bytes, header_bytes: int, seed: int) -> bytes:
    """A copy with one to eight changes, most of them in the first `header_bytes`."""
    rng = random.Random(seed)
    data = bytearray(original)
    if rng.random() < 0.1:
        return bytes(
            data[: rng.randrange(len(data)) if rng.random() < 0.3 else rng.randrange(min(header_bytes, len(data)))]
        )
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(min(header_bytes, len(data)))
        kind = rng.randrange(6)
        if kind <= 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at : at + 8] = struct.pack("<Q", rng.choice(HOSTILE))
        elif kind == 3:
            data[at : at + 4] = struct.pack("<I", rng.choice(HOSTILE) & 0xFFFFFFFF)
        elif kind == 4:
            del data[at : at + rng.randrange(1, 17)]
        else:
            data[at:at] = data[max(0, at - rng.randrange(1, 33)) : at]
    return bytes(data)


def probe_files(folder: Path, jobs: list[dict[str, object]]) -> list[Outcome]:
    """Run the jobs in one child. Each names the file to write (`file`), its content as hex or as a base file with a
    seed, and optionally the file to open (`open`). Fails when the child dies, saying at which one."""
    run = subprocess.run(
        [sys.executable, __file__],
        input="\n".join(json.dumps(job) for job in jobs),
        text=True,
        encoding="utf-8",
        capture_output=True,
        cwd=folder,
        check=False,
    )
    return [Outcome(**said) for said in said_by(run)]


def said_by(run: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What a child said of each file. Fails when it died or hung, saying at which one."""
    outcomes = []
    begun = "the first"
    for line in run.stdout.splitlines():
        said = json.loads(line)
        if "begin" in said:
            begun = said["begin"]
        else:
            outcomes.append(said)
    if run.returncode != 0:
        how = "hung" if run.returncode == -getattr(signal, "SIGALRM", 0) else f"ended with {run.returncode}"
        raise AssertionError(f"the child {how} at {begun}: {run.stderr[-2000:]}")
    return outcomes


def limit_memory() -> None:
    """No more than SPARE_BYTES beyond what the loaded library takes already."""
    if sys.platform.startswith("linux"):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _main() -> None:
    from dflash_desktop.binding import abi
    from dflash_desktop.binding.failures import NativeError
    from dflash_desktop.binding.native import Library, NativeFile, sized

    library = Library()
    limit_memory()
    bases: dict[str, bytes] = {}
    for line in sys.stdin.read().splitlines():
        job = json.loads(line)
        name = job["name"]
        if "hex" in job:
            data = bytes.fromhex(job["hex"])
        else:
            base = bases.setdefault(job["base"], Path(job["base"]).read_bytes())
            data = mutate(base, job["header_bytes"], job["seed"])
        path = Path(job["file"])
        path.write_bytes(data)
        print(json.dumps({"begin": name}), flush=True)
        if hasattr(signal, "alarm"):
            signal.alarm(SECONDS_EACH)
        status, message = 0, ""
        try:
            with NativeFile(library, Path(job.get("open", job["file"]))) as file:
                info = file.describe()
                message = info.reason.decode("utf-8", "replace")
                value = sized(abi.Value)
                for key in job.get("keys", ()):
                    library.check(library.c.dflash_file_value(file.handle, key.encode(), value))
        except NativeError as error:
            status, message = int(error.status), str(error)
        print(json.dumps({"name": name, "status": status, "message": message}), flush=True)
    if hasattr(signal, "alarm"):
        signal.alarm(0)


if __name__ == "__main__":
    _main()
