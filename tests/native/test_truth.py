"""With a draft, greedy replies are the target's own: on both pairs, for chains and trees of every size.

Sums differ in their last bits between row counts, so two tokens that are nearly equally likely may change places. Each
divergence is therefore reported with the target's own gap at that token, beside the same comparison of plain decoding
with itself on another chunk grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding import abi
from native.oracles import model_files
from native.oracles.compare import top_gap
from native.oracles.prompts import PROMPTS, chat_ids, starter_pair
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR_TIE = 1e-2
"""Largest gap between two logits at which they may change places; the issue's rule."""
OFF, AUTO, TREE, CHAIN = 3, 0, 1, 2
MODES: dict[str, dict[str, float]] = {
    "auto": {"draft_mode": AUTO},
    "chain": {"draft_mode": CHAIN},
    **{f"tree {n}": {"draft_mode": TREE, "tree_budget": n} for n in (4, 8, 16, 22, 32, 48, 63)},
}


@dataclass(frozen=True)
class Divergence:
    """The first place where a reply is not plain decoding's."""

    mode: str
    prompt: int
    place: int
    gap: float  # between the two tokens, as the target sees them there

    def __str__(self) -> str:
        return f"{self.mode}: prompt {self.prompt}, token {self.place}, gap {self.gap:.2e}"


def divergences(rig: Rig, modes: list[str], prompts: range, n_tokens: int) -> list[Divergence]:
    """Every divergence of every mode from plain decoding."""
    found = []
    for number in prompts:
        ids = chat_ids(PROMPTS[number])
        plain = rig.generate(ids, max_tokens=n_tokens, draft_mode=OFF, no_reuse=1).tokens
        for mode in modes:
            reply = rig.generate(ids, max_tokens=n_tokens, no_reuse=1, **MODES[mode]).tokens
            if reply != plain:
                place = next((i for i, (a, b) in enumerate(zip(reply, plain, strict=False)) if a != b), None)
                assert place is not None, "one reply is the other's beginning"
                rig.reset()
                row = rig.logits(ids + plain[:place], grid=1)[-1]
                found.append(Divergence(mode, number, place, float(abs(row[plain[place]] - row[reply[place]]))))
    for divergence in found:
        print(divergence)
    return found


def own_noise(rig: Rig, n_tokens: int) -> float:
    """The control: how much plain decoding's logits differ between one row and eight rows per pass."""
    ids = chat_ids(PROMPTS[0])
    reply = rig.generate(ids, max_tokens=n_tokens, draft_mode=OFF, no_reuse=1).tokens
    rig.reset()
    single = rig.logits(ids + reply, grid=1)
    rig.reset()
    eight = rig.logits(ids + reply, grid=8)
    noise = float(abs(single - eight).max())
    gap = float(top_gap(single).min())
    print(f"plain against plain, 1 and 8 rows per pass: logits differ by {noise:.2e}, smallest gap {gap:.2e}")
    return noise


@pytest.fixture(scope="module")
def starter() -> Iterator[Rig]:
    with Rig(*starter_pair(), context=512, n_threads=1) as rig:
        yield rig


@pytest.fixture(scope="module")
def exact_mini(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    target = model_files.copy(QWEN35_MINI, tmp_path_factory.mktemp("f32") / "target.gguf", dequantised=True)
    with Rig(target, QWEN35_MINI_DRAFT, context=512, n_threads=1) as rig:
        yield rig
    target.unlink()


def test_the_built_in_pairs_replies_are_the_targets_own(starter: Rig) -> None:
    found = divergences(starter, ["auto", "chain", "tree 22"], range(0, 60, 12), 40)
    assert all(divergence.gap <= NEAR_TIE for divergence in found), found


def test_a_hybrid_pairs_replies_are_the_targets_own_in_f32(exact_mini: Rig) -> None:
    found = divergences(exact_mini, ["auto", "chain", "tree 8", "tree 22", "tree 63"], range(0, 60, 12), 48)
    assert all(divergence.gap <= NEAR_TIE for divergence in found), found


@pytest.mark.slow
def test_sixty_replies_of_the_built_in_pair(starter: Rig) -> None:
    own_noise(starter, 128)
    found = divergences(starter, ["chain", "tree 22", "auto"], range(60), 128)
    assert all(divergence.gap <= NEAR_TIE for divergence in found), found


@pytest.mark.slow
def test_sixty_replies_of_the_hybrid_pair_in_f32(exact_mini: Rig) -> None:
    own_noise(exact_mini, 128)
    found = divergences(exact_mini, list(MODES), range(60), 128)
    assert all(divergence.gap <= NEAR_TIE for divergence in found), found


@pytest.mark.slow
@pytest.mark.parametrize("kv", ["AUTO", "F16", "Q8_0", "Q4_0"])
def test_sixty_replies_of_the_shipped_hybrid_pair_differ_only_within_plain_decodings_own_noise(kv: str) -> None:
    """Q8_0 weights round their inputs: a last bit before them moves logits. The bound is what plain decoding shows."""
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=512, n_threads=1, kv=abi.KvTypeCode[kv]) as rig:
        noise = own_noise(rig, 128)
        found = divergences(rig, ["chain", "tree 22", "auto"], range(60), 128)
    assert all(divergence.gap <= max(NEAR_TIE, 2 * noise) for divergence in found), (noise, found)
