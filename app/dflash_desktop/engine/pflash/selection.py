"""Chooses which units of a text stay, within a budget of tokens, and writes the shortened text.

Budgets follow the keep ratio or a curve over the length, linear between its points and flat beyond its ends.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dflash_desktop.engine.pflash.segments import Segment

MARK = "[…]"
"""Stands where text was left out, on a line of its own between units that were lines."""

Why = Literal["score", "anchor", "header", "pinned", "dropped"]

MOST_ANCHOR_HITS = 4
"""An expression of the question that stands in more units than these says nothing about any of them."""
_QUOTED = re.compile(r"[\"'“”‘’«»`]([^\"'“”‘’«»`\n]{3,80})[\"'“”‘’«»`]")
_RUN = re.compile(r"[\w./@:-]+")
_SPECIAL = re.compile(r"\d|_|[a-z][A-Z]|[./@:-]\w")  # before the end of a run: what is no ordinary word
_WORD = re.compile(r"\w+")
N_GRAM = 4


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of the text and what became of it."""

    segment: Segment
    n_tokens: int
    score: float
    why: Why = "dropped"

    @property
    def is_kept(self) -> bool:
        """Whether it stays in the prompt, for whatever reason."""
        return self.why != "dropped"


@dataclass(frozen=True, slots=True)
class Curve:
    """Keep ratio by length: points (tokens, ratio), tokens ascending. One point: the same everywhere."""

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        tokens = [n for n, _ in self.points]
        if not self.points or tokens != sorted(set(tokens)) or tokens[0] < 0:
            raise ValueError("the points of a keep curve must ascend in tokens")
        if not all(0 < ratio <= 1 for _, ratio in self.points):
            raise ValueError("keep ratios lie above 0 and not above 1")

    def ratio(self, n_tokens: int) -> float:
        """The share that is kept of a text of that length: straight lines between the points, level beyond them."""
        before = self.points[0]
        for point in self.points:
            if n_tokens <= point[0]:
                if point is self.points[0]:
                    return point[1]
                share = (n_tokens - before[0]) / (point[0] - before[0])
                return before[1] + share * (point[1] - before[1])
            before = point
        return before[1]

    @classmethod
    def parse(cls, text: str) -> Curve:
        """`0.2`, or `16384:0.3,65536:0.25`. Raises ValueError with a sentence."""
        points = []
        for part in text.replace(" ", "").split(","):
            tokens, colon, ratio = part.rpartition(":")
            try:
                points.append((int(tokens) if colon else 0, float(ratio)))
            except ValueError:
                raise ValueError(f"'{part}' is neither a ratio like 0.2 nor TOKENS:RATIO like 32768:0.25") from None
        if any(not math.isfinite(ratio) for _, ratio in points):
            raise ValueError("keep ratios are numbers above 0 and not above 1")
        return cls(tuple(points))


def select(
    text: str,
    units: Sequence[Unit],
    question: str,
    budget: int,
    *,
    anchors: Collection[int] | None = None,
    fills: bool = False,
) -> list[Unit]:
    """The units with `why` filled in. What is kept takes at most `budget` tokens. `anchors`: as `anchored` found them.

    `fills`: what is left of the budget goes to units that score nothing, those nearest to what is kept first.

    First units with an expression that the question repeats literally, then by score. A kept row or member brings the
    unit that names its columns, when both fit.
    """
    chosen: dict[int, Why] = {}
    left = budget

    def take(index: int, why: Why) -> None:
        nonlocal left
        header = units[index].segment.header
        brings = header if header is not None and header not in chosen else None
        price = units[index].n_tokens + (units[brings].n_tokens if brings is not None else 0)
        if index in chosen or price > left:
            return
        chosen[index] = why
        if brings is not None:
            chosen[brings] = "header"
        left -= price

    by_score = sorted(range(len(units)), key=lambda i: (-units[i].score, i))
    found = anchored(text, units, question) if anchors is None else anchors
    for index in by_score:
        if index in found:
            take(index, "anchor")
    for index in by_score:
        if units[index].score > 0:
            take(index, "score")
    if fills:
        for index in _by_distance(chosen, len(units)):
            take(index, "score")
    reasons = [chosen.get(i, "dropped") for i in range(len(units))]
    return [unit if unit.why == why else replace(unit, why=why) for unit, why in zip(units, reasons, strict=True)]


def _by_distance(chosen: Collection[int], n_units: int) -> list[int]:
    """All units, those next to a chosen one first."""
    distances = [n_units] * n_units
    for sweep in (range(n_units), reversed(range(n_units))):
        distance = n_units
        for index in sweep:
            distance = 0 if index in chosen else distance + 1
            distances[index] = min(distances[index], distance)
    return sorted(range(n_units), key=lambda index: (distances[index], index))


def anchored(text: str, units: Sequence[Unit], question: str) -> set[int]:
    """Units that hold what the question quotes, names or repeats word for word, where few units do."""
    expressions = {match[1] for match in _QUOTED.finditer(question)}
    runs = [match[0].rstrip("./@:-") for match in _RUN.finditer(question)]
    expressions |= {run for run in runs if _SPECIAL.search(run, 0, len(run) - 1)}
    bodies = [text[unit.segment.start : unit.segment.end].casefold() for unit in units]
    found: set[int] = set()
    for expression in expressions:
        hits = [i for i, body in enumerate(bodies) if expression.casefold() in body]
        if 0 < len(hits) <= MOST_ANCHOR_HITS:
            found.update(hits)
    grams = _grams(question)
    if grams:
        holders: Counter[str] = Counter()
        per_unit = [grams & _grams(body) for body in bodies]
        for own in per_unit:
            holders.update(own)
        found.update(i for i, own in enumerate(per_unit) if any(holders[gram] <= MOST_ANCHOR_HITS for gram in own))
    return found


def _grams(text: str) -> set[str]:
    words = _WORD.findall(text.casefold())
    return {" ".join(words[i : i + N_GRAM]) for i in range(len(words) - N_GRAM + 1)}


def join(text: str, units: Sequence[Unit]) -> str:
    """What is kept, in order, with MARK wherever something was left out."""
    out: list[str] = []
    is_gap = False
    for unit in units:
        if not unit.is_kept:
            is_gap = True
            continue
        if is_gap:
            out.append(_mark_after(out))
            is_gap = False
        out.append(text[unit.segment.start : unit.segment.end])
    if is_gap:
        out.append(_mark_after(out).rstrip("\n"))
    return "".join(out)


def _mark_after(out: Sequence[str]) -> str:
    """Lines stay lines: a mark within a line only where the unit before ended within one."""
    if not out or out[-1].endswith("\n"):
        return f"{MARK}\n"
    return f" {MARK} "
