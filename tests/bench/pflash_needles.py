"""How often PFlash keeps what a question needs: needles in five kinds of text, beside three ways without a model.

    python -m bench.pflash_needles [--held-out] [--kinds K ...] [--scorer F] [--tokens N] [--seeds N] [--threads N]
                                   [--json]

from the folder `tests`. A text of about N tokens holds six needles at depths from 0 to 100 %. Each is asked for in
other words than it is written in (`paraphrased`), the same with a clause before or behind it that asks nothing (`led
in`, `led out`), and in the same words (`exact`, to show what matching words is worth); ten questions want three of them
at once. Kept: every needle is in what is kept at that ratio. All ways choose among the same units with the same budget.
`scorer` is what rating alone keeps; `ours` adds the literal anchors, as the product; `as a whole` is ours without the
clauses' turns. `--held-out`: other needles among other sentences, to be looked at when a rule is chosen, not for
choosing it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.machine import describe
from bench.needle_texts import HELD_OUT, KINDS, LEAD_INS, LEAD_OUTS, NEEDLES, THREES, Needle, haystack, three_at_once
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import NativeFile, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.pflash.clauses import clauses
from dflash_desktop.engine.pflash.rating import NEUTRAL, Usual, question_tokens, rate
from dflash_desktop.engine.pflash.scorer import CHATML_TAIL
from dflash_desktop.engine.pflash.segments import cut
from dflash_desktop.engine.pflash.selection import Unit, select
from dflash_desktop.engine.tokens import Tokenizer
from native.oracles.prompts import starter_pair
from support.generators import finished
from support.native_library import load_library

RATIOS = (0.05, 0.1, 0.2, 0.3)


def bm25(bodies: Sequence[str], question: str) -> list[float]:
    """Okapi BM25 with its usual constants, k1 = 1.5 and b = 0.75."""
    split = [re.findall(r"[^\W_]+", body.casefold()) for body in bodies]
    mean = sum(map(len, split)) / len(split)
    holders = Counter(word for words in split for word in set(words))
    scores = []
    for words in split:
        own = Counter(words)
        score = 0.0
        for word in set(re.findall(r"[^\W_]+", question.casefold())):
            rarity = math.log(1 + (len(split) - holders[word] + 0.5) / (holders[word] + 0.5))
            score += rarity * own[word] * 2.5 / (own[word] + 1.5 * (0.25 + 0.75 * len(words) / mean))
        scores.append(score)
    return scores


def questions(needles: Sequence[Needle]) -> list[tuple[str, str, list[Needle]]]:
    """How each asks, the question, and the needles that answer it."""
    return [
        *(("paraphrased", needle.asked, [needle]) for needle in needles),
        *(("led in", LEAD_INS[i % len(LEAD_INS)] + needle.asked, [needle]) for i, needle in enumerate(needles)),
        *(
            ("led out", needle.asked.rstrip("?") + LEAD_OUTS[i % len(LEAD_OUTS)], [needle])
            for i, needle in enumerate(needles)
        ),
        *(("exact", needle.exact, [needle]) for needle in needles),
        *(("three at once", *three_at_once(needles, which)) for which in range(len(THREES))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scorer", type=Path)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    path = options.scorer or starter_pair()[0]
    needles = HELD_OUT if options.held_out else NEEDLES
    library = load_library()
    with NativeFile(library, path) as file:
        tokenizer = Tokenizer(file, path.name)

    def count(text: str) -> int:
        return len(tokenizer.encode(text))

    kept: dict[tuple[str, str, float], list[bool]] = defaultdict(list)  # (asked how, way, ratio)
    by_kind: dict[tuple[str, str], list[bool]] = defaultdict(list)  # ours at 0.2
    with NativeTarget(library, path, device=0, n_threads=options.threads) as target:
        while not target.load_piece().is_complete:
            pass
        with NativeScorer(target, sized(abi.ScorerParams, text_tokens=options.tokens * 2)) as scorer:
            usual = Usual()
            neutral = question_tokens(tokenizer, [(NEUTRAL, 1.0)], CHATML_TAIL)
            for kind in options.kinds:
                for seed in range(options.seeds):
                    text = haystack(kind, seed, options.tokens, count, needles)
                    segments = cut(text)
                    bodies = [text[segment.start : segment.end] for segment in segments]
                    plain = [Unit(segment, count(body), 0.0) for segment, body in zip(segments, bodies, strict=True)]
                    total = sum(unit.n_tokens for unit in plain)
                    for how, question, wanted in questions(needles):
                        asking = question_tokens(tokenizer, [(question, 1.0)], CHATML_TAIL)
                        parts = [question_tokens(tokenizer, [(part, 1.0)], CHATML_TAIL) for part in clauses(question)]
                        rated = finished(rate(scorer, tokenizer.encode, bodies, asking, neutral, usual, parts))
                        as_whole = (
                            finished(rate(scorer, tokenizer.encode, bodies, asking, neutral, usual)) if parts else rated
                        )
                        rng = random.Random(f"{kind}{seed}{question}")
                        ways = {
                            "ours": (rated, question),
                            "scorer": (rated, ""),
                            "as a whole": (as_whole, question),
                            "BM25": (bm25(bodies, question), ""),
                            "recency": ([float(i + 1) for i in range(len(bodies))], ""),
                            "random": ([rng.random() for _ in bodies], ""),
                        }
                        for way, (scores, words) in ways.items():
                            units = [replace(unit, score=score) for unit, score in zip(plain, scores, strict=True)]
                            for ratio in RATIOS:
                                chosen = select(text, units, words, int(ratio * total))
                                there = [
                                    any(
                                        unit.is_kept and needle.fact in body
                                        for unit, body in zip(chosen, bodies, strict=True)
                                    )
                                    for needle in wanted
                                ]
                                kept[how, way, ratio].append(all(there))
                                if way == "ours" and ratio == 0.2:
                                    by_kind[how, kind].append(all(there))
    rows = {f"{how}, {way}": [sum(kept[how, way, r]) / len(kept[how, way, r]) for r in RATIOS] for how, way, _ in kept}
    if options.json:
        cases = {how: len(kept[how, "ours", 0.2]) for how, _, _ in kept}
        told = {"machine": describe(), "scorer": path.name, "ratios": RATIOS, "cases": cases, "kept": rows}
        print(json.dumps(told, indent=2))
        return
    print(f"scorer {path.name}, texts of {options.tokens} tokens, {options.seeds} of each kind")
    print("| asked | way | " + " | ".join(f"keep {ratio}" for ratio in RATIOS) + " |")
    print("|---|---|" + "---|" * len(RATIOS))
    for name, values in rows.items():
        how, way = name.split(", ")
        print(f"| {how} | {way} | " + " | ".join(f"{value:.0%}" for value in values) + " |")
    print("ours at 0.2 by kind: " + ", ".join(f"{how} {kind} {sum(v)}/{len(v)}" for (how, kind), v in by_kind.items()))


if __name__ == "__main__":
    main()
