"""What a generator that is a piece of work comes to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


def finished(running: Generator[Any, None, T]) -> T:
    """Run it to its end."""
    while True:
        try:
            next(running)
        except StopIteration as done:
            value: T = done.value
            return value
