"""Sound files with numbers that no model can have: refused at load, key and value named (B016, B036)."""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadFile, NativeError
from dflash_desktop.binding.native import Library, NativeFile, NativeTarget
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_RANDOM_TINY
from support.native_library import load_library

if TYPE_CHECKING:
    from pathlib import Path

TINY = QWEN35_RANDOM_TINY / "qwen35-random-tiny-f32.gguf"
BAD_REALS = (0.0, -1.0, math.nan, math.inf, 1e30)


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()


_FORMATS = {4: "<I", 5: "<i", 6: "<f", 10: "<Q"}


def place(data: bytes | bytearray, key: str) -> tuple[int, str]:
    """Where a key's number lies and its format; of an array, the first element's."""
    (at,) = (i for i in [data.find(struct.pack("<Q", len(key)) + key.encode())] if i >= 0)
    at += 8 + len(key)
    (kind,) = struct.unpack_from("<I", data, at)
    if kind == 9:  # array: the element type and the length come first
        return at + 16, _FORMATS[struct.unpack_from("<I", data, at + 4)[0]]
    return at + 4, _FORMATS[kind]


def patched(source: Path, destination: Path, key: str, value: float, *, element: int = 0) -> Path:
    """A copy with one number of the metadata replaced: a value, or an element of an array."""
    data = bytearray(source.read_bytes())
    at, letter = place(data, key)
    struct.pack_into(letter, data, at + element * struct.calcsize(letter), value)
    destination.write_bytes(data)
    return destination


def reason(library: Library, path: Path) -> str:
    with NativeFile(library, path) as file:
        info = file.describe()
        assert not info.can_run
        return info.reason.decode()


@pytest.mark.parametrize("value", BAD_REALS)
@pytest.mark.parametrize("key", ["rope.freq_base", "attention.layer_norm_rms_epsilon"])
def test_b016_an_impossible_rope_base_or_epsilon_of_a_target_is_refused(
    library: Library, tmp_path: Path, key: str, value: float
) -> None:
    path = patched(TINY, tmp_path / "bad.gguf", f"qwen35.{key}", value)
    assert reason(library, path).startswith(f"bad.gguf: qwen35.{key}: ")
    cpu = next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)
    with pytest.raises(BadFile, match=re.escape(key)):
        NativeTarget(library, path, device=cpu).close()


@pytest.mark.parametrize("value", BAD_REALS)
@pytest.mark.parametrize("key", ["rope.freq_base", "attention.layer_norm_rms_epsilon"])
def test_b016_an_impossible_rope_base_or_epsilon_of_a_draft_is_refused(
    library: Library, tmp_path: Path, key: str, value: float
) -> None:
    path = patched(QWEN35_MINI_DRAFT, tmp_path / "bad.gguf", f"dflash.{key}", value)
    assert pair_refusal(library, path).startswith(f"bad.gguf: dflash.{key}: ")


def pair_refusal(library: Library, path: Path) -> str:
    with (
        NativeFile(library, QWEN35_MINI) as target,
        NativeFile(library, path) as draft,
        pytest.raises(NativeError) as caught,
    ):
        library.check_pair(target, draft)
    assert str(caught.value).startswith("bad.gguf")
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "element", "words"),
    [
        ("dflash.attention.head_count_kv", 4, 0, ("attn_k", "256", "128")),
        ("dflash.attention.head_count", 8, 0, ("attn_q", "512", "256")),
        ("dflash.attention.head_count", 3, 0, ("3 ",)),
        ("dflash.block_count", 3, 0, ("block_count", "3", "2")),
        ("dflash.block_size", 0, 0, ("block_size", "0")),
        ("dflash.block_size", 1, 0, ("block_size", "1")),
        ("dflash.block_size", 2**31, 0, ("block_size", str(2**31))),
        ("dflash.embedding_length", 128, 0, ("128", "256")),
        ("dflash.feed_forward_length", 767, 0, ("ffn_", "767", "768")),
        ("dflash.target_layers", 0, 0, ("target_layers", "0")),
        ("dflash.target_layers", 100, 3, ("layer", "100", "8")),
        ("tokenizer.ggml.mask_token_id", 2**31 + 5, 0, ("mask_token_id", str(2**31 + 5))),
        ("tokenizer.ggml.mask_token_id", 60_000, 0, ("mask", "60000", "49151")),
    ],
)
def test_b036_numbers_that_differ_from_the_tensors_are_refused(
    library: Library, tmp_path: Path, key: str, value: int, element: int, words: tuple[str, ...]
) -> None:
    path = patched(QWEN35_MINI_DRAFT, tmp_path / "bad.gguf", key, value, element=element)
    sentence = pair_refusal(library, path)
    assert [word for word in words if word not in sentence] == [], sentence


def test_b036_the_length_of_the_target_layer_list_is_checked_against_the_fc(library: Library, tmp_path: Path) -> None:
    # One layer fewer: its bytes move to the padding, so that the file stays well-formed.
    data = QWEN35_MINI_DRAFT.read_bytes()
    at, letter = place(data, "dflash.target_layers")
    last = at + 3 * struct.calcsize(letter)
    name = b"output_norm.weight"  # the last tensor, 256 numbers of 4 bytes; its offset ends the description
    described = data.rindex(name, 0, 2_000_000) + len(name)
    begin = len(data) - struct.unpack_from("<Q", data, described + 4 + 8 + 4)[0] - 1024
    assert begin % 32 == 0
    path = tmp_path / "bad.gguf"
    path.write_bytes(
        data[: at - 8] + struct.pack("<Q", 3) + data[at:last] + data[last + 4 : begin] + bytes(4) + data[begin:]
    )
    sentence = reason(library, path)
    assert "target_layers" in sentence and "fc.weight" in sentence and "3" in sentence and "4" in sentence
