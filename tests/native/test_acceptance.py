"""Acceptance lengths on the prompts they were measured with when the drafts were made (support/models/README.md).

There, acceptance length is generated tokens over target passes, and the first token comes from the prompt's pass, which
counts as one. Here the last prompt token is the first root, so every token comes from a step; to compare like with like
one pass per reply is added. (tree.md's own figure, tokens over steps, is printed beside it.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from native.oracles.prompts import MEASURED, chat_ids, starter_pair
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from pathlib import Path

CHAIN, TREE = 2, 1
UPSTREAM = {"smollm2": 2.53, "qwen35-mini": 3.25}


def pair_of(name: str) -> tuple[Path, Path]:
    return starter_pair() if name == "smollm2" else (QWEN35_MINI, QWEN35_MINI_DRAFT)


def acceptance_length(rig: Rig, *, n_extra_passes: int = 0, **generation: float) -> float:
    """Over all ten prompts together, at most 160 tokens each; `n_extra_passes` per reply."""
    replies = [rig.generate(chat_ids(question), max_tokens=160, **generation) for question in MEASURED]
    n_tokens = sum(len(reply.tokens) for reply in replies)
    n_steps = sum(len(reply.steps) for reply in replies)
    print(f"{n_tokens} tokens, {n_steps} steps: {n_tokens / n_steps:.3f}")
    return n_tokens / (n_steps + n_extra_passes * len(replies))


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_chains_acceptance_length_is_upstreams(name: str) -> None:
    with Rig(*pair_of(name)) as rig:
        found = acceptance_length(rig, n_extra_passes=1, draft_mode=CHAIN)
    print(f"{name}: {found:.3f}, upstream {UPSTREAM[name]}")
    assert found == pytest.approx(UPSTREAM[name], rel=0.05)


def test_a_tree_of_22_nodes_beats_the_chain() -> None:
    with Rig(*pair_of("qwen35-mini")) as rig:
        chain = acceptance_length(rig, draft_mode=CHAIN)
        tree = acceptance_length(rig, draft_mode=TREE, tree_budget=22)
    print(f"qwen35-mini: tree {tree:.3f}, chain {chain:.3f}, ratio {tree / chain:.3f}")
    assert tree / chain >= 1.10
