"""Everything this folder measures, one after another, and one table of it.

    PYTHONPATH=app:tests python -m bench.gpu.report BUILD FOLDER [--pair TARGET DRAFT] [--contexts 1024 8192 ...]

BUILD   what build.sh made: BUILD/bin has libdflash, ggml's libraries and upstream's programs
FOLDER  for the synthetic model files (19 GB, written when they are missing) and the results, as JSON and logs
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from bench.gpu.speed import GOAL_ROWS
from dflash_desktop.binding.native import Library

SMALL = "qwen35-mini-q8_0"
COLUMNS = ("plain", "chain", "tree 22", "auto")


def run(folder: Path, name: str, module: str, *arguments: object) -> int:
    """Run one of the scripts; what it prints goes to the terminal and to a file."""
    command = [sys.executable, "-m", f"bench.gpu.{module}", *map(str, arguments)]
    with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in process.stdout or ():
            print(line, end="", flush=True)
            log.write(line)
        return process.wait()


def versions(library: Library) -> str:
    """Driver, CUDA, ggml and engine, in one line."""
    import pynvml

    pynvml.nvmlInit()
    driver = pynvml.nvmlSystemGetDriverVersion()
    cuda = pynvml.nvmlSystemGetCudaDriverVersion()
    pynvml.nvmlShutdown()
    today = dt.datetime.now(tz=dt.UTC).date()
    return f"driver {driver} (CUDA {cuda // 1000}.{cuda % 1000 // 10}), ggml {library.ggml_version()}, {today}"


def step_of(found: dict[str, Any], rows: int) -> float:
    walls: list[float] = found["steps"][str(rows)]["wall_us"]
    return median(walls) / 1e3


def print_big(big: dict[str, Any], bench: dict[str, float]) -> None:
    contexts = [name for name in big if name.isdecimal()]
    first = big[contexts[0]]
    print("\n| 27B shape, context " + contexts[0] + " | | goal |\n|---|---|---|")
    print(
        f"| plain step | {first['plain_ms']:.2f} ms; upstream {1e3 / bench['tg64 @ 1024']:.2f} | at most upstream's |"
    )
    share = first["bytes_per_second"] / big["copy_bytes_per_second"]
    print(f"| bytes read per second | {first['bytes_per_second'] / 1e12:.2f} TB/s, {share:.2f} of the copy | |")
    print(f"| step of {GOAL_ROWS} rows over plain | {first['ratio']:.2f} | 1.5 |")
    host = median(first["steps"][str(GOAL_ROWS)]["host_us"]) / 1e3
    share = (first["commit_ms"]["6"] + host) / step_of(first, GOAL_ROWS)
    print(f"| commit of 6 rows and host, of that step | {100 * share:.1f} % | 5 % |")
    print(f"| memory per node | {big['bytes_per_node'] / 2**20:.2f} MiB | 5 |")
    print("\n| rows | step ms | draft | verify |\n|---|---|---|---|")
    for rows, reply in first["steps"].items():
        draft, verify = (median(reply[f"{part}_us"]) / 1e3 for part in ("draft", "verify"))
        print(f"| {rows} | {step_of(first, int(rows)):.2f} | {draft:.2f} | {verify:.2f} |")
    print("\n| context | plain ms | to the first | step of 23 rows | prefill tok/s |\n|---|---|---|---|---|")
    for name in contexts:
        found = big[name]
        ratio = found["plain_ms"] / first["plain_ms"]
        speed = f"{found['prefill_tokens_per_second']:.0f}"
        print(f"| {name} | {found['plain_ms']:.2f} | {ratio:.2f} | {step_of(found, GOAL_ROWS):.2f} | {speed} |")
    print(f"\nUpstream's prefill of 2,048 tokens: {bench['pp2048']:.0f} tok/s.")


def print_small(small: dict[str, dict[str, Any]], upstream: dict[str, Any]) -> None:
    print("\n| pair | " + " | ".join(COLUMNS) + " | upstream plain, DFlash | auto over plain, over upstream's DFlash |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for name, modes in small.items():
        cells = [f"{modes[mode]['tokens_per_second']:.0f} ({modes[mode]['accepted']:.2f})" for mode in COLUMNS]
        theirs = upstream[name]
        speeds = [theirs[kind]["tokens_per_second"] for kind in ("plain", "DFlash")]
        auto = modes["auto"]["tokens_per_second"]
        gains = f"{auto / modes['plain']['tokens_per_second']:.2f}, {auto / speeds[1]:.2f}"
        cells += [f"{speeds[0]:.0f}, {speeds[1]:.0f} ({theirs['DFlash']['accepted']:.2f})", gains]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("\nTokens per second (tokens per step); goals: 1.5 and 1.3.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pair", type=Path, nargs=2, action="append", default=[], help="another small pair")
    parser.add_argument("--contexts", type=int, nargs="+", default=[1024, 8192, 32768, 131072])
    parser.add_argument("--prompts", type=int, default=10)
    options = parser.parse_args()
    folder, bin_folder = options.folder, options.build / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    library = bin_folder / "libdflash.so"
    files = [folder / "target.gguf", folder / "draft-q8_0.gguf"]
    if not all(file.exists() for file in files):
        run(folder, "synthetic", "synthetic", folder)
    is_true = run(folder, "truth", "truth", library, "--prompts", options.prompts) == 0
    small = {}
    for pair in [[], *options.pair]:
        name = pair[0].stem if pair else SMALL
        chosen = ["--pair", *pair] if pair else []
        out = folder / f"{name}.json"
        run(folder, name, "speed", "small", library, "--prompts", options.prompts, "--json", out, *chosen)
        small[name] = json.loads(out.read_text(encoding="utf-8"))
    out = folder / "big.json"
    run(folder, "big", "speed", "big", library, *files, "--json", out, "--contexts", *options.contexts)
    big = json.loads(out.read_text(encoding="utf-8"))
    out = folder / "upstream.json"
    pairs = [argument for pair in options.pair for argument in ("--pair", *pair)]
    arguments = ["--target", files[0], "--prompts", options.prompts, "--json", out, *pairs]
    run(folder, "upstream", "upstream", bin_folder, *arguments)
    upstream = json.loads(out.read_text(encoding="utf-8"))
    run(folder, "profile", "profile", library, *files, folder / "profile.json")

    print(f"\n{big['device']}, {versions(Library(library))}")
    print("Truth: " + ("no failure." if is_true else "FAILURES, see truth.log."))
    print_small(small, upstream)
    print_big(big, upstream["bench"])
    return 0 if is_true else 1


if __name__ == "__main__":
    sys.exit(main())
