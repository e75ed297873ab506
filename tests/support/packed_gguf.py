"""GGUF files packed byte by byte, with the place of every number known: for files that no honest writer would make."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}

TENSOR_F32, TENSOR_F16, TENSOR_Q8_0 = 0, 1, 8


@dataclass(frozen=True)
class Number:
    """A count, length, type, dimension or offset in the file."""

    name: str
    at: int
    format: str


@dataclass
class PackedGguf:
    """A file under construction: its bytes, and where its numbers are."""

    data: bytearray = field(default_factory=bytearray)
    numbers: list[Number] = field(default_factory=list)

    def number(self, name: str, letter: str, value: float) -> None:
        self.numbers.append(Number(name, len(self.data), letter))
        self.data += struct.pack(f"<{letter}", value)

    def string(self, name: str, text: bytes) -> None:
        self.number(f"{name} length", "Q", len(text))
        self.data += text

    def value(self, name: str, kind: int, value: object) -> None:
        if kind == STRING:
            self.string(name, value if isinstance(value, bytes) else str(value).encode())
        else:
            assert isinstance(value, (int, float))
            self.number(f"{name} value", _FORMATS[kind], value)

    def patched(self, name: str, value: float, letter: str | None = None) -> bytes:
        """The file with one of its numbers replaced. The value is wrapped to the number's width."""
        (found,) = [number for number in self.numbers if number.name == name]
        wrapped = int(value) % (1 << (8 * struct.calcsize(found.format))) if found.format in "BHIQ" else value
        out = bytearray(self.data)
        struct.pack_into(f"<{letter or found.format}", out, found.at, wrapped)
        return bytes(out)


Key = tuple[str | bytes, int, object]
"""Name, type and value; an array's type is (ARRAY, element type) as a list of values in `value`."""


@dataclass(frozen=True)
class PackedTensor:
    """A tensor's description. `offset` None: right behind the tensor before."""

    name: str
    shape: Sequence[int]
    kind: int = TENSOR_F32
    offset: int | None = None
    n_bytes: int | None = None


@dataclass(frozen=True)
class Array:
    """An array value and the type of its elements."""

    kind: int
    values: Sequence[object]


def _n_bytes(tensor: PackedTensor) -> int:
    if tensor.n_bytes is not None:
        return tensor.n_bytes
    n = 1
    for length in tensor.shape:
        n *= length
    return {TENSOR_F32: n * 4, TENSOR_F16: n * 2, TENSOR_Q8_0: n // 32 * 34}[tensor.kind]


def pack(
    keys: Iterable[Key], tensors: Sequence[PackedTensor] = (), *, version: int = 3, alignment: int = 32, pad: int = 0
) -> PackedGguf:
    """A file with these keys and tensors. The tensors' bytes count upwards; `pad` more bytes follow them."""
    keys = list(keys)
    out = PackedGguf()
    out.data += b"GGUF"
    out.number("version", "I", version)
    out.number("tensor count", "Q", len(tensors))
    out.number("key count", "Q", len(keys))
    for name, kind, value in keys:
        label = name if isinstance(name, str) else name.decode("utf-8", "replace")
        out.string(f"{label}: name", name.encode() if isinstance(name, str) else name)
        out.number(f"{label}: type", "I", kind)
        if kind == ARRAY:
            assert isinstance(value, Array)
            out.number(f"{label}: element type", "I", value.kind)
            out.number(f"{label}: element count", "Q", len(value.values))
            for i, element in enumerate(value.values):
                out.value(f"{label}[{i}]", value.kind, element)
        else:
            out.value(label, kind, value)
    offset, end = 0, 0
    for tensor in tensors:
        out.string(f"{tensor.name}: name", tensor.name.encode())
        out.number(f"{tensor.name}: dimension count", "I", len(tensor.shape))
        for d, length in enumerate(tensor.shape):
            out.number(f"{tensor.name}: dimension {d}", "Q", length)
        out.number(f"{tensor.name}: type", "I", tensor.kind)
        at = offset if tensor.offset is None else tensor.offset
        out.number(f"{tensor.name}: offset", "Q", at)
        end = max(end, at + _n_bytes(tensor))
        offset = -(-end // alignment) * alignment
    out.data += bytes(-len(out.data) % alignment)
    out.data += bytes(i % 251 for i in range(end)) + bytes(pad)
    return out
