"""The terminal's end of the program: streams that cannot fail on a character, and what may be shown in a terminal."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "dflash-desktop"

# Exit codes.
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

_KEPT_CONTROLS = frozenset("\n\t")


def open_streams() -> None:
    """Make the standard streams UTF-8 whatever the locale says; a character that cannot be shown becomes "?".

    A window program on Windows has no streams at all; then what is written goes nowhere.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def silence_output() -> None:
    """Send standard output nowhere: its reader is gone, and Python would complain again when it flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def argument_text(argument: str) -> str:
    """A command-line argument as proper text: under an ASCII locale Python hides UTF-8 bytes in surrogates."""
    return os.fsencode(argument).decode("utf-8", "replace")


def visible(text: str) -> str:
    """`text` without control characters, which could recolour, retitle or overwrite the terminal they are shown in."""
    return "".join(
        character if character in _KEPT_CONTROLS or unicodedata.category(character) != "Cc" else "\ufffd"
        for character in text
    )


def write(text: str) -> None:
    """Write a piece of the result at once: as it is into a file or pipe, without control characters on a terminal."""
    try:
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # such as a full disk
        silence_output()
        raise AppError(f"The output cannot be written: {error.strerror or error}.") from error


def write_json(value: Any) -> None:
    """Write `value` as one JSON document: UTF-8, points in numbers, no NaN."""
    write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def note(text: str) -> None:
    """Say something beside the result, on stderr."""
    sys.stderr.write(visible(text) + "\n")
    sys.stderr.flush()


def complain(text: str) -> None:
    """Say on stderr, in one line, why there is no result."""
    note(f"{PROGRAM}: {' '.join(text.split())}")


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows in columns, two spaces apart."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
