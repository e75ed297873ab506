"""Whether a pair fits, and what would make it fit: around a plan whose arithmetic is plain, and around the engine's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding.native import Library
from dflash_desktop.engine.devices import Device, list_devices
from dflash_desktop.engine.events import MemoryUse, PairInfo
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.planning import LoadEstimate, plan_load
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.ui.engine.load_fit import (
    KV_TYPES,
    Verdict,
    Wanted,
    context_steps,
    freed_by,
    judge,
    nearest_step,
    supported_values,
)
from ui.scripted_engine import MEMORY, pair_info

MIB = 2**20
CARD = Device(0, "CUDA0", "0000:01:00.0", "gpu", "CUDA", "Card", 12_000 * MIB, 8_000 * MIB)
CPU = Device(1, "CPU", "CPU", "cpu", "CPU", "Processor", 32_000 * MIB, 30_000 * MIB)
TARGET, DRAFT = Path("/m/t.gguf"), Path("/m/d.gguf")
WEIGHTS, DRAFT_WEIGHTS, COMPUTE, RESERVE = 5_000 * MIB, 900 * MIB, 100 * MIB, 256 * MIB
PER_TOKEN = {"auto": 0.10, "f32": 0.2, "f16": 0.10, "bf16": 0.10, "q8_0": 0.053, "q5_1": 0.0375, "q5_0": 0.034,
             "q4_1": 0.031, "q4_0": 0.028}  # fmt: skip
TRAINED = 131_072


def plan(target: Path, draft: Path | None, options: LoadOptions) -> LoadEstimate:
    """As the engine's, with round numbers. q5_1 is not supported."""
    if "q5_1" in (options.kv_k, options.kv_v):
        raise AppError("q5_1 is not for these heads")
    device = CPU if options.device == "CPU" else CARD
    fixed = WEIGHTS + COMPUTE + (DRAFT_WEIGHTS if draft else 0)
    per_token = int((PER_TOKEN[options.kv_k] + PER_TOKEN[options.kv_v]) / 2 * MIB)
    room = device.free_bytes - RESERVE - fixed
    largest = max(0, min(TRAINED, room // per_token // 256 * 256))
    context = options.context_tokens or max(largest, 256)
    kv = context * per_token
    return LoadEstimate(
        device.name, context, largest, fixed + kv + RESERVE <= device.free_bytes, WEIGHTS,
        DRAFT_WEIGHTS if draft else 0, kv, 0, 0, COMPUTE, fixed + kv, RESERVE, device.free_bytes,
    )  # fmt: skip


def wanted(tokens: int, **changes: object) -> Wanted:
    made = Wanted(TARGET, DRAFT, LoadOptions(device=CARD.id, context_tokens=tokens))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_fits_is_not_told_how_to_fit() -> None:
    fit = judge(plan, wanted(8192), [CARD, CPU], TRAINED)
    assert fit.verdict is Verdict.FITS
    assert fit.ways == ()
    assert fit.max_context_tokens == 17_408


def test_close_to_the_edge_it_is_tight() -> None:
    assert judge(plan, wanted(17_408), [CARD, CPU], TRAINED).verdict is Verdict.TIGHT
    assert judge(plan, wanted(17_408 + 256), [CARD, CPU], TRAINED).verdict is Verdict.TOO_BIG


def test_every_way_that_is_offered_does_fit() -> None:
    asked = wanted(60_000)
    fit = judge(plan, asked, [CARD, CPU], TRAINED)
    assert fit.verdict is Verdict.TOO_BIG
    assert [way.kind for way in fit.ways] == ["kv", "context", "device"]
    for way in fit.ways:
        better = replace(asked, draft=way.draft, options=way.options)
        assert judge(plan, better, [CARD, CPU], TRAINED).verdict is not Verdict.TOO_BIG
    kv, context, device = fit.ways
    assert kv.options.kv_k == kv.options.kv_v == "q4_0"  # f16, q8_0 and q5_0 do not suffice
    assert context.options.context_tokens == 17_408
    assert (device.device_name, device.options.device) == ("CPU", "CPU")


def test_going_without_the_draft_is_offered_where_it_helps() -> None:
    fit = judge(plan, wanted(20_000), [CARD], TRAINED)
    assert "no_draft" in [way.kind for way in fit.ways]
    assert next(way for way in fit.ways if way.kind == "no_draft").draft is None


def test_the_pair_that_is_replaced_counts_as_free() -> None:
    crowded = wanted(65_536)
    assert judge(plan, crowded, [CARD], TRAINED).verdict is Verdict.TOO_BIG
    fit = judge(plan, replace(crowded, freed_bytes=6_000 * MIB), [CARD], TRAINED)
    assert fit.verdict is Verdict.FITS
    assert fit.max_context_tokens == 77_312  # (8000 + 6000 - 256 - 6000) MiB at 0.1 MiB each, whole steps
    assert fit.free_bytes == 14_000 * MIB


def test_what_the_last_load_took_above_its_plan_counts_too() -> None:
    edge = wanted(17_408)
    assert judge(plan, edge, [CARD], TRAINED).verdict is Verdict.TIGHT
    learned = judge(plan, replace(edge, surplus_bytes=300 * MIB), [CARD], TRAINED)
    assert learned.verdict is Verdict.TOO_BIG
    assert learned.max_context_tokens < 17_408 - 2_800


def test_only_its_own_device_is_freed_and_mapped_weights_are_not() -> None:
    loaded: PairInfo = replace(pair_info(TARGET, DRAFT), device_name="CUDA0")
    assert freed_by(loaded, CARD) == MEMORY.total_bytes
    assert freed_by(loaded, CPU) == 0
    assert freed_by(None, CARD) == 0
    on_cpu = replace(loaded, device_name="CPU")
    weights = MEMORY.target_weights_bytes + MEMORY.draft_weights_bytes
    assert freed_by(on_cpu, CPU) == MEMORY.total_bytes - weights


def test_types_that_do_not_go_together_are_found() -> None:
    assert supported_values(plan, wanted(256), "f16") == set(KV_TYPES) - {"q5_1"}
    assert supported_values(plan, wanted(256), "q5_1") == frozenset()


@pytest.mark.parametrize("trained", [1, 300, 512, 2048, 8192, 40_960, 262_144, 1_048_576])
def test_the_sliders_steps_rise_to_the_whole_context(trained: int) -> None:
    steps = context_steps(trained)
    assert steps == sorted(set(steps))
    assert steps[-1] == trained
    assert len(steps) < 150
    assert nearest_step(steps, trained) == len(steps) - 1
    assert nearest_step(steps, 0) == 0


def test_the_engines_own_plan_is_judged_alike() -> None:
    library = Library()
    (pair, *_) = built_in_pairs()
    devices = list_devices(library)

    def real(target: Path, draft: Path | None, options: LoadOptions) -> LoadEstimate:
        return plan_load(target, draft, options, library)

    asked = Wanted(pair.target, pair.draft, LoadOptions(device="CPU", context_tokens=2048, n_threads=1))
    fit = judge(real, asked, devices, 8192)
    assert fit.verdict is Verdict.FITS
    assert fit.max_context_tokens == 8192
    assert fit.needed_bytes == fit.estimate.total_bytes
    # So many bytes learned that half of the context still fits: found by asking, not by a formula.
    whole = real(pair.target, pair.draft, replace(asked.options, context_tokens=8192))
    half = real(pair.target, pair.draft, replace(asked.options, context_tokens=4096))
    surplus = whole.free_bytes - whole.reserve_bytes - half.total_bytes
    learned = judge(real, replace(asked, surplus_bytes=surplus), devices, 8192)
    assert learned.max_context_tokens == pytest.approx(4096, abs=1024)  # free memory moves between two looks
    assert isinstance(MEMORY, MemoryUse)
