"""The lane: one thread, one queue, the only caller of the binding.

`submit` and `cancel` may be called from any thread and never wait. Jobs run one after another in the order of their
submission. Every job gets `JobQueued` first and exactly one of these last: PairLoaded, PairUnloaded, GenerationDone,
JobFailed, JobCancelled. All events of a job come on the lane's thread, in order; those of waiting jobs between two
pieces of the running one.

A load replaces the pair. Its files are checked first, so a bad file or a draft that does not fit leaves the old pair
loaded. Then the old pair is freed, because both at once may not fit in memory: a load that fails or is cancelled after
that point leaves nothing loaded.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError
from dflash_desktop.binding.failures import (
    BadArgument,
    BadFile,
    DeviceFailed,
    LibraryMissing,
    NativeError,
    OutOfMemory,
    Unsupported,
)
from dflash_desktop.binding.numbers import use_decimal_points
from dflash_desktop.engine.causes import cause_of
from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    JobQueued,
    LoadProgress,
    PairLoaded,
    PairUnloaded,
)
from dflash_desktop.engine.loaded import LoadedPair, PairLoader
from dflash_desktop.engine.pflash.options import PromptCompressed
from dflash_desktop.engine.pflash.shortening import ShorteningEvent, shorten
from dflash_desktop.engine.prompt import ContextExceeded
from dflash_desktop.engine.reply import Reply
from dflash_desktop.engine.requests import CompressPrompt, Generate, Job, LoadPair

if TYPE_CHECKING:
    from collections.abc import Generator

    from dflash_desktop.engine.events import PairInfo
    from dflash_desktop.engine.loaded import LoadPiece, LoadPlan
    from dflash_desktop.engine.pflash.options import PflashOptions
    from dflash_desktop.engine.pflash.scorer import ScorerSlot
    from dflash_desktop.engine.requests import Prompt

log = logging.getLogger(__name__)
native_log = logging.getLogger("dflash_desktop.native")

FailureKind = Literal["bad_request", "context_exceeded", "no_pair", "out_of_memory", "device", "bug"]


class Loader(Protocol):
    """What the lane needs to open pairs; `PairLoader` fits, and so does a scripted one."""

    def check(self, request: LoadPair) -> LoadPlan: ...

    def load(self, plan: LoadPlan) -> Generator[LoadPiece, None, LoadedPair]: ...

    def scorers(self) -> ScorerSlot: ...

    def drain_log(self, logger: logging.Logger) -> None: ...


class NoPair(AppError):
    """Nothing is loaded."""


@dataclass(eq=False)
class _Ticket:
    """A job on its way through the lane."""

    job_id: int
    job: Job
    accepted_at: float
    cancelled: threading.Event = field(default_factory=threading.Event)
    is_deaf: bool = False  # its subscriber failed: nothing more is said to it


class Engine:
    """Owns the thread that decodes. `start`, then `submit`; `close` ends everything within a step."""

    def __init__(self, loader: Loader | None = None) -> None:
        self._loader: Loader = loader or PairLoader()
        self._pair: LoadedPair | None = None
        self._scorers: ScorerSlot | None = None
        self._ids = itertools.count(1)
        self._inbox: queue.SimpleQueue[_Ticket | None] = queue.SimpleQueue()  # None: a cancel or close to look at
        self._waiting: deque[_Ticket] = deque()
        self._tickets: dict[int, _Ticket] = {}
        # Guards `_running` alone, so that a cancel never reaches the session of another job.
        self._running_lock = threading.Lock()
        self._running: _Ticket | None = None
        self._door = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine-lane")

    def start(self) -> None:
        """Start the lane. Jobs submitted before wait for it."""
        self._thread.start()

    def submit(self, job: Job) -> int:
        """Queue `job` and return its id. Never blocks; any thread may call. After `close` it raises AppError."""
        with self._door:
            if self._closing.is_set():
                raise AppError("The engine is closed.")
            ticket = _Ticket(next(self._ids), job, time.perf_counter())
            self._tickets[ticket.job_id] = ticket
            self._inbox.put(ticket)
        return ticket.job_id

    def cancel(self, job_id: int) -> None:
        """End a waiting or running job soon. Unknown and finished jobs are no error. Any thread may call."""
        ticket = self._tickets.get(job_id)
        if ticket is None:
            return
        ticket.cancelled.set()
        with self._running_lock:
            if self._running is ticket:
                if self._pair is not None:
                    self._pair.session.cancel()
                if self._scorers is not None:
                    self._scorers.cancel()
        self._inbox.put(None)

    def close(self) -> None:
        """Cancel all jobs, free the pair and end the thread. Safe to call twice and without `start`."""
        with self._door:  # what was submitted before this is answered, what comes later is refused
            self._closing.set()
        for job_id in list(self._tickets):
            self.cancel(job_id)
        self._inbox.put(None)
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    # ---- the lane's thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        use_decimal_points()
        try:
            while not self._closing.is_set():
                self._look_at_inbox(self._inbox.get())
                while self._waiting:
                    self._do(self._waiting.popleft())
        finally:
            with self._door:
                self._closing.set()
            self._receive()
            for ticket in self._waiting:
                self._end(ticket, JobCancelled(ticket.job_id))
            self._drop_pair()
            if self._scorers is not None:
                self._scorers.release()

    def _receive(self) -> None:
        """Greet the jobs that arrived and dismiss those that were cancelled while they waited."""
        while True:
            try:
                self._look_at_inbox(self._inbox.get_nowait())
            except queue.Empty:
                break

    def _look_at_inbox(self, ticket: _Ticket | None) -> None:
        if ticket is not None:
            n_ahead = len(self._waiting) + (self._running is not None)
            self._waiting.append(ticket)
            self._tell(ticket, JobQueued(ticket.job_id, n_ahead))
        for waiting in [other for other in self._waiting if other.cancelled.is_set()]:
            self._waiting.remove(waiting)
            self._end(waiting, JobCancelled(waiting.job_id))

    def _do(self, ticket: _Ticket) -> None:
        """Run one job to its last event. The lane survives whatever happens in it."""
        with self._running_lock:
            self._running = ticket
        reply: Reply | None = None
        last: Event
        try:
            if ticket.cancelled.is_set() or self._closing.is_set():
                last = JobCancelled(ticket.job_id)
            elif isinstance(ticket.job, Generate):
                pair = self._need_pair(ticket.job.for_pair)
                prompt = self._shorten(ticket, ticket.job.prompt, ticket.job.pflash, pair)
                if ticket.cancelled.is_set():  # meanwhile, so that the prompt may be whole and too long
                    last = JobCancelled(ticket.job_id)
                else:
                    request = replace(ticket.job, prompt=prompt)
                    reply = Reply(ticket.job_id, request, pair, ticket.accepted_at, ticket.cancelled.is_set)
                    last = self._generate(ticket, reply)
            elif isinstance(ticket.job, CompressPrompt):
                last = self._preview(ticket, ticket.job)
            elif isinstance(ticket.job, LoadPair):
                last = self._load(ticket, ticket.job)
            else:
                self._drop_pair()
                if self._scorers is not None:
                    self._scorers.release()
                last = PairUnloaded(ticket.job_id)
        except Exception as error:  # noqa: BLE001  the lane is one of the three places for it
            device = self._pair.info.device_name if self._pair is not None else ""
            last = _failure(ticket.job_id, error, reply.text if reply else "", device)
        with self._running_lock:
            self._running = None
        self._drain_log()
        self._end(ticket, last)
        if reply is not None and self._pair is not None:
            self._pair.keep_tuning()
        self._receive()

    def _shorten(self, ticket: _Ticket, prompt: Prompt, options: PflashOptions, pair: LoadedPair) -> Prompt:
        """The prompt after PFlash. With mode "off" it is the same, untouched, and nothing is said."""
        if options.mode == "off":
            return prompt
        running = self._shortening(ticket, prompt, options, pair)
        while True:
            try:
                self._tell(ticket, next(running))
            except StopIteration as done:
                shortened: Prompt = done.value
                return shortened
            self._receive()

    def _preview(self, ticket: _Ticket, job: CompressPrompt) -> Event:
        pair = None if job.counts_by_scorer else self._need_pair(None)
        for event in self._shortening(ticket, job.prompt, job.pflash, pair):
            if isinstance(event, PromptCompressed):
                return event
            self._tell(ticket, event)
            self._receive()
        return JobCancelled(ticket.job_id)

    def _shortening(
        self, ticket: _Ticket, prompt: Prompt, options: PflashOptions, pair: LoadedPair | None
    ) -> Generator[ShorteningEvent, None, Prompt]:
        """Without a pair the scorer's own tokens count, and it computes on the device that fits best."""
        with self._running_lock:
            self._scorers = self._scorers or self._loader.scorers()
        slot = self._scorers
        if pair is not None:
            reader, device, context_tokens = pair.reader, pair.info.device_name, pair.info.context_tokens
        elif options.scorer is not None:
            reader, device, context_tokens = slot.reader(options.scorer), "", None
        else:
            raise AppError("No scorer is chosen, and no model is loaded whose tokens could be counted.")
        is_cancelled = ticket.cancelled.is_set
        return shorten(ticket.job_id, prompt, options, reader, slot, device, is_cancelled, context_tokens)

    def _generate(self, ticket: _Ticket, reply: Reply) -> Event:
        """Pull the reply; what waits meanwhile is greeted between two pieces."""
        for event in reply.run():
            if isinstance(event, GenerationDone):
                return event
            self._tell(ticket, event)
            self._receive()
        raise AssertionError("a reply ends with GenerationDone")

    def _load(self, ticket: _Ticket, request: LoadPair) -> Event:
        began = time.perf_counter()
        plan = self._loader.check(request)
        if ticket.cancelled.is_set():
            return JobCancelled(ticket.job_id)
        if self._pair is not None:
            self._drop_pair()  # told at once: from here on a load that fails leaves nothing loaded
            self._tell(ticket, LoadProgress(ticket.job_id, "target", 0, 0))
        loading = self._loader.load(plan)
        try:
            while True:
                piece = next(loading)
                self._tell(ticket, LoadProgress(ticket.job_id, piece.part, piece.n_done_bytes, piece.n_total_bytes))
                self._receive()
                if ticket.cancelled.is_set():
                    return JobCancelled(ticket.job_id)
        except StopIteration as finished:
            pair: LoadedPair = finished.value
        finally:
            loading.close()
        with self._running_lock:
            self._pair = pair
        return PairLoaded(ticket.job_id, pair.info, time.perf_counter() - began, pair.reader)

    def _drain_log(self) -> None:
        try:
            self._loader.drain_log(native_log)
        except NativeError:
            log.exception("the engine's log cannot be read")

    def _need_pair(self, wanted: PairInfo | None) -> LoadedPair:
        if self._pair is None:
            raise NoPair("No model is loaded. Load one first.", cause=Cause("nothing_loaded"))
        if wanted is not None and self._pair.info is not wanted:
            words = "Another model was loaded meanwhile. Send the request again."
            raise NoPair(words, cause=Cause("other_model_loaded"))
        return self._pair

    def _drop_pair(self) -> None:
        with self._running_lock:
            pair, self._pair = self._pair, None
        if pair is not None:
            pair.close()

    def _end(self, ticket: _Ticket, event: Event) -> None:
        self._tickets.pop(ticket.job_id, None)
        self._tell(ticket, event)

    def _tell(self, ticket: _Ticket, event: Event) -> None:
        if ticket.is_deaf:
            return
        try:
            ticket.job.subscriber(event)
        except Exception:  # a listener's bug must not take the lane with it
            log.exception("the listener of job %s failed at %s", ticket.job_id, type(event).__name__)
            ticket.is_deaf = True
            ticket.cancelled.set()


def _failure(job_id: int, error: Exception, text: str, device: str) -> JobFailed:
    """An exception as an event. What nobody expected is logged with its traceback."""
    cause = cause_of(error, device)
    match error:
        case ContextExceeded():
            kind: FailureKind = "context_exceeded"
        case NoPair():
            kind = "no_pair"
        case OutOfMemory():
            kind = "out_of_memory"
        case MemoryError():
            return JobFailed(job_id, "The computer has no memory left for this.", "out_of_memory", text, cause)
        case DeviceFailed() | LibraryMissing():
            kind = "device"
        case AppError() | BadFile() | Unsupported() | BadArgument():
            kind = "bad_request"
        case _:
            log.error("job %s failed", job_id, exc_info=error)
            reason = f"{type(error).__name__}: {error}"
            message = f"An error in the program itself: {reason}. Details are in the log."
            return JobFailed(job_id, message, "bug", text, cause or Cause("bug", {"kind": type(error).__name__}))
    return JobFailed(job_id, str(error), kind, text, cause)
