"""A draft that computes apart from its target, as on a second device: the same drafts, the same replies, the same plan.

On one device a draft apart has all that it has on another one: a stream, a cache and copies of its own, and features
that travel through the host. What differs is only where the copies lie.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.native import path_bytes, sized
from native.oracles import model_files
from native.oracles.prompts import PROMPTS, chat_ids, starter_pair
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.native_library import load_library

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTO, TREE, CHAIN, OFF = 0, 1, 2, 3
PAIRS: dict[str, Callable[[], tuple[Path, Path]]] = {
    "built-in": starter_pair,
    "hybrid": lambda: (QWEN35_MINI, QWEN35_MINI_DRAFT),
}


@pytest.fixture(scope="module", params=PAIRS)
def rigs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rig, Rig]]:
    """Beside the target and apart from it. Chunks of 48 rows: a prompt takes several, the last one of another size."""
    open_rig = partial(Rig, context=512, n_threads=1, prefill_chunk=48)
    pair = PAIRS[request.param]()
    if request.param == "hybrid":  # in F32 every number of rows gives the same choices: see test_truth
        pair = (model_files.copy(pair[0], tmp_path_factory.mktemp("f32") / "target.gguf", dequantised=True), pair[1])
    with open_rig(*pair) as beside, open_rig(*pair, is_apart=True) as apart:
        yield beside, apart


def test_blocks_are_the_same_after_a_prompt_a_commit_and_plain_rows(rigs: tuple[Rig, Rig]) -> None:
    ids = chat_ids(PROMPTS[0]) * 4
    assert len(ids) > 100
    found = []
    for rig in rigs:
        rig.reset()
        rig.append(ids)
        blocks = [rig.draft(ids[-1])]
        rig.verify([ids[0], 5, 9, 7, 11], [-1, 0, 0, 1, 2])
        rig.commit([0, 2, 4])  # rows that lie apart
        blocks.append(rig.draft(7))
        rig.logits([3], grid=1)
        blocks.append(rig.draft(8))
        found.append(blocks)
    for beside, apart in zip(*found, strict=True):
        assert (beside[0] == apart[0]).all()
        np.testing.assert_allclose(apart[2], beside[2], rtol=1e-4, atol=1e-4 * float(np.abs(beside[2]).max()))
    assert not (found[0][0][0] == found[0][1][0]).all(), "the commit makes no difference"


def test_replies_and_acceptance_are_the_same(rigs: tuple[Rig, Rig]) -> None:
    beside, apart = rigs
    for number in (0, 31):
        ids = chat_ids(PROMPTS[number])
        plain = apart.generate(ids, max_tokens=20, no_reuse=1, draft_mode=OFF).tokens
        for mode in ({"draft_mode": CHAIN}, {"draft_mode": TREE, "tree_budget": 22}, {"draft_mode": AUTO}):
            one, other = (rig.generate(ids, max_tokens=20, no_reuse=1, **mode) for rig in (beside, apart))
            assert other.tokens == one.tokens == plain, mode
            if mode["draft_mode"] != AUTO:
                assert other.acceptance_length == one.acceptance_length > 1.2, mode


def test_the_second_turn_goes_on_from_the_first(rigs: tuple[Rig, Rig]) -> None:
    ids = chat_ids(PROMPTS[0])
    replies = []
    for rig in rigs:
        rig.reset()
        first = rig.generate(ids, max_tokens=16, draft_mode=OFF)  # leaves rows without draft context
        second = rig.generate(ids + first.tokens + ids[:20], max_tokens=24, draft_mode=TREE, tree_budget=15)
        replies.append((first.tokens, second.tokens, second.n_reused, second.acceptance_length))
    assert replies[0] == replies[1]


@pytest.mark.parametrize("mode", [{"draft_mode": CHAIN}, {"draft_mode": TREE, "tree_budget": 15}])
def test_conversations_in_turn_come_back_with_the_context_of_the_draft(
    rigs: tuple[Rig, Rig], mode: dict[str, int]
) -> None:
    """Rows of both caches go through the host's memory; replies are those of prompts read from the start."""
    _, apart = rigs
    apart.reset()
    prompts = [chat_ids(PROMPTS[0]) * 2, chat_ids(PROMPTS[31]) * 2]
    assert min(len(prompt) for prompt in prompts) > 48
    warm = []
    for turn in range(2):
        for agent in (0, 1):
            reply = apart.generate(prompts[agent], max_tokens=12, **mode)
            assert (reply.n_restored > 0) == (turn > 0)
            warm.append((prompts[agent], reply))
            prompts[agent] = [*prompts[agent], *reply.tokens, *prompts[1 - agent][:20]]
    for prompt, reply in warm[2:]:
        cold = apart.generate(prompt, max_tokens=12, no_reuse=1, **mode)
        assert reply.tokens == cold.tokens
        assert reply.acceptance_length == cold.acceptance_length
        assert reply.tokens == apart.generate(prompt, max_tokens=12, no_reuse=1, draft_mode=OFF).tokens


def test_a_conversation_that_was_left_with_rows_still_to_be_brought_over_comes_back(rigs: tuple[Rig, Rig]) -> None:
    """Plain steps only keep their features; the draft's rows of them are made before they are saved."""
    prompt, other = chat_ids(PROMPTS[0]) * 2, chat_ids(PROMPTS[31]) * 2
    told = []
    for rig in rigs:
        rig.reset()
        first = rig.generate(prompt, max_tokens=2, draft_mode=CHAIN)
        said = rig.generate([*prompt, *first.tokens, 5, 7], max_tokens=9, draft_mode=AUTO)
        rig.generate(other, max_tokens=4, draft_mode=CHAIN)
        again = [*prompt, *first.tokens, 5, 7, *said.tokens, *other[:10]]
        back = rig.generate(again, max_tokens=16, draft_mode=CHAIN)
        cold = rig.generate(again, max_tokens=16, no_reuse=1, draft_mode=CHAIN)
        assert back.n_restored > 0
        assert back.tokens == cold.tokens
        told.append(back.tokens)
    assert told[0] == told[1]


def plan(target: Path, draft: Path, **draft_load: int) -> abi.Plan:
    library = load_library()
    cpu = next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)
    load = sized(abi.LoadParams, device=cpu, n_threads=1)
    params = sized(abi.SessionParams, context_tokens=512, prefill_chunk=48)
    out = sized(abi.Plan)
    library.check(
        library.c.dflash_plan_pair(
            path_bytes(target),
            path_bytes(draft),
            byref(load),
            byref(sized(abi.LoadParams, device=cpu, n_threads=1, **draft_load)),
            byref(params),
            byref(out),
        )
    )
    return out


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_planned_is_what_is_taken(name: str) -> None:
    pair = PAIRS[name]()
    planned, beside = plan(*pair, is_apart=1), plan(*pair)
    with Rig(*pair, context=512, n_threads=1, prefill_chunk=48, is_apart=True) as rig:
        taken = rig.session.memory()
    for part in ("target_weights", "draft_weights", "kv_cache", "recurrent", "draft_kv", "compute", "draft_compute"):
        assert getattr(planned, f"{part}_bytes") == getattr(taken, f"{part}_bytes"), part
    assert planned.draft_weights_bytes > beside.draft_weights_bytes, "copies of what it borrows"
    assert beside.draft_compute_bytes == 0 < planned.draft_compute_bytes
    # Both on one device: everything counts there.
    assert planned.total_bytes > planned.draft_weights_bytes + planned.target_weights_bytes
    assert planned.draft_total_bytes == planned.draft_free_bytes == 0
