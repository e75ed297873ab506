"""Arithmetic on steps and replies. Pure functions; app/README.md defines the terms.

A figure that cannot be told (nothing happened, or in no measurable time) is None, never infinite or a division by zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dflash_desktop.engine.events import GenerationDone, StepDone

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST_S = 1e-6
"""Times below this are no measurement: a clock that stood still, a prompt that was all in the cache."""


def acceptance_length(reply: GenerationDone | Sequence[StepDone]) -> float | None:
    """Tokens committed per step, averaged; None before the first step."""
    if isinstance(reply, GenerationDone):
        return _ratio(reply.n_committed, reply.n_steps)
    return _ratio(sum(step.n_committed for step in reply), len(reply))


def moving_mean(values: Sequence[float], window: int) -> list[float]:
    """The mean of each value and up to `window` - 1 before it; as long as `values`."""
    if window < 1:
        raise ValueError(f"a window holds at least 1 value, not {window}")
    means = []
    total = 0.0
    for index, value in enumerate(values):
        total += value - (values[index - window] if index >= window else 0.0)
        means.append(total / min(index + 1, window))
    return means


def decode_tps(reply: GenerationDone | Sequence[StepDone]) -> float | None:
    """Tokens per second after the first step, whose tokens belong to the TTFT; None when there was only one step."""
    if isinstance(reply, GenerationDone):
        return _rate(reply.n_committed - reply.n_first_committed, reply.decode_s)
    if len(reply) < 2:
        return None
    return _rate(sum(step.n_committed for step in reply[1:]), reply[-1].elapsed_s - reply[0].elapsed_s)


def prefill_tps(reply: GenerationDone) -> float | None:
    """Prompt tokens computed per second; None when the whole prompt was in the cache.

    The last prompt token does not count: the first step computes it, as its root.
    """
    return _rate(reply.n_prompt_tokens - 1 - reply.n_reused_tokens, reply.prefill_s)


def ttft(reply: GenerationDone) -> float | None:
    """Seconds from the request to the first committed token; None when there was none."""
    return reply.ttft_s if reply.n_committed and math.isfinite(reply.ttft_s) else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _rate(count: float, seconds: float) -> float | None:
    return count / seconds if count > 0 and seconds > SHORTEST_S and math.isfinite(seconds) else None
