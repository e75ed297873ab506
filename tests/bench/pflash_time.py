"""Time to the first token with PFlash and without: the same prompts, in turn, medians; and the scorer's memory.

    python -m bench.pflash_time [--target F] [--scorer F] [--tokens N ...] [--keep R] [--threads N] [--runs N] [--json]
    python -m bench.pflash_time --memory [--scorer F] [--tokens N ...]

from the folder `tests`. Through the engine's lane, as the window and the server ask; the scorer stays loaded. Nothing
is reused between requests. `--memory`: what the process holds (Linux) after a text of each length was scored, over what
it held before, beside what the plan said.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
from pathlib import Path

from bench.machine import describe
from bench.needle_texts import haystack
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import Event, GenerationDone, JobFailed, PairLoaded, PromptReady
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed
from dflash_desktop.engine.pflash.scorer import plan_memory
from dflash_desktop.engine.requests import ChatPrompt, Generate, LoadOptions, LoadPair
from native.oracles.prompts import starter_pair
from support.native_library import load_library

QUESTION = "How do visitors log into the wifi?"


HEAD = (
    "| prompt | kept | TTFT whole, s | TTFT with PFlash, s | of it scoring | ratio | scorer, MiB beside weights |\n"
    "|---|---|---|---|---|---|---|"
)


def table_line(row: dict[str, float]) -> str:
    return (
        f"| {row['tokens']} | {row['kept']} | {row['whole_s']:.1f} | {row['pflash_s']:.1f} | {row['score_s']:.1f} "
        f"| {row['ratio']:.2f} | {row['scorer_mib']:.0f} |"
    )


def resident_bytes() -> int:
    """Of this process, now. Linux only."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def print_memory(path: Path, lengths: list[int], n_threads: int) -> None:
    library = load_library()
    with NativeTarget(library, path, device=0, n_threads=n_threads) as target:
        while not target.load_piece().is_complete:
            pass
        print(f"scorer {path.name}\n| text, tokens | planned beside weights, MiB | measured, MiB |\n|---|---|---|")
        before = resident_bytes()
        for n in lengths:
            with NativeScorer(target, sized(abi.ScorerParams, text_tokens=n)) as scorer:
                scorer.begin([i * 7919 % 5000 + 20 for i in range(n)], list(range(100, 132)))
                while not scorer.run().is_complete:
                    pass
                memory = scorer.memory()
                planned = memory.kv_cache_bytes + memory.recurrent_bytes + memory.compute_bytes
                print(f"| {n} | {planned / 2**20:.1f} | {(resident_bytes() - before) / 2**20:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--scorer", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2000, 4000, 7800])
    parser.add_argument("--keep", default="0.2")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    target = options.target or starter_pair()[0]
    scorer = options.scorer or starter_pair()[0]
    if options.memory:
        print_memory(scorer, options.tokens, options.threads)
        return
    library = load_library()
    engine = Engine(PairLoader(library))
    engine.start()
    heard: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def ask(job: Generate | LoadPair) -> list[Event]:
        engine.submit(job)
        events: list[Event] = []
        while not events or not isinstance(events[-1], (GenerationDone, PairLoaded, JobFailed)):
            events.append(heard.get())
        if isinstance(events[-1], JobFailed):
            raise SystemExit(events[-1].message)
        return events

    rows = []
    if not options.json:
        print(f"target {target.name}, scorer {scorer.name}, keep {options.keep}\n{HEAD}", flush=True)
    try:
        load = LoadOptions(context_tokens=max(options.tokens) + 392, n_threads=options.threads)
        loaded = ask(LoadPair(target, None, load, heard.put))[-1]
        assert isinstance(loaded, PairLoaded)
        assert loaded.reader is not None
        reader = loaded.reader
        for n_tokens in options.tokens:
            text = haystack(
                "prose", n_tokens, n_tokens, lambda text: len(reader.tokenize(text, has_control_tokens=False))
            )
            prompt = ChatPrompt([{"role": "user", "content": f"{text}\n\n{QUESTION}"}])
            times: dict[str, list[float]] = {"off": [], "always": []}
            scoring: list[float] = []
            lengths = {}
            for _ in range(options.runs):
                for mode in ("off", "always"):
                    pflash = PflashOptions(
                        "always" if mode == "always" else "off", scorer, options.keep, keep_loaded=True
                    )
                    events = ask(Generate(prompt, heard.put, max_tokens=1, reuse_prefix=False, pflash=pflash))
                    done = events[-1]
                    assert isinstance(done, GenerationDone)
                    loading = sum(event.load_s for event in events if isinstance(event, PromptCompressed))
                    times[mode].append(done.ttft_s - loading)
                    scoring += [event.score_s for event in events if isinstance(event, PromptCompressed)]
                    lengths[mode] = next(event.n_prompt_tokens for event in events if isinstance(event, PromptReady))
            whole, short = (statistics.median(times[mode]) for mode in ("off", "always"))
            memory = plan_memory(library, scorer, device=0, n_text_tokens=n_tokens)
            rows.append({
                "tokens": lengths["off"], "kept": lengths["always"], "whole_s": whole, "pflash_s": short,
                "score_s": statistics.median(scoring), "ratio": short / whole,
                "scorer_mib": (memory.kv_cache_bytes + memory.compute_bytes) / 2**20,
            })  # fmt: skip
            if not options.json:
                print(table_line(rows[-1]), flush=True)
    finally:
        engine.close()
    if options.json:
        print(json.dumps({"machine": describe(), "target": target.name, "scorer": scorer.name, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
