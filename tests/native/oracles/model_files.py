"""Reading, changing and making model files, apart from the engine's own reader.

The `gguf` package dequantises here, but its reader takes seconds per vocabulary, so the container is parsed by hand.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

_ALIGNMENT = 32
_U32, _F32, _BOOL, _STRING, _ARRAY = 4, 6, 7, 8, 9
_LETTERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    shape: tuple[int, ...]  # ne order: the first axis is the contiguous one
    kind: int  # ggml type
    data: bytes | memoryview

    def floats(self) -> Array:
        """As F32 in numpy order."""
        kind = gguf.GGMLQuantizationType(self.kind)
        raw = np.frombuffer(self.data, np.uint8)
        if kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            raw = raw.view(np.float32 if kind is gguf.GGMLQuantizationType.F32 else np.float16)
            return raw.astype(np.float32).reshape(self.shape[::-1])
        rows = raw.reshape(*self.shape[:0:-1], -1)
        return np.ascontiguousarray(gguf.quants.dequantize(rows, kind), np.float32)


@dataclass(slots=True)
class ModelFile:
    """A parsed file. `values` holds scalars and lists of numbers; of lists of strings only the length."""

    keys: bytearray
    n_keys: int
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, tuple[int, str]] = field(default_factory=dict)  # of scalars in `keys`, and their letter
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def floats(self) -> dict[str, Array]:
        return {name: tensor.floats() for name, tensor in self.tensors.items()}


def _read_string(raw: memoryview, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<Q", raw, at)
    return bytes(raw[at + 8 : at + 8 + length]).decode("utf-8", "replace"), at + 8 + length


def _read_value(raw: memoryview, at: int, kind: int) -> tuple[Any, int]:
    if kind == _STRING:
        return _read_string(raw, at)
    if kind == _ARRAY:
        item, count = struct.unpack_from("<IQ", raw, at)
        at += 12
        if item == _STRING:
            for _ in range(count):
                at += 8 + struct.unpack_from("<Q", raw, at)[0]
            return count, at
        numbers = struct.unpack_from(f"<{count}{_LETTERS[item]}", raw, at)
        return list(numbers), at + struct.calcsize(f"<{count}{_LETTERS[item]}")
    letter = f"<{_LETTERS[kind]}"
    return struct.unpack_from(letter, raw, at)[0], at + struct.calcsize(letter)


def read(path: Path) -> ModelFile:
    raw = memoryview(path.read_bytes())
    magic, version, n_tensors, n_keys = struct.unpack_from("<4sIQQ", raw, 0)
    assert magic == b"GGUF" and version == 3, path
    at = start = struct.calcsize("<4sIQQ")
    found = ModelFile(bytearray(), n_keys)
    for _ in range(n_keys):
        name, at = _read_string(raw, at)
        (kind,) = struct.unpack_from("<I", raw, at)
        at += 4
        if kind in _LETTERS:
            found.places[name] = (at - start, _LETTERS[kind])
        found.values[name], at = _read_value(raw, at, kind)
    found.keys += raw[start:at]
    infos = []
    for _ in range(n_tensors):
        name, at = _read_string(raw, at)
        (n_dims,) = struct.unpack_from("<I", raw, at)
        shape = struct.unpack_from(f"<{n_dims}Q", raw, at + 4)
        kind, offset = struct.unpack_from("<IQ", raw, at + 4 + 8 * n_dims)
        at += 16 + 8 * n_dims
        infos.append((name, shape, kind, offset))
    data = -(-at // _ALIGNMENT) * _ALIGNMENT
    for name, shape, kind, offset in infos:
        elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
        n_bytes = math.prod(shape) // elements * size
        found.tensors[name] = Tensor(name, shape, kind, raw[data + offset : data + offset + n_bytes])
    return found


def float_tensor(name: str, values: Array) -> Tensor:
    data = np.ascontiguousarray(values, np.float32)
    return Tensor(name, data.shape[::-1], int(gguf.GGMLQuantizationType.F32), data.tobytes())


def write(path: Path, keys: bytes, n_keys: int, tensors: list[Tensor]) -> Path:
    infos, offset = [], 0
    for tensor in tensors:
        name = tensor.name.encode()
        infos.append(struct.pack("<Q", len(name)) + name + struct.pack("<I", len(tensor.shape)))
        infos.append(struct.pack(f"<{len(tensor.shape)}QIQ", *tensor.shape, tensor.kind, offset))
        offset += -(-len(tensor.data) // _ALIGNMENT) * _ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), n_keys) + keys + b"".join(infos)
    with path.open("wb") as out:
        out.write(head + bytes(-len(head) % _ALIGNMENT))
        for tensor in tensors:
            out.write(tensor.data)
            out.write(bytes(-len(tensor.data) % _ALIGNMENT))
    return path


def copy(
    source: Path,
    destination: Path,
    *,
    dequantised: bool = False,
    weights: Mapping[str, Array] | None = None,
    numbers: Mapping[str, float] | None = None,
) -> Path:
    """Copy a model file. `weights` replaces tensors by F32 ones of the same shape, `numbers` single values."""
    file = read(source)
    for name, number in (numbers or {}).items():
        place, letter = file.places[name]
        struct.pack_into(f"<{letter}", file.keys, place, number)
    tensors = []
    for tensor in file.tensors.values():
        kept = tensor
        if weights and tensor.name in weights:
            kept = float_tensor(tensor.name, weights[tensor.name])
            assert kept.shape == tensor.shape, (tensor.name, kept.shape, tensor.shape)
        elif dequantised:
            kept = float_tensor(tensor.name, tensor.floats())
        tensors.append(kept)
    return write(destination, bytes(file.keys), file.n_keys, tensors)


def _pack(value: object) -> bytes:
    """Type and value of a metadata entry."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    if isinstance(value, float):
        return struct.pack("<If", _F32, value)
    if isinstance(value, str):
        return struct.pack("<IQ", _STRING, len(value.encode())) + value.encode()
    assert isinstance(value, list) and value, value
    items = [_pack(item) for item in value]
    head = struct.pack("<I", _ARRAY) + items[0][:4] + struct.pack("<Q", len(items))
    return head + b"".join(item[4:] for item in items)


def create(destination: Path, keys: Mapping[str, object], weights: Mapping[str, Array]) -> Path:
    """A new F32 model file."""
    packed = b"".join(struct.pack("<Q", len(key.encode())) + key.encode() + _pack(keys[key]) for key in keys)
    return write(destination, packed, len(keys), [float_tensor(name, values) for name, values in weights.items()])
