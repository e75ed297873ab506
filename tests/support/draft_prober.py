"""Put changed copies of drafts through opening, describing, pairing, loading and a few steps, in a child process.

As a program: reads one JSON request from stdin, writes a JSON line before and after each mutant. `probe_drafts` is the
parent.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.draft_mutants import mutant
from support.file_prober import SECONDS_EACH, limit_memory, mutate, said_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt


@dataclass(frozen=True)
class DraftBase:
    """A draft whose copies are changed: in `changed`, in its first bytes mostly."""

    path: Path  # what is opened
    changed: Path  # that file, or the config.json beside it
    header_bytes: int  # 0: leave the file as it is


@dataclass(frozen=True)
class DraftOutcome:
    """How far a mutant came (opened, described, paired, loaded, stepped), and the sentence that ended it."""

    name: str
    reached: str
    message: str


def mutants(
    folder: Path, keys: Mapping[str, object], weights: Mapping[str, npt.NDArray[Any]], seeds: range
) -> list[Path]:
    """Files that are sound as GGUF and wrong as drafts, named by their seed and what was changed."""
    paths = []
    for seed in seeds:
        what, data = mutant("dflash", keys, weights, seed)
        # Each in a folder of its own, since a base is a folder.
        path = folder / f"{folder.name} {seed} {re.sub('[^a-z0-9_. ]', '', what)[:80]}" / "draft.gguf"
        path.parent.mkdir()
        path.write_bytes(data)
        paths.append(path)
    return paths


def probe_drafts(target: Path, folder: Path, bases: list[DraftBase], seeds: range) -> list[DraftOutcome]:
    """One mutant per base and seed. Fails when the child dies or hangs, saying at which one."""
    request = {
        "target": str(target),
        "folder": str(folder),
        "bases": [{name: str(value) for name, value in asdict(base).items()} for base in bases],
        "seeds": [seeds.start, seeds.stop],
    }
    run = subprocess.run(
        [sys.executable, "-m", "support.draft_prober"],
        input=json.dumps(request),
        text=True,
        encoding="utf-8",
        capture_output=True,
        cwd=Path(__file__).parents[1],
        check=False,
    )
    return [DraftOutcome(**said) for said in said_by(run)]


def _main() -> None:
    from dflash_desktop.binding import abi
    from dflash_desktop.binding.failures import NativeError
    from dflash_desktop.binding.native import Library, NativeDraft, NativeFile, NativeSession, NativeTarget, sized

    request = json.loads(sys.stdin.read())
    library = Library()
    cpu = next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)
    target = NativeTarget(library, Path(request["target"]), device=cpu, n_threads=1)
    while not target.load_piece().is_complete:
        pass
    target_file = NativeFile(library, Path(request["target"]))
    limit_memory()

    def run(path: Path) -> tuple[str, str]:
        """How far the draft comes."""
        reached = "nothing"
        try:
            with NativeFile(library, path) as file:
                reached = "opened"
                info = file.describe()
                reached = "described"
                if not info.can_run:
                    return reached, info.reason.decode("utf-8", "replace")
                library.check_pair(target_file, file)
                reached = "paired"
            with NativeDraft(library, path, target, device=cpu, n_threads=1) as draft:
                while not draft.load_piece().is_complete:
                    pass
                reached = "loaded"
                params = sized(abi.SessionParams, context_tokens=64, max_nodes=12)
                with NativeSession(target, draft, params) as session:
                    session.begin(
                        list(range(20, 44)), sized(abi.Generation, draft_mode=1, tree_budget=12, max_tokens=6)
                    )
                    while not session.prefill().is_complete:
                        pass
                    while session.step().finish == abi.Finish.NONE:
                        pass
                reached = "stepped"
        except NativeError as error:
            return reached, str(error)
        return reached, ""

    folder = Path(request["folder"])
    for base in request["bases"]:
        path, changed = Path(base["path"]), Path(base["changed"])
        own = folder / path.parent.name
        shutil.copytree(path.parent, own, dirs_exist_ok=True)  # config.json too
        original, n_header = changed.read_bytes(), int(base["header_bytes"])
        for seed in range(*request["seeds"]):
            name = f"{path.parent.name}/{path.name}, {changed.name}, seed {seed}"
            if n_header:
                (own / changed.name).write_bytes(mutate(original, n_header, seed))
            print(json.dumps({"begin": name}), flush=True)
            if hasattr(signal, "alarm"):
                signal.alarm(SECONDS_EACH)
            reached, message = run(own / path.name)
            if hasattr(signal, "alarm"):
                signal.alarm(0)
            print(json.dumps({"name": name, "reached": reached, "message": message}), flush=True)


if __name__ == "__main__":
    _main()
