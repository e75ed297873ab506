"""Models in several files: any part opens the whole, and every part must be there and belong (B122)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding.failures import BadFile
from dflash_desktop.binding.native import Library, NativeFile
from support import packed_gguf as gguf
from support.native_library import load_library
from support.packed_gguf import Key, PackedTensor, pack

if TYPE_CHECKING:
    from pathlib import Path

KEYS: list[Key] = [("test.u32", gguf.U32, 4_000_000_000), ("test.text", gguf.STRING, "模型")]


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()


def write_split(folder: Path, prefix: str, n: int = 3, ending: str = ".gguf") -> list[Path]:
    """A model of `n` parts: all keys in the first, which has no tensors."""
    parts = []
    for no in range(n):
        split: list[Key] = [
            ("split.no", gguf.U16, no),
            ("split.count", gguf.U16, n),
            ("split.tensors.count", gguf.I32, 2 * (n - 1)),
        ]
        tensors = [PackedTensor(f"{letter}{no}", (16, no)) for letter in "ab"] if no else []
        parts.append(folder / f"{prefix}-{no + 1:05d}-of-{n:05d}{ending}")
        parts[-1].write_bytes(pack(KEYS + split if no == 0 else split, tensors).data)
    return parts


def open_all(library: Library, path: Path) -> tuple[int, int, object]:
    with NativeFile(library, path) as file:
        info = file.describe()
        return info.n_parameters, info.file_bytes, file.value("test.u32")


@pytest.mark.parametrize("ending", [".gguf", ".GGUF"])
def test_b122_any_part_opens_the_whole(library: Library, tmp_path: Path, ending: str) -> None:
    parts = write_split(tmp_path, "Modell ä-Q4_K_M", ending=ending)
    write_split(tmp_path, "Modell ä-Q8_0", 4, ending)  # another quant in the same folder
    whole = (2 * 16 * (1 + 2), sum(part.stat().st_size for part in parts), 4_000_000_000)
    assert [open_all(library, part) for part in parts] == [whole] * 3


def test_b122_a_missing_part_is_named(library: Library, tmp_path: Path) -> None:
    parts = write_split(tmp_path, "m")
    parts[2].unlink()
    for part in parts[:2]:
        with pytest.raises(BadFile) as caught, NativeFile(library, part):
            pass
        expected = f"{part.name}: part 3 of 3 is needed: {parts[2].name}: cannot be opened: there is no such file"
        assert str(caught.value) == expected


def test_b122_renamed_swapped_and_foreign_parts_are_refused(library: Library, tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(BadFile) as caught, NativeFile(library, path):
            pass
        return str(caught.value)

    (folder := tmp_path / "renamed").mkdir()
    parts = write_split(folder, "m")
    parts[1].rename(folder / "model.gguf")
    assert "part 2 of 3, so its name must end in -00002-of-00003.gguf" in refused(folder / "model.gguf")

    (folder := tmp_path / "swapped").mkdir()
    parts = write_split(folder, "m")
    spare = parts[1].rename(folder / "spare")
    parts[2].rename(parts[1])
    spare.rename(parts[2])
    assert "part 2 of 3, but the file says part 3 of 3" in refused(parts[0])
    assert "its name must end in" in refused(parts[1])

    (folder := tmp_path / "foreign").mkdir()
    parts = write_split(folder, "m")
    other = pack([("split.no", gguf.U16, 2), ("split.count", gguf.U16, 3), ("split.tensors.count", gguf.I32, 99)])
    parts[2].write_bytes(other.data)
    assert "belongs to another model" in refused(parts[0])

    parts[2].write_bytes(b"<html>")
    assert f"{parts[2].name}: magic" in refused(parts[0])


def test_b122_the_parts_must_hold_the_tensors_that_were_promised(library: Library, tmp_path: Path) -> None:
    parts = write_split(tmp_path, "m")
    few: list[Key] = [("split.no", gguf.U16, 2), ("split.count", gguf.U16, 3)]
    parts[2].write_bytes(pack(few, [PackedTensor("a2", (16,))]).data)
    with pytest.raises(BadFile, match="4, but all parts together hold 3"), NativeFile(library, parts[0]):
        pass
    parts[2].write_bytes(pack(few, [PackedTensor("a1", (16,)), PackedTensor("b2", (16,))]).data)
    with pytest.raises(BadFile, match="'a1': occurs in two parts"), NativeFile(library, parts[0]):
        pass
