"""What model makers advise: sampling, reply reserve and thinking tiers by family."""

from __future__ import annotations

from dataclasses import dataclass

from dflash_desktop.engine.requests import Sampling
from dflash_desktop.server.chat import ChatRequest
from dflash_desktop.server.models import ServedModel

_RESERVE_TOKENS = 4096  # room kept for the answer after the thoughts
_SHARES = {"low": 0.125, "medium": 0.5, "high": 1.0, "xhigh": 1.0, "max": 1.0}  # of the most thoughts
TIERS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
CLOSING_THOUGHT = "\n\nTime to answer.\n"


@dataclass(frozen=True, slots=True)
class Card:
    """`thinking` and `plain` are the samplings with and without thoughts."""

    think_tokens: int
    plain: Sampling
    thinking: Sampling


_QWEN = Card(
    think_tokens=32768,
    plain=Sampling(temperature=0.7, top_k=20, top_p=0.8),
    thinking=Sampling(temperature=1.0, top_k=20, top_p=0.95),
)
_OTHER = Card(think_tokens=16000, plain=Sampling(), thinking=Sampling())
_BY_ARCHITECTURE = {"qwen3": _QWEN, "qwen3moe": _QWEN, "qwen35": _QWEN, "qwen35moe": _QWEN, "qwen3next": _QWEN}


def card_of(served: ServedModel) -> Card:
    return _BY_ARCHITECTURE.get(served.architecture, _OTHER)


def default_sampling(served: ServedModel, *, thinks: bool, temperature: float | None) -> Sampling:
    """For a client that names no temperature: the maker's advice with thoughts, greedy (the fastest) without."""
    if temperature is not None:
        return Sampling(temperature=temperature)
    return card_of(served).thinking if thinks else Sampling()


def effort_tier(word: str) -> str:
    """One of TIERS; an unknown word means high."""
    folded = word.strip().lower().replace("-", "").replace("_", "")
    return folded if folded in TIERS else "high"


def thinking_budget(served: ServedModel, request: ChatRequest) -> int | None:
    """Most thinking tokens before the thoughts are closed for the model; None: only the context limits them."""
    asked = request.thinking.budget_tokens
    if asked is None and request.thinking.effort is not None:
        share = _SHARES.get(effort_tier(request.thinking.effort))
        most = min(card_of(served).think_tokens, max(256, served.context_tokens - _RESERVE_TOKENS))
        asked = int(most * share) if share is not None else None
    if asked is None:
        return None
    if request.max_tokens:
        reserve = min(_RESERVE_TOKENS, request.max_tokens // 4)
        asked = min(asked, request.max_tokens - reserve)
    return max(1, asked)
