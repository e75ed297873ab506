"""A sliding window over attention: the windowed target's own logits, whichever way its rows are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dflash_desktop.binding.failures import BadArgument
from native.oracles import checkpoints, numpy_models
from native.oracles.checkpoints import Checkpoint
from native.oracles.compare import relative
from native.oracles.prompts import chat_ids
from native.oracles.rig import Rig
from native.oracles.trees import KINDS, random_path, random_rows
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from pathlib import Path

TARGETS = {
    "attention only": Checkpoint(kind="qwen3", seed=21),
    "hybrid": Checkpoint(kind="qwen35", seed=22, h_v=4, n_rot=8),
}
# Below the depth of a tree; between trees and prompts; beyond the slots that one graph looks at (768 here).
WINDOWS = (1, 5, 40, 300)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", TARGETS)
def test_logits_are_those_of_numpy_with_that_window(name: str, window: int, tmp_path: Path) -> None:
    path = checkpoints.write_target(TARGETS[name], tmp_path / "target.gguf")
    ids = [int(i) for i in np.random.RandomState(window).randint(0, 192, 130)]
    weights = numpy_models.load(path, np.float64)
    expected = numpy_models.target(weights, ids, window).logits
    with Rig(path, n_threads=1, window=window) as rig:
        for grid in (0, 1, 7):
            rig.reset()
            assert relative(rig.logits(ids, grid=grid), expected) <= 1e-4, grid
    if window < len(ids):
        assert relative(numpy_models.target(weights, ids).logits, expected) > 1e-2  # the window shows


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", TARGETS)
def test_a_tree_sees_what_its_paths_see_one_by_one(name: str, window: int, tmp_path: Path) -> None:
    path = checkpoints.write_target(TARGETS[name], tmp_path / "target.gguf")
    random = np.random.RandomState(window)
    with (
        Rig(path, context=1536, n_threads=1, window=window) as rig,
        Rig(path, context=1536, n_threads=1, window=window) as plain,
    ):
        # Around the edges of what a graph looks at: from 768 slots on the first ones are left out of it.
        committed = [int(i) for i in random.randint(0, rig.n_vocab, 990)]
        rig.append(committed)
        for step in range(6):
            rows = random_rows(KINDS[step % len(KINDS)], 40, rig.n_vocab, random)
            found = rig.verify(rows.tokens, rows.parents)
            for leaf in rows.leaves()[:3]:
                plain.reset()
                plain.append(committed)
                assert relative(found[rows.path(leaf)], plain.logits(rows.path_tokens(leaf))) <= 1e-3, (step, leaf)
            accepted = random_path(rows, random)
            rig.commit(accepted)
            committed += [rows.tokens[row] for row in accepted]


def test_what_lies_beyond_the_window_cannot_be_seen(tmp_path: Path) -> None:
    checkpoint = TARGETS["attention only"]
    path = checkpoints.write_target(checkpoint, tmp_path / "target.gguf")
    reach = checkpoint.n_layers * (8 - 1)  # each layer hands on what it saw
    ids = [int(i) for i in np.random.RandomState(1).randint(0, 192, reach + 2)]
    with Rig(path, n_threads=1, window=8) as rig:
        last = rig.logits(ids)[-1]
        for place, is_seen in ((0, False), (1, True), (reach, True)):
            other = list(ids)
            other[place] = (ids[place] + 1) % 192
            rig.reset()
            assert bool(np.abs(rig.logits(other)[-1] - last).max() > 0) is is_seen, place


@pytest.mark.parametrize("window", [12, 30])
def test_replies_with_a_draft_are_the_windowed_targets_own(window: int) -> None:
    prompt = chat_ids("Write a short story about a lighthouse keeper.")
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=512, n_threads=1, window=window) as rig:
        plain = rig.generate(prompt, max_tokens=24, draft_mode=3, no_reuse=1).tokens
        for mode in ({"draft_mode": 2}, {"draft_mode": 1, "tree_budget": 22}, {"draft_mode": 0}):
            assert rig.generate(prompt, max_tokens=24, no_reuse=1, **mode).tokens == plain, mode
    if window == 12:  # a hybrid target also remembers without attention
        with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=512, n_threads=1) as rig:
            assert rig.generate(prompt, max_tokens=24, draft_mode=3).tokens != plain


def test_a_window_as_large_as_the_context_is_none() -> None:
    ids = list(range(300, 340))
    with Rig(QWEN35_MINI, context=256, n_threads=1) as rig:
        expected = rig.logits(ids)
    with Rig(QWEN35_MINI, context=256, n_threads=1, window=256) as rig:
        np.testing.assert_array_equal(rig.logits(ids), expected)


def test_a_negative_window_is_refused() -> None:
    with pytest.raises(BadArgument, match="window of -1"):
        Rig(QWEN35_MINI, context=256, n_threads=1, window=-1)
