"""`dflash-desktop plan`: what loading a pair would take on a device, part by part, without loading it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from dflash_desktop.cli import console
from dflash_desktop.engine.planning import plan_load

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.planning import LoadEstimate
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


def print_plan(workbench: Workbench, target: Path, draft: Path | None, options: LoadOptions, *, has_json: bool) -> int:
    """Print the plan; return 0 when it fits and 1 when it does not."""
    estimate = plan_load(target, draft, options, workbench.library)
    if has_json:
        console.write_json(asdict(estimate))
    else:
        console.write(report(estimate))
    return 0 if estimate.can_fit else 1


def report(estimate: LoadEstimate) -> str:
    """The plan as a person reads it."""
    rows = [(f"{words}:", console.size_text(getattr(estimate, field))) for words, field in _PARTS]
    verdict = "fits" if estimate.can_fit else "does not fit"
    lines = [
        f"A context of {estimate.context_tokens} tokens {verdict} on {estimate.device_name}.",
        console.table(rows),
        f"Largest context that fits: {estimate.max_context_tokens or 'none'}.",
    ]
    return "\n".join(lines) + "\n"
