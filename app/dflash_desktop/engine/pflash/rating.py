"""How much each unit of a text matters for a question: the scorer's masses, by unit.

Each unit is put into the scorer's tokens by itself, so no token lies in two units and the target's tokenizer plays no
part: what is kept is said in characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from dflash_desktop.binding.native_scorer import MOST_QUESTION_TOKENS
from dflash_desktop.engine.pflash.clauses import in_turns

if TYPE_CHECKING:
    from dflash_desktop.binding.native import Progress
    from dflash_desktop.engine.tokens import Tokenizer

SMOOTHED_OVER = 7
"""Tokens that are averaged: an answer is a phrase, and a lone token that draws attention is a full stop."""
FLOOR = 3e-3
"""Masses below it are noise. The scorer's own number (pflash.cpp): with it the logarithm of a mass is the mean over its
heads. From 0.001 to 0.01 needles were found alike in 2,000 and in 8,000 tokens."""
LEAST_PRICE = 24
"""Tokens: what a unit costs at least when its worth is weighed against its length."""
NEUTRAL = "What is this text about?"

Question = tuple[list[int], list[float]]  # ids and weights


class Rater(Protocol):
    """What rating needs of a scorer; `NativeScorer` fits."""

    def begin(self, text: Sequence[int], question: Sequence[int], weights: Sequence[float] | None = None) -> None: ...

    def run(self) -> Progress: ...

    def masses(self) -> list[float]: ...


def question_tokens(tokenizer: Tokenizer, questions: Sequence[tuple[str, float]], tail: str) -> Question:
    """Ids and weights of what asks: the questions, oldest first, and `tail`, the generation prompt in control tokens.

    Each token has its question's weight, those of the tail a quarter of the last one's: the scorer takes the largest
    look of all of them, so a long question weighs no more than a short one. Of a long question the end counts: at most
    what a scorer can ask at once is kept.
    """
    ids: list[int] = []
    weights: list[float] = []
    ends = tokenizer.encode(tail, parse_special=True)
    for text, weight in questions:
        own = tokenizer.encode(f"\n\n{text}")
        ids += own
        weights += [weight] * len(own)
    last = questions[-1][1] if questions else 1.0
    ids += ends
    weights += [last / 4] * len(ends)
    return ids[-MOST_QUESTION_TOKENS:], weights[-MOST_QUESTION_TOKENS:]


@dataclass(slots=True)
class Usual:
    """What the neutral question sees of the latest text: the same, whatever else is asked of it."""

    ids: list[int] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)


def rate(
    scorer: Rater,
    encode: Callable[[str], list[int]],
    units: Sequence[str],
    question: Question,
    neutral: Question,
    usual: Usual | None = None,
    parts: Sequence[Question] = (),
) -> Generator[Progress, None, list[float]]:
    """Score per unit, a turn of the generator per piece of text; the generator's value is the list.

    Some tokens draw attention whatever is asked: headings, ends of lines, the start of a window. So the text is also
    asked the `neutral` question, and what counts is how many times more a token is looked at than then, as a logarithm
    and over a phrase. A unit is worth its best phrase: a fact is one sentence, whatever stands beside it. Long units
    have more phrases to choose from and take more of the budget, so that is divided by the logarithm of the length. The
    rule was chosen on texts and needles that the benchmark doesn't have (tests/bench/RESULTS.md, "PFlash").

    `usual`: of the same scorer and neutral question; for a text that it holds that one is not asked again. `parts`:
    clauses of the question, which take turns with the whole of it (see in_turns).
    """
    ids: list[int] = []
    ends: list[int] = []
    for unit in units:
        ids += encode(unit)
        ends.append(len(ids))
    if not ids:
        return [0.0] * len(units)
    if usual is None:
        usual = Usual()
    if usual.ids != ids:
        usual.masses = yield from _asked(scorer, ids, neutral)
        usual.ids = ids
    found = []
    for asking in (question, *parts):  # finds the text read already
        masses = yield from _asked(scorer, ids, asking)
        found.append(_worth(usual.masses, masses, ends))
    return in_turns(found[0], found[1:])


def _worth(usual: Sequence[float], masses: Sequence[float], ends: Sequence[int]) -> list[float]:
    gains = smoothed([math.log((mass + FLOOR) / (before + FLOOR)) for before, mass in zip(usual, masses, strict=True)])
    scores = []
    start = 0
    for end in ends:
        scores.append(max(0.0, *gains[start:end], 0.0) / math.log(LEAST_PRICE + end - start))
        start = end
    return scores


def _asked(scorer: Rater, ids: list[int], question: Question) -> Generator[Progress, None, list[float]]:
    scorer.begin(ids, *question)
    while True:
        progress = scorer.run()
        yield progress
        if progress.is_complete:
            return scorer.masses()


def smoothed(values: Sequence[float]) -> list[float]:
    """The mean over SMOOTHED_OVER tokens around each, nothing beyond the ends."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    half = SMOOTHED_OVER // 2
    n = len(values)
    return [(sums[min(i + half + 1, n)] - sums[max(i - half, 0)]) / SMOOTHED_OVER for i in range(n)]
