"""Where the time of a step goes on a CUDA device: kernels by name, their counts and times, and the gaps between them.

    PYTHONPATH=app:tests python -m bench.gpu.profile LIBRARY TARGET DRAFT OUT.json

Needs PyTorch: its profiler sees every kernel of the process, ours too, captured graphs included.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.gpu.rig import Rig
from dflash_desktop.binding.native import Library

if TYPE_CHECKING:
    from collections.abc import Callable

N_RUNS = 3


def kernels_of(work: Callable[[], object]) -> list[tuple[str, float, float]]:
    """Name, start and length in microseconds of every kernel and copy that `work` causes."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    wanted = ("kernel", "gpu_memcpy", "gpu_memset")
    return sorted(
        ((event["name"], event["ts"], event["dur"]) for event in events if event.get("cat") in wanted),
        key=lambda kernel: kernel[1],
    )


def short(name: str) -> str:
    """A kernel's name without its argument types; template numbers stay."""
    name = re.sub(r"\(anonymous namespace\)::|^void |ggml_cuda_", "", name)
    return re.sub(r"\(.*$", "", name)[:72]


def summarise(label: str, kernels: list[tuple[str, float, float]], n_runs: int) -> dict[str, Any]:
    by_name: dict[str, list[float]] = defaultdict(list)
    for name, _, length in kernels:
        by_name[short(name)].append(length)
    busy = sum(length for _, _, length in kernels) / n_runs
    span = (kernels[-1][1] + kernels[-1][2] - kernels[0][1]) / n_runs if kernels else 0.0
    print(f"\n{label}, per run: {len(kernels) / n_runs:.0f} kernels, {busy:.0f} us busy, {span:.0f} us first to last")
    rows = sorted(by_name.items(), key=lambda item: -sum(item[1]))
    for name, lengths in rows[:24]:
        print(f"  {sum(lengths) / n_runs:8.1f} us  {len(lengths) / n_runs:6.0f} x {np.mean(lengths):7.2f}  {name}")
    table = {name: [len(lengths) / n_runs, sum(lengths) / n_runs] for name, lengths in rows}
    return {"busy_us": busy, "span_us": span, "n_kernels": len(kernels) / n_runs, "kernels": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="CUDA0")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--chunk", type=int, default=512, help="rows of the prefill")
    options = parser.parse_args()
    with Rig(
        Library(options.library),
        options.target,
        options.draft,
        device=options.device,
        context_tokens=options.context + 2 * options.chunk + 512,
        prefill_chunk=options.chunk,
    ) as rig:
        prompt = [(i * 7919) % 30000 for i in range(options.context)]
        tokens = list(range(10, 33))
        tree = [-1, 0, *range(len(tokens) - 2)]
        chain = [-1, *range(14)]

        def plain() -> None:
            rig.steps(N_RUNS)

        def repeated(work: Callable[[], object]) -> Callable[[], None]:
            def run() -> None:
                for _ in range(N_RUNS):
                    work()

            return run

        def verify(parents: list[int]) -> Callable[[], object]:
            return lambda: rig.verify(tokens[: len(parents)], parents, 0)

        def begin(mode: str, **settings: int) -> None:
            rig.begin(prompt, mode, max_tokens=200, ignore_stop=1, **settings)
            rig.steps(6)

        result = {}
        for label, mode, settings in (("plain step", "plain", {}), ("tree step, 23 rows", "tree", {"tree_budget": 22})):
            begin(mode, **settings)
            result[label] = summarise(label, kernels_of(plain), N_RUNS)
        chunk = [(i * 104729) % 30000 for i in range(options.chunk)]
        rig.reset()
        rig.append(chunk)
        result["prefill"] = summarise(f"prefill of {len(chunk)} rows", kernels_of(lambda: rig.append(chunk)), 1)
        parts: dict[str, Callable[[], object]] = {
            "draft": lambda: rig.draft_block(5, 8, 15),
            "verify of a tree of 23 rows": verify(tree),
            "verify of a chain of 15 rows": verify(chain),
            "commit of 6 rows": lambda: rig.commit([0, 2, 4, 6, 8, 10]),
        }
        for label, part in parts.items():
            begin("tree", tree_budget=22)
            if label.startswith("commit"):
                rig.verify(tokens, tree)
            for _ in range(4):
                part()
            result[label] = summarise(label, kernels_of(repeated(part)), N_RUNS)
    options.out.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
