"""What one request worked out of its texts, for the next one: in a conversation that is mostly the same texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """A function of a text that is worked out once for as long as one request after the other asks for it."""

    def __init__(self, work_out: Callable[[str], T]) -> None:
        self._work_out = work_out
        self._now: dict[str, T] = {}
        self._before: dict[str, T] = {}

    def begin(self) -> None:
        """A new request: what the one before it did not ask for is forgotten."""
        self._before, self._now = self._now, {}

    def __call__(self, text: str) -> T:
        """What was worked out of `text`; nobody may change it."""
        if text not in self._now:
            self._now[text] = self._before[text] if text in self._before else self._work_out(text)
        return self._now[text]
