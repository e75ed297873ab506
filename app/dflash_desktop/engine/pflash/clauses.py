"""Questions that ask several things at once: their clauses, and how each of them gets its turn.

Rated as a whole, the thing that is answered loudest has the next best of its own kept before another one's answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_CLAUSES = 6
"""Questions with more clauses are asked as a whole only: each one costs a pass of its own."""
LEAST_CHARS = 6
"""What is shorter asks nothing by itself."""
LEAST_SHARE = 0.5
"""A clause counts if some unit answers it at least that well, measured by the clause that is answered best. Clauses
that ask nothing ("I have read all of this twice") would else fill half of what is kept with what looks like them."""
_END = re.compile(r"(?:[.?!;:,]\s+(?:and\s+)?|[。？！；，：]|\n)+")


def clauses(question: str) -> list[str]:
    """What a question asks one after the other, or [] where it asks one thing, or too many."""
    parts = [part.strip(" .?!,;:\n") for part in _END.split(question)]
    found = [f"{part}?" for part in parts if len(part) >= LEAST_CHARS]
    return found if 1 < len(found) <= MOST_CLAUSES else []


def in_turns(whole: Sequence[float], parts: Sequence[Sequence[float]]) -> list[float]:
    """Scores per unit, of the question as a whole and of its clauses, as scores by which all of them take turns.

    The best scores of the units are handed out anew, the largest to the first in turn: they stay in their scale. Chosen
    on one set of the benchmark's needles, and better on the other (tests/bench/RESULTS.md).
    """
    loudest = max((max(part, default=0.0) for part in parts), default=0.0)
    heard = [part for part in parts if max(part, default=0.0) >= LEAST_SHARE * loudest > 0]
    if len(heard) < 2:
        return list(whole)
    rows = [whole, *heard]
    best = [max(scores) for scores in zip(*rows, strict=True)]
    turns = [len(whole)] * len(whole)
    for row in rows:
        for turn, unit in enumerate(sorted(range(len(row)), key=lambda i: (-row[i], i))):
            turns[unit] = min(turns[unit], turn)
    in_order = sorted((unit for unit, score in enumerate(best) if score > 0), key=lambda i: (turns[i], -best[i], i))
    out = [0.0] * len(whole)
    for unit, score in zip(in_order, sorted(best, reverse=True), strict=False):  # what is left over are zeros
        out[unit] = score
    return out
