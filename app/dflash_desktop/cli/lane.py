"""The engine lane as the command line uses it: ask, wait, and let Ctrl-C end the reply and not the program."""

from __future__ import annotations

import queue
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    PairInfo,
    PairLoaded,
    StepDone,
)
from dflash_desktop.engine.requests import Generate, Job, LoadOptions, LoadPair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_POLL_S = 0.2  # on Windows Ctrl-C cannot end a wait without a time limit

_FAULTS_OF_THE_REQUEST = ("bad_request", "context_exceeded")


class EngineLane(Protocol):
    """What the command line needs of engine.Engine."""

    def submit(self, job: Job) -> int: ...

    def cancel(self, job_id: int) -> None: ...


def ignore_event(_: object) -> None:
    """For requests whose steps nobody watches."""


def load_pair(
    lane: EngineLane,
    target: Path,
    *,
    draft: Path | None,
    options: LoadOptions,
    watch: Callable[[Event], None] = ignore_event,
) -> PairInfo:
    """Load a pair and wait for it. Ctrl-C cancels the load and is raised again."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    job_id = lane.submit(LoadPair(target, draft, options, events.put))
    try:
        while True:
            event = _next(events)
            match event:
                case PairLoaded():
                    return event.pair
                case JobFailed():
                    raise _error(event)
                case JobCancelled():
                    raise AppError("The load was cancelled.")
                case _:
                    watch(event)
    except KeyboardInterrupt:
        lane.cancel(job_id)
        raise


def generate(lane: EngineLane, request: Generate, watch: Callable[[StepDone], None] = ignore_event) -> GenerationDone:
    """Run one reply to its end; `watch` sees each step. Ctrl-C ends the reply: finish_reason "cancelled"."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    job_id = lane.submit(replace(request, subscriber=events.put))
    is_cancelled = False
    while True:
        try:
            event = _next(events)
            match event:
                case StepDone():
                    watch(event)
                case GenerationDone():
                    return event
                case JobFailed():
                    raise _error(event)
                case JobCancelled():
                    raise KeyboardInterrupt  # it was still waiting in the queue: there is nothing to keep
                case _:
                    pass
        except KeyboardInterrupt:
            if is_cancelled:  # pressed twice, or never begun
                raise
            is_cancelled = True
            lane.cancel(job_id)
        except BaseException:  # the reader of our output is gone, or a bug: nobody waits for this reply any more
            lane.cancel(job_id)
            raise


def _next(events: queue.SimpleQueue[Event]) -> Event:
    while True:
        try:
            return events.get(timeout=_POLL_S)
        except queue.Empty:
            continue


def _error(failure: JobFailed) -> AppError:
    return BadInput(failure.message) if failure.kind in _FAULTS_OF_THE_REQUEST else AppError(failure.message)
