"""How long the parts of a step take on a GPU, and where that is from the best possible.

    PYTHONPATH=app:tests python -m bench.gpu.speed big LIBRARY TARGET DRAFT [--contexts 1024 8192 32768 131072]
    PYTHONPATH=app:tests python -m bench.gpu.speed small LIBRARY [--pair TARGET DRAFT]

`big` times the shapes of a 27B model (synthetic.py): its tokens mean nothing, so nothing is accepted and every step
runs to its full length. `small` times text that means something: tokens per second and per step (AL). All numbers
are medians; modes take turns, so that a slow moment of the machine touches all alike.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.gpu.rig import KV_TYPES, Reply, Rig, find_device, spread, used_bytes
from dflash_desktop.binding.native import Library, NativeFile

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = (1, 2, 4, 8, 16, 23, 32, 48, 64)  # of a verify, root included; 1 is the plain step
GOAL_ROWS = 23
N_WARM = 4  # steps before the first that counts: graphs are built, tried and captured
N_VOCAB_BIG = 248320


def copy_bandwidth() -> float:
    """Bytes per second of a large copy on the device, read and written bytes counted. 0 without PyTorch."""
    try:
        import torch
    except ImportError:
        return 0.0
    source = torch.randint(0, 255, (4 << 30,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(12):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    del source, target
    torch.cuda.empty_cache()
    return float(2 * (4 << 30) / median(times[2:]))


def prefill_prompt(rig: Rig, prompt: Sequence[int]) -> tuple[float, int]:
    """Seconds of prefill, and how many tokens it took."""
    return rig.begin(prompt, "auto", max_tokens=1, ignore_stop=1), len(prompt)


def step_times(rig: Rig, prompt: Sequence[int], rounds: int, n_steps: int, rows: Sequence[int]) -> dict[int, Reply]:
    """Steps of each row count after `prompt`, taking turns."""
    found = {n: Reply() for n in rows}
    for turn in range(rounds):
        for n in rows:
            settings = {} if n == 1 else {"tree_budget": n - 1}
            most = n_steps + (N_WARM if turn == 0 else 1)
            rig.begin(prompt, "plain" if n == 1 else "tree", max_tokens=most + 128, ignore_stop=1, **settings)
            reply = rig.steps(most)
            for name, values in vars(reply).items():
                getattr(found[n], name).extend(values[-n_steps:])
    return found


def commit_times(rig: Rig, prompt: Sequence[int], n: int) -> dict[int, float]:
    """Milliseconds of a commit that keeps a path of so many rows, scattered over the tree (-1: the first rows)."""
    rig.begin(prompt, "auto", max_tokens=1, ignore_stop=1)
    found = {}
    tokens = list(range(10, 10 + GOAL_ROWS))
    parents = [-1, 0, *range(GOAL_ROWS - 2)]  # two interleaved chains
    for n_kept in (1, 3, 6, 10):
        rig.verify(tokens, parents)
        path = [0, *range(2, 2 * n_kept, 2)]
        times = []
        for _ in range(n):  # again and again: where the rows end up means nothing, how long it takes does
            start = time.perf_counter()
            rig.commit(path)
            times.append(time.perf_counter() - start)
        found[n_kept] = 1e3 * median(times[3:])
    return found


def driver_bytes(index: int = 0) -> int:
    """Memory of the card in use as its driver counts it, everything included. 0 without NVIDIA's library."""
    try:
        import pynvml
    except ImportError:
        return 0
    pynvml.nvmlInit()
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(index)).used)
    finally:
        pynvml.nvmlShutdown()


def bytes_per_node(rig: Rig, **session: int) -> float:
    """What a session takes more for each node that its trees may have."""
    found = {}
    for n_nodes in (7, 63):
        rig.reopen(max_nodes=n_nodes, **session)
        found[n_nodes] = used_bytes(rig.session.memory())
    return (found[63] - found[7]) / (63 - 7)


def target_bytes(library: Library, path: Path) -> int:
    """Bytes of weights that a plain step reads: all but the embeddings, of which it reads a row."""
    with NativeFile(library, path) as file:
        info = file.describe()
        embedding = info.n_embd * N_VOCAB_BIG * 144 // 256  # Q4_K
        return int(info.file_bytes) - embedding


def measure_big(options: argparse.Namespace) -> dict[str, Any]:
    bandwidth = copy_bandwidth()
    library = Library(options.library)
    device = find_device(library, options.device)
    print(f"device {device.name.decode()} ({device.description.decode()}), copy {bandwidth / 1e12:.2f} TB/s")
    result: dict[str, Any] = {"copy_bytes_per_second": bandwidth, "device": device.description.decode()}
    rng = np.random.default_rng(7)
    contexts = sorted(options.contexts)
    text = [int(i) for i in rng.integers(0, N_VOCAB_BIG - 300, contexts[-1])]
    kv = KV_TYPES[options.kv]
    start = time.perf_counter()
    with Rig(
        library,
        options.target,
        options.draft,
        device=options.device,
        context_tokens=contexts[-1] + 512,
        kv_k=kv,
        kv_v=kv,
    ) as rig:
        print(f"loaded and opened in {time.perf_counter() - start:.1f} s")
        memory = rig.session.memory()
        result["memory"] = {name: getattr(memory, name) for name, *_ in memory._fields_ if name.endswith("_bytes")}
        listed = ", ".join(f"{name[:-6]} {value >> 20}" for name, value in result["memory"].items())
        total, seen = used_bytes(memory) >> 20, driver_bytes() >> 20
        print(f"memory, MiB: {listed}; together {total}, the driver counts {seen}")
        weights = target_bytes(library, options.target)
        done = 1
        for context in contexts:
            seconds, n = prefill_prompt(rig, text[:context])
            print(f"\ncontext {context}: prefill {n - done} tokens, {(n - done) / seconds:.0f} tok/s")
            rows = options.rows or [n for n in ROWS if context <= 8192 or n in (1, 8, GOAL_ROWS, 64)]
            steps = step_times(rig, text[:context], options.rounds, options.steps, rows)
            plain = median(steps[1].wall_us) / 1e3
            read = weights + context * 16 * 2 * 4 * 256 * 2 + rig.session.memory().recurrent_bytes * 2
            print(f"plain {plain:.3f} ms; {read / 1e9:.2f} GB read, {read / plain / 1e9:.2f} TB/s", end="")
            print(f", {1e3 * read / plain / bandwidth:.2f} of the copy" if bandwidth else "")
            print("rows  step ms               draft  verify  commit  host (as the step records them)")
            for n_rows, reply in steps.items():
                parts = [median(getattr(reply, f"{name}_us")) / 1e3 for name in ("draft", "verify", "commit", "host")]
                walls = spread([us / 1e3 for us in reply.wall_us])
                print(f"{n_rows:4d}  {walls:20s} " + "".join(f"{part:8.3f}" for part in parts))
            ratio = median(steps[GOAL_ROWS].wall_us) / 1e3 / plain
            commits = commit_times(rig, text[:context], 20)
            print("commit ms by rows kept: " + ", ".join(f"{n_kept}: {ms:.3f}" for n_kept, ms in commits.items()))
            print(f"step({GOAL_ROWS}) / plain = {ratio:.3f}", flush=True)
            result[str(context)] = {
                "prefill_tokens_per_second": (n - done) / seconds,
                "plain_ms": plain,
                "bytes_per_second": 1e3 * read / plain,
                "ratio": ratio,
                "commit_ms": commits,
                "steps": {n_rows: vars(reply) for n_rows, reply in steps.items()},
            }
            done = n
        shape = {"context_tokens": 1024, "kv_k": kv, "kv_v": kv}
        result["bytes_per_node"] = bytes_per_node(rig, **shape)
        print(f"memory per node {result['bytes_per_node'] / 2**20:.2f} MiB")
    return result


def measure_small(options: argparse.Namespace) -> dict[str, Any]:
    library = Library(options.library)
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    prompts = [prompt["ids"] for prompt in stored["prompts"]][: options.prompts]
    modes: list[tuple[str, str, dict[str, int]]] = [("plain", "plain", {}), ("chain", "chain", {})]
    modes += [(f"tree {budget}", "tree", {"tree_budget": budget}) for budget in (7, 15, 22, 31)]
    modes += [("auto", "auto", {})]
    models = Path(__file__).parents[2] / "support" / "models"
    mini = [models / f"{name}-q8_0.gguf" for name in ("qwen35-mini", "qwen35-mini-dflash")]
    target, draft = options.pair or mini
    kv = KV_TYPES[options.kv]
    rates: dict[str, list[Reply]] = {label: [] for label, _, _ in modes}
    with Rig(library, target, draft, device=options.device, context_tokens=2048, kv_k=kv, kv_v=kv) as rig:
        for turn in range(options.rounds + 1):
            for prompt in prompts:
                for label, mode, settings in modes:
                    reply = rig.generate(prompt, mode, max_tokens=options.tokens, ignore_stop=1, **settings)
                    if turn > 0:
                        rates[label].append(reply)
    print(f"\n{target.stem}: {len(prompts)} prompts, {options.tokens} tokens each, {options.rounds} rounds")
    print("mode       tok/s  AL    nodes  median step us (draft verify commit host), time in steps over twice it")
    result = {}
    for label, replies in rates.items():
        speed = sum(len(r.tokens) for r in replies) / sum(sum(r.wall_us) for r in replies) * 1e6
        accepted = sum(len(r.tokens) for r in replies) / sum(len(r.wall_us) for r in replies)
        parts = [
            median([us for r in replies for us in getattr(r, f"{name}_us")])
            for name in ("wall", "draft", "verify", "commit", "host")
        ]
        rest = " ".join(f"{part:.0f}" for part in parts[1:])
        walls = np.array([us for r in replies for us in r.wall_us])
        slow = 100 * walls[walls > 2 * parts[0]].sum() / walls.sum()
        nodes = float(np.mean([n for r in replies for n in r.drafted]))
        print(f"{label:8s} {speed:7.0f}  {accepted:.2f}  {nodes:5.1f}  {parts[0]:6.0f} ({rest}), {slow:.0f} %")
        result[label] = {"tokens_per_second": speed, "accepted": accepted}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    big, small = kinds.add_parser("big"), kinds.add_parser("small")
    for one in (big, small):
        one.add_argument("library", type=Path)
        one.add_argument("--device", default="CUDA0")
        one.add_argument("--kv", default="f16", choices=KV_TYPES)
        one.add_argument("--rounds", type=int, default=2)
        one.add_argument("--json", type=Path, help="keep the numbers here")
    big.add_argument("target", type=Path)
    big.add_argument("draft", type=Path)
    big.add_argument("--contexts", type=int, nargs="+", default=[1024, 8192, 32768])
    big.add_argument("--rows", type=int, nargs="+", help="of the verifies, 1 and 23 among them")
    big.add_argument("--steps", type=int, default=8, help="steps that count per round and row count")
    small.add_argument("--pair", type=Path, nargs=2, help="target and draft; without, the small hybrid pair")
    small.add_argument("--prompts", type=int, default=10)
    small.add_argument("--tokens", type=int, default=160)
    options = parser.parse_args()
    result = measure_big(options) if options.kind == "big" else measure_small(options)
    if options.json:
        options.json.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
