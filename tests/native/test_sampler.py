"""Sampling against plain numpy in float64: the filters' sets, the penalties, the distribution of the draws."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from support.native_probe import Floats, Probe, ProbeSampler

if TYPE_CHECKING:
    from collections.abc import Sequence

Doubles = npt.NDArray[np.float64]


def penalized(
    logits: Floats, window: Sequence[int], repeat: float = 1, frequency: float = 0, presence: float = 0
) -> Doubles:
    out = logits.astype(np.float64)
    for token, n in Counter(window).items():
        if 0 <= token < len(out):
            out[token] = out[token] / repeat if out[token] > 0 else out[token] * repeat
            out[token] -= n * frequency + presence
    return out


def expected_distribution(
    logits: Floats, temperature: float, top_k: int = 0, top_p: float = 1, min_p: float = 0
) -> Doubles:
    """Probabilities after temperature, top-k, top-p and min-p, in this order."""
    x = np.where(np.isnan(logits), -np.inf, logits).astype(np.float64) / temperature
    p: Doubles = np.exp(x - x.max())
    order = np.argsort(-x, kind="stable")
    if 0 < top_k < len(x):
        p[order[top_k:]] = 0
    if top_p < 1:
        running = np.cumsum(p[order]) / p.sum()
        p[order[np.searchsorted(running, top_p) + 1 :]] = 0
    p[p < min_p * p.max()] = 0
    p /= p.sum()
    return p


# ---- greedy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_vocab", [1, 2, 15, 16, 17, 1000, 250_001])
def test_greedy_takes_the_largest_logit(probe: Probe, n_vocab: int) -> None:
    rng = np.random.default_rng(n_vocab)
    sampler = ProbeSampler(probe, n_vocab)
    for _ in range(20):
        logits = rng.standard_normal(n_vocab).astype(np.float32)
        assert sampler.choose(logits) == np.argmax(logits)


@pytest.mark.parametrize("n_vocab", [8, 40, 1001])
def test_equal_logits_go_to_the_lowest_id(probe: Probe, n_vocab: int) -> None:
    rng = np.random.default_rng(5)
    sampler = ProbeSampler(probe, n_vocab)
    for _ in range(20):
        logits = rng.integers(-3, 4, n_vocab).astype(np.float32)
        assert sampler.choose(logits) == np.argmax(logits)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_logit_that_is_no_number_is_never_chosen(probe: Probe, temperature: float) -> None:
    rng = np.random.default_rng(6)
    for case in range(30):
        logits = rng.standard_normal(100).astype(np.float32)
        logits[rng.random(100) < 0.9] = np.nan
        logits[0] = np.nan
        if np.isnan(logits).all():
            continue
        sampler = ProbeSampler(probe, 100, temperature=temperature, top_p=0.9, seed=case)
        assert not np.isnan(logits[sampler.choose(logits)])
        assert temperature or sampler.choose(logits) == np.nanargmax(logits)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize(
    "setting", [{}, {"temperature": 1.0}, {"repeat_penalty": 1.1}, {"temperature": 1.0, "top_k": 5}]
)
def test_a_row_without_any_number_is_an_error(probe: Probe, value: float, setting: dict[str, float]) -> None:
    sampler = ProbeSampler(probe, 50, **setting)  # type: ignore[arg-type]  # a mix of ints and floats
    with pytest.raises(ValueError, match="not numbers"):
        sampler.choose(np.full(50, value, np.float32))


def test_an_infinite_logit_wins(probe: Probe) -> None:
    logits = np.zeros(50, np.float32)
    logits[[30, 20]] = np.inf
    assert ProbeSampler(probe, 50).choose(logits) == 20
    assert ProbeSampler(probe, 50, temperature=1.0, top_p=0.5).choose(logits) == 20


# ---- filters ----------------------------------------------------------------------------------------------------

FILTERS: list[dict[str, float]] = [
    {"temperature": 1.0},
    {"temperature": 0.5},
    {"temperature": 1.7},
    {"temperature": 1.0, "top_k": 1},
    {"temperature": 1.0, "top_k": 7},
    {"temperature": 1.0, "top_k": 1000},
    {"temperature": 1.0, "top_p": 0.6},
    {"temperature": 0.7, "top_p": 0.9},
    {"temperature": 1.0, "min_p": 0.3},
    {"temperature": 1.0, "top_k": 12, "top_p": 0.8},
    {"temperature": 1.0, "top_p": 0.9, "min_p": 0.35},
    {"temperature": 0.8, "top_k": 20, "top_p": 0.95, "min_p": 0.2},
]


@pytest.mark.parametrize("setting", FILTERS, ids=str)
def test_draws_have_the_distribution_that_numpy_computes(probe: Probe, setting: dict[str, float]) -> None:
    # Narrow logits: every token that is kept will be drawn, so the sets are compared exactly.
    logits = np.random.default_rng(7).uniform(-1, 1, 40).astype(np.float32)
    expected = expected_distribution(logits, **setting)  # type: ignore[arg-type]
    draws = ProbeSampler(probe, 40, seed=3, **setting).draws(logits, 20_000)  # type: ignore[arg-type]
    counts = np.bincount(draws, minlength=40)
    assert set(np.flatnonzero(counts)) == set(np.flatnonzero(expected))
    kept = expected > 0
    if kept.sum() > 1:
        assert stats.chisquare(counts[kept], 20_000 * expected[kept]).pvalue > 0.001


@pytest.mark.parametrize("scale", [0.5, 3.0])
@pytest.mark.parametrize("setting", FILTERS[:1] + FILTERS[4:9], ids=str)
def test_a_large_vocabulary_is_filtered_and_drawn_the_same_way(
    probe: Probe, setting: dict[str, float], scale: float
) -> None:
    n_vocab = 30_000
    rng = np.random.default_rng(8)
    logits = (scale * rng.standard_normal(n_vocab)).astype(np.float32)
    logits[rng.permutation(n_vocab)[:20]] += np.float32(4 * scale)
    expected = expected_distribution(logits, **setting)  # type: ignore[arg-type]
    n = 300
    draws = ProbeSampler(probe, n_vocab, seed=4, **setting).draws(logits, n)  # type: ignore[arg-type]
    assert (expected[draws] > 0).all()
    # Ids in ten groups of about equal probability.
    group = np.minimum(np.cumsum(expected) * 10, 9.999).astype(int)
    counts = np.bincount(group[draws], minlength=10)
    p = np.bincount(group, expected, minlength=10)
    assert stats.chisquare(counts[p > 0], n * p[p > 0]).pvalue > 0.001 if (p > 0).sum() > 1 else True


def test_top_k_settles_ties_at_its_edge_by_id(probe: Probe) -> None:
    logits = np.zeros(2000, np.float32)
    logits[1500] = 1
    draws = ProbeSampler(probe, 2000, temperature=1.0, top_k=4).draws(logits, 500)
    assert set(draws.tolist()) == {0, 1, 2, 1500}


def test_top_p_keeps_the_token_that_crosses_it(probe: Probe) -> None:
    logits = np.log(np.array([0.1, 0.5, 0.3, 0.1])).astype(np.float32)
    kept_by = {0.2: {1}, 0.49: {1}, 0.55: {1, 2}, 0.79: {1, 2}, 0.85: {0, 1, 2}, 0.95: {0, 1, 2, 3}}
    for top_p, kept in kept_by.items():
        draws = ProbeSampler(probe, 4, temperature=1.0, top_p=top_p).draws(logits, 300)
        assert set(draws.tolist()) == kept


def test_a_vanishing_temperature_is_greedy_and_a_huge_one_is_uniform(probe: Probe) -> None:
    logits = np.random.default_rng(9).standard_normal(10).astype(np.float32)
    cold = ProbeSampler(probe, 10, temperature=1e-30).draws(logits, 200)
    assert set(cold.tolist()) == {int(np.argmax(logits))}
    hot = ProbeSampler(probe, 10, temperature=1e6).draws(logits, 20_000)
    assert stats.chisquare(np.bincount(hot, minlength=10)).pvalue > 0.001


def test_weights_are_as_exact_as_the_draw_can_tell(probe: Probe) -> None:
    # Two tokens: the first is drawn when u (1 + w) < w. A logit just above or below that point decides.
    for seed in range(300):
        u = probe.uniform(seed, 0)
        edge = float(np.log(u / (1 - u)))
        if -15 < edge < 0:
            for shift, expected in ((1e-5, 0), (-1e-5, 1)):
                logits = np.array([edge + shift, 0], np.float32)
                assert ProbeSampler(probe, 2, temperature=1.0, seed=seed).choose(logits) == expected


# ---- penalties --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(30))
def test_penalties_do_what_numpy_does(probe: Probe, case: int) -> None:
    rng = np.random.default_rng(case)
    n_vocab = 50
    repeat, frequency, presence = rng.uniform([0.8, -0.3, -0.5], [1.6, 0.6, 1.0]).tolist()
    size = int(rng.choice([3, 10, 256, -1]))
    history = rng.integers(-2, n_vocab + 2, int(rng.integers(0, 40))).tolist()  # foreign ids are ignored
    sampler = ProbeSampler(
        probe,
        n_vocab,
        repeat_penalty=repeat,
        frequency_penalty=frequency,
        presence_penalty=presence,
        penalty_window=size,
        history=history,
    )
    for _ in range(10):
        logits = (3 * rng.standard_normal(n_vocab)).astype(np.float32)
        path = rng.integers(0, n_vocab, int(rng.integers(0, 6))).tolist()
        text = history + path
        window = text if size < 0 else text[-size:]
        expected = penalized(logits, window, repeat, frequency, presence)
        chosen = sampler.choose(logits, path)
        assert expected[chosen] == pytest.approx(expected.max(), abs=1e-5)
        sampler.commit(path[:2])
        history += path[:2]


@pytest.mark.parametrize("window", [1, 3, 9, 10, 256, -1])
def test_the_window_ends_exactly_where_it_should(probe: Probe, window: int) -> None:
    # Later tokens have larger logits, and the window's are out of the question: the last one before it is chosen.
    logits = np.arange(12, dtype=np.float32)
    for n_path in range(10):
        sampler = ProbeSampler(
            probe, 12, presence_penalty=1000, penalty_window=window, history=list(range(2, 12 - n_path))
        )
        before_window = 12 - 1 - window if 0 < window <= 9 else 1
        assert sampler.choose(logits, list(range(12 - n_path, 12))) == before_window


def test_a_path_counts_as_history_that_is_not_committed_yet(probe: Probe) -> None:
    rng = np.random.default_rng(10)
    setting: dict[str, Any] = {
        "temperature": 0.9,
        "top_p": 0.95,
        "repeat_penalty": 1.2,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.1,
        "seed": 11,
    }
    for window in (4, 256, -1):
        ahead = ProbeSampler(probe, 300, penalty_window=window, history=[1, 2, 3], **setting)
        behind = ProbeSampler(probe, 300, penalty_window=window, history=[1, 2, 3], **setting)
        reply: list[int] = []
        for _ in range(60):
            logits = (2 * rng.standard_normal(300)).astype(np.float32)
            token = ahead.choose(logits, reply[-(len(reply) % 7) :] if len(reply) % 7 else [])
            assert token == behind.choose(logits, [])
            assert token == behind.choose(logits, [])  # asking does not move the draw
            reply.append(token)
            behind.commit([token])
            if len(reply) % 7 == 0:
                ahead.commit(reply[-7:])


def test_the_draw_depends_on_seed_and_place_only(probe: Probe) -> None:
    logits = np.random.default_rng(12).uniform(-1, 1, 500).astype(np.float32)

    def draws(seed: int, history: Sequence[int] = ()) -> list[int]:
        sampler = ProbeSampler(probe, 500, temperature=1.0, seed=seed, history=history)
        return [int(token) for token in sampler.draws(logits, 50)]

    assert draws(1) == draws(1) == draws(1, history=[4, 5, 6])
    assert draws(1) != draws(2)
    assert len(set(draws(1))) > 20


def test_a_last_bit_of_noise_does_not_reshuffle_the_draws(probe: Probe) -> None:
    rng = np.random.default_rng(13)
    logits = rng.uniform(-1, 1, 500).astype(np.float32)
    noisy = (logits * (1 + 1e-6 * rng.standard_normal(500))).astype(np.float32)
    for setting in FILTERS[:10]:
        draws = [ProbeSampler(probe, 500, **setting).draws(row, 2000) for row in (logits, noisy)]  # type: ignore[arg-type]
        assert np.mean(draws[0] != draws[1]) < 0.005


# ---- numbers ----------------------------------------------------------------------------------------------------


def test_uniform_numbers_are_uniform_within_a_seed_and_across_seeds(probe: Probe) -> None:
    within = np.array([probe.uniform(1, i) for i in range(20_000)])
    across = np.array([probe.uniform(i, 0) for i in range(20_000)])
    for numbers in (within, across):
        assert numbers.min() >= 0 and numbers.max() < 1
        assert stats.kstest(numbers, "uniform").pvalue > 0.001
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.03
    assert len(set(within.tolist())) == 20_000
    assert probe.uniform(1, 5) == probe.uniform(1, 5)


def test_log_probabilities_match_float64(probe: Probe) -> None:
    rng = np.random.default_rng(14)
    for n_vocab, scale in ((5, 1), (1000, 5), (100_000, 30)):
        logits = (scale * rng.standard_normal(n_vocab)).astype(np.float32)
        logits[rng.integers(0, n_vocab)] = np.nan
        x = np.where(np.isnan(logits), -np.inf, logits).astype(np.float64)
        expected = x - x.max() - np.log(np.exp(x - x.max()).sum())
        for token in rng.integers(0, n_vocab, 20):
            got = probe.log_probability(logits, int(token))
            assert got == pytest.approx(expected[token], rel=1e-12, abs=1e-12)
