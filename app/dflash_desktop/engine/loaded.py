"""A loaded pair: how it is checked, opened piece by piece, and freed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import Unsupported
from dflash_desktop.binding.native import (
    Library,
    NativeDraft,
    NativeFile,
    NativeSession,
    NativeTarget,
    Progress,
    sized,
)
from dflash_desktop.engine.devices import Device, choose_device, list_devices
from dflash_desktop.engine.events import MemoryUse, PairInfo
from dflash_desktop.engine.inspect import ModelFile, describe
from dflash_desktop.engine.prompt import PromptReader

if TYPE_CHECKING:
    import logging
    from collections.abc import Generator, Sequence
    from enum import IntEnum

    from dflash_desktop.engine.requests import LoadPair


class Session(Protocol):
    """What a reply needs of a session; `NativeSession` fits, and so does a scripted one."""

    def begin(self, prompt: Sequence[int], generation: abi.Generation) -> abi.Begun: ...

    def prefill(self) -> Progress: ...

    def step(self) -> abi.Step: ...

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

    def close(self) -> None:
        self.resources.close()


class PairLoader:
    """Checks and opens pairs. Used from the lane's thread only."""

    def __init__(self, library: Library | None = None) -> None:
        """`library`: default is the installed one, loaded when first needed."""
        self._library = library

    @property
    def library(self) -> Library:
        if self._library is None:
            self._library = Library()
        return self._library

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
        device = choose_device(list_devices(self.library), options.device)
        for count in (options.context_tokens, options.n_threads):
            if not 0 <= count < 2**31:
                raise BadInput(f"{count} is no sensible number of context tokens or threads.")
        with ExitStack() as files:
            target_file = files.enter_context(NativeFile(self.library, request.target))
            target = _runnable(target_file, "target")
            draft = None
            if request.draft is not None:
                draft_file = files.enter_context(NativeFile(self.library, request.draft))
                draft = _runnable(draft_file, "draft")
                self.library.check_pair(target_file, draft_file)
            reader = PromptReader(target_file, request.target.name)
        return LoadPlan(request, device, target, draft, reader)

    def load(self, plan: LoadPlan) -> Generator[LoadPiece, None, LoadedPair]:
        """Open target, draft and session, a piece per turn; closing the generator frees what was opened so far."""
        options = plan.request.options
        placing = {"device": plan.device.index, "n_threads": options.n_threads}
        with ExitStack() as stack:
            target = stack.enter_context(NativeTarget(self.library, plan.target.path, **placing))
            yield from _pieces("target", target)
            draft = None
            if plan.draft is not None:
                draft = stack.enter_context(NativeDraft(self.library, plan.draft.path, target, **placing))
                yield from _pieces("draft", draft)
            session = stack.enter_context(
                NativeSession(
                    target,
                    draft,
                    sized(
                        abi.SessionParams,
                        context_tokens=options.context_tokens,
                        kv_k=code_of(abi.KvTypeCode, options.kv_k),
                        kv_v=code_of(abi.KvTypeCode, options.kv_v),
                    ),
                )
            )
            info = _pair_info(plan, session.memory())
            return LoadedPair(info, plan.reader, session, stack.pop_all())


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
        raise AppError(f"{file.path.name} is {kinds[found.role]}, not {kinds[role]} ({found.architecture}).")
    if not found.can_run:
        raise Unsupported(f"{file.path.name} cannot run: {found.reason}")
    return found


def _pieces(part: Literal["target", "draft"], weights: NativeTarget | NativeDraft) -> Generator[LoadPiece, None, None]:
    while True:
        progress = weights.load_piece()
        yield LoadPiece(part, progress.n_done, progress.n_total)
        if progress.is_complete:
            return


def _pair_info(plan: LoadPlan, memory: abi.Memory) -> PairInfo:
    return PairInfo(
        target=plan.target.path,
        target_name=plan.target.name,
        target_architecture=plan.target.architecture,
        target_quantization=plan.target.quantization,
        draft=plan.draft.path if plan.draft else None,
        draft_name=plan.draft.name if plan.draft else None,
        block_size=plan.draft.block_size if plan.draft else 0,
        device_name=plan.device.name,
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
        ),
        can_template=plan.reader.has_template,
        has_tools=plan.reader.has_tools,
        has_thinking=plan.reader.has_thinking,
    )
