"""Whether a pair fits on a device, and what would make it fit. Pure arithmetic around the engine's own plan; no Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Literal

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.devices import Device, is_same_card
from dflash_desktop.engine.events import PairInfo
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.planning import LoadEstimate, ScorerEstimate
from dflash_desktop.engine.requests import KvType, LoadOptions

Plan = Callable[[Path, Path | None, LoadOptions], LoadEstimate]

STEP = 256
"""Contexts grow in these steps (plan.cpp)."""
SMALLEST_CONTEXT = 512
"""A smaller one is no way to make a pair fit: nobody can chat in it."""
USUAL_CONTEXT = 32_768
"""Proposed for a new pair where it fits and the model was trained for it."""
KV_TYPES: tuple[KvType, ...] = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
_SMALLER_KV: tuple[KvType, ...] = ("f16", "q8_0", "q5_0", "q4_0")


class Verdict(Enum):
    FITS = "fits"
    TIGHT = "tight"
    TOO_BIG = "too big"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What shall be loaded, and what is known beside the files."""

    target: Path
    draft: Path | None
    options: LoadOptions
    freed_bytes: int = 0  # on that device, by the pair that the load replaces
    surplus_bytes: int = 0  # what the last load of this pair took above its plan
    pflash: PflashOptions | None = None  # with the scorer that is planned beside it; None: none is


@dataclass(frozen=True, slots=True)
class Way:
    """Something that makes it fit, checked by a plan of its own."""

    kind: Literal["context", "kv", "no_draft", "device"]
    draft: Path | None
    options: LoadOptions
    device_name: str


@dataclass(frozen=True, slots=True)
class LoadFit:
    """A plan, judged."""

    estimate: LoadEstimate
    freed_bytes: int
    surplus_bytes: int
    max_context_tokens: int  # the largest that fits, with what will be freed; 0: none
    ways: tuple[Way, ...] = ()
    scorer: ScorerEstimate | None = None  # PFlash's, if there is one
    scorer_problem: str = ""  # why it cannot be used

    @property
    def scorer_bytes(self) -> int:
        """What PFlash's scorer takes beside the pair while it reads."""
        return self.scorer.total_bytes if self.scorer is not None and self.scorer.is_beside_pair else 0

    @property
    def scorer_fits(self) -> bool:
        """With the pair loaded, and what it replaces gone."""
        scorer = self.scorer
        if scorer is None:
            return True
        freed = self.freed_bytes - self.surplus_bytes if scorer.is_beside_pair else 0
        return scorer.total_bytes + scorer.reserve_bytes <= scorer.free_bytes + freed

    @property
    def needed_bytes(self) -> int:
        return self.estimate.total_bytes + self.surplus_bytes

    @property
    def free_bytes(self) -> int:
        """Free once the pair that is replaced is gone."""
        return self.estimate.free_bytes + self.freed_bytes

    @property
    def verdict(self) -> Verdict:
        left = self.free_bytes - self.needed_bytes
        if not _draft_fits(self.estimate):
            return Verdict.TOO_BIG
        if left < self.estimate.reserve_bytes:
            return Verdict.TOO_BIG
        return Verdict.TIGHT if left < 2 * self.estimate.reserve_bytes else Verdict.FITS


def freed_by(pair: PairInfo | None, device: Device | None) -> int:
    """What goes free on `device` when `pair` is replaced. A processor's weights are the file itself: never taken."""
    if pair is None or device is None or pair.device_name != device.name:
        return 0
    weights = pair.memory.target_weights_bytes + pair.memory.draft_weights_bytes
    return pair.memory.total_bytes - (weights if device.kind == "cpu" else 0)


def judge(plan: Plan, wanted: Wanted, devices: Sequence[Device], trained_tokens: int) -> LoadFit:
    """Plan, find the largest context, and where it does not fit, what would. Raises AppError for what is refused."""
    estimate = plan(wanted.target, wanted.draft, wanted.options)
    largest = estimate.max_context_tokens
    if wanted.freed_bytes or wanted.surplus_bytes:
        largest = largest_context(plan, wanted, trained_tokens)
    fit = LoadFit(estimate, wanted.freed_bytes, wanted.surplus_bytes, largest)
    if fit.verdict is not Verdict.TOO_BIG:
        return fit
    return replace(fit, ways=tuple(ways_to_fit(plan, wanted, fit, devices)))


def largest_context(plan: Plan, wanted: Wanted, trained_tokens: int) -> int:
    """The largest context that fits when the loaded pair is gone; 0: not even the smallest. Memory grows with it."""

    def fits(n_steps: int) -> bool:
        options = replace(wanted.options, context_tokens=min(n_steps * STEP, trained_tokens))
        return _fits(plan(wanted.target, wanted.draft, options), wanted)

    low, high = 0, max(1, -(-trained_tokens // STEP)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return min(low * STEP, trained_tokens)


def ways_to_fit(plan: Plan, wanted: Wanted, fit: LoadFit, devices: Sequence[Device]) -> Iterator[Way]:
    """At most one of each kind, in the order of how little they cost the person."""
    name = fit.estimate.device_name
    asked = fit.estimate.context_tokens
    for kv_type in _SMALLER_KV:
        options = replace(wanted.options, context_tokens=asked, kv_k=kv_type, kv_v=kv_type)
        if (kv_type, kv_type) != (wanted.options.kv_k, wanted.options.kv_v) and _works(plan, wanted, options):
            yield Way("kv", wanted.draft, options, name)
            break
    if SMALLEST_CONTEXT <= fit.max_context_tokens < asked:
        yield Way("context", wanted.draft, replace(wanted.options, context_tokens=fit.max_context_tokens), name)
    if wanted.draft is not None:
        without = replace(wanted, draft=None)
        options = replace(wanted.options, context_tokens=asked)
        if _works(plan, without, options):
            yield Way("no_draft", None, options, name)
    here = next((device for device in devices if device.name == name), None)
    for device in devices:
        if here is None or not is_same_card(device, here):
            options = replace(wanted.options, device=device.id, context_tokens=asked)
            if _works(plan, replace(wanted, freed_bytes=0), options):
                yield Way("device", wanted.draft, options, device.name)
                break


def supported_values(plan: Plan, wanted: Wanted, kv_k: KvType) -> frozenset[KvType]:
    """The types of the values that go with keys of type `kv_k`, on this device and with these heads."""
    found: set[KvType] = set()
    for kv_v in KV_TYPES:
        options = replace(wanted.options, context_tokens=STEP, kv_k=kv_k, kv_v=kv_v)
        try:
            plan(wanted.target, wanted.draft, options)
        except AppError:
            continue
        found.add(kv_v)
    return frozenset(found)


def context_steps(trained_tokens: int) -> list[int]:
    """The contexts that a slider offers, finer where people look closely; the last is the whole of it."""
    steps = []
    size = SMALLEST_CONTEXT
    while size < trained_tokens:
        steps.append(size)
        size += 256 if size < 4096 else 1024 if size < 32_768 else 4096 if size < 131_072 else 16_384
    return [*steps, max(trained_tokens, 1)]


def nearest_step(steps: Sequence[int], tokens: int) -> int:
    """The index of the largest step that is not above `tokens`; the first when all are."""
    return max(0, bisect_right(steps, tokens) - 1)


def _works(plan: Plan, wanted: Wanted, options: LoadOptions) -> bool:
    try:
        return _fits(plan(wanted.target, wanted.draft, options), wanted)
    except AppError:
        return False


def _draft_fits(estimate: LoadEstimate) -> bool:
    """On a card of its own; beside its target it counts there."""
    return estimate.draft_total_bytes + estimate.draft_reserve_bytes <= estimate.draft_free_bytes


def _fits(estimate: LoadEstimate, wanted: Wanted) -> bool:
    free = estimate.free_bytes + wanted.freed_bytes
    return _draft_fits(estimate) and estimate.total_bytes + wanted.surplus_bytes + estimate.reserve_bytes <= free
