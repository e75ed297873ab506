"""Texts with needles in them, and the questions that ask for them: what PFlash's benchmarks are made of.

Two sets: rules are chosen by the first, and the second, of other sentences throughout, shows what they are worth.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
HELD_OUT = (
    Needle(
        "Uncle Viktor hid the silver ring inside the grandfather clock.",
        "silver_ring_place",
        "grandfather clock",
        "Where can the missing piece of jewellery be found?",
        "Where did Uncle Viktor hide the silver ring?",
    ),
    Needle(
        "The ferry to Anholt leaves from pier nine at dawn.",
        "anholt_ferry_pier",
        "pier nine",
        "From which dock does the boat to the island depart?",
        "From which pier does the ferry to Anholt leave?",
    ),
    Needle(
        "Professor Lindqvist is allergic to walnuts and shellfish.",
        "lindqvist_allergies",
        "walnuts and shellfish",
        "What must our guest from the university not eat?",
        "What is Professor Lindqvist allergic to?",
    ),
    Needle(
        "The combination of the wine cellar's lock is four seven one two.",
        "wine_cellar_combination",
        "four seven one two",
        "Which digits open the room with the bottles?",
        "What is the combination of the wine cellar's lock?",
    ),
    Needle(
        "Amira was chosen to lead the orchestra next season.",
        "orchestra_leader",
        "Amira",
        "Who will be the new conductor?",
        "Who was chosen to lead the orchestra next season?",
    ),
    Needle(
        "The greenhouse is heated with steam from the bakery.",
        "greenhouse_heating",
        "steam from the bakery",
        "What keeps the tomato plants warm in winter?",
        "What is the greenhouse heated with?",
    ),
)
THREES = (
    (1, 2, 4),
    (0, 3, 5),
    (0, 1, 2),
    (3, 4, 5),
    (0, 1, 3),
    (2, 4, 5),
    (0, 2, 4),
    (1, 3, 5),
    (0, 1, 5),
    (2, 3, 4),
)
"""Which needles one question asks for at once: each needle in five of ten."""
LEAD_INS = (
    "I have read all of this twice, and one thing I still do not know. ",
    "You have more patience with long papers than I do, so please tell me: ",
)
LEAD_OUTS = (", when all of this is taken together?", ", which is what my brother would like to know?")


def three_at_once(needles: Sequence[Needle], which: int) -> tuple[str, list[Needle]]:
    """A question for the three needles of THREES[which], in other words than theirs, and those needles."""
    wanted = [needles[i] for i in THREES[which]]
    first, second, third = (needle.asked for needle in wanted)
    if which % 2:
        return f"{first} {second} {third}", wanted
    second, third = (text[0].lower() + text[1:].rstrip("?") for text in (second, third))
    return f"{first.rstrip('?')}, {second}, and {third}?", wanted


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


_PARTS = (_SUBJECTS, _VERBS, _OBJECTS, _ENDS)
_HELD_OUT_PARTS = (
    ("A widow", "The postman", "Two soldiers", "My aunt", "The band", "An engineer", "The harbour office", "A pupil"),
    ("carried", "praised", "lost", "ordered", "drew", "cleaned", "weighed", "mended"),
    ("a basket of apples", "the old map", "three letters", "a piano", "the garden wall", "the winter coats"),
    ("on Sunday", "by mistake", "in the rain", "for a friend", "with great care", "after supper"),
)


def _sentence(rng: random.Random, parts: Sequence[Sequence[str]]) -> str:
    return " ".join(map(rng.choice, parts)) + "."


def _filler(kind: str, rng: random.Random, i: int, parts: Sequence[Sequence[str]]) -> str:
    word = (
        rng.choice(("load", "merge", "parse", "send", "order", "trim"))
        + "_"
        + rng.choice(("rows", "names", "parts", "dates"))
    )
    if kind == "prose":
        return " ".join(_sentence(rng, parts) for _ in range(4)) + "\n\n"
    if kind == "code":
        return (
            f"def {word}_{i}(values):\n    total = {rng.randrange(90)}\n    for value in values:\n"
            f"        total += value * {rng.randrange(9)}\n    return total\n\n\n"
        )
    if kind == "json":
        return (
            json.dumps({"time": f"12:{i % 60:02}:{rng.randrange(60):02}", "event": word, "text": _sentence(rng, parts)})
            + "\n"
        )
    if kind == "chat":
        return f"{rng.choice(('Ann', 'Bob', 'Cem'))}: {_sentence(rng, parts)} {_sentence(rng, parts)}\n\n"
    return f"| {word}_{i} | {rng.randrange(999)} | {_sentence(rng, parts)} |\n"


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


def haystack(
    kind: str, seed: int, n_tokens: int, count: Callable[[str], int], needles: Sequence[Needle] = NEEDLES
) -> str:
    """About `n_tokens` of that kind of text, with the needles at depths from 0 to 100 %."""
    rng = random.Random(f"{kind}{seed}")
    parts = _PARTS if needles is NEEDLES else _HELD_OUT_PARTS
    body: list[str] = []
    n = 0
    while n < n_tokens:
        body.append(_filler(kind, rng, len(body), parts))
        n += count(body[-1])
    order = rng.sample(range(len(needles)), len(needles))
    for depth, index in reversed(list(enumerate(order))):
        body.insert(round(depth / (len(needles) - 1) * len(body)), _hidden(kind, needles[index]))
    head = "| name | number | remark |\n|---|---|---|\n" if kind == "table" else ""
    return head + "".join(body)
