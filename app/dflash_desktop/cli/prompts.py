"""The prompts that `bench` measures with, unless the person names a file of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_desktop.base.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

TEN = (
    "Explain photosynthesis in simple terms.",
    "What are three tips for learning a new language?",
    "Why is the sky blue?",
    "Write a Python function that returns the n-th Fibonacci number.",
    "Write a JavaScript function that checks whether a number is prime.",
    "Write an SQL query that counts the orders per customer.",
    "Write a short story about a lighthouse keeper.",
    "Tell me a fairy tale about a frog who wanted to fly.",
    "Give me a list of healthy meals for a busy week.",
    "Write a polite email asking for a refund.",
)

KINDS: dict[str, tuple[str, ...]] = {
    "chat": (
        "Explain photosynthesis in simple terms.",
        "What are three tips for learning a new language?",
        "What are the pros and cons of working from home?",
    ),
    "code": (
        "Write a Python function that returns the n-th Fibonacci number.",
        "Write a JavaScript function that checks whether a number is prime.",
        "Write a C function that reverses a string in place.",
    ),
    "story": (
        "Write a short story about a lighthouse keeper.",
        "Tell me a fairy tale about a frog who wanted to fly.",
        "Describe a rainy day in a small town.",
    ),
    "noise": (
        "q7 }v|K zR,&2 0x%f Lw9~ ^b{s ;Ue #1 mY<G p!8o (Dj ]n3 Xt/ 5h*C =i_W aE+ 6S:r Q$k @zB 4d?N",
        "wx ulm trabe 17 okk zil, zil 88; mef qua? dorn-dorn 3.1 ypsel. hak fli 402 grm prut (ssel) baa",
        "9 31 7 7 205 18 64 3 77 1002 5 46 46 8 590 12 33 2 271 828 182 84 59 0 45 235 360 28 747 135 266",
    ),
}
"""Texts of every degree of difficulty for a draft."""


def read_prompts(file: Path | None) -> tuple[str, ...]:
    """The prompts of a UTF-8 file, one a line, empty lines left out; our own ten without a file."""
    if file is None:
        return TEN
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"The prompts file {file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"The prompts file {file} is not UTF-8 text (byte {error.start}).") from error
    prompts = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not prompts:
        raise BadInput(f"The prompts file {file} holds no prompt.")
    return prompts
