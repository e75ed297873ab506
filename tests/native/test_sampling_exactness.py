"""Sampling keeps the target's distribution, and a seed its text, whatever is drafted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from native.oracles import model_files
from native.oracles.compare import log_softmax
from native.oracles.prompts import PROMPTS, chat_ids
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterator

OFF, TREE, CHAIN = 3, 1, 2
MODES: dict[str, dict[str, float]] = {
    "plain": {"draft_mode": OFF},
    "chain": {"draft_mode": CHAIN},
    "tree": {"draft_mode": TREE, "tree_budget": 8},
}
TEMPERATURE = 0.8
ALPHA = 0.001


@pytest.fixture(scope="module")
def shipped() -> Iterator[Rig]:
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=512, n_threads=1) as rig:
        yield rig


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    # F32: with quantised weights the last bit of a sum may move a logit, and a draw at a boundary with it.
    target = model_files.copy(QWEN35_MINI, tmp_path_factory.mktemp("f32") / "target.gguf", dequantised=True)
    with Rig(target, QWEN35_MINI_DRAFT, context=512, n_threads=1) as rig:
        yield rig
    target.unlink()


def expected_counts(rig: Rig, ids: list[int], n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How often each token should come next at the temperature, from the target's logits alone."""
    rig.reset()
    logits = rig.logits(ids, grid=1)[-1]
    return np.exp(log_softmax(logits / TEMPERATURE)) * n


def p_value(drawn: list[int], expected: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Chi-square of the draws; tokens expected less than eight times share one bin."""
    counts = np.bincount(drawn, minlength=expected.size).astype(np.float64)
    common = expected >= 8
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def next_tokens(rig: Rig, ids: list[int], n: int, **generation: float) -> tuple[list[int], int]:
    """The token after the prompt, n times with seeds 0..n-1, as the first of a two-token reply; and nodes drafted."""
    drawn = []
    n_drafted = 0
    for seed in range(n):
        reply = rig.generate(ids, max_tokens=2, temperature=TEMPERATURE, seed=seed, **generation)
        drawn.append(reply.tokens[0])
        n_drafted += sum(step.n_drafted for step in reply.steps)
    return drawn, n_drafted


@pytest.mark.parametrize("mode", MODES)
def test_the_next_token_has_the_targets_distribution(shipped: Rig, mode: str) -> None:
    ids, n = chat_ids(PROMPTS[31]), 400
    expected = expected_counts(shipped, ids, n)
    drawn, n_drafted = next_tokens(shipped, ids, n, **MODES[mode])
    assert (n_drafted > 0) == (mode != "plain")
    assert p_value(drawn, expected) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_twenty_thousand_draws_have_the_targets_distribution(shipped: Rig, mode: str) -> None:
    ids, n = chat_ids(PROMPTS[31]), 20_000
    expected = expected_counts(shipped, ids, n)
    drawn, _ = next_tokens(shipped, ids, n, **MODES[mode])
    p = p_value(drawn, expected)
    print(f"{mode}: p = {p:.4f} over {n} draws")
    assert p > ALPHA


@pytest.mark.parametrize("mode", ["chain", "tree"])
def test_a_seed_gives_the_same_text_with_and_without_a_draft(rig: Rig, mode: str) -> None:
    for number in (0, 6, 31):
        ids = chat_ids(PROMPTS[number])
        sampling = {"temperature": TEMPERATURE, "top_k": 40, "top_p": 0.95, "min_p": 0.02, "seed": 7, "max_tokens": 40}
        plain = rig.generate(ids, **sampling, **MODES["plain"]).tokens
        assert rig.generate(ids, **sampling, **MODES[mode]).tokens == plain


def test_penalties_see_the_committed_history_only(rig: Rig) -> None:
    """B040: with a draft, rejected tokens leave no trace, and the prompt counts."""
    ids = chat_ids(PROMPTS[41])
    penalties = {"repeat_penalty": 1.8, "frequency_penalty": 0.2, "presence_penalty": 0.1, "max_tokens": 40}
    plain = rig.generate(ids, **penalties, **MODES["plain"]).tokens
    assert plain != rig.generate(ids, max_tokens=40, **MODES["plain"]).tokens
    assert rig.generate(ids, **penalties, **MODES["chain"]).tokens == plain
    assert rig.generate(ids, **penalties, **MODES["tree"]).tokens == plain
