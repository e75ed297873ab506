"""Drafts that are sound as files and wrong as drafts: other numbers, types, shapes, names and values than they should
have, one to three at a time. What no bit flip would ever find."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

from support.packed_gguf import ARRAY, BOOL, F32, I32, I64, STRING, U32, U64, Array, Key, pack

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

NUMBERS = (0, 1, 2, 3, 5, 7, 15, 16, 17, 63, 64, 65, 255, 1024, 2**16, 2**24 + 1, 2**31 - 1, 2**32 - 1)
REALS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"), 0.5)
_BLOCKS = {kind.value: size for kind, size in gguf.GGML_QUANT_SIZES.items()}


class _Tensor:
    """Name, ne, ggml type and bytes."""

    def __init__(self, name: str, values: npt.NDArray[Any]) -> None:
        kinds = {"float32": 0, "float16": 1, "int64": 27}
        self.name, self.shape, self.kind = name, list(values.shape[::-1]), kinds[values.dtype.name]
        self.data = np.ascontiguousarray(values).tobytes()

    def resize(self, rng: random.Random) -> None:
        """Bytes for the present type and shape: random, or all alike."""
        elements, size = _BLOCKS[self.kind]
        n = size
        for i, length in enumerate(self.shape):
            n *= max(1, length // elements) if i == 0 else length
        n = min(n, 1 << 22)
        self.data = bytes([rng.randrange(256)]) * n if rng.random() < 0.5 else rng.randbytes(n)


def _change_tensor(tensors: list[_Tensor], rng: random.Random) -> str:
    tensor = rng.choice(tensors)
    what = rng.randrange(7)
    if what <= 1:
        tensor.kind = rng.choice(list(_BLOCKS))
        tensor.resize(rng)
        return f"{tensor.name} of type {tensor.kind}"
    if what == 2:
        axis = rng.randrange(len(tensor.shape))
        tensor.shape[axis] = rng.choice((1, 2, 31, 32, 33, 64, 100, 255, 256, 512, 513, tensor.shape[axis] + 1))
        tensor.resize(rng)
        return f"{tensor.name} of shape {tensor.shape}"
    if what == 3:
        tensor.shape = tensor.shape[::-1] if rng.random() < 0.5 else [*tensor.shape, 1][: rng.randrange(1, 5)]
        tensor.resize(rng)
        return f"{tensor.name} of shape {tensor.shape}"
    if what == 4:
        value = rng.choice((float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-38, 0.0))
        if tensor.kind == 0:
            tensor.data = np.full(len(tensor.data) // 4, value, np.float32).tobytes()
        else:
            tensor.data = b"\xff" * len(tensor.data)
        return f"{tensor.name} full of {value}"
    if what == 5:
        tensors.remove(tensor)
        return f"no {tensor.name}"
    other = rng.choice(tensors)
    tensor.name, other.name = other.name, tensor.name
    return f"{tensor.name} and {other.name} exchanged"


def _change_key(keys: list[Key], rng: random.Random) -> str:
    at = rng.randrange(len(keys))
    name = keys[at][0]
    what = rng.randrange(6)
    if what <= 2:
        changed: Key = (name, rng.choice((U32, I32, U64, I64)), rng.choice(NUMBERS) & 0x7FFFFFFF)
    elif what == 3:
        changed = (name, F32, rng.choice(REALS))
    elif what == 4:
        items = [rng.choice(NUMBERS) & 0x7FFFFFFF for _ in range(rng.choice((0, 1, 2, 3, 33, 100)))]
        changed = rng.choice(
            [
                (name, STRING, "x" * rng.choice((0, 1, 70))),
                (name, BOOL, rng.randrange(2)),
                (name, ARRAY, Array(I32, items)),
            ]
        )
    elif name != "general.architecture":
        del keys[at]
        return f"no {name!r}"
    else:
        changed = (name, STRING, rng.choice(("", "dflash", "x-dflash-draft", "llama", "DFlash2")))
    keys[at] = changed
    return f"{name!r} = {changed[2]}"


def packed_keys(architecture: str, keys: Mapping[str, object]) -> list[Key]:
    """Metadata as packed_gguf wants it."""
    found: list[Key] = [("general.architecture", STRING, architecture)]
    for name, value in keys.items():
        if isinstance(value, bool):
            found.append((name, BOOL, int(value)))
        elif isinstance(value, int):
            found.append((name, U32, value))
        elif isinstance(value, float):
            found.append((name, F32, value))
        elif isinstance(value, str):
            found.append((name, STRING, value))
        else:
            assert isinstance(value, list)
            first = value[0] if value else 0
            kind = BOOL if isinstance(first, bool) else STRING if isinstance(first, str) else I32
            found.append((name, ARRAY, Array(kind, value)))
    return found


def _write(keys: list[Key], tensors: list[_Tensor]) -> bytes:
    from support.packed_gguf import PackedTensor

    described = [PackedTensor(t.name, t.shape, t.kind, n_bytes=len(t.data)) for t in tensors]
    head = bytes(pack(keys, [replace(d, n_bytes=0, offset=0) for d in described]).data)
    out = pack(keys, described)
    whole, at = bytearray(out.data), len(head)
    for tensor in tensors:
        whole[at : at + len(tensor.data)] = tensor.data
        at += -(-len(tensor.data) // 32) * 32
    return bytes(whole)


def mutant(
    architecture: str, keys: Mapping[str, object], weights: Mapping[str, npt.NDArray[Any]], seed: int
) -> tuple[str, bytes]:
    """What was changed, and the file."""
    rng = random.Random(seed)
    packed = packed_keys(architecture, keys)
    tensors = [_Tensor(name, values) for name, values in weights.items()]
    changes = [
        _change_tensor(tensors, rng) if rng.random() < 0.6 else _change_key(packed, rng)
        for _ in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    return "; ".join(changes), _write(packed, tensors)
