"""How much each unit of a text matters for a question: the scorer's masses, by unit.

Each unit is put into the scorer's tokens by itself, so no token lies in two units and the target's tokenizer plays no
part: what is kept is said in characters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from dflash_desktop.binding.native import Progress
from dflash_desktop.binding.native_scorer import MOST_QUESTION_TOKENS
from dflash_desktop.engine.tokens import Tokenizer

SMOOTHED_OVER = 7
"""Tokens that are averaged: an answer is a phrase, and a lone token that draws attention is a full stop."""
FLOOR = 1e-3
"""Masses below it are noise."""
LEAST_TOKENS = 24
NEUTRAL = "What is this text about?"

Question = tuple[list[int], list[float]]  # ids and weights


class Rater(Protocol):
    """What rating needs of a scorer; `NativeScorer` fits."""

    def begin(self, text: Sequence[int], question: Sequence[int], weights: Sequence[float] | None = None) -> None: ...

    def run(self) -> Progress: ...

    def masses(self) -> list[float]: ...


def question_tokens(tokenizer: Tokenizer, questions: Sequence[tuple[str, float]], tail: str) -> Question:
    """Ids and weights of what asks: the questions, oldest first, and `tail`, the generation prompt in control tokens.

    Every question weighs what it says, shared among its tokens; the tail weighs a quarter of the last one. Of a long
    question the end counts: at most what a scorer can ask at once is kept.
    """
    ids: list[int] = []
    weights: list[float] = []
    ends = tokenizer.encode(tail, parse_special=True)
    for text, weight in questions:
        own = tokenizer.encode(f"\n\n{text}")
        ids += own
        weights += [weight / max(len(own), 1)] * len(own)
    last = questions[-1][1] if questions else 1.0
    ids += ends
    weights += [last / 4 / max(len(ends), 1)] * len(ends)
    return ids[-MOST_QUESTION_TOKENS:], weights[-MOST_QUESTION_TOKENS:]


def rate(
    scorer: Rater,
    encode: Callable[[str], list[int]],
    units: Sequence[str],
    question: Question,
    neutral: Question,
) -> Generator[Progress, None, list[float]]:
    """Score per unit, a turn of the generator per piece of text; the generator's value is the list.

    Some tokens draw attention whatever is asked: headings, ends of lines, the start of a window. So the text is also
    asked the `neutral` question, and what counts is how many times more a token is looked at than then. A unit's score
    is the mean logarithm of that over its tokens, not below 0; short ones are filled up with the text's mean, because
    the mean of few says little. Chosen among 300 such rules on 34 questions (tests/bench/RESULTS.md, "PFlash").
    """
    ids: list[int] = []
    ends: list[int] = []
    for unit in units:
        ids += encode(unit)
        ends.append(len(ids))
    if not ids:
        return [0.0] * len(units)
    asked: list[list[float]] = []
    for asking in (neutral, question):  # the second finds the text read already, but for its last window
        scorer.begin(ids, *asking)
        while True:
            progress = scorer.run()
            yield progress
            if progress.is_complete:
                break
        asked.append(scorer.masses())
    gains = smoothed([math.log((mass + FLOOR) / (usual + FLOOR)) for usual, mass in zip(*asked, strict=True)])
    usual_gain = sum(gains) / len(gains)
    scores = []
    start = 0
    for end in ends:
        own = gains[start:end]
        n_filled = max(0, LEAST_TOKENS - len(own))
        scores.append(max(0.0, (sum(own) + n_filled * usual_gain) / (len(own) + n_filled)))
        start = end
    return scores


def smoothed(values: Sequence[float]) -> list[float]:
    """The mean over SMOOTHED_OVER tokens around each, nothing beyond the ends."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    half = SMOOTHED_OVER // 2
    n = len(values)
    return [(sums[min(i + half + 1, n)] - sums[max(i - half, 0)]) / SMOOTHED_OVER for i in range(n)]
