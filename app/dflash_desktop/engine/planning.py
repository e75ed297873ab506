"""What loading a pair would take, and PFlash's scorer beside it: the engine's own arithmetic on the files' headers."""

from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.sizes import memory_text
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadArgument, BadFile, NativeError, Unsupported
from dflash_desktop.binding.native import Library, path_bytes, sized
from dflash_desktop.engine.devices import (
    Device,
    choose_device,
    choose_draft_device,
    is_same_card,
    list_devices,
    reserve_bytes,
)
from dflash_desktop.engine.pflash.scorer import opened_tokens, plan_memory

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.pflash.options import PflashOptions
    from dflash_desktop.engine.requests import LoadOptions

Residency = Literal["on_demand", "kept"]
"""When a scorer holds its memory: while it reads a prompt, or from its first prompt until the program ends."""


@dataclass(frozen=True, slots=True)
class ScorerEstimate:
    """What PFlash's scorer takes beside the pair: bytes by part on its device."""

    name: str
    device_name: str
    is_beside_pair: bool  # on the pair's device: both share its memory
    residency: Residency
    text_tokens: int  # the longest text it is planned for, in its own tokens
    can_fit: bool
    weights_bytes: int
    kv_cache_bytes: int
    recurrent_bytes: int
    compute_bytes: int
    total_bytes: int
    reserve_bytes: int  # kept free on its device
    free_bytes: int  # on its device: now, less what the pair takes there

    @property
    def shortfall_bytes(self) -> int:
        """What is missing; 0 when it fits."""
        return max(0, self.total_bytes + self.reserve_bytes - self.free_bytes)

    @property
    def why_not(self) -> str:
        """A sentence with numbers when it does not fit, else ""."""
        if self.can_fit:
            return ""
        beside = " beside the pair" if self.is_beside_pair else ""
        return (
            f"The scorer {self.name} takes {memory_text(self.total_bytes)} for texts of {self.text_tokens} tokens, and "
            f"{memory_text(self.reserve_bytes)} stay free; {self.device_name} has {memory_text(self.free_bytes)}"
            f"{beside}: {memory_text(self.shortfall_bytes)} too little. Prompts would go in whole. "
            "Choose another device for the scorer, a smaller scorer, or a smaller context."
        )


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """Bytes by part on one device, and the contexts that fit there. The scorer is counted apart."""

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
    draft_device_name: str = ""  # "" unless it is another one; then the figures below are its own
    draft_compute_bytes: int = 0
    draft_total_bytes: int = 0
    draft_reserve_bytes: int = 0
    draft_free_bytes: int = 0
    scorer: ScorerEstimate | None = None

    @property
    def can_all_fit(self) -> bool:
        """Whether the pair fits, and the scorer too if there is one."""
        return self.can_fit and (self.scorer is None or self.scorer.can_fit)

    @property
    def peak_bytes(self) -> int:
        """What is taken on `device_name` while a prompt is shortened."""
        scorer = self.scorer
        return self.total_bytes + (
            scorer.total_bytes if scorer is not None and scorer.device_name == self.device_name else 0
        )


def plan_load(
    target: Path,
    draft: Path | None,
    options: LoadOptions,
    library: Library,
    pflash: PflashOptions | None = None,
    *,
    text_tokens: int = 0,
) -> LoadEstimate:
    """Plan a load. Raises AppError, with the reason: BadInput for files or settings that would be refused.

    With a `pflash.scorer` the scorer is planned too, whatever the mode, for texts of `text_tokens` of the target; 0:
    as long as the context.
    """
    devices = list_devices(library)
    device = choose_device(devices, options.device)
    draft_device = choose_draft_device(devices, device, options.draft_device)
    load = sized(abi.LoadParams, device=device.index, n_threads=options.n_threads)
    draft_load = sized(abi.LoadParams, device=draft_device.index, n_threads=options.n_threads)
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
                byref(draft_load),
                byref(session),
                byref(plan),
            )
        )
    except (BadArgument, BadFile, Unsupported) as error:
        raise BadInput(str(error)) from error
    except NativeError as error:
        raise AppError(str(error)) from error
    scorer = None
    if pflash is not None and pflash.scorer is not None:
        place = choose_device(devices, pflash.device) if pflash.device else device
        pair = ((device, plan.total_bytes), (draft_device, plan.draft_total_bytes or plan.total_bytes))
        taken = next((n_bytes for held, n_bytes in pair if is_same_card(held, place)), None)
        scorer = _plan_scorer(pflash.scorer, pflash, text_tokens or plan.context_tokens, place, taken, library)
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
        draft_device_name=draft_device.name if draft is not None and draft_device.index != device.index else "",
        draft_compute_bytes=plan.draft_compute_bytes,
        draft_total_bytes=plan.draft_total_bytes,
        draft_reserve_bytes=plan.draft_reserve_bytes,
        draft_free_bytes=plan.draft_free_bytes,
        scorer=scorer,
    )


def plan_scorer_alone(pflash: PflashOptions, library: Library, *, text_tokens: int) -> ScorerEstimate | None:
    """A scorer where no pair is loaded; None without one. Raises AppError when it cannot be used."""
    if pflash.scorer is None:
        return None
    device = choose_device(list_devices(library), pflash.device)
    return _plan_scorer(pflash.scorer, pflash, text_tokens, device, None, library)


def _plan_scorer(
    path: Path, pflash: PflashOptions, text_tokens: int, device: Device, pair_bytes: int | None, library: Library
) -> ScorerEstimate:
    """`pair_bytes`: what the pair takes on the same device; None: it is on another one. Raises as plan_load does."""
    n_opened = opened_tokens(text_tokens)
    try:
        memory = plan_memory(library, path, device=device.index, n_text_tokens=n_opened)
    except (BadArgument, BadFile, Unsupported) as error:
        raise BadInput(f"The scorer cannot be used: {error}") from error
    except NativeError as error:
        raise AppError(f"The scorer cannot be used: {error}") from error
    free_bytes = max(0, device.free_bytes - (pair_bytes or 0))
    reserved = reserve_bytes(device)
    return ScorerEstimate(
        name=path.stem,
        device_name=device.name,
        is_beside_pair=pair_bytes is not None,
        residency="kept" if pflash.keep_loaded else "on_demand",
        text_tokens=n_opened,
        can_fit=memory.total_bytes + reserved <= free_bytes,
        weights_bytes=memory.target_weights_bytes,
        kv_cache_bytes=memory.kv_cache_bytes,
        recurrent_bytes=memory.recurrent_bytes,
        compute_bytes=memory.compute_bytes,
        total_bytes=memory.total_bytes,
        reserve_bytes=reserved,
        free_bytes=free_bytes,
    )
