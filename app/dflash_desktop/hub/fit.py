"""Does a pair fit on a device: first from the catalogue's figures, then from the engine's own plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dflash_desktop.hub.catalogue import GIB, KV_SHARE

if TYPE_CHECKING:
    from dflash_desktop.hub.catalogue import Catalogue, CataloguePair, DeviceSpeeds, Proposal

Verdict = Literal["fits", "tight", "too_large", "unknown"]
TIGHT_SHARE = 0.95
"""Of what is free: beyond it the next program that opens a window may be the one too many."""

LEAST_CONTEXT = 4096
PATIENCE_BYTES = 4e9
"""A CPU reads so much a few times a second: larger targets are for other devices."""

_RESERVE_BYTES = GIB // 2  # as the engine keeps it free
_COMPUTE_SHARE = 0.02  # scratch buffers, of the weights; the engine's plan knows better
_COMPUTE_BYTES = 200 * 2**20


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """The device as far as this room cares."""

    name: str  # as the driver calls it
    is_cpu: bool
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer, and the numbers behind it."""

    verdict: Verdict
    needed_bytes: int  # reserve included
    free_bytes: int
    context_tokens: int  # that this is about
    is_estimate: bool  # False: the engine's own plan


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A pair for a device, in the quantizations and with the settings proposed there."""

    pair: CataloguePair
    proposal: Proposal
    fit: Fit
    has_draft: bool  # False on a CPU: a draft costs more there than it gives
    n_bytes: int  # to download, about
    expected_tps: float | None  # an estimate; None where nothing is known of the device


def verdict_of(needed_bytes: int, free_bytes: int) -> Verdict:
    """One scale for estimates and plans."""
    if free_bytes <= 0:
        return "unknown"
    if needed_bytes > free_bytes:
        return "too_large"
    return "fits" if needed_bytes <= free_bytes * TIGHT_SHARE else "tight"


def estimate(pair: CataloguePair, proposal: Proposal, device: DeviceFacts) -> Fit:
    """From the catalogue's figures alone: no file, no network. A smaller context is tried before "too large"."""
    for context in (proposal.context_tokens, LEAST_CONTEXT):
        context = min(context, proposal.context_tokens)
        needed = _needed(pair, proposal, context)
        verdict = verdict_of(needed, device.free_bytes)
        if verdict != "too_large":
            if verdict == "fits" and context < proposal.context_tokens:
                verdict = "tight"
            return Fit(verdict, needed, device.free_bytes, context, is_estimate=True)
    return Fit("too_large", needed, device.free_bytes, context, is_estimate=True)


def recommend(catalogue: Catalogue, device: DeviceFacts, speeds: DeviceSpeeds | None = None) -> list[Recommendation]:
    """Every pair with what is proposed for the device; the best one that fits first.

    A CPU decodes slowly whatever fits: there the smallest model is the best.
    """
    found = [_recommendation(pair, device, speeds) for pair in catalogue.pairs]

    def order(one: Recommendation) -> tuple[int, ...]:
        if one.fit.verdict == "too_large":
            return 9, one.fit.needed_bytes
        if device.is_cpu:
            return int(one.pair.target(one.proposal.target).approx_bytes > PATIENCE_BYTES), -one.pair.rank
        return {"fits": 0, "tight": 1}.get(one.fit.verdict, 2), -one.pair.rank

    return sorted(found, key=order)


def _recommendation(pair: CataloguePair, device: DeviceFacts, speeds: DeviceSpeeds | None) -> Recommendation:
    # The most demanding proposal that fits what is free now; the card's size says what it could be when all is free.
    ceiling = pair.settings[0] if device.is_cpu else pair.proposal(device.total_bytes)
    tried = [one for one in pair.settings if one.memory_gib <= ceiling.memory_gib]
    fits = [(one, estimate(pair, one, device)) for one in reversed(tried)]
    proposal, fit = next(
        (one for one in fits if one[1].verdict == "fits"),
        next((one for one in fits if one[1].verdict == "tight"), fits[-1]),
    )
    target, draft = pair.target(proposal.target), pair.draft(proposal.draft)
    tps = None
    if speeds is not None and not device.is_cpu and fit.verdict != "too_large":
        tps = speeds.expected_tps(device.name, target.approx_bytes, has_draft=True)
    n_bytes = target.approx_bytes + (0 if device.is_cpu else draft.approx_bytes)
    return Recommendation(pair, proposal, fit, not device.is_cpu, n_bytes, tps)


def _needed(pair: CataloguePair, proposal: Proposal, context_tokens: int) -> int:
    weights = pair.target(proposal.target).approx_bytes + pair.draft(proposal.draft).approx_bytes
    kv = int(pair.kv_bytes_per_token * KV_SHARE[proposal.kv] * context_tokens)
    compute = int(weights * _COMPUTE_SHARE) + _COMPUTE_BYTES
    return weights + kv + pair.recurrent_bytes + compute + _RESERVE_BYTES
