"""Model files: sound ones are read exactly, hostile ones are refused with a sentence, and none ends the process."""

from __future__ import annotations

import itertools
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding.failures import BadFile
from dflash_desktop.binding.native import Library, NativeFile
from support import packed_gguf as gguf
from support.file_prober import HOSTILE, Outcome, probe_files
from support.fixtures import QWEN35_MINI_DRAFT, QWEN35_RANDOM_TINY
from support.native_library import load_library
from support.packed_gguf import Array, Key, PackedGguf, PackedTensor, pack
from support.patience import until

if TYPE_CHECKING:
    from collections.abc import Callable

TINY = QWEN35_RANDOM_TINY / "qwen35-random-tiny-f32.gguf"
TINY_HEADER_BYTES = 16_384
BAD_FILE = -2
UNSUPPORTED = -3

KEYS: list[Key] = [
    ("general.architecture", gguf.STRING, "test"),
    ("general.name", gguf.STRING, "Größe 🐧"),
    ("test.u8", gguf.U8, 200),
    ("test.i8", gguf.I8, -100),
    ("test.u16", gguf.U16, 60_000),
    ("test.i16", gguf.I16, -30_000),
    ("test.u32", gguf.U32, 4_000_000_000),
    ("test.i32", gguf.I32, -2_000_000_000),
    ("test.u64", gguf.U64, 2**63 - 1),
    ("test.i64", gguf.I64, -(2**63)),
    ("test.f32", gguf.F32, 0.5),
    ("test.f64", gguf.F64, 0.1),
    ("test.yes", gguf.BOOL, 1),
    ("test.no", gguf.BOOL, 0),
    ("test.empty", gguf.STRING, ""),
    ("test.u16s", gguf.ARRAY, Array(gguf.U16, [1, 2, 65_535])),
    ("test.i64s", gguf.ARRAY, Array(gguf.I64, [-1, 0, 2**62])),
    ("test.f32s", gguf.ARRAY, Array(gguf.F32, [1.5, -2.0])),
    ("test.bools", gguf.ARRAY, Array(gguf.BOOL, [1, 0, 1])),
    ("test.strings", gguf.ARRAY, Array(gguf.STRING, ["a", "", "ĉu ne?"])),
    ("test.nothing", gguf.ARRAY, Array(gguf.U32, [])),
]


def plain_value(kind: int, value: object) -> object:
    if isinstance(value, Array):
        return [bool(v) if value.kind == gguf.BOOL else v for v in value.values]
    return bool(value) if kind == gguf.BOOL else value


VALUES = {str(key): plain_value(kind, value) for key, kind, value in KEYS}
TENSORS = [
    PackedTensor("a.weight", (64, 3), gguf.TENSOR_Q8_0),
    PackedTensor("b.weight", (5, 2, 3)),
    PackedTensor("c.weight", (7,), gguf.TENSOR_F16),
    PackedTensor("d.weight", (4, 1, 2, 2)),
]


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()


@pytest.fixture
def refusal(library: Library, tmp_path: Path) -> Callable[..., str]:
    """Write bytes (or a packed file), open them, and return the sentence of the refusal without the file's name."""

    def refuse(data: bytes | PackedGguf, name: str = "model.gguf") -> str:
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else bytes(data.data))
        with pytest.raises(BadFile) as caught, NativeFile(library, path):
            pass
        sentence = str(caught.value)
        assert sentence.startswith(f"{name}: ") and sentence.isprintable() and len(sentence) < 500
        return sentence.removeprefix(f"{name}: ")

    return refuse


def packed(**changes: int) -> PackedGguf:
    return pack(KEYS, TENSORS, **changes)


# ---- sound files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_every_kind_of_value_is_read_exactly(library: Library, tmp_path: Path, version: int) -> None:
    path = tmp_path / "größe 🐧.gguf"  # a path that is not ASCII
    path.write_bytes(packed(version=version).data)
    with NativeFile(library, path) as file:
        info = file.describe()
        assert info.architecture == b"test" and info.name.decode() == "Größe 🐧"
        assert info.n_parameters == 64 * 3 + 5 * 2 * 3 + 7 + 16
        assert info.file_bytes == path.stat().st_size
        for key, expected in VALUES.items():
            value = file.value(key)
            assert value == (pytest.approx(expected) if isinstance(expected, float) else expected), key
            assert isinstance(value, type(expected))
        assert file.value("test.absent") is None


@pytest.mark.parametrize("alignment", [8, 32, 64, 4096])
def test_the_alignment_of_the_file_is_honoured(library: Library, tmp_path: Path, alignment: int) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(pack([("general.alignment", gguf.U32, alignment)], TENSORS, alignment=alignment).data)
    with NativeFile(library, path) as file:
        assert file.value("general.alignment") == alignment


def test_a_file_may_hold_keys_only_or_nothing(library: Library, tmp_path: Path) -> None:
    for i, file in enumerate((pack(KEYS), pack([]))):
        path = tmp_path / f"{i}.gguf"
        path.write_bytes(file.data[: len(file.data) - 3])  # nothing needs the padding
        with NativeFile(library, path) as opened:
            assert opened.describe().n_parameters == 0


def test_tensors_may_lie_in_any_order_and_leave_gaps(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    tensors = [
        PackedTensor("a", (8,), offset=640),
        PackedTensor("b", (8,), offset=0),
        PackedTensor("c", (8,), offset=64),
    ]
    path.write_bytes(pack([], tensors, pad=100).data)
    with NativeFile(library, path) as file:
        assert file.describe().n_parameters == 24


def test_a_quarter_of_a_million_tokens_open_in_well_under_a_third_of_a_second(library: Library, tmp_path: Path) -> None:
    n = 250_000
    text = b"".join(struct.pack("<Q", len(token)) + token for token in (b"tok%d" % i for i in range(n)))
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 21) + b"tokenizer.ggml.tokens"
    path = tmp_path / "model.gguf"
    path.write_bytes(head + struct.pack("<IIQ", gguf.ARRAY, gguf.STRING, n) + text)

    def opens_soon() -> bool:
        """Something else may need the processor just then."""
        start = time.perf_counter()
        with NativeFile(library, path):
            return time.perf_counter() - start < 0.1

    until(opens_soon, "open within a tenth of a second")


# ---- truncated files (B012) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [TINY, QWEN35_MINI_DRAFT], ids=["target", "draft"])
def test_b012_a_cut_file_is_refused_with_tensor_expected_and_real_size(
    source: Path, refusal: Callable[..., str]
) -> None:
    whole = source.read_bytes()
    cuts = [len(whole) * share // 20 for share in range(20)] + [1, 3, 4, 8, 23, 24, 1000, len(whole) - 1]
    for cut in sorted(set(cuts)):
        sentence = refusal(whole[:cut])
        if cut == 0:
            assert sentence == "the file is empty"
        elif cut >= 8:
            assert f"{cut} bytes" in sentence and "incomplete" in sentence
        if "tensor '" in sentence and "ends at byte" in sentence:
            assert f"has {cut} bytes of an expected {len(whole)}" in sentence
    assert refusal(whole[:-1]).startswith("tensor '")


def test_b012_every_other_cut_of_a_small_file_is_refused(library: Library, tmp_path: Path) -> None:
    file = packed()
    jobs: list[dict[str, object]] = [
        {"name": f"cut at {cut}", "file": "cut.gguf", "hex": bytes(file.data[:cut]).hex()}
        for cut in range(0, len(file.data), 2)
    ]
    outcomes = probe_files(tmp_path, jobs)
    assert [outcome.name for outcome in outcomes if outcome.status != BAD_FILE] == []


# ---- hostile numbers (B013) ----------------------------------------------------------------------------------------

B013_VALUES = (0, 2**31, 2**42 + 1, 2**63 - 1, 2**64 - 32)


@pytest.mark.parametrize("value", B013_VALUES)
def test_b013_impossible_dimensions_and_offsets_are_refused_by_name(value: int, refusal: Callable[..., str]) -> None:
    file = packed()
    for tensor in TENSORS:
        for d in range(len(tensor.shape)):
            sentence = refusal(file.patched(f"{tensor.name}: dimension {d}", value))
            assert sentence.startswith(f"tensor '{tensor.name}': ")
        if value or tensor is not TENSORS[0]:
            sentence = refusal(file.patched(f"{tensor.name}: offset", value))
            assert tensor.name in sentence and sentence.startswith("tensor '")


@pytest.mark.parametrize("value", B013_VALUES[1:])
def test_b013_impossible_counts_and_lengths_are_refused(value: int, refusal: Callable[..., str]) -> None:
    file = packed()
    for number in file.numbers:
        if number.name.endswith(("count", "length")) and number.format == "Q":
            assert "incomplete" in (sentence := refusal(file.patched(number.name, value))) or "allowed" in sentence


def test_b013_products_that_wrap_around_are_refused(refusal: Callable[..., str]) -> None:
    file = pack([], [PackedTensor("w", (64, 64, 64, 64), n_bytes=64)])
    for shape in (
        [2**32, 2**32, 1, 1],
        [2**33, 2**31, 1, 1],
        [2**62, 1, 1, 1],
        [2**16] * 4,
        [2**21, 2**21, 2**21, 2**21],
    ):
        data = bytearray(file.data)
        for d, length in enumerate(shape):
            data[:] = pack_at(data, file, f"w: dimension {d}", length)
        assert refusal(bytes(data)).startswith("tensor 'w': ")


def pack_at(data: bytearray, file: PackedGguf, name: str, value: int) -> bytes:
    (number,) = [number for number in file.numbers if number.name == name]
    struct.pack_into(f"<{number.format}", data, number.at, value)
    return bytes(data)


# ---- degenerate files (B014) ---------------------------------------------------------------------------------------


def test_b014_a_zero_dimension_and_impossible_dimension_counts_are_refused(refusal: Callable[..., str]) -> None:
    assert "dimension 0 is 0" in refusal(pack([], [PackedTensor("w", (0,), n_bytes=0)]))
    assert "dimension 1 is 0" in refusal(pack([], [PackedTensor("w", (8, 0, 8), n_bytes=0)]))
    assert "0 dimensions" in refusal(pack([], [PackedTensor("w", (), n_bytes=32)]))
    assert "9 dimensions" in refusal(pack([], [PackedTensor("w", (1,) * 9, n_bytes=32)]))


def test_b014_an_empty_key_is_refused(refusal: Callable[..., str]) -> None:
    assert refusal(pack([("", gguf.U32, 1)], pad=64)) == "key 1 of 1: a name of 0 bytes; 1 to 65535 are allowed"
    assert "name of 0 bytes" in refusal(pack([], [PackedTensor("", (1,))]))


# ---- other rules ---------------------------------------------------------------------------------------------------


def test_what_occurs_twice_is_refused(refusal: Callable[..., str]) -> None:
    assert refusal(pack([("a.b", gguf.U32, 1), ("a.b", gguf.U32, 1)])) == "a.b: the key occurs twice"
    twins = [PackedTensor("w", (8,)), PackedTensor("w", (8,))]
    assert refusal(pack([], twins)) == "tensor 'w': occurs twice"


def test_values_that_cannot_be_are_refused(refusal: Callable[..., str]) -> None:
    assert refusal(pack([("x", gguf.BOOL, 2)])) == "x: 2 is neither true nor false"
    assert "x: 3 is neither" in refusal(pack([("x", gguf.ARRAY, Array(gguf.BOOL, [1, 3]))]))
    assert refusal(pack([("x", gguf.U64, 2**63)])) == f"x: {2**63} is too large"
    assert "is too large" in refusal(pack([("x", gguf.ARRAY, Array(gguf.U64, [1, 2**64 - 1]))]))
    assert "array of arrays" in refusal(packed().patched("test.u16s: element type", gguf.ARRAY))
    assert "unknown value type 13" in refusal(packed().patched("test.u8: type", 13))
    assert "unknown element type 99" in refusal(packed().patched("test.u16s: element type", 99))


def test_names_that_are_no_text_are_refused(refusal: Callable[..., str]) -> None:
    for name in (b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf"):
        assert "is not text" in refusal(pack([(name, gguf.U32, 1)]))
    assert "name of 64 bytes" in refusal(pack([], [PackedTensor("w" * 64, (8,))]))


@pytest.mark.parametrize("type_id", [4, 5, 31, 32, 33, 36, 37, 38, 43, 1000, 2**31, 2**32 - 1])
def test_types_that_ggml_does_not_have_are_refused(type_id: int, refusal: Callable[..., str]) -> None:
    sentence = refusal(packed().patched("b.weight: type", type_id))
    assert sentence == f"tensor 'b.weight': type {type_id} is unknown or no longer in use"


def test_rows_that_are_no_whole_blocks_are_refused(refusal: Callable[..., str]) -> None:
    sentence = refusal(pack([], [PackedTensor("w", (40, 2), gguf.TENSOR_Q8_0)]))
    assert sentence == "tensor 'w': rows of 40 values cannot be of type q8_0, which holds blocks of 32"


@pytest.mark.parametrize("alignment", [0, 1, 4, 24, 33, 2**17, 2**31])
def test_impossible_alignments_are_refused(alignment: int, refusal: Callable[..., str]) -> None:
    assert refusal(pack([("general.alignment", gguf.U32, alignment)])).startswith(
        f"general.alignment: {alignment} is not"
    )


def test_an_alignment_that_is_no_number_is_refused(refusal: Callable[..., str]) -> None:
    assert "whole number" in refusal(pack([("general.alignment", gguf.STRING, "32")]))


def test_tensors_must_be_aligned_and_apart(refusal: Callable[..., str]) -> None:
    apart = PackedTensor("a", (16,), offset=0)
    assert "not a multiple of the alignment 32" in refusal(pack([], [apart, PackedTensor("b", (8,), offset=65)]))
    assert refusal(pack([], [apart, PackedTensor("b", (8,), offset=32)])) == "tensor 'b': overlaps tensor 'a'"
    same = [PackedTensor("a", (8,), offset=64), PackedTensor("b", (8,), offset=64)]
    assert "overlaps" in refusal(pack([], same))


@pytest.mark.parametrize(("version", "words"), [(0, "too old"), (1, "too old"), (4, "newer"), (3 << 24, "big-endian")])
def test_other_versions_are_refused(version: int, words: str, refusal: Callable[..., str]) -> None:
    assert words in refusal(packed(version=version))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"GG", "not a GGUF"),
        (b"\0" * 4096, "did not finish"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS"),
        (b"\n<!DOCTYPE html><html>", "web page"),
        (b"<html><body>404</body>", "web page"),
        (b'{"error": "Entry not found"}', "JSON"),
        (b"PK\x03\x04" + b"x" * 100, "PyTorch"),
        (b"\x80\x02}q\x00.", "PyTorch"),
        (b"\x1f\x8b\x08" + b"x" * 50, "archive"),
        (b"tjgg\x03\0\0\0", "before GGUF"),
        (b"FUGG\0\0\0\3", "big-endian"),
        (b"plain words", "not a GGUF"),
    ],
)
def test_other_files_are_named_for_what_they_seem_to_be(data: bytes, words: str, refusal: Callable[..., str]) -> None:
    assert words in refusal(data, "downloaded.gguf")


def test_paths_that_are_no_file_are_refused(library: Library, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "absent.gguf", "no such file"), (tmp_path, "a folder")):
        with pytest.raises(BadFile, match=words), NativeFile(library, path):
            pass


# ---- in bulk, in a child process -------------------------------------------------------------------------------------


def check_outcomes(outcomes: list[Outcome], names: list[str]) -> None:
    assert [outcome.name for outcome in outcomes] == names
    for outcome in outcomes:
        assert outcome.status in (0, BAD_FILE, UNSUPPORTED), outcome
        assert (outcome.status == 0) or (outcome.message.startswith("m.gguf: ") and outcome.message.isprintable()), (
            outcome
        )


@pytest.mark.usefixtures("library")
def test_every_number_of_a_file_may_be_hostile(tmp_path: Path) -> None:
    file = packed()
    jobs: list[dict[str, object]] = [
        {
            "name": f"{number.name} = {value}",
            "file": "m.gguf",
            "hex": file.patched(number.name, value).hex(),
            "keys": [*VALUES],
        }
        for number, value in itertools.product((n for n in file.numbers if n.format in "BHIQ"), HOSTILE)
    ]
    assert len(jobs) > 700
    check_outcomes(probe_files(tmp_path, jobs), [str(job["name"]) for job in jobs])


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("source", "n", "header_bytes"), [("packed", 1200, 2000), ("tiny", 800, TINY_HEADER_BYTES)])
def test_two_thousand_mutants_are_opened_or_refused(tmp_path: Path, source: str, n: int, header_bytes: int) -> None:
    base = tmp_path / "base"
    base.write_bytes(packed().data if source == "packed" else TINY.read_bytes())
    jobs: list[dict[str, object]] = [
        {
            "name": f"{source} {seed}",
            "file": "m.gguf",
            "base": str(base),
            "header_bytes": header_bytes,
            "seed": seed,
            "keys": [*VALUES],
        }
        for seed in range(n)
    ]
    outcomes = probe_files(tmp_path, jobs)
    check_outcomes(outcomes, [str(job["name"]) for job in jobs])
    n_refused = sum(outcome.status != 0 for outcome in outcomes)
    assert n // 3 < n_refused < n  # the mutants neither all die at the magic nor all pass unchanged


@pytest.mark.usefixtures("library")
def test_the_bulk_probe_notices_a_child_that_dies(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="at fine"):
        probe_files(
            tmp_path, [{"name": "fine", "file": "m.gguf", "hex": "00"}, {"name": "no content", "file": "m.gguf"}]
        )
