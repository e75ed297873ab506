"""Sentences for people that are written below the window and translated in it."""

from __future__ import annotations

from dataclasses import dataclass


def QT_TRANSLATE_NOOP(_context: str, text: str) -> str:  # noqa: N802  the name that Qt's lupdate looks for
    """Mark `text` for the translators, under a context that the window asks for later."""
    return text


@dataclass(frozen=True, slots=True)
class Phrase:
    """A marked text with its values for {0}, {1} ...; `str()` is the sentence in English."""

    text: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text.format(*self.values)


def phrase(text: str, *values: object) -> Phrase:
    """A marked text with its values, each as str() gives it."""
    return Phrase(text, tuple(map(str, values)))
