"""How often PFlash keeps what a question needs: needles in five kinds of text, beside three ways without a model.

    python -m bench.pflash_needles [--scorer F] [--tokens N] [--seeds N] [--threads N] [--json]

from the folder `tests`. A text of about N tokens holds six needles at depths from 0 to 100 %. Each is asked for in
other words than it is written in (`exact`: in the same words, to show what matching words is worth); the last question
wants three of them at once. Kept: every needle is in what is kept at that ratio. All ways choose among the
same units with the same budget. `scorer` is what rating alone keeps; `ours` adds the literal anchors, as the product.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.machine import describe
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import NativeFile, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.pflash.rating import NEUTRAL, question_tokens, rate
from dflash_desktop.engine.pflash.scorer import CHATML_TAIL
from dflash_desktop.engine.pflash.segments import cut
from dflash_desktop.engine.pflash.selection import Unit, select
from dflash_desktop.engine.tokens import Tokenizer
from native.oracles.prompts import starter_pair
from support.native_library import load_library

RATIOS = (0.05, 0.1, 0.2, 0.3)
KINDS = ("prose", "code", "json", "chat", "table")


@dataclass(frozen=True)
class Needle:
    fact: str  # in prose
    key: str  # names it in code, JSON and tables
    value: str
    asked: str  # in other words
    exact: str  # in its own


NEEDLES = (
    Needle(
        "Maria keeps her spare house key under the third flower pot.",
        "spare_house_key_place",
        "third flower pot",
        "Where does she hide the extra one for the front door?",
        "Where does Maria keep her spare house key?",
    ),
    Needle(
        "Doctor Halvorsen recommends ginger tea before every flight.",
        "drink_before_flight",
        "ginger tea",
        "What should I have to drink when I travel by plane?",
        "What does Doctor Halvorsen recommend before every flight?",
    ),
    Needle(
        "The red bicycle in the garage belongs to Elena.",
        "red_bicycle_owner",
        "Elena",
        "Who owns the bike?",
        "Who does the red bicycle in the garage belong to?",
    ),
    Needle(
        "The lighthouse at Cape Ferro was painted yellow after the storm.",
        "lighthouse_paint",
        "yellow",
        "Which colour does the tower on the coast have now?",
        "What colour was the lighthouse at Cape Ferro painted?",
    ),
    Needle(
        "The password of the guest network is sunflower.",
        "guest_network_password",
        "sunflower",
        "How do visitors log into the wifi?",
        "What is the password of the guest network?",
    ),
    Needle(
        "The meeting with the Norwegian delegation was moved to Thursday.",
        "norwegian_meeting_day",
        "Thursday",
        "When will we see the people from Oslo?",
        "To which day was the meeting with the Norwegian delegation moved?",
    ),
)
THREE = "Who owns the bike, how do visitors log into the wifi, and what should I drink on a plane?"
THREE_OF = (1, 2, 4)

_SUBJECTS = (
    "The council",
    "A farmer",
    "The old ferry",
    "Our neighbour",
    "The school",
    "A young clerk",
    "The mill",
    "The choir",
)
_VERBS = ("repaired", "described", "measured", "forgot", "sold", "painted", "visited", "counted")
_OBJECTS = ("the bridge", "seven wells", "a road to the hills", "the price of bread", "two orchards", "the town hall")
_ENDS = (
    "in spring",
    "before the harvest",
    "without much talk",
    "for the third time",
    "on a wet morning",
    "as in other years",
)


def _sentence(rng: random.Random) -> str:
    return " ".join(map(rng.choice, (_SUBJECTS, _VERBS, _OBJECTS, _ENDS))) + "."


def _filler(kind: str, rng: random.Random, i: int) -> str:
    word = (
        rng.choice(("load", "merge", "parse", "send", "order", "trim"))
        + "_"
        + rng.choice(("rows", "names", "parts", "dates"))
    )
    if kind == "prose":
        return " ".join(_sentence(rng) for _ in range(4)) + "\n\n"
    if kind == "code":
        return (
            f"def {word}_{i}(values):\n    total = {rng.randrange(90)}\n    for value in values:\n"
            f"        total += value * {rng.randrange(9)}\n    return total\n\n\n"
        )
    if kind == "json":
        return (
            json.dumps({"time": f"12:{i % 60:02}:{rng.randrange(60):02}", "event": word, "text": _sentence(rng)}) + "\n"
        )
    if kind == "chat":
        return f"{rng.choice(('Ann', 'Bob', 'Cem'))}: {_sentence(rng)} {_sentence(rng)}\n\n"
    return f"| {word}_{i} | {rng.randrange(999)} | {_sentence(rng)} |\n"


def _hidden(kind: str, needle: Needle) -> str:
    match kind:
        case "prose":
            return needle.fact + "\n\n"
        case "code":
            return f'def {needle.key}():\n    """{needle.fact}"""\n    return "{needle.value}"\n\n\n'
        case "json":
            return json.dumps({"time": "12:00:00", "event": needle.key, "text": needle.fact}) + "\n"
        case "chat":
            return f"Dora: {needle.fact}\n\n"
    return f"| {needle.key} | {needle.value} | {needle.fact} |\n"


def haystack(kind: str, seed: int, n_tokens: int, count: Callable[[str], int]) -> str:
    rng = random.Random(f"{kind}{seed}")
    body: list[str] = []
    n = 0
    while n < n_tokens:
        body.append(_filler(kind, rng, len(body)))
        n += count(body[-1])
    order = rng.sample(range(len(NEEDLES)), len(NEEDLES))
    for depth, index in reversed(list(enumerate(order))):
        body.insert(round(depth / (len(NEEDLES) - 1) * len(body)), _hidden(kind, NEEDLES[index]))
    head = "| name | number | remark |\n|---|---|---|\n" if kind == "table" else ""
    return head + "".join(body)


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


def finished(running: Iterator[object]) -> list[float]:
    while True:
        try:
            next(running)
        except StopIteration as done:
            scores: list[float] = done.value
            return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scorer", type=Path)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    path = options.scorer or starter_pair()[0]
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
            neutral = question_tokens(tokenizer, [(NEUTRAL, 1.0)], CHATML_TAIL)
            for kind in KINDS:
                for seed in range(options.seeds):
                    text = haystack(kind, seed, options.tokens, count)
                    segments = cut(text)
                    bodies = [text[segment.start : segment.end] for segment in segments]
                    plain = [Unit(segment, count(body), 0.0) for segment, body in zip(segments, bodies, strict=True)]
                    total = sum(unit.n_tokens for unit in plain)
                    asked = [("paraphrased", n.asked, [n]) for n in NEEDLES] + [
                        ("exact", n.exact, [n]) for n in NEEDLES
                    ]
                    asked.append(("three at once", THREE, [NEEDLES[i] for i in THREE_OF]))
                    for how, question, wanted in asked:
                        asking = question_tokens(tokenizer, [(question, 1.0)], CHATML_TAIL)
                        rated = finished(rate(scorer, tokenizer.encode, bodies, asking, neutral))
                        rng = random.Random(f"{kind}{seed}{question}")
                        ways = {
                            "ours": (rated, question),
                            "scorer": (rated, ""),
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
        print(json.dumps({"machine": describe(), "scorer": path.name, "ratios": RATIOS, "kept": rows}, indent=2))
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
