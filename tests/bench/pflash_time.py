"""Time to the first token with PFlash and without: the same prompts, in turn, medians; and the scorer's memory.

    python -m bench.pflash_time [--target F] [--scorer F] [--tokens N ...] [--keep R] [--threads N] [--runs N] [--json]

from the folder `tests`. Through the engine's lane, as the window and the server ask; the scorer stays loaded. Nothing
is reused between requests.
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
from pathlib import Path

from bench.machine import describe
from bench.pflash_needles import haystack
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import Event, GenerationDone, JobFailed, PairLoaded, PromptReady
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed
from dflash_desktop.engine.pflash.scorer import plan_memory
from dflash_desktop.engine.requests import ChatPrompt, Generate, LoadOptions, LoadPair
from native.oracles.prompts import starter_pair
from support.native_library import load_library

QUESTION = "How do visitors log into the wifi?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--scorer", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2000, 4000, 7800])
    parser.add_argument("--keep", default="0.2")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    target = options.target or starter_pair()[0]
    scorer = options.scorer or starter_pair()[0]
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
    finally:
        engine.close()
    if options.json:
        print(json.dumps({"machine": describe(), "target": target.name, "scorer": scorer.name, "rows": rows}, indent=2))
        return
    print(f"target {target.name}, scorer {scorer.name}, keep {options.keep}")
    print(
        "| prompt | kept | TTFT whole, s | TTFT with PFlash, s | of it scoring | ratio | scorer, MiB beside weights |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['tokens']} | {row['kept']} | {row['whole_s']:.1f} | {row['pflash_s']:.1f} | {row['score_s']:.1f} "
            f"| {row['ratio']:.2f} | {row['scorer_mib']:.0f} |"
        )


if __name__ == "__main__":
    main()
