"""Sampling while trees are drafted and partly accepted: first tokens, and pairs of tokens, have the exact distribution.

Tiny random pairs with twelve tokens, of which a tree holds most: accepted and refused drafts are both common.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from native.oracles import checkpoints
from native.oracles.checkpoints import Checkpoint
from native.oracles.compare import log_softmax
from native.oracles.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Reals = npt.NDArray[np.float64]

TREE, CHAIN, OFF = 1, 2, 3
MODES: dict[str, dict[str, float]] = {
    "plain": {"draft_mode": OFF},
    "chain": {"draft_mode": CHAIN},
    "tree 8": {"draft_mode": TREE, "tree_budget": 8},
    "tree 30": {"draft_mode": TREE, "tree_budget": 30},
}
TEMPERATURE = 0.8
N_VOCAB = 12
PROMPT = [1, 5, 2, 11, 7, 7, 0, 4]
SIZES: dict[str, Checkpoint] = {
    "llama": Checkpoint(
        kind="llama", seed=31, n_vocab=N_VOCAB, n_layers=1, feature_layers=(0,), is_tied=False, logit_scale=0.5
    ),
    "qwen35": Checkpoint(kind="qwen35", seed=32, n_vocab=N_VOCAB, n_rot=8, is_tied=False, logit_scale=0.5),
}


@pytest.fixture(scope="module")
def open_rig(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rig]:
    folder = tmp_path_factory.mktemp("pairs")

    def open_one(kind: str) -> Rig:
        target, draft = folder / f"{kind}.gguf", folder / f"{kind}-draft.gguf"
        if not target.exists():
            checkpoints.write_target(SIZES[kind], target)
            checkpoints.write_draft(SIZES[kind], draft)
        return Rig(target, draft, context=64, n_threads=1)

    return open_one


def exact(rig: Rig) -> tuple[Reals, Reals]:
    """The probability of each first token, and of each second token after it, from plain logits."""
    rig.reset()
    first = np.exp(log_softmax(rig.logits(PROMPT)[-1] / TEMPERATURE))
    second = np.empty((N_VOCAB, N_VOCAB))
    for token in range(N_VOCAB):
        rig.reset()
        rig.append(PROMPT)
        second[token] = np.exp(log_softmax(rig.logits([token])[-1] / TEMPERATURE))
    return first, second


def draw(rig: Rig, seed: int, n_tokens: int, **generation: float) -> tuple[list[int], int]:
    """The beginning of a reply that has room for whole trees, and how many drafted tokens it took."""
    tokens: list[int] = []
    n_accepted = 0
    rig.begin(PROMPT, max_tokens=40, temperature=TEMPERATURE, seed=seed, **generation)
    while len(tokens) < n_tokens:
        step = rig.session.step()
        tokens += step.tokens[: step.n_committed]
        n_accepted += step.n_accepted
    return tokens[:n_tokens], n_accepted


def p_value(observed: Reals, expected: Reals) -> float:
    """Chi-square; what is expected less than eight times shares one bin."""
    common = expected >= 8
    counts = [*observed[common], observed[~common].sum()]
    wanted = [*expected[common], expected[~common].sum()]
    if wanted[-1] < 8:
        counts = [*counts[:-2], counts[-2] + counts[-1]]
        wanted = [*wanted[:-2], wanted[-2] + wanted[-1]]
    return float(stats.chisquare(counts, np.array(wanted) * sum(counts) / sum(wanted)).pvalue)


def check_distribution(rig: Rig, mode: str, n_draws: int) -> None:
    first, second = exact(rig)
    firsts, pairs = np.zeros(N_VOCAB), np.zeros((N_VOCAB, N_VOCAB))
    n_accepted = 0
    for seed in range(n_draws):
        (a, b), accepted = draw(rig, seed, 2, **MODES[mode])
        firsts[a] += 1
        pairs[a, b] += 1
        n_accepted += accepted
    p_first = p_value(firsts, first * n_draws)
    p_pair = p_value(pairs.ravel(), (first[:, None] * second).ravel() * n_draws)
    rate = n_accepted / n_draws
    print(f"{mode}: p = {p_first:.3f} (first), {p_pair:.3f} (pairs) of {n_draws} draws, {rate:.2f} accepted each")
    assert (rate > 0.1) == (mode != "plain")
    assert p_first > 0.001
    assert p_pair > 0.001


@pytest.mark.parametrize("mode", ["plain", "tree 8"])
def test_twenty_thousand_draws_have_the_targets_distribution(mode: str, open_rig: Callable[[str], Rig]) -> None:
    with open_rig("llama") as rig:
        check_distribution(rig, mode, 20_000)


def test_draws_through_a_hybrid_targets_trees_have_its_distribution(open_rig: Callable[[str], Rig]) -> None:
    with open_rig("qwen35") as rig:
        check_distribution(rig, "tree 8", 3000)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mode"), list(itertools.product(SIZES, MODES)))
def test_twenty_thousand_draws_in_every_mode(kind: str, mode: str, open_rig: Callable[[str], Rig]) -> None:
    with open_rig(kind) as rig:
        check_distribution(rig, mode, 20_000)


@pytest.mark.parametrize("kind", SIZES)
def test_a_seed_gives_one_text_in_every_mode(kind: str, open_rig: Callable[[str], Rig]) -> None:
    with open_rig(kind) as rig:
        texts = set()
        for seed in range(60):
            plain, _ = draw(rig, seed, 12, **MODES["plain"])
            texts.add(tuple(plain))
            for mode in ("chain", "tree 8", "tree 30"):
                assert draw(rig, seed, 12, **MODES[mode])[0] == plain, (seed, mode)
        assert len(texts) > 50  # seeds matter
