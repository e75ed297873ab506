"""The pure parts of the engine (tree, sampler, tuner), compiled on their own behind tests/native/probe.cpp."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from ctypes import POINTER, byref, c_double, c_float, c_int32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = Path(__file__).parents[2] / "native" / "src"
PROBE = Path(__file__).parents[1] / "native" / "probe.cpp"
PARTS = (
    "calibration",
    "draft_switch",
    "repetition",
    "sampler",
    "step_times",
    "thread_count",
    "token_weights",
    "tree",
    "tuner",
)

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


def build_probe(folder: Path) -> Path:
    """Compile the probe library into `folder`, once per state of its sources."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or sys.platform == "win32":
        pytest.skip("no C++ compiler (c++, g++ or clang++) to build the probe library with")
    files = [PROBE, *(SOURCES / f"{part}.cpp" for part in PARTS)]
    headers = [SOURCES / f"{part}.h" for part in (*PARTS, "tuner_numbers")]
    state = hashlib.sha256(b"".join(file.read_bytes() for file in [*files, *headers])).hexdigest()[:16]
    library = folder / f"probe-{state}.so"
    if not library.exists():
        unfinished = library.with_suffix(f".{os.getpid()}")
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
        command = [*compiler.split(), "-std=c++17", "-O2", "-shared", "-fPIC", *warnings, f"-I{SOURCES}"]
        subprocess.run([*command, *map(str, files), "-o", str(unfinished)], check=True)
        unfinished.replace(library)
    return library


@dataclass(frozen=True)
class TreeRows:
    """A built tree, one entry per row, the root first."""

    tokens: list[int]
    parents: list[int]
    depths: list[int]
    ranks: list[int]
    logprobs: list[float]


class _Shape(ctypes.Structure):
    _fields_ = (
        ("budget", c_int32),
        ("is_chain", c_int32),
    )


class _Sampling(ctypes.Structure):
    _fields_ = (
        ("temperature", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repeat_penalty", c_float),
        ("frequency_penalty", c_float),
        ("presence_penalty", c_float),
        ("penalty_window", c_int32),
        ("seed", c_uint64),
    )


class _TunerStep(ctypes.Structure):
    _fields_ = (
        ("n_depths", c_int32),
        ("k", c_int32),
        ("ids", c_void_p),
        ("logprobs", c_void_p),
        ("truth", c_void_p),
        ("max_rows", c_int32),
        ("is_mute", c_int32),
        ("draft_us", c_double),
        ("verify_us", c_void_p),
        ("n_rows", c_int32),
        ("n_committed", c_int32),
        ("us", c_double),
        ("expected", c_float),
    )


def _ints(values: Sequence[int] | Ints) -> Ints:
    return np.ascontiguousarray(values, dtype=np.int32)


def _at(array: npt.NDArray[Any]) -> c_void_p:
    return array.ctypes.data_as(c_void_p)


class Probe:
    """The probe library. Functions that fail raise ValueError with the engine's reason."""

    def __init__(self, library: Path) -> None:
        self.lib = ctypes.CDLL(str(library))
        self.lib.probe_error.restype = ctypes.c_char_p
        self.lib.probe_sampler_open.restype = c_void_p
        self.lib.probe_sampler_open.argtypes = (POINTER(_Sampling), c_int32)
        self.lib.probe_tuner_open.restype = c_void_p
        for name in ("probe_log_probability", "probe_uniform", "probe_tuner_verify_us", "probe_tuner_draft_us"):
            getattr(self.lib, name).restype = c_double
        self.lib.probe_tuner_measured_speed_up.restype = c_double
        self.lib.probe_uniform.argtypes = (c_uint64, c_uint64)

    def check(self, result: int) -> int:
        if result < 0:
            raise ValueError(self.lib.probe_error().decode())
        return result

    def build_tree(
        self,
        ids: Ints,
        logprobs: Floats,
        budget: int,
        *,
        is_chain: bool = False,
        root: int = 7,
    ) -> TreeRows:
        """`ids` and `logprobs` are (n_depths, k)."""
        n_depths, k = ids.shape
        shape = _Shape(budget, is_chain)
        numbers = [np.zeros(budget + 1, np.int32) for _ in range(4)]
        weights = np.zeros(budget + 1, np.float32)
        ids, logprobs = _ints(ids), np.ascontiguousarray(logprobs, np.float32)
        arrays = [_at(array) for array in (*numbers, weights)]
        n = self.check(
            self.lib.probe_build_tree(root, n_depths, k, _at(ids), _at(logprobs), byref(shape), *arrays),
        )
        tokens, parents, depths, ranks = (array[:n].tolist() for array in numbers)
        return TreeRows(tokens, parents, depths, ranks, weights[:n].tolist())

    def build_conditional_tree(
        self, ids: Ints, conditional: Floats, budget: int, *, is_chain: bool = False
    ) -> TreeRows:
        """`ids` is (n_depths, k), `conditional` (n_depths, k before, k)."""
        n_depths, k = ids.shape
        shape = _Shape(budget, is_chain)
        numbers = [np.zeros(budget + 1, np.int32) for _ in range(4)]
        weights = np.zeros(budget + 1, np.float32)
        ids, conditional = _ints(ids), np.ascontiguousarray(conditional, np.float32)
        arrays = [_at(array) for array in (*numbers, weights)]
        n = self.check(
            self.lib.probe_build_conditional_tree(
                7, n_depths, k, _at(ids), _at(conditional), conditional.size, byref(shape), *arrays
            ),
        )
        tokens, parents, depths, ranks = (array[:n].tolist() for array in numbers)
        return TreeRows(tokens, parents, depths, ranks, weights[:n].tolist())

    def make_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[list[int], list[int]]:
        """Depths and ranks."""
        n = len(tokens)
        depths, ranks = np.zeros(n, np.int32), np.zeros(n, np.int32)
        t, p = _ints(tokens), _ints(parents)
        self.check(self.lib.probe_make_tree(_at(t), _at(p), n, _at(depths), _at(ranks)))
        return depths.tolist(), ranks.tolist()

    def walk(
        self, tokens: Sequence[int], parents: Sequence[int], choices: Sequence[int]
    ) -> tuple[list[int], list[int], list[int]]:
        """Accepted rows, the tokens chosen after them, and how long the path was at each choice."""
        t, p, c = _ints(tokens), _ints(parents), _ints(choices)
        rows, out, lengths = (np.zeros(len(tokens) + 1, np.int32) for _ in range(3))
        n = self.check(self.lib.probe_walk(_at(t), _at(p), len(tokens), _at(c), _at(rows), _at(out), _at(lengths)))
        return rows[:n].tolist(), out[:n].tolist(), lengths[:n].tolist()

    def uniform(self, seed: int, index: int) -> float:
        return float(self.lib.probe_uniform(seed, index))

    def log_probability(self, logits: Floats, token: int) -> float:
        return float(self.lib.probe_log_probability(_at(logits), len(logits), token))


class ProbeSampler:
    """A native Sampler."""

    def __init__(
        self,
        probe: Probe,
        n_vocab: int,
        *,
        temperature: float = 0,
        top_k: int = 0,
        top_p: float = 1,
        min_p: float = 0,
        repeat_penalty: float = 1,
        frequency_penalty: float = 0,
        presence_penalty: float = 0,
        penalty_window: int = 256,
        seed: int = 0,
        history: Sequence[int] = (),
    ) -> None:
        self._probe = probe
        sampling = _Sampling(
            temperature,
            top_k,
            top_p,
            min_p,
            repeat_penalty,
            frequency_penalty,
            presence_penalty,
            penalty_window,
            seed,
        )
        self._handle = c_void_p(probe.lib.probe_sampler_open(byref(sampling), n_vocab))
        prompt = _ints(history)
        probe.lib.probe_sampler_begin(self._handle, _at(prompt), len(prompt))

    def __del__(self) -> None:
        self._probe.lib.probe_sampler_close(self._handle)

    def choose(self, logits: Floats, path: Sequence[int] = ()) -> int:
        tokens = _ints(path)
        return self._probe.check(
            self._probe.lib.probe_sampler_choose(self._handle, _at(logits), _at(tokens), len(tokens)),
        )

    def commit(self, tokens: Sequence[int]) -> None:
        array = _ints(tokens)
        self._probe.lib.probe_sampler_commit(self._handle, _at(array), len(array))

    def draws(self, logits: Floats, n: int) -> Ints:
        """`n` tokens, each committed before the next is drawn."""
        out = np.zeros(n, np.int32)
        self._probe.check(self._probe.lib.probe_sampler_draws(self._handle, _at(logits), n, _at(out)))
        return out


class ProbeTuner:
    """A native Tuner and the steps it governs."""

    DRAFT, PROBE, PLAIN, MEASURE = 0, 1, 2, 3

    def __init__(self, probe: Probe, buckets: Sequence[int], blocks: Sequence[int] = ()) -> None:
        self._lib = probe.lib
        self.buckets = list(buckets)
        rows, sizes = _ints(buckets), _ints(blocks)
        self._handle = c_void_p(self._lib.probe_tuner_open(_at(rows), len(rows), _at(sizes), len(sizes)))

    def __del__(self) -> None:
        self._lib.probe_tuner_close(self._handle)

    def set_verify_us(self, n_rows: int, us: float) -> None:
        self._lib.probe_tuner_set_verify_us(self._handle, n_rows, c_double(us))

    def set_draft_us(self, us: float, block_size: int = 1) -> None:
        self._lib.probe_tuner_set_draft_us(self._handle, block_size, c_double(us))

    def set_context(self, n_past: int) -> bool:
        """Whether times of another context are now guessed from those before."""
        return bool(self._lib.probe_tuner_set_context(self._handle, n_past))

    def choose_block(self, most: int) -> int:
        return int(self._lib.probe_tuner_choose_block(self._handle, most))

    def begin_reply(self, prompt: Sequence[int] | Ints = ()) -> None:
        tokens = _ints(prompt)
        self._lib.probe_tuner_begin_reply(self._handle, _at(tokens), len(tokens))

    def hear(self, tokens: Sequence[int] | Ints) -> None:
        """What a step committed."""
        said = _ints(tokens)
        self._lib.probe_tuner_hear(self._handle, _at(said), len(said))

    def remembered(self) -> npt.NDArray[np.float64]:
        values = np.zeros(self._lib.probe_tuner_remembered(self._handle, None, 0))
        self._lib.probe_tuner_remembered(self._handle, _at(values), len(values))
        return values

    def remember(self, values: Sequence[float] | npt.NDArray[np.float64]) -> bool:
        array = np.ascontiguousarray(values, np.float64)
        return bool(self._lib.probe_tuner_remember(self._handle, _at(array), len(array)))

    def verify_us(self, n_rows: int) -> float:
        return float(self._lib.probe_tuner_verify_us(self._handle, n_rows))

    def draft_us(self, block_size: int = 1) -> float:
        return float(self._lib.probe_tuner_draft_us(self._handle, block_size))

    def decide(self) -> int:
        return int(self._lib.probe_tuner_decide(self._handle))

    def measured_speed_up(self) -> float:
        return float(self._lib.probe_tuner_measured_speed_up(self._handle))

    def calibrate(self, ids: Ints, logprobs: Floats) -> tuple[Ints, Floats]:
        n_depths, k = ids.shape
        out_ids, out_logprobs = np.zeros((n_depths, k), np.int32), np.zeros((n_depths, k), np.float32)
        arrays = [_at(array) for array in (_ints(ids), np.ascontiguousarray(logprobs, np.float32))]
        self._lib.probe_tuner_calibrate(self._handle, n_depths, k, *arrays, _at(out_ids), _at(out_logprobs))
        return out_ids, out_logprobs

    def calibrate_conditional(self, ids: Ints, conditional: Floats) -> Floats:
        """`ids` is (n_depths, k), `conditional` (n_depths, k before, k)."""
        out = np.zeros(conditional.shape, np.float32)
        arrays = [_at(array) for array in (_ints(ids), np.ascontiguousarray(conditional, np.float32), out)]
        self._lib.probe_tuner_calibrate_conditional(self._handle, *ids.shape, *arrays)
        return out

    def conditional_step(self, ids: Ints, conditional: Floats, truth: Ints, budget: int) -> None:
        """Draft, verify a tree of `budget` nodes, and learn from it; `truth` is the target's token at each depth."""
        arrays = [_at(array) for array in (_ints(ids), np.ascontiguousarray(conditional, np.float32), _ints(truth))]
        self._lib.probe_tuner_conditional_step(self._handle, *ids.shape, *arrays, budget)

    def draft_step(
        self,
        ids: Ints,
        logprobs: Floats,
        truth: Ints,
        *,
        draft_us: float,
        verify_us: npt.NDArray[np.float64],
        is_mute: bool = False,
    ) -> _TunerStep:
        """One step as a session runs it, of a block of `n_depths` + 1. `verify_us[n]` is the time of n rows; contiguous
        arrays only."""
        n_depths, k = logprobs.shape
        step = _TunerStep(n_depths, k, ids.ctypes.data, logprobs.ctypes.data, truth.ctypes.data, len(verify_us) - 1)
        step.draft_us, step.verify_us, step.is_mute = draft_us, verify_us.ctypes.data, is_mute
        self._lib.probe_tuner_draft_step(self._handle, byref(step))
        return step

    def plain_step(self, us: float) -> None:
        self._lib.probe_tuner_plain_step(self._handle, c_double(us))
