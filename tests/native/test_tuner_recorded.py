"""The tuner on recordings of real drafts over real replies, on machines whose times are written down here.

Two pairs, four kinds of texts; recorded by tests/bench/record_drafts.py. Each kind is one session: three replies in a
row, the first one to a tuner that knows nothing but times. Fixed settings are replayed from the same places.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from bench import record_drafts
from native.oracles.prompts import chat_ids
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI
from support.misfits import misfit_draft
from support.native_probe import Ints, Probe, ProbeTuner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RECORDING = Path(__file__).parents[1] / "support" / "references" / "recorded_drafts.npz"
KINDS = ("chat", "code", "story", "noise")
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 40, 48, 56, 64)
BLOCKS = (4, 8)
BUDGETS = (1, 2, 3, 4, 5, 7, 9, 15, 23)
K = 8
Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Machine:
    """Microseconds: of a verify by rows (0 to 64), of a draft by block."""

    pair: str
    verify_us: Times
    draft_us: dict[int, float]


def between(*points: tuple[int, float]) -> Times:
    rows, us = zip(*points, strict=True)
    times: Times = np.interp(np.arange(65), rows, us)
    times[0] = 0
    return times


MACHINES = {
    # Measured here: two threads and one, for the dense pair; one thread, for the hybrid pair.
    "CPU, two threads": Machine(
        "dense",
        between((1, 7400), (2, 11_500), (4, 19_000), (8, 35_000), (16, 61_000), (32, 111_000), (64, 214_000)),
        {8: 9200, 4: 4900},
    ),
    "CPU, one thread": Machine(
        "dense",
        between((1, 11_500), (2, 15_000), (4, 20_500), (8, 34_000), (16, 66_000), (32, 130_000), (64, 260_000)),
        {8: 11_500, 4: 6000},
    ),
    "CPU, hybrid": Machine(
        "hybrid",
        between((1, 1700), (2, 2600), (4, 3700), (8, 5500), (16, 10_000), (32, 20_000), (64, 42_000)),
        {8: 2300, 4: 1300},
    ),
    # A card on which rows are nearly free, and one on which small batches are slow.
    "flat": Machine("dense", between((1, 10_130), (64, 18_320)), {8: 1200, 4: 1150}),
    "flat, hybrid": Machine("hybrid", between((1, 10_130), (64, 18_320)), {8: 1200, 4: 1150}),
    "stairs": Machine(
        "dense",
        np.array([0, 11_700, 14_400, 18_800, 18_800, *[27_400] * 12, *[30_000] * 16, *[40_000] * 32], np.float64),
        {8: 2620, 4: 2600},
    ),
}


@dataclass(frozen=True)
class Recorded:
    """One reply. `committed(setting)` says what a fixed setting commits from each place."""

    logprobs: dict[int, npt.NDArray[np.float32]]  # by block: places x depths x K
    ranks: dict[int, Ints]
    prompt: Ints
    tokens: Ints
    _committed: dict[tuple[int, int, bool], Ints] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ranks[8])

    def committed(self, probe: Probe, block: int, budget: int, *, is_chain: bool) -> Ints:
        key = (block, budget, is_chain)
        if key not in self._committed:
            counts = [self._commits(probe, place, block, budget, is_chain=is_chain) for place in range(len(self))]
            self._committed[key] = np.array(counts, np.int32)
        return self._committed[key]

    def _commits(self, probe: Probe, place: int, block: int, budget: int, *, is_chain: bool) -> int:
        ranks = self.ranks[block][place]
        if is_chain:
            return 1 + int(np.cumprod(ranks[:budget] == 0).sum())
        tree = probe.build_tree(_ids(block), self.logprobs[block][place], budget)
        rows = {child: row for row, child in enumerate(zip(tree.parents, tree.tokens, strict=True))}
        row, n_accepted = 0, 0
        for rank in ranks.tolist():
            if (row, rank + 1) not in rows:
                break
            row = rows[row, rank + 1]
            n_accepted += 1
        return 1 + n_accepted


def _ids(block: int) -> Ints:
    """Candidates are called by their rank, plus one."""
    return np.tile(np.arange(1, K + 1, dtype=np.int32), (block - 1, 1))


@functools.cache
def recorded(pair: str, kind: str) -> tuple[Recorded, ...]:
    with np.load(RECORDING) as stored:
        names = sorted({name.rsplit("_", 1)[0] for name in stored.files if name.startswith(f"{pair}_{kind}_")})
        return tuple(recording(stored, f"{name}_") for name in names)


def recording(stored: Mapping[str, npt.NDArray[Any]], name: str = "") -> Recorded:
    return Recorded(
        logprobs={b: (stored[f"{name}logprobs{b}"] / 32).astype(np.float32) for b in BLOCKS},
        ranks={b: stored[f"{name}ranks{b}"].astype(np.int32) for b in BLOCKS},
        prompt=stored[f"{name}prompt"].astype(np.int32),
        tokens=stored[f"{name}tokens"].astype(np.int32),
    )


def fixed_us(probe: Probe, machine: Machine, reply: Recorded, block: int, budget: int, *, is_chain: bool) -> float:
    """Time for the reply under a fixed setting, for exactly as many tokens as it has places."""
    committed = reply.committed(probe, block, budget, is_chain=is_chain)
    us, at = 0.0, 0
    while at < len(reply):
        us += machine.draft_us[block] + machine.verify_us[budget + 1]
        at += committed[at]
    return us * len(reply) / at


def fixed_settings() -> Iterator[tuple[int, int, bool]]:
    for block in BLOCKS:
        yield block, block - 1, True
        for budget in BUDGETS:
            if block == 8 or budget <= 9:
                yield block, budget, False


@dataclass
class Played:
    """Totals of a session."""

    tokens: int = 0
    us: float = 0
    explored_us: float = 0
    """What drafts in vain and plain steps for measuring cost, over what the tuner believed best."""
    blocks: list[int] = field(default_factory=list)


def play(
    tuner: ProbeTuner, machine: Machine, replies: tuple[Recorded, ...], seed: int, *, noise: float = 0.03
) -> Played:
    random = np.random.default_rng(seed)
    out = Played()
    plain_us = float(machine.verify_us[1])
    for reply in replies:
        tuner.begin_reply(reply.prompt)
        at = 0
        while at < len(reply):
            scale = 1 + noise * float(random.standard_normal())
            decision = tuner.decide()
            if decision in (ProbeTuner.PLAIN, ProbeTuner.MEASURE):
                tuner.plain_step(scale * plain_us)
                n, us = 1, plain_us
            else:
                step, us, block = draft(tuner, machine, reply, at, scale)
                n = step.n_committed
                out.blocks.append(block)
                if decision == ProbeTuner.PROBE:
                    out.explored_us += max(0.0, us - n * plain_us)
            tuner.hear(reply.tokens[at : at + n])
            at += n
            out.tokens += n
            out.us += us
    return out


def draft(tuner: ProbeTuner, machine: Machine, reply: Recorded, at: int, scale: float) -> tuple[Any, float, int]:
    block = tuner.choose_block(8)
    verify_us = np.ascontiguousarray(scale * machine.verify_us)
    step = tuner.draft_step(
        _ids(block),
        np.ascontiguousarray(reply.logprobs[block][at]),
        np.ascontiguousarray(reply.ranks[block][at] + 1),
        draft_us=scale * machine.draft_us[block],
        verify_us=verify_us,
    )
    return step, machine.draft_us[block] + float(machine.verify_us[step.n_rows]), block


def measured(probe: Probe, machine: Machine) -> ProbeTuner:
    """A tuner with the times that a load measures."""
    tuner = ProbeTuner(probe, ROWS, BLOCKS)
    for n in (1, 2, 4, 8, 16, 32, 64):
        tuner.set_verify_us(n, float(machine.verify_us[n]))
    for block, us in machine.draft_us.items():
        tuner.set_draft_us(us, block)
    return tuner


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
def test_auto_is_near_the_best_fixed_setting_and_never_far_below_plain_decoding(
    probe: Probe, name: str, kind: str
) -> None:
    machine = MACHINES[name]
    replies = recorded(machine.pair, kind)
    n_tokens = sum(map(len, replies))
    plain_us = n_tokens * float(machine.verify_us[1])
    best, best_us = "plain", plain_us
    for block, budget, is_chain in fixed_settings():
        us = sum(fixed_us(probe, machine, reply, block, budget, is_chain=is_chain) for reply in replies)
        if us < best_us:
            best, best_us = f"{'chain' if is_chain else 'tree'} {budget} of a block of {block}", us
    played = [play(measured(probe, machine), machine, replies, seed) for seed in range(3)]
    auto_us = float(np.mean([one.us / one.tokens for one in played])) * n_tokens
    explored = sum(one.explored_us for one in played) / sum(one.us for one in played)
    print(
        f"{name}, {kind}: best {best}, {plain_us / best_us:.3f} of plain; auto {plain_us / auto_us:.3f} of plain, "
        f"{best_us / auto_us:.3f} of the best; explored {explored:.4f}"
    )
    assert plain_us / auto_us >= 0.98
    # The best of 22 settings is the luckiest one, too, on three replies: by about a percent where all are alike.
    assert best_us / auto_us >= (0.96 if name.startswith("flat") else 0.97)
    assert explored < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_a_tuner_that_remembers_does_no_worse_than_one_that_learns(probe: Probe, kind: str) -> None:
    machine = MACHINES["CPU, one thread"]
    replies = recorded(machine.pair, kind)
    first = measured(probe, machine)
    cold = play(first, machine, replies, 1)
    second = ProbeTuner(probe, ROWS, BLOCKS)
    assert second.remember(first.remembered())
    warm = play(second, machine, replies, 1)
    assert warm.tokens / warm.us >= 0.98 * cold.tokens / cold.us


def test_a_smaller_block_is_chosen_where_it_is_worth_it_and_not_where_it_drafts_badly(probe: Probe) -> None:
    # The dense pair's draft is as good at four as at eight; the hybrid pair's was trained for eight and nothing else.
    cheap = play(
        measured(probe, MACHINES["CPU, one thread"]), MACHINES["CPU, one thread"], recorded("dense", "code"), 1
    )
    assert cheap.blocks.count(4) > cheap.blocks.count(8)
    bad = play(measured(probe, MACHINES["flat, hybrid"]), MACHINES["flat, hybrid"], recorded("hybrid", "code"), 1)
    assert bad.blocks.count(4) < 0.1 * len(bad.blocks)


def test_b034_a_draft_that_does_not_match_is_left_alone(probe: Probe, tmp_path: Path) -> None:
    """The same pair on the real engine, with the times of the day: tests/engine/test_draft_probe.py."""
    with Rig(QWEN35_MINI, misfit_draft(tmp_path / "draft.gguf"), context=1024, n_threads=1) as rig:
        reply = recording(record_drafts.record(rig, chat_ids("Write a short story about a lighthouse keeper.")))
    for name in ("CPU, hybrid", "flat, hybrid"):
        machine = MACHINES[name]
        played = play(measured(probe, machine), machine, (reply,), 1)
        cost = played.us / (played.tokens * float(machine.verify_us[1]))
        print(f"{name}: {len(played.blocks)} drafts, {played.tokens} tokens, {cost:.3f} of plain decoding's time")
        assert cost < 1.05
        # Where rows are nearly free a draft in vain costs little, and more of them are tried.
        assert len(played.blocks) < (0.1 if name.startswith("CPU") else 0.2) * played.tokens
