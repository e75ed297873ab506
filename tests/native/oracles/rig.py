"""The engine driven part by part, so that tests can put each part beside an oracle."""

from __future__ import annotations

from ctypes import POINTER, c_double, c_float, c_int32
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dflash_desktop.binding import abi
from dflash_desktop.binding.native import NativeDraft, NativeFile, NativeSession, NativeTarget, sized
from support.native_library import load_library

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]
    Ints = npt.NDArray[np.int32]


def _ints(values: Sequence[int]) -> ctypes_array:
    return (c_int32 * len(values))(*values)


if TYPE_CHECKING:
    import ctypes

    ctypes_array = ctypes.Array[c_int32]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What tests ask of a step; copied, because the native record is large."""

    tokens: tuple[int, ...]
    node_tokens: tuple[int, ...]
    node_parents: tuple[int, ...]
    node_logprobs: tuple[float, ...]
    path: tuple[int, ...]
    n_accepted: int
    n_positions: int
    reason: abi.Reason
    finish: abi.Finish
    draft_us: int
    verify_us: int
    commit_us: int
    host_us: int
    logprobs: tuple[float, ...]

    @property
    def n_drafted(self) -> int:
        return len(self.node_tokens) - 1


@dataclass(slots=True)
class Reply:
    tokens: list[int] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    n_reused: int = 0
    n_restored: int = 0  # of these, from the prefix cache

    @property
    def acceptance_length(self) -> float:
        """Tokens committed per step."""
        return len(self.tokens) / len(self.steps)


def _record(step: abi.Step) -> StepRecord:
    n_rows = step.n_drafted + 1
    return StepRecord(
        tokens=tuple(step.tokens[: step.n_committed]),
        node_tokens=tuple(step.node_tokens[:n_rows]),
        node_parents=tuple(step.node_parents[:n_rows]),
        node_logprobs=tuple(step.node_logprobs[:n_rows]),
        path=tuple(step.path[: step.n_accepted + 1]),
        n_accepted=step.n_accepted,
        n_positions=step.n_positions,
        reason=abi.Reason(step.reason),
        finish=abi.Finish(step.finish),
        draft_us=step.draft_us,
        verify_us=step.verify_us,
        commit_us=step.commit_us,
        host_us=step.host_us,
        logprobs=tuple(step.logprobs[: step.n_committed]),
    )


class Rig:
    """A target, its draft if any, and one session on the CPU, opened and closed together."""

    def __init__(
        self,
        target: Path,
        draft: Path | None = None,
        *,
        context: int = 1024,
        n_threads: int = 0,
        max_nodes: int = 63,
        prefill_chunk: int = 0,
        kv: abi.KvTypeCode = abi.KvTypeCode.AUTO,
        kv_v: abi.KvTypeCode | None = None,
        window: int = 0,
        tuning: Sequence[float] = (),
        n_tuning: int | None = None,
        is_apart: bool = False,
        prefix_bytes: int = 0,
    ) -> None:
        library = load_library()
        self._c = library.c
        self._check = library.check
        with NativeFile(library, target) as file:
            info = file.describe()
            assert info.can_run, info.reason.decode()
            self.n_vocab = info.n_vocab
            self.n_embd = info.n_embd
            self.n_layers = info.n_layers
        self.block_size = 0
        self._opened: list[NativeTarget | NativeDraft | NativeSession] = []
        cpu = next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)
        loaded = NativeTarget(library, target, device=cpu, n_threads=n_threads)
        self._opened.append(loaded)
        while not loaded.load_piece().is_complete:
            pass
        self.stop_tokens = loaded.stop_tokens()
        loaded_draft = None
        if draft:
            with NativeFile(library, draft) as file:
                self.block_size = file.describe().block_size
            loaded_draft = NativeDraft(library, draft, loaded, device=cpu, n_threads=n_threads, is_apart=is_apart)
            self._opened.append(loaded_draft)
            while not loaded_draft.load_piece().is_complete:
                pass
        params = sized(
            abi.SessionParams,
            context_tokens=context,
            max_nodes=max_nodes,
            prefill_chunk=prefill_chunk,
            kv_k=kv,
            kv_v=kv if kv_v is None else kv_v,
            window=window,
            n_tuning=len(tuning) if n_tuning is None else n_tuning,
            tuning=(c_double * len(tuning))(*tuning),
            prefix_bytes=prefix_bytes,
        )
        self.session = NativeSession(loaded, loaded_draft, params)
        self._opened.append(self.session)

    def close(self) -> None:
        for thing in reversed(self._opened):
            thing.close()
        self._opened.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reset(self) -> None:
        """Forget everything the session holds."""
        self._check(self._c.dflash_probe_reset(self.session.handle))

    def append(self, tokens: Sequence[int]) -> None:
        """Feed tokens, if any, without asking for anything."""
        if not tokens:
            return
        self._check(self._c.dflash_probe_append(self.session.handle, _ints(tokens), len(tokens), None))

    def logits(self, tokens: Sequence[int], *, grid: int = 0) -> Floats:
        """Feed tokens and return the logits of every row; `grid` rows per pass (0: as many as fit)."""
        found = np.empty((len(tokens), self.n_vocab), np.float32)
        for start in range(0, len(tokens), grid or len(tokens)):
            part = tokens[start : start + (grid or len(tokens))]
            out = found[start:].ctypes.data_as(POINTER(c_float))
            self._check(self._c.dflash_probe_append(self.session.handle, _ints(part), len(part), out))
        return found

    def verify(self, tokens: Sequence[int], parents: Sequence[int]) -> Floats:
        """Logits of root and nodes in one pass; nothing is committed."""
        found = np.empty((len(tokens), self.n_vocab), np.float32)
        out = found.ctypes.data_as(POINTER(c_float))
        self._check(self._c.dflash_probe_verify(self.session.handle, _ints(tokens), _ints(parents), len(tokens), out))
        return found

    def commit(self, rows: Sequence[int]) -> None:
        """Keep a root-first path of the rows just verified."""
        self._check(self._c.dflash_probe_commit(self.session.handle, _ints(rows), len(rows)))

    def draft(self, root: int, k: int = 8, *, block_size: int = 0) -> tuple[Ints, Floats, Floats]:
        """Ids and log-probabilities, (block - 1) x k, and final hidden rows, block x n_embd; 0: as trained."""
        block = block_size or self.block_size
        ids = np.empty((block - 1, k), np.int32)
        logprobs = np.empty((block - 1, k), np.float32)
        hidden = np.empty((block, self.n_embd), np.float32)
        self._check(
            self._c.dflash_probe_draft(
                self.session.handle,
                root,
                block_size,
                k,
                ids.ctypes.data_as(POINTER(c_int32)),
                logprobs.ctypes.data_as(POINTER(c_float)),
                hidden.ctypes.data_as(POINTER(c_float)),
            )
        )
        return ids, logprobs, hidden

    @staticmethod
    def generation(**generation: float) -> abi.Generation:
        """Fields of dflash_generation by name."""
        return sized(abi.Generation, **generation)

    def begin(self, prompt: Sequence[int], **generation: float) -> abi.Begun:
        """Begin a reply and prefill its prompt."""
        begun = self.session.begin(prompt, self.generation(**generation))
        while not self.session.prefill().is_complete:
            pass
        return begun

    def finish(self, begun: abi.Begun | None = None) -> Reply:
        """The steps of a reply that has begun, to its end."""
        reply = Reply(n_reused=begun.n_reused, n_restored=begun.n_restored) if begun is not None else Reply()
        while True:
            step = self.session.step()
            reply.steps.append(_record(step))
            reply.tokens += reply.steps[-1].tokens
            if step.finish != abi.Finish.NONE:
                return reply

    def generate(self, prompt: Sequence[int], **generation: float) -> Reply:
        """A whole reply. Fields of dflash_generation by name; greedy when none is given."""
        return self.finish(self.begin(prompt, **generation))
