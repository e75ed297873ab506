"""A loaded pair: how it is checked, opened piece by piece, and freed."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from ctypes import c_double
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.sizes import memory_text
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import OutOfMemory, Unsupported
from dflash_desktop.binding.native import (
    Library,
    NativeDraft,
    NativeFile,
    NativeSession,
    NativeTarget,
    Progress,
    sized,
)
from dflash_desktop.engine.causes import about_device, about_file, about_pair
from dflash_desktop.engine.devices import Device, choose_device, choose_draft_device, list_devices
from dflash_desktop.engine.draft_probe import probe_draft
from dflash_desktop.engine.events import MemoryUse, PairInfo, PrefixCacheUse
from dflash_desktop.engine.inspect import ModelFile, describe
from dflash_desktop.engine.pflash.scorer import ScorerSlot
from dflash_desktop.engine.planning import plan_load
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import FIT_CONTEXT
from dflash_desktop.engine.tuning_memory import TuningKeeper, TuningMemory, tuning_key

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from enum import IntEnum
    from pathlib import Path

    from dflash_desktop.engine.events import ContextChoice, DraftProbe
    from dflash_desktop.engine.requests import LoadPair

log = logging.getLogger(__name__)

DEFAULT_CONTEXT = 8192
"""Tokens, where nobody asks for a number and the model was trained for more: what most chats need."""
MOST_CONTEXT = 1 << 24
"""Tokens: more the engine does not take."""


def _nothing() -> None:
    """For pairs of which nothing is kept."""


def prefix_cache_use(session: NativeSession) -> PrefixCacheUse:
    """What the session's prefix cache holds and has done."""
    found = session.prefixes()
    return PrefixCacheUse(
        most_bytes=found.most_bytes,
        used_bytes=found.used_bytes,
        n_restores=found.n_restores,
        n_restored_tokens=found.n_restored_tokens,
        n_saved_tokens=found.n_saved_tokens,
        n_evicted_tokens=found.n_evicted_tokens,
        save_s=found.save_us / 1e6,
        restore_s=found.restore_us / 1e6,
    )


class Session(Protocol):
    """What a reply needs of a session; `NativeSession` fits, and so does a scripted one."""

    def begin(self, prompt: Sequence[int], generation: abi.Generation) -> abi.Begun: ...

    def prefill(self) -> Progress: ...

    def step(self) -> abi.Step: ...

    def propose(self) -> abi.Step: ...

    def likeliest(self, index: int, k: int) -> list[tuple[int, float]]: ...

    def settle(self, n_keep: int, allowed: bytes | None = None) -> abi.Step: ...

    def cancel(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LoadPiece:
    """A piece of a load was done."""

    part: Literal["target", "draft"]
    n_done_bytes: int
    n_total_bytes: int


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A load whose files were checked: they are sound, they run here, they fit each other."""

    request: LoadPair
    device: Device
    draft_device: Device  # the target's, unless the request names another
    target: ModelFile
    draft: ModelFile | None
    reader: PromptReader


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """Everything a reply needs. `resources` frees the native objects in the right order."""

    info: PairInfo
    reader: PromptReader
    session: Session
    resources: ExitStack
    keep_tuning: Callable[[], None] = _nothing  # to be called after each reply
    prefix_cache: Callable[[], PrefixCacheUse] = PrefixCacheUse

    def close(self) -> None:
        """Free session, draft and target, in that order. What was learnt of the pair is kept first."""
        self.resources.close()


class PairLoader:
    """Checks and opens pairs. Used from the lane's thread only."""

    def __init__(
        self, library: Library | None = None, memory: TuningMemory | None = None, *, abort_file: Path | None = None
    ) -> None:
        """`library`: default is the installed one, loaded when first needed. `memory`: default is to forget.

        `abort_file`: what ggml says before it ends the process, which it must not do and might, is added to it.
        """
        self._library = library
        self._memory = memory
        self._abort_file = abort_file

    @property
    def library(self) -> Library:
        """The engine's library, loaded by the first call. Raises LibraryMissing."""
        if self._library is None:
            self._library = Library()
            if self._abort_file is not None:
                self._library.write_aborts_to(self._abort_file)
        return self._library

    def scorers(self) -> ScorerSlot:
        """Where PFlash's scorer lives."""
        return ScorerSlot(self.library)

    def drain_log(self, logger: logging.Logger) -> None:
        """Pass on what the engine had to say."""
        if self._library is not None:
            self._library.drain_log(logger)

    def check(self, request: LoadPair) -> LoadPlan:
        """Everything that can be refused before memory is touched.

        Raises AppError or NativeError: no such device, an unsound file, one that cannot run here, a draft for another
        target, a tokenizer or template that we do not know.
        """
        options = request.options
        for kv_type in (options.kv_k, options.kv_v):
            code_of(abi.KvTypeCode, kv_type)
        devices = list_devices(self.library)
        device = choose_device(devices, options.device)
        draft_device = choose_draft_device(devices, device, options.draft_device)
        context_tokens = 0 if options.context_tokens == FIT_CONTEXT else options.context_tokens
        for count in (context_tokens, options.window_tokens, options.n_threads):
            if not 0 <= count < 2**31:
                raise BadInput(f"{count} is no sensible number of context tokens or threads.")
        if context_tokens > MOST_CONTEXT or context_tokens == 1:
            raise BadInput(f"A context of {context_tokens} tokens is out of range (2 to {MOST_CONTEXT}).")
        if not 0 <= (options.prefix_cache_bytes or 0) < 2**62:
            raise BadInput(f"{options.prefix_cache_bytes} is no sensible number of bytes for the prefix cache.")
        with ExitStack() as files:
            with about_file(request.target):
                target_file = files.enter_context(NativeFile(self.library, request.target))
                target = _runnable(target_file, "target")
            draft = None
            if request.draft is not None:
                with about_file(request.draft):
                    draft_file = files.enter_context(NativeFile(self.library, request.draft))
                    draft = _runnable(draft_file, "draft")
                with about_pair(request.target, request.draft):
                    self.library.check_pair(target_file, draft_file)
            reader = PromptReader(target_file, request.target.name)
        return LoadPlan(request, device, draft_device, target, draft, reader)

    def load(self, plan: LoadPlan) -> Generator[LoadPiece, None, LoadedPair]:
        """Open target, draft and session, a piece per turn; closing the generator frees what was opened so far."""
        with about_device(plan.device.name):
            return (yield from self._load(plan))

    def _load(self, plan: LoadPlan) -> Generator[LoadPiece, None, LoadedPair]:
        options = plan.request.options
        context_tokens, choice = self._choose_context(plan)
        key = tuning_key(plan.request, plan.device, self.library) if self._memory is not None else None
        learnt = self._memory.recall(key) if self._memory is not None and key is not None else None
        tuning = learnt.tuning if learnt is not None else ()
        n_threads = options.n_threads
        with ExitStack() as stack:
            target = stack.enter_context(
                NativeTarget(self.library, plan.target.path, device=plan.device.index, n_threads=n_threads)
            )
            yield from _pieces("target", target)
            draft = None
            if plan.draft is not None:
                place = plan.draft_device.index
                draft = stack.enter_context(
                    NativeDraft(self.library, plan.draft.path, target, device=place, n_threads=n_threads)
                )
                yield from _pieces("draft", draft)
            session = stack.enter_context(
                NativeSession(
                    target,
                    draft,
                    sized(
                        abi.SessionParams,
                        context_tokens=context_tokens,
                        kv_k=code_of(abi.KvTypeCode, options.kv_k),
                        kv_v=code_of(abi.KvTypeCode, options.kv_v),
                        window=options.window_tokens,
                        n_tuning=len(tuning),
                        tuning=(c_double * len(tuning))(*tuning),
                        prefix_bytes=_prefix_bytes(options.prefix_cache_bytes),
                    ),
                )
            )
            info = _pair_info(plan, session.memory(), target.stop_tokens(), can_constrain=True)
            probe = learnt.probe if learnt is not None else None
            if draft is not None and probe is None:
                probe = yield from _probe(session, plan, info.context_tokens)
            prefix_cache = partial(prefix_cache_use, session)
            most_bytes = prefix_cache().most_bytes
            info = replace(info, context_choice=choice, draft_probe=probe, most_prefix_bytes=most_bytes)
            for notice in info.notices:
                log.info("%s", notice)
            if self._memory is None or key is None or draft is None:
                return LoadedPair(info, plan.reader, session, stack.pop_all(), prefix_cache=prefix_cache)
            keeper = TuningKeeper(self._memory, key, session, probe)
            keeper.keep()
            stack.callback(keeper.keep)  # before the session is closed
            return LoadedPair(info, plan.reader, session, stack.pop_all(), keeper.keep_if_due, prefix_cache)

    def _choose_context(self, plan: LoadPlan) -> tuple[int, ContextChoice]:
        """How many tokens, and why. Called when the old pair is gone, so that its memory counts as free.

        Raises OutOfMemory, with numbers, when what was asked for cannot fit.
        """
        asked = plan.request.options.context_tokens
        draft = plan.draft.path if plan.draft is not None else None
        estimate = plan_load(plan.target.path, draft, plan.request.options, self.library)
        if asked > 0:
            if estimate.total_bytes > estimate.free_bytes:
                most = estimate.max_context_tokens
                raise OutOfMemory(
                    f"With a context of {asked} tokens the model takes {memory_text(estimate.total_bytes)}; "
                    f"{plan.device.name} has {memory_text(estimate.free_bytes)} free. "
                    + (f"The largest context that fits is {most} tokens." if most else "Not even a small one fits."),
                    cause=Cause(
                        "context_too_large",
                        {
                            "device": plan.device.name,
                            "context_tokens": asked,
                            "needed_bytes": estimate.total_bytes,
                            "free_bytes": estimate.free_bytes,
                            "max_context_tokens": most,
                        },
                    ),
                )
            if estimate.draft_total_bytes > estimate.draft_free_bytes:
                raise OutOfMemory(
                    f"With a context of {asked} tokens the draft takes {memory_text(estimate.draft_total_bytes)}; "
                    f"{plan.draft_device.name} has {memory_text(estimate.draft_free_bytes)} free. Choose a smaller "
                    "context, or another device for the draft.",
                    cause=Cause(
                        "draft_too_large",
                        {
                            "device": plan.draft_device.name,
                            "context_tokens": asked,
                            "needed_bytes": estimate.draft_total_bytes,
                            "free_bytes": estimate.draft_free_bytes,
                        },
                    ),
                )
            return asked, "asked"
        # Where none fits, the least there is: the load itself says what is missing.
        most = estimate.max_context_tokens or estimate.context_tokens
        if asked == FIT_CONTEXT:
            return most, "fitted"
        usual = min(plan.target.context_tokens or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
        return (usual, "default") if usual <= most else (most, "reduced")


def _probe(
    session: NativeSession, plan: LoadPlan, context_tokens: int
) -> Generator[LoadPiece, None, DraftProbe | None]:
    """The draft's probe, as pieces of the load: it can be cancelled between two steps."""
    n_bytes = plan.draft.file_bytes if plan.draft is not None else 0
    probing = probe_draft(session, plan.reader, context_tokens)
    try:
        while True:
            next(probing)
            yield LoadPiece("draft", n_bytes, n_bytes)
    except StopIteration as finished:
        probe: DraftProbe | None = finished.value
        return probe
    finally:
        probing.close()


def _prefix_bytes(asked: int | None) -> int:
    """As the engine takes it: 0 is its own choice, -1 none."""
    return 0 if asked is None else asked or -1


def open_reader(library: Library, path: Path) -> PromptReader:
    """Template and tokenizer of a model file. Raises AppError or NativeError."""
    with NativeFile(library, path) as file:
        return PromptReader(file, path.name)


def code_of(kinds: type[IntEnum], name: str) -> int:
    """The engine's number for a word of a request. Raises BadInput for a word it does not know."""
    try:
        return kinds[name.upper()]
    except KeyError:
        known = ", ".join(kind.name.lower() for kind in kinds)
        raise BadInput(f"{name!r} is not known here; known are {known}.") from None


def _runnable(file: NativeFile, role: Literal["target", "draft"]) -> ModelFile:
    found = describe(file)
    if found.role != role:
        kinds = {"target": "a model to chat with", "draft": "a DFlash draft", "other": "neither a target nor a draft"}
        raise AppError(
            f"{file.path.name} is {kinds[found.role]}, not {kinds[role]} ({found.architecture}).",
            cause=Cause("wrong_role", {"file": file.path.name, "role": found.role, "wanted": role}),
        )
    if not found.can_run:
        raise Unsupported(f"{file.path.name} cannot run: {found.reason}", cause=found.cause)
    return found


def _pieces(part: Literal["target", "draft"], weights: NativeTarget | NativeDraft) -> Generator[LoadPiece, None, None]:
    while True:
        progress = weights.load_piece()
        yield LoadPiece(part, progress.n_done, progress.n_total)
        if progress.is_complete:
            return


def _pair_info(plan: LoadPlan, memory: abi.Memory, stop_tokens: Sequence[int], *, can_constrain: bool) -> PairInfo:
    return PairInfo(
        target=plan.target.path,
        target_name=plan.target.name,
        target_architecture=plan.target.architecture,
        target_quantization=plan.target.quantization,
        draft=plan.draft.path if plan.draft else None,
        draft_name=plan.draft.name if plan.draft else None,
        block_size=plan.draft.block_size if plan.draft else 0,
        device_name=plan.device.name,
        draft_device_name=plan.draft_device.name if plan.draft and plan.draft_device.index != plan.device.index else "",
        device_description=plan.device.description,
        context_tokens=memory.context_tokens,
        trained_context_tokens=plan.target.context_tokens,
        n_vocab=plan.target.n_vocab,
        memory=MemoryUse(
            target_weights_bytes=memory.target_weights_bytes,
            draft_weights_bytes=memory.draft_weights_bytes,
            kv_cache_bytes=memory.kv_cache_bytes,
            recurrent_bytes=memory.recurrent_bytes,
            draft_kv_bytes=memory.draft_kv_bytes,
            compute_bytes=memory.compute_bytes,
            draft_compute_bytes=memory.draft_compute_bytes,
        ),
        can_template=plan.reader.has_template,
        has_tools=plan.reader.has_tools,
        has_thinking=plan.reader.has_thinking,
        window_tokens=plan.request.options.window_tokens,
        stop_tokens=tuple(stop_tokens),
        can_constrain=can_constrain,
        options=plan.request.options,
    )
