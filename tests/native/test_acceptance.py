"""Acceptance lengths on the prompts they were measured with when the drafts were made (support/models/README.md).

There, acceptance length is generated tokens over target passes, and the first token comes from the prompt's pass, which
counts as one. Here the last prompt token is the first root, so every token comes from a step. To compare like with like
one pass per reply is added; our own figure, tokens over steps, is printed beside it.

Two engines that round differently soon write different texts, and another text is another acceptance. So the draft is
also walked along upstream's own replies, stored by bench.dflash_vs_upstream: there the two must agree closely.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from native.oracles.prompts import MEASURED, chat_ids, starter_pair
from native.oracles.rig import Rig
from support.fixtures import MODELS, QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CHAIN, TREE = 2, 1
MEASURED_LENGTHS = {"starter": 2.53, "qwen35-mini": 3.25}
REPLIES = MODELS.parent / "references" / "upstream_acceptance.json"


@dataclass(frozen=True)
class UpstreamReply:
    prompt: list[int]
    tokens: list[int]
    n_passes: int


def pair_of(name: str) -> tuple[Path, Path]:
    return starter_pair() if name == "starter" else (QWEN35_MINI, QWEN35_MINI_DRAFT)


def upstream_replies(name: str) -> list[UpstreamReply]:
    """To the ten prompts in their order."""
    stored = json.loads(REPLIES.read_text("utf-8"))[name]
    return [
        UpstreamReply(chat_ids(question), one["ids"], one["passes"])
        for question, one in zip(MEASURED, stored, strict=True)
    ]


def passes_along(rig: Rig, reply: UpstreamReply) -> int:
    """Target passes that our draft's chains need for exactly this text."""
    rig.reset()
    rig.append(reply.prompt)
    n_passes, at = 1, 0  # the prompt's pass gives the first token; `at` is the root's place
    while at < len(reply.tokens) - 1:
        drafted = [int(token) for token in rig.draft(reply.tokens[at], k=1)[0][:, 0]]
        following = reply.tokens[at + 1 :]
        n_accepted = 0
        while n_accepted < min(len(drafted), len(following) - 1) and drafted[n_accepted] == following[n_accepted]:
            n_accepted += 1
        rig.append(reply.tokens[at : at + n_accepted + 1])
        at += n_accepted + 1
        n_passes += 1
    return n_passes


def check_along_upstreams_text(name: str, replies: Sequence[UpstreamReply]) -> None:
    with Rig(*pair_of(name), n_threads=1) as rig:
        ours = sum(passes_along(rig, reply) for reply in replies)
    n_tokens, theirs = sum(len(reply.tokens) for reply in replies), sum(reply.n_passes for reply in replies)
    print(f"{name}: {n_tokens} tokens, acceptance length {n_tokens / ours:.3f}, upstream {n_tokens / theirs:.3f}")
    assert ours == pytest.approx(theirs, rel=0.03)


@pytest.mark.parametrize(("name", "n_prompts"), [("starter", 2), ("qwen35-mini", 10)])
def test_along_upstreams_text_as_much_is_accepted_as_upstream_accepts(name: str, n_prompts: int) -> None:
    check_along_upstreams_text(name, upstream_replies(name)[:n_prompts])


@pytest.mark.slow
def test_along_all_of_upstreams_text_as_much_is_accepted_as_upstream_accepts() -> None:
    check_along_upstreams_text("starter", upstream_replies("starter"))


def acceptance_length(rig: Rig, *, n_extra_passes: int = 0, n_prompts: int = 10, **generation: float) -> float:
    """Over all prompts together, at most 160 tokens each; `n_extra_passes` per reply."""
    replies = [rig.generate(chat_ids(question), max_tokens=160, **generation) for question in MEASURED[:n_prompts]]
    n_tokens = sum(len(reply.tokens) for reply in replies)
    n_steps = sum(len(reply.steps) for reply in replies)
    print(f"{n_tokens} tokens, {n_steps} steps: {n_tokens / n_steps:.3f}")
    return n_tokens / (n_steps + n_extra_passes * len(replies))


@pytest.fixture(scope="module")
def mini() -> Iterator[Rig]:
    with Rig(*pair_of("qwen35-mini"), n_threads=1) as rig:
        yield rig


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED_LENGTHS)
def test_a_chains_acceptance_length_is_what_was_measured_with_upstream(name: str) -> None:
    with Rig(*pair_of(name)) as rig:
        found = acceptance_length(rig, n_extra_passes=1, draft_mode=CHAIN)
    print(f"{name}: {found:.3f}, measured with upstream {MEASURED_LENGTHS[name]}")
    assert found == pytest.approx(MEASURED_LENGTHS[name], rel=0.05)


def test_a_tree_of_22_nodes_beats_the_chain(mini: Rig) -> None:
    chain = acceptance_length(mini, n_prompts=3, draft_mode=CHAIN)
    tree = acceptance_length(mini, n_prompts=3, draft_mode=TREE, tree_budget=22)
    print(f"qwen35-mini: tree {tree:.3f}, chain {chain:.3f}, ratio {tree / chain:.3f}")
    assert tree / chain >= 1.10


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED_LENGTHS)
def test_a_tree_of_22_nodes_beats_the_chain_on_all_prompts(name: str) -> None:
    with Rig(*pair_of(name)) as rig:
        chain = acceptance_length(rig, draft_mode=CHAIN)
        tree = acceptance_length(rig, draft_mode=TREE, tree_budget=22)
    print(f"{name}: tree {tree:.3f}, chain {chain:.3f}, ratio {tree / chain:.3f}")
    assert tree / chain >= 1.10
