"""The draft tree against brute force: every prefix enumerated and sorted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from support.native_probe import Floats, Ints, Probe, TreeRows


def random_table(rng: np.random.Generator, n_depths: int, k: int) -> tuple[Ints, Floats]:
    """Candidates as a draft gives them: ids that differ within a depth, log-probabilities best first."""
    ids = np.stack([rng.permutation(1000)[:k] for _ in range(n_depths)]).astype(np.int32)
    logprobs = -np.sort(-np.log(rng.dirichlet(np.ones(k + 3), n_depths)[:, :k]), axis=1)
    return ids, logprobs.astype(np.float32)


def every_prefix(logprobs: Floats) -> dict[tuple[int, ...], float]:
    """Weight of each sequence of ranks."""
    n_depths, k = logprobs.shape
    return {
        ranks: math.fsum(float(logprobs[depth, rank]) for depth, rank in enumerate(ranks))
        for length in range(1, n_depths + 1)
        for ranks in itertools.product(range(k), repeat=length)
    }


def prefixes(tree: TreeRows) -> list[tuple[int, ...]]:
    """The sequence of ranks of each row."""
    out: list[tuple[int, ...]] = []
    for row, parent in enumerate(tree.parents):
        out.append((*out[parent], tree.ranks[row]) if parent >= 0 else ())
    return out


def check_consistent(tree: TreeRows, ids: Ints, logprobs: Floats) -> None:
    assert (tree.parents[0], tree.depths[0], tree.ranks[0], tree.logprobs[0]) == (-1, 0, 0, 0.0)
    weights = every_prefix(logprobs)
    for row, ranks in enumerate(prefixes(tree)):
        if row == 0:
            continue
        assert 0 <= tree.parents[row] < row
        assert tree.depths[row] == len(ranks) == tree.depths[tree.parents[row]] + 1
        assert tree.tokens[row] == ids[len(ranks) - 1, ranks[-1]]
        assert tree.logprobs[row] == pytest.approx(weights[ranks], rel=1e-5, abs=1e-5)
    places = list(zip(tree.parents, tree.tokens, strict=True))
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("case", range(40))
def test_a_tree_holds_exactly_the_heaviest_prefixes(probe: Probe, case: int) -> None:
    rng = np.random.default_rng(case)
    n_depths, k = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    budget = int(rng.integers(1, 64))
    ids, logprobs = random_table(rng, n_depths, k)
    tree = probe.build_tree(ids, logprobs, budget)
    weights = every_prefix(logprobs)
    heaviest = sorted(weights, key=lambda ranks: -weights[ranks])[:budget]
    check_consistent(tree, ids, logprobs)
    assert prefixes(tree)[1:] == heaviest  # in this order, too


def test_a_small_tree_worked_by_hand(probe: Probe) -> None:
    logprobs = np.array([[-0.1, -2.4], [-0.3, -1.5], [-0.9, -1.0]], np.float32)
    ids = np.array([[11, 12], [21, 22], [31, 32]], np.int32)
    tree = probe.build_tree(ids, logprobs, 4)
    assert tree.tokens == [7, 11, 21, 31, 32]
    assert tree.parents == [-1, 0, 1, 2, 2]
    assert tree.logprobs == pytest.approx([0, -0.1, -0.4, -1.3, -1.4])


def test_a_chain_is_the_likeliest_candidate_of_each_depth(probe: Probe) -> None:
    ids, logprobs = random_table(np.random.default_rng(1), 7, 4)
    tree = probe.build_tree(ids, logprobs, 5, is_chain=True)
    assert tree.tokens == [7, *ids[:5, 0]]
    assert tree.parents == [-1, 0, 1, 2, 3, 4]
    assert probe.build_tree(ids, logprobs, 30, is_chain=True).tokens == [7, *ids[:, 0]]


def test_candidates_without_a_probability_are_never_nodes(probe: Probe) -> None:
    ids = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    logprobs = np.array([[-0.5, -1.0, -np.inf], [-0.5, np.nan, np.nan]], np.float32)
    tree = probe.build_tree(ids, logprobs, 50)
    assert sorted(prefixes(tree)[1:]) == [(0,), (0, 0), (1,), (1, 0)]
    nothing = probe.build_tree(ids, np.full((2, 3), np.nan, np.float32), 50)
    assert nothing.tokens == [7]
    assert probe.build_tree(ids, logprobs[::-1] * np.nan, 50, is_chain=True).tokens == [7]


def test_a_token_listed_twice_makes_one_sibling(probe: Probe) -> None:
    ids = np.array([[5, 5, 6], [8, 9, 8]], np.int32)
    logprobs = np.log(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], np.float32))
    tree = probe.build_tree(ids, logprobs, 50)
    places = list(zip(tree.parents, tree.tokens, strict=True))
    assert len(set(places)) == len(places) == 7  # the root, 5 and 6, and 8 and 9 below each


@pytest.mark.parametrize(("n_depths", "k", "budget"), [(0, 3, 5), (3, 0, 5), (3, 3, 0)])
def test_without_candidates_or_budget_there_is_only_the_root(probe: Probe, n_depths: int, k: int, budget: int) -> None:
    empty = np.zeros((n_depths, k))
    tree = probe.build_tree(empty.astype(np.int32), empty.astype(np.float32), budget)
    assert (tree.tokens, tree.parents) == ([7], [-1])


def test_ties_are_settled_the_same_way_every_time(probe: Probe) -> None:
    ids = np.arange(24, dtype=np.int32).reshape(6, 4)
    logprobs = np.full((6, 4), math.log(0.25), np.float32)
    assert probe.build_tree(ids, logprobs, 30) == probe.build_tree(ids, logprobs, 30)


def random_parents(rng: np.random.Generator, n: int) -> list[int]:
    return [-1, *(int(rng.integers(0, row)) for row in range(1, n))]


def test_depths_and_ranks_match_a_walk_up_each_row(probe: Probe) -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 23, 64):
        parents = random_parents(rng, n)
        depths, ranks = probe.make_tree(list(range(n)), parents)
        for row in range(n):
            line = [row]
            while parents[line[-1]] >= 0:
                line.append(parents[line[-1]])
            assert depths[row] == len(line) - 1
            assert ranks[row] == sum(parents[other] == parents[row] for other in range(row))


@pytest.mark.parametrize(
    ("parents", "row"),
    [([0, 0], 0), ([-1, 1], 1), ([-1, 2, 0], 1), ([-1, 0, -1], 2), ([-1, 0, 7], 2), ([-2, 0], 0)],
)
def test_a_parent_that_is_not_an_earlier_row_is_refused_by_name(probe: Probe, parents: list[int], row: int) -> None:
    with pytest.raises(ValueError, match=f"row {row} has parent {parents[row]}"):
        probe.make_tree([1] * len(parents), parents)


def test_an_empty_tree_is_refused(probe: Probe) -> None:
    with pytest.raises(ValueError, match="one of each per row"):
        probe.make_tree([], [])


def test_the_walk_follows_the_target_s_choices_and_ends_with_its_bonus(probe: Probe) -> None:
    rng = np.random.default_rng(4)
    for n in (1, 2, 10, 64):
        for _ in range(20):
            parents = random_parents(rng, n)
            tokens = list(range(100, 100 + n))
            choices = [
                int(rng.choice([*(tokens[child] for child in range(n) if parents[child] == row), 5]))
                for row in range(n)
            ]
            rows, out, lengths = probe.walk(tokens, parents, choices)
            expected = [0]
            while (token := choices[expected[-1]]) != 5:
                expected.append(token - 100)
            assert rows == expected
            assert out == [choices[row] for row in expected]
            assert lengths == list(range(len(expected)))  # the path known at each choice


def test_the_walk_does_not_mistake_a_cousin_for_a_child(probe: Probe) -> None:
    #      0 -> 1(a) -> 3(c)      the target says a, then d: d hangs below b only
    #       `-> 2(b) -> 4(d)
    rows, out, _ = probe.walk([0, 10, 11, 12, 13], [-1, 0, 0, 1, 2], [10, 13, 0, 0, 0])
    assert (rows, out) == ([0, 1], [10, 13])
