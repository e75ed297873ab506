"""What a follow-up question costs with a kept scorer: the same text, asked again, beside its first question.

    python -m bench.pflash_follow_up [--scorer F] [--tokens N ...] [--rounds N] [--json]

from the folder `tests`. Through the engine's lane, with the scorer's own tokens, as the proxy asks. Each round has a
text of its own, a first question and two more in the same conversation; medians of the time from asking to the choice.
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
import time
from pathlib import Path

from bench.machine import describe
from bench.needle_texts import NEEDLES, haystack
from dflash_desktop.binding.native import NativeFile
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import Event, JobFailed
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed
from dflash_desktop.engine.requests import ChatPrompt, CompressPrompt
from dflash_desktop.engine.tokens import Tokenizer
from native.oracles.prompts import starter_pair
from support.native_library import load_library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scorer", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2000, 8000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    scorer = options.scorer or starter_pair()[0]
    library = load_library()
    with NativeFile(library, scorer) as file:
        tokenizer = Tokenizer(file, scorer.name)
    heard: queue.SimpleQueue[Event] = queue.SimpleQueue()
    engine = Engine(PairLoader(library))
    engine.start()
    pflash = PflashOptions("always", scorer, "0.2", keep_loaded=True)

    def ask(messages: list[dict[str, str]]) -> float:
        began = time.perf_counter()
        engine.submit(CompressPrompt(ChatPrompt(messages), pflash, heard.put, counts_by_scorer=True))
        while not isinstance(event := heard.get(), PromptCompressed):
            if isinstance(event, JobFailed):
                raise SystemExit(event.message)
        if event.compression is None:
            raise SystemExit(event.why_not)
        return time.perf_counter() - began

    rows = []
    try:
        for n_tokens in options.tokens:
            first: list[float] = []
            later: list[float] = []
            for seed in range(options.rounds + 1):
                text = haystack("prose", seed, n_tokens, lambda text: len(tokenizer.encode(text)))
                messages = [{"role": "user", "content": f"{text}\n\n{NEEDLES[0].asked}"}]
                asked = ask(messages)
                for needle in NEEDLES[1:3]:
                    messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": needle.asked}]
                    if seed:  # the first round opens the scorer
                        later.append(ask(messages))
                if seed:
                    first.append(asked)
            began, again = statistics.median(first), statistics.median(later)
            rows.append({"tokens": n_tokens, "first_s": began, "follow_up_s": again, "ratio": again / began})
    finally:
        engine.close()
    if options.json:
        print(json.dumps({"machine": describe(), "scorer": scorer.name, "rows": rows}, indent=2))
        return
    print(f"scorer {scorer.name}\n| text | first question, s | follow-up, s | ratio |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['tokens']} | {row['first_s']:.3f} | {row['follow_up_s']:.3f} | {row['ratio']:.3f} |")


if __name__ == "__main__":
    main()
