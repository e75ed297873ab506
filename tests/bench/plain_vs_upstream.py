"""Prefill and plain decoding beside upstream llama.cpp's: same file, same threads, in turn, medians.

    python -m bench.plain_vs_upstream [--target F] [--threads N] [--runs N] [--tokens N] [--prompt-tokens N]

from the folder `tests`. Each side runs in a process of its own that loads once and then answers on demand, so that the
two never compute at the same time. Needs the extra `test` (xllamacpp).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.machine import describe
from native.oracles import upstream
from native.oracles.prompts import MEASURED, chat_ids, starter_pair


def _serve_ours(target: Path, n_threads: int) -> None:
    from native.oracles.rig import Rig

    with Rig(target, n_threads=n_threads, context=2048) as rig:
        for line in sys.stdin:
            asked = json.loads(line)
            rig.reset()
            start = time.perf_counter()
            rig.begin(asked["prompt"], max_tokens=1, draft_mode=3)
            rig.session.step()  # the last token of the prompt
            prefill_s = time.perf_counter() - start
            rig.reset()
            rig.begin(asked["ids"], max_tokens=asked["n"], draft_mode=3, ignore_stop=1)
            rig.session.step()
            start = time.perf_counter()
            for _ in range(asked["n"] - 1):
                rig.session.step()
            decode_s = time.perf_counter() - start
            _answer(len(asked["prompt"]) / prefill_s, (asked["n"] - 1) / decode_s)


def _serve_upstream(target: Path, n_threads: int) -> None:
    # Upstream's defaults: flash attention, F16 cache, 512 rows per pass.
    context = upstream.Context(
        {"model": str(target), "batch": 512, "n_threads": n_threads, "flash": True, "kv": upstream.F16}
    )
    for line in sys.stdin:
        asked = json.loads(line)
        context.clear()
        start = time.perf_counter()
        for at in range(0, len(asked["prompt"]), 512):
            context.feed(asked["prompt"][at : at + 512], is_last_only=True)
        prefill_s = time.perf_counter() - start
        context.clear()
        token = int(context.feed(asked["ids"], is_last_only=True)[-1].argmax())
        token = int(context.feed([token])[-1].argmax())
        start = time.perf_counter()
        for _ in range(asked["n"] - 1):
            token = int(context.feed([token])[-1].argmax())
        decode_s = time.perf_counter() - start
        _answer(len(asked["prompt"]) / prefill_s, (asked["n"] - 1) / decode_s)


def _answer(prefill_tps: float, decode_tps: float) -> None:
    print(json.dumps({"prefill": prefill_tps, "decode": decode_tps}), flush=True)


def _start(side: str, arguments: argparse.Namespace) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.plain_vs_upstream", "--side", side, "--target", str(arguments.target)]
    return subprocess.Popen(
        [*command, "--threads", str(arguments.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _ask(child: subprocess.Popen[str], prompt: list[int], ids: list[int], n: int) -> dict[str, float]:
    assert child.stdin
    assert child.stdout
    child.stdin.write(json.dumps({"prompt": prompt, "ids": ids, "n": n}) + "\n")
    child.stdin.flush()
    found: dict[str, float] = json.loads(child.stdout.readline())
    return found


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Medians of both sides and of the pairwise ratio."""
    children = {side: _start(side, arguments) for side in ("ours", "upstream")}
    prompts = [chat_ids(question) for question in MEASURED]
    long = [token for ids in prompts * 8 for token in ids][: arguments.prompt_tokens]
    figures: dict[str, list[dict[str, float]]] = {side: [] for side in children}
    for run in range(arguments.runs + 1):  # the first warms up and does not count
        for side, child in children.items() if run % 2 else reversed(list(children.items())):
            found = _ask(child, long, prompts[run % len(prompts)], arguments.tokens)
            if run:
                figures[side].append(found)
    for child in children.values():
        assert child.stdin
        child.stdin.close()
        child.wait()
    result: dict[str, Any] = {
        "machine": describe(),
        "target": arguments.target.name,
        "threads": arguments.threads,
        "tokens": arguments.tokens,
        "prompt_tokens": len(long),
        "runs": arguments.runs,
    }
    for what in ("prefill", "decode"):
        pairs = list(zip(figures["ours"], figures["upstream"], strict=True))
        ratios = [ours[what] / theirs[what] for ours, theirs in pairs]
        result[what] = {
            "ours_tps": round(statistics.median(ours[what] for ours, _ in pairs), 1),
            "upstream_tps": round(statistics.median(theirs[what] for _, theirs in pairs), 1),
            "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, default=None)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--side", choices=("ours", "upstream"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.target = arguments.target or starter_pair()[0]
    if arguments.side == "ours":
        _serve_ours(arguments.target, arguments.threads)
    elif arguments.side == "upstream":
        _serve_upstream(arguments.target, arguments.threads)
        sys.stdout.flush()
        os._exit(0)  # upstream's own teardown is not under test
    else:
        print(json.dumps(measure(arguments), indent=2))


if __name__ == "__main__":
    main()
