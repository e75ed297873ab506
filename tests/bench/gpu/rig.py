"""A pair loaded on a named device, with the engine's probes as methods: what the scripts of this folder share."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeDraft, NativeSession, NativeTarget, path_bytes, sized

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

Logits = npt.NDArray[np.float32]

MODES = {"auto": 0, "tree": 1, "chain": 2, "plain": 3}
KV_TYPES = {"auto": 0, "f32": 1, "f16": 2, "bf16": 3, "q8_0": 4, "q5_1": 5, "q5_0": 6, "q4_1": 7, "q4_0": 8}


def _ints(values: Sequence[int]) -> Any:
    return (ctypes.c_int32 * len(values))(*values)


def _floats(array: Logits | None) -> Any:
    return None if array is None else array.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


def find_device(library: Library, name: str) -> abi.Device:
    """The device people call `name` ("CUDA0"). Raises LookupError with those there are."""
    devices = library.devices()
    for device in devices:
        if device.name.decode() == name:
            return device
    raise LookupError(f"no device {name}; there are {[device.name.decode() for device in devices]}")


@dataclass
class Reply:
    """A generated reply and the record of its steps."""

    tokens: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)  # tokens per step
    wall_us: list[float] = field(default_factory=list)  # per step, seen from outside
    draft_us: list[int] = field(default_factory=list)
    verify_us: list[int] = field(default_factory=list)
    commit_us: list[int] = field(default_factory=list)
    host_us: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        return 1e6 * len(self.tokens) / sum(self.wall_us)

    @property
    def mean_accepted(self) -> float:
        """Tokens per step (AL)."""
        return len(self.tokens) / len(self.wall_us)


class Rig:
    """Target, perhaps a draft, and one session."""

    def __init__(
        self,
        library: Library,
        target: Path,
        draft: Path | None = None,
        *,
        device: str = "CUDA0",
        draft_device: int | None = None,
        is_apart: bool = False,
        **session: int,
    ) -> None:
        self.library = library
        index = find_device(library, device).index
        self.target = NativeTarget(library, target, device=index)
        while not self.target.load_piece().is_complete:
            pass
        place = index if draft_device is None else draft_device
        self.draft = NativeDraft(library, draft, self.target, device=place, is_apart=is_apart) if draft else None
        while self.draft and not self.draft.load_piece().is_complete:
            pass
        self.session = NativeSession(self.target, self.draft, sized(abi.SessionParams, **session))

    def reopen(self, **session: int) -> None:
        """Another session on the same weights."""
        self.session.close()
        self.session = NativeSession(self.target, self.draft, sized(abi.SessionParams, **session))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()
        if self.draft:
            self.draft.close()
        self.target.close()

    # ---- probes

    def _probe(self, name: str, *arguments: Any) -> None:
        self.library.check(getattr(self.library.c, "dflash_probe_" + name)(self.session.handle, *arguments))

    def reset(self) -> None:
        self._probe("reset")

    def append(self, tokens: Sequence[int], n_vocab: int = 0) -> Logits:
        """Append rows; with `n_vocab`, every row's logits."""
        out = np.empty((len(tokens), n_vocab), np.float32)
        self._probe("append", _ints(tokens), len(tokens), _floats(out) if n_vocab else None)
        return out

    def verify(self, tokens: Sequence[int], parents: Sequence[int], n_vocab: int = 0) -> Logits:
        out = np.empty((len(tokens), n_vocab), np.float32)
        self._probe("verify", _ints(tokens), _ints(parents), len(tokens), _floats(out) if n_vocab else None)
        return out

    def commit(self, rows: Sequence[int]) -> None:
        self._probe("commit", _ints(rows), len(rows))

    def draft_block(self, root: int, k: int, n_depths: int) -> tuple[npt.NDArray[np.int32], Logits]:
        """The likeliest tokens of a whole block; `n_depths` is how many positions the draft fills."""
        ids, logprobs = np.empty((n_depths, k), np.int32), np.empty((n_depths, k), np.float32)
        self._probe("draft", root, 0, k, ids.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), _floats(logprobs), None)
        return ids, logprobs

    # ---- replies

    def begin(self, prompt: Sequence[int], mode: str = "plain", **generation: int) -> float:
        """Begin a reply and prefill it; seconds of prefill."""
        self.session.begin(prompt, sized(abi.Generation, draft_mode=MODES[mode], **generation))
        start = time.perf_counter()
        while not self.session.prefill().is_complete:
            pass
        return time.perf_counter() - start

    def steps(self, most: int = 1 << 30) -> Reply:
        """Up to `most` steps of the reply begun."""
        reply = Reply()
        finish = 0
        while not finish and len(reply.wall_us) < most:
            start = time.perf_counter()
            step = self.session.step()
            reply.wall_us.append(1e6 * (time.perf_counter() - start))
            reply.tokens += step.tokens[: step.n_committed]
            reply.committed.append(step.n_committed)
            reply.drafted.append(step.n_drafted)
            reply.draft_us.append(step.draft_us)
            reply.verify_us.append(step.verify_us)
            reply.commit_us.append(step.commit_us)
            reply.host_us.append(step.host_us)
            finish = step.finish
        return reply

    def generate(self, prompt: Sequence[int], mode: str = "plain", **generation: int) -> Reply:
        self.begin(prompt, mode, **generation)
        return self.steps()


def plan(library: Library, target: Path, draft: Path | None, device: str, **session: int) -> abi.Plan:
    """What loading would take, by the engine's own arithmetic: nothing is loaded."""
    load = sized(abi.LoadParams, device=find_device(library, device).index)
    wanted, found = sized(abi.SessionParams, **session), sized(abi.Plan)
    paths = path_bytes(target), path_bytes(draft) if draft else None
    library.check(
        library.c.dflash_plan_pair(*paths, ctypes.byref(load), None, ctypes.byref(wanted), ctypes.byref(found))
    )
    return found


def used_bytes(memory: abi.Memory) -> int:
    """All parts on the device together."""
    names = {name for name, *_ in memory._fields_ if name.endswith("_bytes")} - {"prefix_bytes"}
    return sum(getattr(memory, name) for name in names)


def spread(values: Sequence[float]) -> str:
    """Median, and quartiles when they say something."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"
