"""Texts and metadata values of the native engine as Python sees them."""

from __future__ import annotations

import ctypes
import sys
from array import array

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadFile

MetaValue = int | float | bool | str | list[int] | list[float] | list[bool] | list[str]
"""A metadata value as Python sees it."""

# array.array's letter for (bytes per element, signed)
_INTEGER_LETTERS = {
    (1, 0): "B", (1, 1): "b", (2, 0): "H", (2, 1): "h", (4, 0): "I", (4, 1): "i", (8, 0): "Q", (8, 1): "q",
}  # fmt: skip


def text(raw: bytes) -> str:
    """The engine's bytes as text. What is no UTF-8 (a name cut to fit its field) becomes U+FFFD."""
    return raw.decode("utf-8", "replace")


def python_value(value: abi.Value, where: str) -> MetaValue:
    """A value copied out of the mapped file. `where`, file and key, is for messages. Raises BadFile."""
    kind = abi.ValueKind(value.kind)
    if kind is abi.ValueKind.INTEGER:
        return value.integer
    if kind is abi.ValueKind.REAL:
        return value.real
    if kind is abi.ValueKind.BOOLEAN:
        return bool(value.integer)
    data = ctypes.string_at(value.data, value.n_bytes) if value.data and value.n_bytes else b""
    if kind is abi.ValueKind.STRING:
        return text(data)
    if kind is abi.ValueKind.STRINGS:
        return _unpack_strings(data, value.count, where)
    if kind is abi.ValueKind.BOOLEANS:
        return [bool(byte) for byte in data]
    letter = (
        {4: "f", 8: "d"}[value.element_bytes]
        if kind is abi.ValueKind.REALS
        else _INTEGER_LETTERS[value.element_bytes, value.is_signed]
    )
    numbers = array(letter)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _unpack_strings(data: bytes, count: int, where: str) -> list[str]:
    """Packed strings, each a little-endian u64 length and its bytes. 500,000 take 0.3 s."""
    found = []
    position = 0
    for _ in range(count):
        start = position + 8
        position = start + int.from_bytes(data[position:start], "little")
        found.append(data[start:position].decode("utf-8", "replace"))
    if position != len(data):
        raise BadFile(f"{where}: its {count} strings take {position} bytes, but there are {len(data)}.")
    return found
