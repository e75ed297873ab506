"""A chat's title, made from its first message."""

from __future__ import annotations

import re

MAX_CHARS = 60
_MARKS = re.compile(r"^[\s#>*+\-`~|]+|[*`_~]{2,}|`")
_ROOM_FOR_WORD = 15


def title_of(text: str) -> str:
    """The first line that says something, without Markdown's marks, cut at a word; empty for text without one."""
    for line in text[: 40 * MAX_CHARS].splitlines():
        words = " ".join(_MARKS.sub("", line).split())
        if any(char.isalnum() for char in words):
            return _cut(words)
    return ""


def _cut(words: str) -> str:
    if len(words) <= MAX_CHARS:
        return words
    end = words.rfind(" ", MAX_CHARS - _ROOM_FOR_WORD, MAX_CHARS)
    return words[: end if end > 0 else MAX_CHARS - 1].rstrip(" ,;:.-") + "\N{HORIZONTAL ELLIPSIS}"
