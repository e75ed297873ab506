"""Our engine beside upstream llama.cpp's own DFlash: same files, same threads, prompt by prompt in turn.

    python -m bench.dflash_vs_upstream [--pair starter|qwen35-mini] [--threads N] [--runs N] [--tokens N] [--json]

from the folder `tests`. Prompts, limits and the count of acceptance are those with which the drafts were measured when
they were made (support/models/README.md). Three processes hold the models: ours, upstream's server without a draft and
upstream's server with it; only one computes at a time. Medians over runs; ratios are taken pair by pair before their
median. Microseconds per stage are ours. Needs the extra `test` (xllamacpp).

`--save-replies` writes upstream's replies for tests/native/test_acceptance.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.machine import describe
from native.oracles import upstream
from native.oracles.prompts import MEASURED, chat_ids, starter_pair
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

REPLIES = Path(__file__).parents[1] / "support" / "references" / "upstream_acceptance.json"
N_MAX = 7  # the whole block
OURS: dict[str, dict[str, float]] = {
    "plain": {"draft_mode": 3},
    "chain": {"draft_mode": 2},
    "tree 22": {"draft_mode": 1, "tree_budget": 22},
    "auto": {"draft_mode": 0},
}
Figures = dict[str, Any]


def files_of(pair: str) -> tuple[Path, Path]:
    return starter_pair() if pair == "starter" else (QWEN35_MINI, QWEN35_MINI_DRAFT)


# ---- the three sides, each in a process of its own: a JSON line in, a JSON line out ----------------------------


def _serve_ours(pair: str, n_threads: int) -> None:
    import time

    from native.oracles.rig import Rig

    with Rig(*files_of(pair), n_threads=n_threads, context=2048) as rig:
        for line in sys.stdin:
            asked = json.loads(line)
            start = time.perf_counter()
            rig.begin(asked["ids"], max_tokens=asked["n"], no_reuse=1, **OURS[asked["mode"]])
            begun = time.perf_counter()
            reply = rig.finish()
            seconds = time.perf_counter() - begun
            steps = reply.steps
            answer = {
                "ids": reply.tokens,
                "seconds": seconds,
                "prefill_s": begun - start,
                # Upstream has its first token from the prompt, a pass that it counts.
                "passes": len(steps) + (asked["mode"] != "plain"),
                "al": reply.acceptance_length,
                "stages": {
                    name: statistics.fmean(getattr(step, f"{name}_us") for step in steps)
                    for name in ("draft", "verify", "commit", "host")
                },
                "rows": statistics.fmean(step.n_drafted + 1 for step in steps),
            }
            print(json.dumps(answer), flush=True)


def _serve_upstream(pair: str, n_threads: int, *, has_draft: bool) -> None:
    import http.client
    from urllib.parse import urlsplit

    import xllamacpp

    target, draft = files_of(pair)
    params = xllamacpp.CommonParams()
    params.model.path = str(target)
    params.n_ctx, params.n_parallel, params.warmup, params.port = 2048, 1, True, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = n_threads
    if has_draft:
        kind = xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH
        params.speculative.types = [kind]
        params.speculative.draft.mparams.path = str(draft)
        params.speculative.draft.n_max = N_MAX
    with contextlib.redirect_stdout(sys.stderr):
        server = xllamacpp.Server(params)
    address = urlsplit(server.listening_address)
    for line in sys.stdin:
        asked = json.loads(line)
        body = {
            "prompt": asked["ids"],
            "n_predict": asked["n"],
            "temperature": 0,
            "cache_prompt": False,
            "return_tokens": True,
        }
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
        found = json.loads(connection.getresponse().read())
        times = found["timings"]
        answer = {
            "ids": found["tokens"],
            "seconds": times["predicted_ms"] / 1000,
            "prefill_s": times["prompt_ms"] / 1000,
            "passes": times["predicted_n"] - times.get("draft_n_accepted", 0),
            "n": times["predicted_n"],
        }
        print("answer: " + json.dumps(answer), flush=True)
    sys.stdout.flush()
    os._exit(0)  # upstream's own teardown is not under test


def _start(side: str, arguments: argparse.Namespace) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.dflash_vs_upstream", "--side", side]
    return subprocess.Popen(
        [*command, "--pair", arguments.pair, "--threads", str(arguments.threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _ask(child: subprocess.Popen[str], ids: list[int], n: int, mode: str = "") -> Figures:
    assert child.stdin
    assert child.stdout
    child.stdin.write(json.dumps({"ids": ids, "n": n, "mode": mode}) + "\n")
    child.stdin.flush()
    while True:  # the library prints a line of its own now and then
        line = child.stdout.readline()
        assert line, f"a side ended with {child.wait()}"
        line = line.removeprefix("answer: ")
        if line.startswith("{"):
            found: Figures = json.loads(line)
            return found


def measure(arguments: argparse.Namespace) -> dict[str, list[list[Figures]]]:
    """Way of decoding -> runs -> prompts."""
    children = {side: _start(side, arguments) for side in ("ours", "upstream", "upstream-draft")}
    ways = [("upstream plain", "upstream", ""), ("upstream chain", "upstream-draft", "")]
    ways += [(f"ours {mode}", "ours", mode) for mode in OURS]
    prompts = [chat_ids(question) for question in MEASURED[: arguments.prompts]]
    found: dict[str, list[list[Figures]]] = defaultdict(list)
    for _, side, mode in ways:
        _ask(children[side], prompts[0], 8, mode)  # warms up
    for run in range(arguments.runs):
        turn: dict[str, list[Figures]] = defaultdict(list)
        for ids in prompts:
            for name, side, mode in ways[run % len(ways) :] + ways[: run % len(ways)]:
                turn[name].append(_ask(children[side], ids, arguments.tokens, mode))
            print(".", end="", file=sys.stderr, flush=True)
        for name, figures in turn.items():
            found[name].append(figures)
    print(file=sys.stderr)
    for child in children.values():
        assert child.stdin
        child.stdin.close()
        child.wait()
    return found


def summary(found: dict[str, list[list[Figures]]]) -> list[Figures]:
    """One row per way: acceptance as upstream counts it, speed, and speed over upstream's plain and chain."""

    def tps(name: str, run: int) -> float:
        turn = found[name][run]
        return float(sum(len(one["ids"]) for one in turn) / sum(one["seconds"] for one in turn))

    rows = []
    n_runs = len(found["ours plain"])
    for name, runs in found.items():
        first = runs[0]
        row: Figures = {"way": name, "tokens": sum(len(one["ids"]) for one in first)}
        row["al"] = row["tokens"] / sum(one["passes"] for one in first)
        row["tps"] = statistics.median(tps(name, run) for run in range(n_runs))
        for other in ("upstream plain", "upstream chain", "ours plain"):
            row[f"over {other}"] = statistics.median(tps(name, run) / tps(other, run) for run in range(n_runs))
        row["same_text"] = sum(a["ids"] == b["ids"] for a, b in zip(first, found["upstream plain"][0], strict=True))
        if "stages" in first[0]:
            row["stages_us"] = {
                stage: round(statistics.fmean(one["stages"][stage] for turn in runs for one in turn))
                for stage in first[0]["stages"]
            }
            row["rows"] = statistics.fmean(one["rows"] for one in first)
        rows.append(row)
    return rows


def table(rows: list[Figures]) -> str:
    lines = [
        (
            "| way | tokens | AL | tok/s | over upstream plain | over upstream chain | over ours plain | same text "
            "| rows | draft, verify, commit, host (us per step) |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        stages = ", ".join(str(us) for us in row["stages_us"].values()) if "stages_us" in row else ""
        n_rows = f"{row['rows']:.1f}" if "rows" in row else ""
        lines.append(
            f"| {row['way']} | {row['tokens']} | {row['al']:.2f} | {row['tps']:.1f} | {row['over upstream plain']:.2f} "
            f"| {row['over upstream chain']:.2f} | {row['over ours plain']:.2f} | {row['same_text']} | {n_rows} "
            f"| {stages} |"
        )
    return "\n".join(lines)


def save_replies(pair: str, found: dict[str, list[list[Figures]]]) -> None:
    stored = json.loads(REPLIES.read_text("utf-8")) if REPLIES.exists() else {}
    stored["made_by"] = upstream.version()
    stored[pair] = [{"ids": one["ids"], "passes": one["passes"]} for one in found["upstream chain"][0]]
    REPLIES.write_text(json.dumps(stored) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", choices=("starter", "qwen35-mini"), default="starter")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--prompts", type=int, default=len(MEASURED))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save-replies", action="store_true")
    parser.add_argument("--side", choices=("ours", "upstream", "upstream-draft"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side == "ours":
        _serve_ours(arguments.pair, arguments.threads)
    elif arguments.side:
        _serve_upstream(arguments.pair, arguments.threads, has_draft=arguments.side == "upstream-draft")
    else:
        found = measure(arguments)
        if arguments.save_replies:
            save_replies(arguments.pair, found)
        rows = summary(found)
        print(json.dumps({"machine": describe(), "rows": rows}, indent=2) if arguments.json else table(rows))


if __name__ == "__main__":
    main()
