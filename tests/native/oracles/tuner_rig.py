"""Machines, texts and a tuner run over them, for the tuner's tests.

A text is a stream of positions; at each the right tokens are drawn from the probabilities that the draft claims, or for
an over-confident draft, from flatter ones. Fixed sizes decode the same stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from support.native_probe import Floats, Ints, Probe, ProbeTuner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BUCKETS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
CPU_BUCKETS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 56, 64)
N_DEPTHS, K = 15, 8
IDS = np.tile(np.arange(1, K + 1, dtype=np.int32), (N_DEPTHS, 1))


@dataclass(frozen=True)
class Machine:
    """Microseconds of a draft and of a verify of n rows."""

    draft_us: float
    verify_us: Callable[[int], float]

    def table(self, buckets: Sequence[int]) -> npt.NDArray[np.float64]:
        """By row count, padded up to the buckets."""
        rows = [min(b for b in buckets if b >= n) for n in range(1, 65)]
        return np.array([0.0, *(self.verify_us(n) for n in rows)])


FLAT = Machine(6000, lambda n: 26_000 + 450 * n + 1100 * max(0, n - 24))
STEEP = Machine(8000, lambda n: 60_000 + 9000 * n)


@dataclass(frozen=True)
class Text:
    """How likely the first candidate is (as a logit), and how much of the rest the other candidates catch."""

    logit: float
    spread: float = 0.9
    others: float = 0.85


EASY, MEDIUM, HARD = Text(2.2), Text(0.6), Text(-1.6)
EDGE, HOPELESS = Text(-1.8, others=0.2), Text(-3.5, others=0.2)
TEXTS = {"easy": EASY, "medium": MEDIUM, "hard": HARD, "edge": EDGE, "hopeless": HOPELESS}


def stream(texts: Sequence[Text], n: int, seed: int, sharpness: float = 1.0) -> tuple[Floats, Ints]:
    """Draft log-probabilities (n, depths, k) and right tokens (n, depths); token 999 is no candidate's."""
    rng = np.random.default_rng(seed)
    rows, truths = [], []
    for text in texts:
        m = n // len(texts)
        logits = text.logit - 0.07 * np.arange(N_DEPTHS) + text.spread * rng.standard_normal((m, 1))
        first = 1 / (1 + np.exp(-logits - 0.7 * rng.standard_normal((m, N_DEPTHS))))
        fall = 0.6 ** np.arange(K - 1)
        rest = (1 - first)[..., None] * text.others * fall / fall.sum()
        p = -np.sort(-np.concatenate([first[..., None], rest], -1), -1)
        rank = (rng.random((m, N_DEPTHS, 1)) > p.cumsum(-1)).sum(-1)
        truths.append(np.where(rank < K, rank + 1, 999))
        claimed = p**sharpness
        rows.append(np.log(claimed / claimed.sum(-1, keepdims=True) * p.sum(-1, keepdims=True)))
    return np.concatenate(rows).astype(np.float32), np.concatenate(truths).astype(np.int32)


@dataclass
class Run:
    """What came of a stream under the tuner."""

    tokens: int = 0
    us: float = 0
    plain_us: float = 0
    """What plain decoding would have needed for the same tokens."""
    rows: list[int] = field(default_factory=list)
    decisions: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.tokens / self.us

    @property
    def over_plain(self) -> float:
        return self.plain_us / self.us


def run(
    tuner: ProbeTuner,
    machine: Machine,
    data: tuple[Floats, Ints],
    *,
    noise: float = 0.03,
    outliers: float = 0,
    is_mute: bool = False,
    slowness: Callable[[float], float] = lambda _: 1.0,
) -> Run:
    """Decode the stream. Outliers (a share of the steps) take ten times as long; they aren't the tuner's doing, and not
    counted in the result. `slowness` scales all times by the share of the stream that has passed."""
    logprobs, truth = data
    rng = np.random.default_rng(1)
    table = machine.table(tuner.buckets)
    out = Run()
    at = 0
    while at < len(logprobs):
        fair = slowness(at / len(logprobs))
        scale = fair * (1 + noise * rng.standard_normal()) * (10 if rng.random() < outliers else 1)
        decision = tuner.decide()
        out.decisions.append(decision)
        if decision in (ProbeTuner.PLAIN, ProbeTuner.MEASURE):
            tuner.plain_step(scale * table[1])
            n, us = 1, table[1]
        else:
            step = tuner.draft_step(
                IDS,
                logprobs[at],
                truth[at],
                draft_us=scale * machine.draft_us,
                verify_us=scale * table,
                is_mute=is_mute,
            )
            n, us = step.n_committed, machine.draft_us + table[step.n_rows]
            out.rows.append(step.n_rows)
        out.tokens += n
        out.us += fair * us
        out.plain_us += fair * n * table[1]
        at += n
    return out


def seeded(
    probe: Probe, machine: Machine, buckets: Sequence[int] = BUCKETS, wrong: dict[int, float] | None = None
) -> ProbeTuner:
    """A tuner with times as they are measured at load; `wrong` scales some of them."""
    tuner = ProbeTuner(probe, buckets)
    table = machine.table(buckets)
    for n in (1, 4, 8, 16, 32, 64):
        tuner.set_verify_us(n, table[n] * (wrong or {}).get(n, 1.0))
    tuner.set_draft_us(machine.draft_us)
    return tuner


def committed_by_size(probe: Probe, data: tuple[Floats, Ints]) -> Ints:
    """What a tree of n rows commits at each position: positions x 65. A smaller best-first tree begins a larger one."""
    logprobs, truth = data
    committed = np.zeros((len(logprobs), 65), np.int32)
    for at, (row_logprobs, row_truth) in enumerate(zip(logprobs, truth, strict=True)):
        tree = probe.build_tree(IDS, row_logprobs, 63)
        places = {place: row for row, place in enumerate(zip(tree.parents, tree.tokens, strict=True))}
        row, accepted = 0, [0]
        for token in row_truth.tolist():
            if (row, token) not in places:
                break
            row = places[row, token]
            accepted.append(row)
        committed[at] = np.searchsorted(accepted, np.arange(65), side="left")
    return committed


def fixed_rates(
    probe: Probe, machine: Machine, buckets: Sequence[int], data: tuple[Floats, Ints]
) -> npt.NDArray[np.float64]:
    """Tokens per microsecond of each fixed tree size that decodes the stream from its beginning."""
    return rates_of(committed_by_size(probe, data), machine, buckets)


def rates_of(committed: Ints, machine: Machine, buckets: Sequence[int]) -> npt.NDArray[np.float64]:
    rates = []
    table = machine.table(buckets)
    for n_rows in buckets:
        at = n_steps = 0
        while at < len(committed):
            at += int(committed[at, n_rows])
            n_steps += 1
        rates.append(at / (n_steps * (machine.draft_us + table[n_rows])))
    return np.array(rates)
