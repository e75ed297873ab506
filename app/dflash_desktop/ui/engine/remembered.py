"""Between what is remembered of a pair (plain values in a file) and what the engine is asked."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from dflash_desktop.engine.requests import DraftMode, DraftOptions, KvType, LoadOptions
from dflash_desktop.settings.pair_memory import PairLoad


def load_options(load: PairLoad) -> LoadOptions:
    """How the pair was loaded. What no version of ours has written becomes the default."""
    return LoadOptions(
        device=load.device or None,
        draft_device=load.draft_device or None,
        context_tokens=load.context_tokens,
        kv_k=_kv_type(load.kv_k),
        kv_v=_kv_type(load.kv_v),
        n_threads=load.n_threads,
    )


def draft_options(load: PairLoad) -> DraftOptions:
    mode = cast(DraftMode, load.draft_method) if load.draft_method in get_args(DraftMode) else "auto"
    return DraftOptions(mode, load.tree_budget, load.block_size)


def pair_load(
    draft: Path | None, options: LoadOptions, drafting: DraftOptions, planned_bytes: int = 0, measured_bytes: int = 0
) -> PairLoad:
    """What to remember of a load."""
    return PairLoad(
        draft=str(draft) if draft is not None else "",
        device=options.device or "",
        draft_device=options.draft_device or "",
        context_tokens=options.context_tokens,
        kv_k=options.kv_k,
        kv_v=options.kv_v,
        n_threads=options.n_threads,
        draft_method=drafting.mode,
        tree_budget=drafting.tree_budget,
        block_size=drafting.block_size,
        planned_bytes=planned_bytes,
        measured_bytes=measured_bytes,
    )


def _kv_type(name: str) -> KvType:
    return cast(KvType, name) if name in get_args(KvType) else "auto"
