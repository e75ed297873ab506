"""Does this draft match this target? A few steps on a fixed prompt, once per pair and device, before "loaded" is said.

A draft of another target or a damaged one changes no reply, it only makes every step slower, and nothing else tells.
None of it shows in a statistic: no event is made, and the session forgets the tokens afterwards.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import sized
from dflash_desktop.engine.events import DraftProbe
from dflash_desktop.engine.requests import ChatPrompt, RawPrompt

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from dflash_desktop.binding.native import Progress
    from dflash_desktop.engine.prompt import PromptReader

PROMPT = "Write a Python function that returns the n-th Fibonacci number."
N_STEPS = 32
LIMIT_S = 3.0  # where a large model runs on a CPU a step may take seconds
LEAST_STEPS = 8  # fewer say nothing
CLEAR_LENGTH = 1.6  # after the least steps; a draft that does not match never gets there


class ProbedSession(Protocol):
    """What the probe needs of a session; `NativeSession` fits."""

    def begin(self, prompt: Sequence[int], generation: abi.Generation) -> abi.Begun: ...

    def prefill(self) -> Progress: ...

    def step(self) -> abi.Step: ...

    def reset(self) -> None: ...


def probe_draft(
    session: ProbedSession,
    reader: PromptReader,
    context_tokens: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[None, None, DraftProbe | None]:
    """Draft and verify as a reply would, a step per turn; None where that says nothing (too small, too slow)."""
    prompt = _prompt(reader)
    room = context_tokens - len(prompt)
    if not prompt or room < N_STEPS:
        return None
    request = sized(abi.Generation, draft_mode=abi.DraftModeCode.CHAIN, ignore_stop=1, no_reuse=1)
    deadline = clock() + LIMIT_S
    n_steps = n_committed = 0
    try:
        session.begin(prompt, request)
        while not session.prefill().is_complete:
            yield
        while n_steps < N_STEPS and clock() < deadline:
            step = session.step()
            if step.n_drafted == 0 or step.finish != abi.Finish.NONE:
                break  # no room for a whole block any more
            n_steps += 1
            n_committed += step.n_committed
            if n_steps >= LEAST_STEPS and n_committed >= CLEAR_LENGTH * n_steps:
                break
            yield
    finally:
        session.reset()
    return DraftProbe(n_committed / n_steps, n_steps) if n_steps >= LEAST_STEPS else None


def _prompt(reader: PromptReader) -> tuple[int, ...]:
    """The prompt as a chat, which drafts are trained on, where the target has a template that takes it."""
    try:
        if reader.has_template:
            return reader.render(ChatPrompt([{"role": "user", "content": PROMPT}])).token_ids
    except AppError:
        pass  # a template that asks for more than one message
    return reader.render(RawPrompt(PROMPT)).token_ids
