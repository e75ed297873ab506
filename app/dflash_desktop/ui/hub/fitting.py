"""Whether models fit this machine, by the engine's own plan: of files that are here, or of headers fetched for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.planning import LoadEstimate
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.hub.fit import LEAST_CONTEXT, Fit, verdict_of
from dflash_desktop.hub.headers import FIRST_BYTES, MOST_BYTES, headers
from dflash_desktop.hub.network import Network
from dflash_desktop.hub.offers import Offer
from dflash_desktop.hub.problems import HubProblem

USUAL_CONTEXT = 8192
"""What a fit is judged by where nothing proposes another context."""

Plan = Callable[[Path, Path | None, LoadOptions], LoadEstimate]


def fit_of_offer(offer: Offer, options: LoadOptions, network: Network, plan: Plan) -> Fit:
    """Over the network: more and more of the headers, until the engine can read them. Raises HubProblem."""
    models = [model for model in (offer.target, offer.draft) if model is not None]
    files = [file for model in models if model.local is None for file in model.files]
    n_bytes = FIRST_BYTES
    while True:
        with headers(network, files, n_bytes) as paths:
            left = list(paths)
            places = []
            for model in models:
                here = [left.pop(0) for _ in model.files] if model.local is None else [model.local]
                places.append(here[0])
            try:
                return fit_of_files(places[0], places[1] if len(places) > 1 else None, options, plan)
            except AppError as error:
                if n_bytes >= MOST_BYTES or n_bytes >= max((file.n_bytes for file in files), default=0):
                    raise HubProblem("other", str(error)) from error
        n_bytes *= 4


def fit_of_files(target: Path, draft: Path | None, options: LoadOptions, plan: Plan) -> Fit:
    """At the context that is wanted, else, called tight, at the largest one that is of use. Raises AppError."""
    if options.context_tokens <= 0:
        options = replace(options, context_tokens=USUAL_CONTEXT)
    found = plan(target, draft, options)
    verdict = verdict_of(found.total_bytes + found.reserve_bytes, found.free_bytes) if found.can_fit else "too_large"
    if not found.can_fit and found.max_context_tokens >= LEAST_CONTEXT:
        found = plan(target, draft, replace(options, context_tokens=found.max_context_tokens))
        verdict = "tight" if found.can_fit else "too_large"
    needed = found.total_bytes + found.reserve_bytes
    return Fit(verdict, needed, found.free_bytes, found.context_tokens, is_estimate=False)
