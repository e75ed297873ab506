"""A tree verified in one pass against each of its paths decoded plainly, and states committed from trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dflash_desktop.binding.abi import KvTypeCode
from native.oracles import checkpoints
from native.oracles.checkpoints import Checkpoint
from native.oracles.compare import relative
from native.oracles.rig import Rig
from native.oracles.trees import KINDS, Rows, random_path, random_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

TARGETS = {
    "gentle decays": Checkpoint(kind="qwen35", seed=11, h_v=4, n_rot=8),
    "three values per key": Checkpoint(kind="qwen35", seed=12, h_v=6, n_rot=8, is_tied=False),
    "no decay": Checkpoint(kind="qwen35", seed=13, h_v=4, n_rot=8, decay=(1e-4, 1e-4)),
    "strong decay": Checkpoint(kind="qwen35", seed=14, h_v=4, n_rot=8, decay=(20.0, 20.0)),
    "from -1e-4 to -20": Checkpoint(kind="qwen35", seed=15, h_v=6, n_rot=8, decay=(1e-4, 20.0)),
    "attention only": Checkpoint(kind="qwen3", seed=16),
}
TREES_PER_TARGET = 84  # 504 in all


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("targets")

    def path_of(name: str) -> Path:
        path = folder / f"{list(TARGETS).index(name)}.gguf"
        return path if path.exists() else checkpoints.write_target(TARGETS[name], path)

    return path_of


def plainly(rig: Rig, past: Sequence[int], rows: Rows) -> npt.NDArray[np.float32]:
    """The logits after each row, from feeding past and path without any tree."""
    found = np.empty((len(rows.tokens), rig.n_vocab), np.float32)
    for leaf in rows.leaves():
        rig.reset()
        rig.append(past)
        found[rows.path(leaf)] = rig.logits(rows.path_tokens(leaf))
    return found


def through_a_tree(rig: Rig, past: Sequence[int], rows: Rows) -> npt.NDArray[np.float32]:
    rig.reset()
    rig.append(past)
    return rig.verify(rows.tokens, rows.parents)


@pytest.mark.parametrize("name", TARGETS)
def test_every_node_of_a_tree_sees_what_its_path_shows(name: str, target: Callable[[str], Path]) -> None:
    random = np.random.RandomState(TARGETS[name].seed)
    worst = 0.0
    with Rig(target(name), n_threads=1) as rig:
        for number in range(TREES_PER_TARGET):
            n_past = int(random.randint(0, 40))
            n_rows = [64, 1, 2, 33][number] if number < 4 else int(random.randint(1, 65))
            past = [int(i) for i in random.randint(0, rig.n_vocab, n_past)]
            rows = random_rows(KINDS[number % len(KINDS)], n_rows, rig.n_vocab, random)
            expected = plainly(rig, past, rows)
            worst = max(worst, relative(through_a_tree(rig, past, rows), expected))
    print(f"{name}: worst of {TREES_PER_TARGET} trees {worst:.1e}")
    assert worst <= 1e-3


@pytest.mark.parametrize("name", TARGETS)
def test_after_500_commits_decoding_goes_on_as_if_nothing_had_been_drafted(
    name: str, target: Callable[[str], Path]
) -> None:
    """B029: partly accepted trees again and again leave the state that feeding their tokens leaves."""
    random = np.random.RandomState(TARGETS[name].seed + 1)
    committed: list[int] = []
    worst = 0.0
    with Rig(target(name), context=6144, n_threads=1) as rig, Rig(target(name), context=6144, n_threads=1) as plain:
        for step in range(1, 501):
            rows = random_rows(KINDS[step % len(KINDS)], int(random.randint(1, 25)), rig.n_vocab, random)
            rig.verify(rows.tokens, rows.parents)
            path = random_path(rows, random)
            rig.commit(path)
            committed += [rows.tokens[row] for row in path]
            if step % 100 == 0 or step in (1, 2, 10):
                following = [int(i) for i in random.randint(0, rig.n_vocab, 4)]
                plain.reset()
                plain.append(committed)
                chain = [row - 1 for row in range(4)]
                found, expected = rig.verify(following, chain), plain.logits(following)
                assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()
                worst = max(worst, relative(found, expected))
    print(f"{name}: {len(committed)} tokens, worst {worst:.1e}")
    assert worst <= 1e-3


KV_PAIRS = [
    (KvTypeCode.F16, KvTypeCode.F16),
    (KvTypeCode.BF16, KvTypeCode.BF16),
    (KvTypeCode.Q8_0, KvTypeCode.Q8_0),
    (KvTypeCode.Q4_0, KvTypeCode.F16),
    (KvTypeCode.F16, KvTypeCode.Q5_1),
    (KvTypeCode.Q8_0, KvTypeCode.Q4_0),
]


@pytest.mark.parametrize(("kv_k", "kv_v"), KV_PAIRS, ids=[f"{k.name}-{v.name}" for k, v in KV_PAIRS])
def test_keys_and_values_keep_their_own_types_through_a_commit(
    kv_k: KvTypeCode, kv_v: KvTypeCode, target: Callable[[str], Path]
) -> None:
    random = np.random.RandomState(7)
    past = [int(i) for i in random.randint(0, 192, 21)]
    path_of = target("gentle decays")
    with (
        Rig(path_of, n_threads=1, kv=kv_k, kv_v=kv_v) as rig,
        Rig(path_of, n_threads=1, kv=kv_k, kv_v=kv_v) as plain,
        Rig(path_of, n_threads=1) as exact,
    ):
        rig.append(past)
        committed = list(past)
        for step in range(10):
            rows = random_rows(KINDS[step % len(KINDS)], 30, rig.n_vocab, random)
            expected = plainly(plain, committed, rows)
            assert relative(rig.verify(rows.tokens, rows.parents), expected) <= 1e-3, step
            path = random_path(rows, random)
            rig.commit(path)
            committed += [rows.tokens[row] for row in path]
        # The types are really in use: what they round away shows against F32.
        exact.append(committed)
        assert relative(plain.logits([5]), exact.logits([5])) > 1e-6


def test_a_row_sees_nothing_of_its_siblings(target: Callable[[str], Path]) -> None:
    with Rig(target("gentle decays"), n_threads=1) as rig:
        rig.append([3, 1, 4, 1, 5])
        parents = [-1, 0, 0, 1, 2]
        one = rig.verify([9, 2, 6, 5, 3], parents)
        other = rig.verify([9, 2, 77, 5, 8], parents)  # the second branch is another
        rows = [0, 1, 3]
        np.testing.assert_allclose(one[rows], other[rows], rtol=0, atol=1e-5)
        assert np.abs(one[[2, 4]] - other[[2, 4]]).min(axis=1).max() > 0


def test_verifying_changes_nothing_until_the_commit(target: Callable[[str], Path]) -> None:
    random = np.random.RandomState(3)
    with Rig(target("from -1e-4 to -20"), n_threads=1) as rig:
        rig.append([3, 1, 4, 1, 5])
        rows = random_rows("random", 40, rig.n_vocab, random)
        first = rig.verify(rows.tokens, rows.parents)
        for kind in KINDS:
            other = random_rows(kind, 50, rig.n_vocab, random)
            rig.verify(other.tokens, other.parents)
        np.testing.assert_array_equal(rig.verify(rows.tokens, rows.parents), first)
