"""The edge below the lane, scripted: a loader and a session that say, wait and fail as a test wants."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import Cancelled
from dflash_desktop.binding.native import Progress, sized
from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    MemoryUse,
    PairInfo,
    PairLoaded,
    PairUnloaded,
)
from dflash_desktop.engine.loaded import LoadedPair, LoadPiece
from dflash_desktop.engine.pflash.scorer import ScorerSlot
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import Generate, LoadOptions, LoadPair, RawPrompt
from support.metadata import WordsMetadata
from support.patience import LONG_S
from support.scripted_model import END, scripted_words

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Generator, Sequence

    from dflash_desktop.engine.engine import Engine

E = TypeVar("E")
PIECES = [b"one ", b"two ", b"three ", b"four ", b"five ", b"six ", b"seven ", b"eight "]
LAST_EVENTS = (PairLoaded, PairUnloaded, GenerationDone, JobFailed, JobCancelled)


class Listener:
    """Collects the events of one or several jobs."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._queue: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def __call__(self, event: Event) -> None:
        self._queue.put(event)

    def wait_for(self, kind: type[E], *, timeout_s: float = LONG_S) -> E:
        """The next event of that kind; those before it are kept in `events`."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            self.events.append(event)
            if isinstance(event, kind):
                return event
            assert not isinstance(event, LAST_EVENTS), event

    def wait_for_end(self, *, timeout_s: float = LONG_S) -> Event:
        """The job's last event."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            self.events.append(event)
            if isinstance(event, LAST_EVENTS):
                return event

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


class ScriptedSession:
    """Says `pieces` (token texts), `block` tokens per step, then the end token.

    `faults`: step number -> what it raises. `gate`: when given, each prefill and step waits until it is set; a cancel
    ends the wait.
    """

    def __init__(self, pieces: Sequence[bytes], *, block: int = 1, context: int = 512) -> None:
        words = scripted_words(pieces)
        self.reader = PromptReader(WordsMetadata(words), "scripted.gguf")
        self.tokens = [260 + index for index in range(len(pieces))] + [END]
        self.block = block
        self.context = context
        self.n_prefill = 1
        self.faults: dict[int, Exception] = {}
        self.gate: threading.Event | None = None
        self.prompts: list[Sequence[int]] = []
        self.threads: set[int] = set()
        self.is_closed = False
        self._cancelled = threading.Event()
        self._n_steps = self._n_prefilled = self._n_said = 0

    def begin(self, prompt: Sequence[int], generation: abi.Generation) -> abi.Begun:
        self.threads.add(threading.get_ident())
        self.prompts.append(prompt)
        self._cancelled.clear()
        self._n_steps = self._n_prefilled = self._n_said = 0
        limit = generation.max_tokens or self.context - len(prompt)
        return sized(abi.Begun, n_prompt=len(prompt), n_reused=0, max_tokens=limit)

    def prefill(self) -> Progress:
        self._wait()
        self._n_prefilled += 1
        return Progress(self._n_prefilled, self.n_prefill, self._n_prefilled == self.n_prefill)

    def step(self) -> abi.Step:
        self._wait()
        fault = self.faults.get(self._n_steps)
        self._n_steps += 1
        if fault is not None:
            raise fault
        said = self.tokens[self._n_said : self._n_said + self.block]
        self._n_said += len(said)
        step = sized(
            abi.Step,
            n_drafted=self.block - 1,
            n_accepted=len(said) - 1,
            n_committed=len(said),
            finish=abi.Finish.STOP if said[-1] == END else abi.Finish.NONE,
            reason=abi.Reason.FIXED if self.block > 1 else abi.Reason.NO_DRAFT,
            n_positions=len(self.prompts[-1]) + self._n_said,
            n_reply=self._n_said,
            draft_us=5,
            verify_us=10,
        )
        for row, token in enumerate(said):
            step.tokens[row] = token
        return step

    def propose(self) -> abi.Step:
        self._proposed = self.step()
        self._n_said -= self._proposed.n_committed
        return self._proposed

    def likeliest(self, index: int, k: int) -> list[tuple[int, float]]:
        return [(self._proposed.tokens[index] + rank, -0.5 - rank) for rank in range(k)]

    def settle(self, n_keep: int, allowed: bytes | None = None) -> abi.Step:
        """Of the allowed tokens the first is said in place of the script's own."""
        step = self._proposed
        step.n_committed = n_keep
        if allowed is not None:
            step.tokens[n_keep] = next(i for i in range(8 * len(allowed)) if allowed[i // 8] >> i % 8 & 1)
            step.n_committed += 1
        self._n_said += step.n_committed
        step.n_accepted = step.n_committed - 1
        step.finish = abi.Finish.STOP if step.tokens[step.n_committed - 1] == END else abi.Finish.NONE
        step.n_reply = self._n_said
        return step

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self.is_closed = True

    def _wait(self) -> None:
        self.threads.add(threading.get_ident())
        while self.gate is not None and not self.gate.wait(0.005):
            if self._cancelled.is_set():
                raise Cancelled("cancelled")
        if self._cancelled.is_set():
            raise Cancelled("cancelled")


class ScriptedLoader:
    """Hands out scripted sessions in order. `faults`: what `check`, `load` or a piece of it raises."""

    def __init__(self, *sessions: ScriptedSession, n_pieces: int = 2) -> None:
        self._sessions = list(sessions)
        self.n_pieces = n_pieces
        self.check_fault: Exception | None = None
        self.load_fault: Exception | None = None
        self.gate: threading.Event | None = None
        self.n_unfinished_loads = 0

    def check(self, request: LoadPair) -> Any:
        if self.check_fault is not None:
            raise self.check_fault
        return request

    def load(self, plan: Any) -> Generator[LoadPiece, None, LoadedPair]:
        self.n_unfinished_loads += 1
        try:
            for piece in range(self.n_pieces):
                if self.gate is not None:
                    self.gate.wait(LONG_S)
                yield LoadPiece("target", piece + 1, self.n_pieces)
            if self.load_fault is not None:
                raise self.load_fault
        finally:
            self.n_unfinished_loads -= 1
        session = self._sessions.pop(0) if len(self._sessions) > 1 else self._sessions[0]
        stack = ExitStack()
        stack.callback(session.close)
        return LoadedPair(_info(session, plan), session.reader, session, stack)

    def scorers(self) -> ScorerSlot:
        raise AssertionError("no scripted test shortens prompts")

    def drain_log(self, logger: logging.Logger) -> None:
        pass


def _info(session: ScriptedSession, request: LoadPair) -> PairInfo:
    return PairInfo(
        target=request.target,
        target_name="scripted",
        target_architecture="llama",
        target_quantization="F32",
        draft=request.draft or Path("draft.gguf"),
        draft_name="scripted draft",
        block_size=session.block,
        device_name="CPU",
        device_description="scripted",
        context_tokens=session.context,
        trained_context_tokens=session.context,
        n_vocab=session.reader.tokenizer.n_vocab,
        memory=MemoryUse(0, 0, 0, 0, 0, 0),
        can_template=True,
        has_tools=False,
        has_thinking=False,
    )


def load(engine: Engine, listener: Listener | None = None) -> Event:
    """Load the scripted pair and return the job's last event."""
    listener = listener or Listener()
    engine.submit(LoadPair(Path("target.gguf"), None, LoadOptions(), listener))
    return listener.wait_for_end()


def ask(subscriber: Callable[[Event], None], *, text: str = "hello\n", stop: tuple[str, ...] = ()) -> Generate:
    return Generate(RawPrompt(text), subscriber, stop=stop)


def run(engine: Engine, *, text: str = "hello\n", stop: tuple[str, ...] = ()) -> tuple[Event, Listener]:
    """One reply; its last event, and all of them."""
    listener = Listener()
    engine.submit(ask(listener, text=text, stop=stop))
    return listener.wait_for_end(), listener
