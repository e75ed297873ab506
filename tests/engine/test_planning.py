"""A plan says what a load then takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeDraft, NativeSession, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.planning import plan_load
from dflash_desktop.engine.requests import LoadOptions
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.scripted_model import write_scripted

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.requests import KvType

PARTS = ("target_weights", "draft_weights", "kv_cache", "recurrent", "draft_kv", "compute")


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


def loaded(library: Library, draft_path: Path | None, context: int, kv: KvType) -> abi.Memory:
    """What the engine reserves for such a session."""
    with NativeTarget(library, QWEN35_MINI, device=_cpu(library), n_threads=1) as target:
        while not target.load_piece().is_complete:
            pass
        code = abi.KvTypeCode[kv.upper()]
        params = sized(abi.SessionParams, context_tokens=context, kv_k=code, kv_v=code)
        if draft_path is None:
            with NativeSession(target, None, params) as session:
                return session.memory()
        with NativeDraft(library, draft_path, target, device=_cpu(library), n_threads=1) as draft:
            while not draft.load_piece().is_complete:
                pass
            with NativeSession(target, draft, params) as session:
                return session.memory()


def _cpu(library: Library) -> int:
    return next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)


@pytest.mark.parametrize("has_draft", [False, True])
@pytest.mark.parametrize(("context", "kv"), [(300, "f32"), (2048, "auto"), (2048, "q8_0"), (5000, "f16")])
def test_a_plan_is_what_the_load_takes(library: Library, context: int, kv: KvType, has_draft: bool) -> None:
    draft = QWEN35_MINI_DRAFT if has_draft else None
    options = LoadOptions(device="CPU", context_tokens=context, kv_k=kv, kv_v=kv, n_threads=1)
    plan = plan_load(QWEN35_MINI, draft, options, library)
    memory = loaded(library, draft, context, kv)
    planned = sum(getattr(plan, f"{part}_bytes") for part in PARTS)
    taken = sum(getattr(memory, f"{part}_bytes") for part in PARTS)
    assert planned == plan.total_bytes
    assert planned == pytest.approx(taken, rel=0.05)
    assert plan.kv_cache_bytes == memory.kv_cache_bytes
    assert plan.context_tokens == context


def test_without_a_context_the_largest_that_fits_is_planned(library: Library) -> None:
    plan = plan_load(QWEN35_MINI, None, LoadOptions(device="CPU"), library)
    assert plan.can_fit
    assert plan.context_tokens == plan.max_context_tokens == 2048  # as trained: this machine has room for more


def test_a_context_that_cannot_fit_is_told_with_numbers(library: Library) -> None:
    plan = plan_load(QWEN35_MINI, None, LoadOptions(device="CPU", context_tokens=1 << 24), library)
    assert not plan.can_fit
    assert plan.total_bytes > plan.free_bytes - plan.reserve_bytes
    assert plan.max_context_tokens == 2048


def test_a_cache_type_the_heads_do_not_allow_is_refused_with_the_pairs_that_work(
    library: Library, tmp_path: Path
) -> None:
    # Nine heads of 32: a row of q8_0 keys is 306 bytes, which no device can move as 32-bit words.
    target = write_scripted(tmp_path / "odd.gguf", [b"ab", b"cd"])
    with pytest.raises(AppError, match=r"Pairs that work: .*f16/f16"):
        plan_load(target, None, LoadOptions(device="CPU", kv_k="q8_0", kv_v="q8_0", context_tokens=256), library)


def test_the_scorers_plan_is_what_it_then_takes(library: Library) -> None:
    options = LoadOptions(device="CPU", context_tokens=2048)
    plan = plan_load(QWEN35_MINI, None, options, library, PflashOptions("auto", QWEN35_MINI), text_tokens=4000)
    scorer = plan.scorer
    assert scorer is not None and plan.can_all_fit and scorer.why_not == ""
    with NativeTarget(library, QWEN35_MINI, device=_cpu(library), n_threads=1) as target:
        while not target.load_piece().is_complete:
            pass
        with NativeScorer(target, sized(abi.ScorerParams, text_tokens=scorer.text_tokens)) as opened:
            memory = opened.memory()
    assert scorer.text_tokens == 8192  # half as much again, and then a whole step
    assert scorer.kv_cache_bytes == memory.kv_cache_bytes
    assert scorer.compute_bytes == pytest.approx(memory.compute_bytes, rel=0.05)
    assert scorer.total_bytes == sum(
        (scorer.weights_bytes, scorer.kv_cache_bytes, scorer.recurrent_bytes, scorer.compute_bytes)
    )
    assert scorer.is_beside_pair and plan.peak_bytes == plan.total_bytes + scorer.total_bytes
    assert scorer.residency == "on_demand"
    kept = plan_load(QWEN35_MINI, None, options, library, PflashOptions("auto", QWEN35_MINI, keep_loaded=True)).scorer
    assert kept is not None and kept.residency == "kept"


def test_without_a_scorer_nothing_is_planned_for_one(library: Library) -> None:
    options = LoadOptions(device="CPU", context_tokens=512)
    plan = plan_load(QWEN35_MINI, None, options, library, PflashOptions("always"))
    assert plan.scorer is None and plan.peak_bytes == plan.total_bytes


def test_a_scorer_that_cannot_fit_is_told_with_numbers(library: Library) -> None:
    options = LoadOptions(device="CPU", context_tokens=1 << 24)
    plan = plan_load(QWEN35_MINI, None, options, library, PflashOptions("auto", QWEN35_MINI), text_tokens=1 << 22)
    scorer = plan.scorer
    assert scorer is not None and not scorer.can_fit and not plan.can_all_fit
    assert scorer.shortfall_bytes == scorer.total_bytes + scorer.reserve_bytes - scorer.free_bytes > 0
    assert "GiB too little" in scorer.why_not and "CPU" in scorer.why_not


def test_a_file_that_cannot_score_is_refused(library: Library) -> None:
    options = LoadOptions(device="CPU", context_tokens=512)
    with pytest.raises(AppError, match="scorer cannot be used"):
        plan_load(QWEN35_MINI, None, options, library, PflashOptions("auto", QWEN35_MINI_DRAFT))
