"""What loading a pair would take, from the files' headers alone: the engine's own arithmetic."""

from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import NativeError
from dflash_desktop.binding.native import Library, path_bytes, sized
from dflash_desktop.engine.devices import choose_device, list_devices

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.requests import LoadOptions


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """Bytes by part on one device, and the contexts that fit there."""

    device_name: str
    context_tokens: int  # planned: asked for, or the largest that fits
    max_context_tokens: int  # the largest that fits, at most what the model was trained for; 0: none
    can_fit: bool
    target_weights_bytes: int
    draft_weights_bytes: int
    kv_cache_bytes: int
    recurrent_bytes: int
    draft_kv_bytes: int
    compute_bytes: int
    total_bytes: int
    reserve_bytes: int  # kept free for the system and other programs
    free_bytes: int  # on the device now


def plan_load(target: Path, draft: Path | None, options: LoadOptions, library: Library) -> LoadEstimate:
    """Plan a load. Raises AppError for files or settings that would be refused, with the reason."""
    device = choose_device(list_devices(library), options.device)
    load = sized(abi.LoadParams, device=device.index, n_threads=options.n_threads)
    session = sized(
        abi.SessionParams,
        context_tokens=max(options.context_tokens, 0),  # 0: the largest that fits
        kv_k=abi.KvTypeCode[options.kv_k.upper()],
        kv_v=abi.KvTypeCode[options.kv_v.upper()],
        window=options.window_tokens,
    )
    plan = sized(abi.Plan)
    try:
        library.check(
            library.c.dflash_plan_pair(
                path_bytes(target),
                path_bytes(draft) if draft is not None else None,
                byref(load),
                byref(session),
                byref(plan),
            )
        )
    except NativeError as error:
        raise AppError(str(error)) from error
    return LoadEstimate(
        device_name=device.name,
        context_tokens=plan.context_tokens,
        max_context_tokens=plan.max_context_tokens,
        can_fit=bool(plan.fits),
        target_weights_bytes=plan.target_weights_bytes,
        draft_weights_bytes=plan.draft_weights_bytes,
        kv_cache_bytes=plan.kv_cache_bytes,
        recurrent_bytes=plan.recurrent_bytes,
        draft_kv_bytes=plan.draft_kv_bytes,
        compute_bytes=plan.compute_bytes,
        total_bytes=plan.total_bytes,
        reserve_bytes=plan.reserve_bytes,
        free_bytes=plan.free_bytes,
    )
