"""Reads native/include/dflash.h as text: constants, enums, structs and functions, for comparison with the mirror."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADER = Path(__file__).resolve().parents[2] / "native" / "include" / "dflash.h"

_TYPES: dict[str, Any] = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "char": ctypes.c_char,
    "const void *": ctypes.c_void_p,
    "const double *": ctypes.POINTER(ctypes.c_double),
}


@dataclass(frozen=True)
class Header:
    constants: dict[str, int]
    enums: dict[str, dict[str, int]]  # type -> constant -> value
    structs: dict[str, list[tuple[str, Any]]]  # type -> (member, ctypes type)
    functions: dict[str, tuple[str, list[str]]]  # name -> (result, argument types) as written


def read_header(path: Path = HEADER) -> Header:
    source = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    constants = {name: int(value) for name, value in re.findall(r"#define (DFLASH_\w+) (\d+)", source)}
    enums = {
        name: {constant: int(value) for constant, value in re.findall(r"(\w+) = (-?\d+)", body)}
        for body, name in re.findall(r"typedef enum \w+ \{(.*?)\} (\w+);", source, re.DOTALL)
    }
    structs = {
        name: [_member(line, constants) for line in body.split(";") if line.strip()]
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", source, re.DOTALL)
    }
    functions = {
        name: (result.strip(), [_argument(argument) for argument in arguments.split(",") if argument.strip() != "void"])
        for result, name, arguments in re.findall(r"DFLASH_API ([\w *]+?)(\w+)\(([^)]*)\);", source)
    }
    return Header(constants, enums, structs, functions)


def _member(declaration: str, constants: dict[str, int]) -> tuple[str, Any]:
    match = re.fullmatch(r"\s*(.+?)\s*(\w+)(?:\[(\w+)\])?\s*", declaration, re.DOTALL)
    assert match, declaration
    kind, name, length = match.groups()
    ctype = _TYPES[kind]
    if length:
        ctype = ctype * (constants[length] if length in constants else int(length))
    return name, ctype


def _argument(declaration: str) -> str:
    match = re.fullmatch(r"\s*(.+?)\s*\w+\s*", declaration, re.DOTALL)
    assert match, declaration
    return match.group(1)
