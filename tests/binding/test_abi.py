"""The Python mirror says what dflash.h says: names, values, layouts, prototypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from ctypes import POINTER
from typing import TYPE_CHECKING, Any

import pytest

from dflash_desktop.binding import abi, prototypes
from dflash_desktop.binding.failures import BY_STATUS
from support.header import HEADER, read_header

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.binding.native import Library

header = read_header()


def test_the_header_was_understood() -> None:
    assert len(header.enums) >= 9
    assert len(header.structs) >= 11
    assert len(header.functions) >= 32
    assert header.structs["dflash_step"][-1] == ("path", ctypes.c_int32 * 64)


def test_constants_are_equal() -> None:
    assert header.constants == {"DFLASH_ABI_VERSION": abi.ABI_VERSION, "DFLASH_MAX_ROWS": abi.MAX_ROWS}


def test_every_enum_has_the_header_s_names_and_values() -> None:
    assert abi.ENUMS.keys() == header.enums.keys()
    for name, constants in header.enums.items():
        mirror = {member.name: member.value for member in abi.ENUMS[name]}
        stem = _common_stem(list(constants))
        assert mirror == {constant.removeprefix(stem): value for constant, value in constants.items()}, name


def _common_stem(constants: list[str]) -> str:
    """What the mirror leaves out of each name: DFLASH_, and the kind of thing where the header repeats it."""
    stems = ["DFLASH_LOG_", "DFLASH_DEVICE_", "DFLASH_ROLE_", "DFLASH_VALUE_", "DFLASH_KV_", "DFLASH_DRAFT_",
             "DFLASH_FINISH_", "DFLASH_REASON_", "DFLASH_PART_", "DFLASH_"]  # fmt: skip
    return next(stem for stem in stems if all(constant.startswith(stem) for constant in constants))


def test_every_struct_has_the_header_s_members_in_order() -> None:
    assert abi.STRUCTS.keys() == header.structs.keys()
    for name, members in header.structs.items():
        mirror: Any = abi.STRUCTS[name]._fields_
        assert list(mirror) == members, name


def test_every_function_has_the_header_s_result_and_arguments() -> None:
    assert prototypes.FUNCTIONS.keys() == header.functions.keys()
    for name, (result, arguments) in header.functions.items():
        mirror_result, mirror_arguments = prototypes.FUNCTIONS[name]
        assert mirror_result == _ctype(result), name
        assert list(mirror_arguments) == [_ctype(argument) for argument in arguments], name


def _ctype(written: str) -> Any:
    base = written.replace("const ", "").strip()
    stars = base.count("*")
    base = base.replace("*", "").strip()
    handles = {"dflash_file": abi.FileHandle, "dflash_target": abi.TargetHandle, "dflash_draft": abi.DraftHandle,
               "dflash_session": abi.SessionHandle, "dflash_scorer": abi.ScorerHandle}  # fmt: skip
    plain: dict[str, Any] = {"void": None, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
                             "float": ctypes.c_float, "double": ctypes.c_double}  # fmt: skip
    if base == "char" and stars == 1:
        return ctypes.c_char_p
    if base in handles:
        return handles[base] if stars == 1 else POINTER(handles[base])
    kind = plain[base] if base in plain else abi.STRUCTS[base]
    return POINTER(kind) if stars else kind


def test_every_failure_has_its_exception() -> None:
    assert {int(status) for status in abi.Status if status < 0} == BY_STATUS.keys()


def test_every_struct_has_the_size_the_library_says(library: Library) -> None:
    for name, struct in abi.STRUCTS.items():
        assert library.c.dflash_struct_size(name.encode()) == ctypes.sizeof(struct), name
    assert library.c.dflash_struct_size(b"dflash_nothing") == 0


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler named cc")
def test_a_c_file_that_only_includes_the_header_compiles(tmp_path: Path) -> None:
    source = tmp_path / "only.c"
    sizes = "\n".join(
        f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");' for name, struct in abi.STRUCTS.items()
    )
    source.write_text(f'#include "dflash.h"\n{sizes}\n')
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    done = subprocess.run([*command, f"-I{HEADER.parent}", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
