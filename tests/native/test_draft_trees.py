"""Trees over conditional candidates (DFlash2, DSpark): children depend on their parent's token. Against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from support.native_probe import Floats, Ints, Probe, ProbeTuner, TreeRows


def random_table(rng: np.random.Generator, n_depths: int, k: int) -> tuple[Ints, Floats]:
    """Ids (n_depths, k), and the log-probability of each candidate after each candidate of the depth above."""
    ids = np.stack([rng.permutation(1000)[:k] for _ in range(n_depths)]).astype(np.int32)
    conditional = np.log(rng.dirichlet(np.full(k + 2, 0.5), (n_depths, k))[..., :k] + 1e-6)
    return ids, conditional.astype(np.float32)


def every_path(ids: Ints, conditional: Floats) -> dict[tuple[int, ...], float]:
    """Weight of each path of tokens."""
    n_depths, k = ids.shape
    paths: dict[tuple[int, ...], float] = {}
    for length in range(1, n_depths + 1):
        for choice in itertools.product(range(k), repeat=length):
            befores = (0, *choice[:-1])
            weight = math.fsum(
                float(conditional[d, p, c]) for d, (p, c) in enumerate(zip(befores, choice, strict=True))
            )
            paths[tuple(int(ids[d, c]) for d, c in enumerate(choice))] = weight
    return paths


def token_paths(tree: TreeRows) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    for parent, token in zip(tree.parents, tree.tokens, strict=True):
        out.append((*out[parent], token) if parent >= 0 else ())
    return out[1:]


@pytest.mark.parametrize("case", range(30))
def test_a_conditional_tree_holds_exactly_the_heaviest_paths(probe: Probe, case: int) -> None:
    rng = np.random.default_rng(case)
    n_depths, k = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    budget = int(rng.integers(1, 64))
    ids, conditional = random_table(rng, n_depths, k)
    tree = probe.build_conditional_tree(ids, conditional, budget)
    weights = every_path(ids, conditional)
    heaviest = sorted(weights, key=lambda path: -weights[path])[:budget]
    assert token_paths(tree) == heaviest  # in this order, too
    assert tree.logprobs[1:] == pytest.approx([weights[path] for path in heaviest], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("case", range(10))
def test_a_conditional_chain_is_the_greedy_walk(probe: Probe, case: int) -> None:
    ids, conditional = random_table(np.random.default_rng(case), 6, 4)
    walk, before = [], 0
    for depth in range(6):
        before = int(np.argmax(conditional[depth, before]))
        walk.append(int(ids[depth, before]))
    tree = probe.build_conditional_tree(ids, conditional, 63, is_chain=True)
    assert tree.tokens[1:] == walk
    assert tree.ranks == [0] * 7


def test_the_rank_of_a_node_counts_the_likelier_candidates_after_its_own_parent(probe: Probe) -> None:
    ids, conditional = random_table(np.random.default_rng(1), 4, 4)
    tree = probe.build_conditional_tree(ids, conditional, 63)
    for row in range(1, len(tree.tokens)):
        parent, depth = tree.parents[row], tree.depths[row] - 1
        before = 0 if depth == 0 else ids[depth - 1].tolist().index(tree.tokens[parent])
        own = ids[depth].tolist().index(tree.tokens[row])
        assert tree.ranks[row] == int((conditional[depth, before] > conditional[depth, before, own]).sum())


def test_impossible_and_nonsensical_candidates_are_never_nodes(probe: Probe) -> None:
    ids, conditional = random_table(np.random.default_rng(2), 3, 4)
    conditional[0, 0, 2] = -np.inf
    conditional[1, :, 1] = np.nan
    tree = probe.build_conditional_tree(ids, conditional, 63)
    places = {(depth, token) for depth, token in zip(tree.depths, tree.tokens, strict=True)}
    assert (1, int(ids[0, 2])) not in places and (2, int(ids[1, 1])) not in places
    assert len(tree.tokens) == 1 + 3 + 3 * 3 + 9 * 4
    nothing = probe.build_conditional_tree(ids, np.full_like(conditional, -np.inf), 63)
    assert nothing.tokens == [7]


def test_a_table_that_is_too_small_is_refused(probe: Probe) -> None:
    ids, conditional = random_table(np.random.default_rng(3), 3, 4)
    with pytest.raises(ValueError, match="conditionals"):
        probe.build_conditional_tree(ids, conditional[:2], 10)


def test_a_conditional_draft_that_promises_too_much_is_believed_less(probe: Probe) -> None:
    """Truth: the likeliest candidate is right in half of the steps. The draft says 0.9, whatever comes before."""
    rng = np.random.default_rng(4)
    tuner = ProbeTuner(probe, [1, 2, 4, 8, 16, 32, 64])
    said = np.array([0.9, 0.06, 0.03], np.float32)
    for _ in range(400):
        ids = np.stack([rng.permutation(1000)[:3] for _ in range(3)]).astype(np.int32)
        favourites = rng.integers(0, 3, (3, 3))
        conditional = np.zeros((3, 3, 3), np.float32)
        for depth, before in itertools.product(range(3), range(3)):
            conditional[depth, before, (favourites[depth, before] + np.arange(3)) % 3] = np.log(said)
        truth, before = np.zeros(3, np.int32), 0
        for depth in range(3):
            own = (favourites[depth, before] + (0 if rng.random() < 0.5 else rng.choice([1, 2]))) % 3
            truth[depth], before = ids[depth, own], own
        tuner.conditional_step(ids, conditional, truth, 10)
    calibrated = np.exp(tuner.calibrate_conditional(ids, conditional))
    first = calibrated[0, 0, (favourites[0, 0] + np.arange(3)) % 3]
    assert first[0] == pytest.approx(0.5, abs=0.12)
    assert first[1:].sum() == pytest.approx(0.5, abs=0.15)
    for depth, before in itertools.product(range(1, 3), range(3)):
        assert calibrated[depth, before].sum() <= 1.001
        assert int(np.argmax(calibrated[depth, before])) == favourites[depth, before]
