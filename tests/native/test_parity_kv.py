"""KV cache types: every pair works or is refused with the reason, and costs no more accuracy than it may."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dflash_desktop.binding.abi import KvTypeCode
from dflash_desktop.binding.failures import Unsupported
from native.oracles import checkpoints, model_files
from native.oracles.checkpoints import Checkpoint
from native.oracles.compare import divergence, relative
from native.oracles.prompts import PROMPTS, chat_ids, starter_pair
from native.oracles.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TYPES = [code for code in KvTypeCode if code is not KvTypeCode.AUTO]
ROUNDED_AWAY = {
    KvTypeCode.F32: 0.0, KvTypeCode.F16: 0.02, KvTypeCode.BF16: 0.1, KvTypeCode.Q8_0: 0.1, KvTypeCode.Q5_1: 0.5,
    KvTypeCode.Q5_0: 0.5, KvTypeCode.Q4_1: 0.8, KvTypeCode.Q4_0: 0.8,
}  # fmt: skip
"""What each type may do to the logits of a random model, relative to F32: generous, but far from garbage."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.write_target(
        Checkpoint(kind="qwen35", seed=51, n_rot=8), tmp_path_factory.mktemp("tiny") / "target.gguf"
    )


@pytest.mark.parametrize(("kv_k", "kv_v"), list(itertools.product(TYPES, TYPES)), ids=lambda code: code.name)
def test_every_pair_of_types_answers(kv_k: KvTypeCode, kv_v: KvTypeCode, tiny: Path) -> None:
    """B074. The CPU runs them all."""
    ids = [int(i) for i in np.random.RandomState(1).randint(0, 192, 40)]
    with Rig(tiny, n_threads=1) as exact, Rig(tiny, n_threads=1, kv=kv_k, kv_v=kv_v) as rig:
        loss = relative(rig.logits(ids), exact.logits(ids))
        assert loss <= max(ROUNDED_AWAY[kv_k], ROUNDED_AWAY[kv_v])
        assert (loss == 0) == (kv_k == kv_v == KvTypeCode.F32)


@pytest.mark.parametrize("kv", [code for code in TYPES if code.name.startswith("Q")], ids=lambda code: code.name)
def test_heads_that_are_no_whole_blocks_are_refused_with_the_reason(kv: KvTypeCode, tmp_path: Path) -> None:
    spec = Checkpoint(kind="qwen35", seed=52, head_dim=16, n_rot=8)
    target = checkpoints.write_target(spec, tmp_path / "target.gguf")
    for kv_k, kv_v in ((kv, kv), (KvTypeCode.F16, kv), (kv, KvTypeCode.F16)):
        with pytest.raises(Unsupported, match=kv.name.lower()), Rig(target, n_threads=1, kv=kv_k, kv_v=kv_v):
            pass


@pytest.mark.parametrize("kv", TYPES, ids=lambda code: code.name)
def test_prompts_around_256_and_512_tokens_decode_on_as_in_one_piece(kv: KvTypeCode, tiny: Path) -> None:
    """B077: lengths at which the cache's padding changes."""
    ids = [int(i) for i in np.random.RandomState(2).randint(0, 192, 516)]
    with Rig(tiny, n_threads=1, kv=kv) as rig, Rig(tiny, n_threads=1, kv=kv, context=4096) as larger:
        for n in (255, 256, 257, 511, 512, 513):
            rig.reset()
            rig.append(ids[:n])
            one_by_one = rig.logits(ids[n : n + 3], grid=1)
            larger.reset()
            larger.append(ids[: n - 1])
            together = larger.logits(ids[n - 1 : n + 3])[1:]
            assert relative(one_by_one, together) <= 1e-3, n


def check_quality(target: Path, n_prompts: int) -> tuple[Callable[[KvTypeCode], float], dict[KvTypeCode, float]]:
    """Mean KL against F16 along F16's own replies, and the share of replies that begin with the same 20 tokens."""
    prompts = [chat_ids(question) for question in PROMPTS[:n_prompts]]
    replies: dict[KvTypeCode, list[list[int]]] = {}
    logits: dict[KvTypeCode, list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]] = {}
    for kv in (KvTypeCode.F16, KvTypeCode.Q8_0, KvTypeCode.Q4_0):
        with Rig(target, n_threads=1, kv=kv) as rig:
            replies[kv] = [rig.generate(ids, max_tokens=20).tokens for ids in prompts]
            logits[kv] = []
            for ids, reply in zip(prompts, replies[KvTypeCode.F16], strict=True):
                rig.reset()
                rig.append(ids[:-1])
                logits[kv].append(rig.logits([ids[-1], *reply]))

    def distance(kv: KvTypeCode) -> float:
        pairs = zip(logits[kv], logits[KvTypeCode.F16], strict=True)
        return float(np.mean([divergence(a, b).mean() for a, b in pairs]))

    same = {
        kv: float(np.mean([a == b for a, b in zip(replies[kv], replies[KvTypeCode.F16], strict=True)])) for kv in logits
    }
    for kv, share in same.items():
        print(f"{kv.name}: KL {distance(kv):.2e}, {share:.0%} begin with the same 20 tokens")
    return distance, same


def test_a_quantised_cache_stays_close_to_f16_on_a_real_model() -> None:
    """B076."""
    distance, _ = check_quality(starter_pair()[0], 2)
    assert distance(KvTypeCode.Q8_0) < 0.01
    assert distance(KvTypeCode.Q4_0) < 0.5


@pytest.mark.slow
def test_a_quantised_cache_stays_close_to_f16_on_fifty_prompts() -> None:
    distance, _ = check_quality(starter_pair()[0], 50)
    assert distance(KvTypeCode.Q8_0) < 0.01
    assert distance(KvTypeCode.Q4_0) < 0.5


@pytest.mark.slow
@pytest.mark.xfail(
    reason="keys and values are not rotated before they are rounded, as upstream does: 70 % here, 90 % there"
)
def test_nine_of_ten_replies_begin_alike_with_a_q8_0_cache(tmp_path: Path) -> None:
    """In F32: Q4_1 weights alone let fewer replies begin alike, upstream's too."""
    path = model_files.copy(starter_pair()[0], tmp_path / "f32.gguf", dequantised=True)
    _, same = check_quality(path, 50)
    path.unlink()
    assert same[KvTypeCode.Q8_0] >= 0.9
