"""Upstream llama.cpp's logits: its C interface, which the package `xllamacpp` carries, in a child process.

A child, because its ggml and ours have the same names, and because upstream may abort. Run as a program this file reads
one request from standard input (see `_serve`) and writes an .npz.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from ctypes import POINTER, Structure, c_bool, c_char_p, c_float, c_int8, c_int32, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

F32, F16 = 0, 1  # ggml's numbers of the two types


def version() -> str:
    return f"xllamacpp {importlib.metadata.version('xllamacpp')}"


def logits(
    model: Path,
    prompts: Sequence[Sequence[int]],
    *,
    batch: int = 512,
    kv_type: int = F32,
    is_flash: bool = False,
    n_threads: int = 1,
) -> list[Floats]:
    """Logits of every row of every prompt, fed `batch` tokens at a time."""
    request = {"prompts": [list(ids) for ids in prompts], "batch": batch, "kv": kv_type, "flash": is_flash}
    found = _ask(model, n_threads, request)
    return [found[f"logits{i}"] for i in range(len(prompts))]


def greedy(
    model: Path, prompts: Sequence[Sequence[int]], n_tokens: int, stops: Sequence[int], *, n_threads: int = 1
) -> list[list[int]]:
    """Greedy replies of up to n_tokens, the stop token included, one token per pass."""
    request = {"prompts": [list(ids) for ids in prompts], "n_tokens": n_tokens, "stops": list(stops)}
    found = _ask(model, n_threads, request | {"batch": 512, "kv": F16, "flash": True})
    return [found[f"reply{i}"].tolist() for i in range(len(prompts))]


def _ask(model: Path, n_threads: int, request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answer.npz")
        request |= {"model": str(model), "out": str(out), "n_threads": n_threads}
        child = subprocess.run(
            [sys.executable, __file__],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.returncode == 0, child.stderr[-2000:]
        with np.load(out) as found:
            return dict(found)


# ---- in the child ----------------------------------------------------------------------------------------------

_N_CTX, _N_BATCH, _N_UBATCH, _N_THREADS, _N_THREADS_BATCH, _FLASH, _TYPE_K, _TYPE_V = 0, 1, 2, 7, 8, 13, 26, 27
"""Places of 32-bit members in llama_context_params; checked against the defaults before use."""


class _Params(Structure):
    """Parameter structs go by value. Larger than any of them: what is behind the real end is not looked at."""

    _fields_ = (("words", c_int32 * 128),)


class _Batch(Structure):
    _fields_ = (
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    )


def _library() -> ctypes.CDLL:
    found = importlib.util.find_spec("xllamacpp.xllamacpp")
    assert found and found.origin
    c = ctypes.CDLL(found.origin)
    for name, result, arguments in (
        ("llama_model_default_params", _Params, ()),
        ("llama_context_default_params", _Params, ()),
        ("llama_model_load_from_file", c_void_p, (c_char_p, _Params)),
        ("llama_init_from_model", c_void_p, (c_void_p, _Params)),
        ("llama_model_get_vocab", c_void_p, (c_void_p,)),
        ("llama_vocab_n_tokens", c_int32, (c_void_p,)),
        ("llama_batch_init", _Batch, (c_int32, c_int32, c_int32)),
        ("llama_decode", c_int32, (c_void_p, _Batch)),
        ("llama_get_logits_ith", POINTER(c_float), (c_void_p, c_int32)),
        ("llama_get_memory", c_void_p, (c_void_p,)),
        ("llama_memory_clear", None, (c_void_p, c_bool)),
        ("llama_log_set", None, (c_void_p, c_void_p)),
    ):
        function = getattr(c, name)
        function.restype, function.argtypes = result, arguments
    return c


class Context:
    """An upstream context on a model. In a process that our engine is not in."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.c = c = _library()
        self._quiet = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)(lambda *_: None)
        c.llama_log_set(ctypes.cast(self._quiet, c_void_p), None)
        self.model = c.llama_model_load_from_file(request["model"].encode(), c.llama_model_default_params())
        assert self.model, "upstream does not load the model"
        params = c.llama_context_default_params()
        words = params.words
        known = {_N_CTX: 512, _N_BATCH: 2048, _N_UBATCH: 512, _FLASH: -1, _TYPE_K: F16, _TYPE_V: F16}
        assert all(words[place] == value for place, value in known.items()), "llama_context_params has changed"
        words[_N_CTX] = 2048
        words[_N_BATCH] = words[_N_UBATCH] = request["batch"]
        words[_N_THREADS] = words[_N_THREADS_BATCH] = request["n_threads"]
        words[_FLASH] = int(request["flash"])
        words[_TYPE_K] = words[_TYPE_V] = request["kv"]
        self.context = c.llama_init_from_model(self.model, params)
        assert self.context, "upstream opens no context"
        self.n_vocab = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self.model))
        self.batch = c.llama_batch_init(request["batch"], 0, 1)
        self.n_past = 0

    def clear(self) -> None:
        self.c.llama_memory_clear(self.c.llama_get_memory(self.context), True)
        self.n_past = 0

    def feed(self, ids: list[int], *, is_last_only: bool = False) -> Floats:
        """Logits of every row, or of the last one."""
        batch = self.batch
        batch.n_tokens = len(ids)
        wanted = range(len(ids) - 1 if is_last_only else 0, len(ids))
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, self.n_past + i, 1
            batch.logits[i] = i in wanted
            batch.seq_id[i][0] = 0
        status = self.c.llama_decode(self.context, batch)
        assert status == 0, f"llama_decode: {status}"
        self.n_past += len(ids)
        rows = [
            np.ctypeslib.as_array(self.c.llama_get_logits_ith(self.context, i), (self.n_vocab,)).copy() for i in wanted
        ]
        return np.stack(rows)


def _serve(request: dict[str, Any]) -> None:
    context = Context(request)
    size = request["batch"]
    found: dict[str, Any] = {}
    for i, ids in enumerate(request["prompts"]):
        context.clear()
        rows = [context.feed(ids[start : start + size]) for start in range(0, len(ids), size)]
        if "n_tokens" not in request:
            found[f"logits{i}"] = np.concatenate(rows)
            continue
        reply = [int(rows[-1][-1].argmax())]
        while len(reply) < request["n_tokens"] and reply[-1] not in request["stops"]:
            reply.append(int(context.feed(reply[-1:])[-1].argmax()))
        found[f"reply{i}"] = np.array(reply)
    np.savez(request["out"], **found)


if __name__ == "__main__":
    _serve(json.load(sys.stdin))
    sys.stdout.flush()
    os._exit(0)  # upstream's own teardown order is not under test
