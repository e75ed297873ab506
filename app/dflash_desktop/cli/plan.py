"""`dflash-desktop plan`: what loading a pair would take on a device, part by part, without loading it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from dflash_desktop.base.sizes import memory_text
from dflash_desktop.cli import console
from dflash_desktop.engine.events import beyond_training
from dflash_desktop.engine.planning import plan_load

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.pflash.options import PflashOptions
    from dflash_desktop.engine.planning import LoadEstimate, ScorerEstimate
    from dflash_desktop.engine.requests import LoadOptions
    from dflash_desktop.startup import Workbench

_PARTS = (
    ("target weights", "target_weights_bytes"),
    ("draft weights", "draft_weights_bytes"),
    ("KV cache", "kv_cache_bytes"),
    ("recurrent state", "recurrent_bytes"),
    ("draft's KV cache", "draft_kv_bytes"),
    ("computation", "compute_bytes"),
    ("all together", "total_bytes"),
    ("kept free", "reserve_bytes"),
    ("free now", "free_bytes"),
)
_DRAFT_PARTS = (
    ("its computation", "draft_compute_bytes"),
    ("draft, all together", "draft_total_bytes"),
    ("kept free", "draft_reserve_bytes"),
    ("free now", "draft_free_bytes"),
)
_SCORER_PARTS = (
    ("scorer weights", "weights_bytes"),
    ("its KV cache", "kv_cache_bytes"),
    ("its recurrent state", "recurrent_bytes"),
    ("its computation", "compute_bytes"),
    ("scorer, all together", "total_bytes"),
    ("kept free", "reserve_bytes"),
    ("free for it", "free_bytes"),
)


def print_plan(
    workbench: Workbench,
    target: Path,
    draft: Path | None,
    options: LoadOptions,
    pflash: PflashOptions,
    *,
    has_json: bool,
) -> int:
    """Print the plan; return 0 when all of it fits and 1 when it does not."""
    estimate = plan_load(target, draft, options, workbench.library, pflash)
    trained_tokens = workbench.inspect(target).context_tokens
    if has_json:
        scorer = estimate.scorer
        more = {"scorer": {**asdict(scorer), "shortfall_bytes": scorer.shortfall_bytes}} if scorer is not None else {}
        console.write_json({**asdict(estimate), "trained_context_tokens": trained_tokens, **more})
    else:
        console.write(report(estimate, trained_tokens))
    return 0 if estimate.can_all_fit else 1


def report(estimate: LoadEstimate, trained_tokens: int) -> str:
    """The plan as a person reads it. `trained_tokens`: the context that the target was trained for, 0: unknown."""
    rows = [(f"{words}:", memory_text(getattr(estimate, field))) for words, field in _PARTS]
    verdict = "fits" if estimate.can_fit else "does not fit"
    lines = [f"A context of {estimate.context_tokens} tokens {verdict} on {estimate.device_name}."]
    if 0 < trained_tokens < estimate.context_tokens:
        lines.append(beyond_training(estimate.context_tokens, trained_tokens))
    lines += [
        console.table(rows),
        *_draft_lines(estimate),
        _largest_line(estimate, trained_tokens),
    ]
    if estimate.scorer is not None:
        lines += ["", *_scorer_lines(estimate.scorer)]
        if estimate.peak_bytes > estimate.total_bytes:
            lines.append(f"While a prompt is shortened: {memory_text(estimate.peak_bytes)} altogether.")
    return "\n".join(lines) + "\n"


def _largest_line(estimate: LoadEstimate, trained_tokens: int) -> str:
    most = estimate.max_context_tokens
    if most and most == trained_tokens:
        return f"Largest context that fits: {most}, all that the model was trained for."
    return f"Largest context that fits: {most or 'none'}."


def _draft_lines(estimate: LoadEstimate) -> list[str]:
    if not estimate.draft_device_name:
        return []
    rows = [(f"{words}:", memory_text(getattr(estimate, field))) for words, field in _DRAFT_PARTS]
    return [f"Of these the draft's weights and KV cache are on {estimate.draft_device_name}:", console.table(rows)]


def _scorer_lines(scorer: ScorerEstimate) -> list[str]:
    stays = "kept loaded" if scorer.residency == "kept" else "loaded on demand"
    verdict = "fits" if scorer.can_fit else "does not fit"
    rows = [(f"{words}:", memory_text(getattr(scorer, field))) for words, field in _SCORER_PARTS]
    first = f"The scorer {scorer.name}, {stays}, for texts of {scorer.text_tokens} tokens, {verdict} on "
    lines = [f"{first}{scorer.device_name}.", console.table(rows)]
    return [*lines, scorer.why_not] if scorer.why_not else lines
