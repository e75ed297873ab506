"""Put changed copies of targets through opening, planning, loading, a reply, a tree and a scoring, in a child process.

As a program: reads one JSON request from stdin, writes a JSON line before and after each mutant. `probe_targets` is the
parent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.draft_mutants import mutant
from support.file_prober import SECONDS_EACH, limit_memory, mutate, said_by

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class TargetOutcome:
    """How far a mutant came (opened, described, planned, loaded, replied, verified, scored), and what ended it."""

    name: str
    reached: str
    message: str


def flipped(base: Path, header_bytes: int, seeds: range) -> Iterator[tuple[str, bytes]]:
    """Copies of a file with changed bytes, most of them in its header."""
    original = base.read_bytes()
    for seed in seeds:
        yield f"{base.name}, seed {seed}", mutate(original, header_bytes, seed)


def restated(
    architecture: str, keys: Mapping[str, object], weights: Mapping[str, npt.NDArray[Any]], seeds: range
) -> Iterator[tuple[str, bytes]]:
    """Files that are sound as GGUF and wrong as targets."""
    own = {name: value for name, value in keys.items() if name != "general.architecture"}
    for seed in seeds:
        what, data = mutant(architecture, own, weights, seed)
        yield f"{architecture}, seed {seed}: {what[:80]}", data


def probe_targets(folder: Path, mutants: Iterator[tuple[str, bytes]]) -> list[TargetOutcome]:
    """Each in turn. Fails when the child dies or hangs, saying at which one."""
    jobs = []
    for number, (name, data) in enumerate(mutants):
        path = folder / f"{number}.gguf"
        path.write_bytes(data)
        jobs.append({"name": name, "path": str(path)})
    run = subprocess.run(
        [sys.executable, "-m", "support.target_prober"],
        input=json.dumps(jobs),
        text=True,
        encoding="utf-8",
        capture_output=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # a debugger's words would come in between
        check=False,
    )
    return [TargetOutcome(**said) for said in said_by(run)]


def _main() -> None:
    from ctypes import byref, c_int32

    from dflash_desktop.binding import abi
    from dflash_desktop.binding.failures import NativeError
    from dflash_desktop.binding.native import Library, NativeFile, NativeSession, NativeTarget, path_bytes, sized
    from dflash_desktop.binding.native_scorer import NativeScorer

    jobs = json.loads(sys.stdin.read())
    library = Library()
    cpu = next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)
    limit_memory()
    params = sized(abi.SessionParams, context_tokens=64, max_nodes=7, prefix_bytes=-1)
    load = sized(abi.LoadParams, device=cpu, n_threads=1)

    def reply(target: NativeTarget) -> Iterator[str]:
        with NativeSession(target, None, params) as session:
            session.begin([1] * 20, sized(abi.Generation, max_tokens=3, ignore_stop=1))
            while not session.prefill().is_complete:
                pass
            while session.step().finish == abi.Finish.NONE:
                pass
            yield "replied"
            tree, rows = (c_int32 * 8)(*[1] * 8), (c_int32 * 8)(-1, 0, 0, 1, 1, 2, 3, 3)
            library.check(library.c.dflash_probe_verify(session.handle, tree, rows, 8, None))
            library.check(library.c.dflash_probe_commit(session.handle, (c_int32 * 3)(0, 1, 4), 3))
            yield "verified"

    def stages(path: Path) -> Iterator[str]:
        with NativeFile(library, path) as file:
            yield "opened"
            file.describe()
        yield "described"
        plan = sized(abi.Plan)
        library.check(
            library.c.dflash_plan_pair(path_bytes(path), None, byref(load), byref(load), byref(params), byref(plan))
        )
        yield "planned"
        with NativeTarget(library, path, device=cpu, n_threads=1) as target:
            while not target.load_piece().is_complete:
                pass
            yield "loaded"
            yield from reply(target)
            with NativeScorer(target, sized(abi.ScorerParams, text_tokens=96)) as scorer:
                scorer.begin([1] * 90, [1] * 20)
                while not scorer.run().is_complete:
                    pass
        yield "scored"

    for job in jobs:
        print(json.dumps({"begin": job["name"]}), flush=True)
        if hasattr(signal, "alarm"):
            signal.alarm(SECONDS_EACH)
        reached, message = "nothing", ""
        try:
            for stage in stages(Path(job["path"])):
                reached = stage
        except NativeError as error:
            message = str(error)
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        print(json.dumps({"name": job["name"], "reached": reached, "message": message}), flush=True)
        Path(job["path"]).unlink()


if __name__ == "__main__":
    _main()
