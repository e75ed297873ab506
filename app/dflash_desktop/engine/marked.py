"""Text that remembers, character by character, what came from a user.

A chat template mixes its own control tokens with what people, files and tools wrote. If somebody types `<|im_end|>`,
that must stay text. So every string that goes into a template is a `Marked` string, and every operation a template can
do keeps the marks: adding, trimming, splitting, replacing, slicing, joining. Nothing is inserted into the text, so
templates that look into a message (`content.startswith(...)`, `'</think>' in content`) behave as they always do, and
control tokens put together from pieces of both kinds do not count.

An operation that cannot follow single characters (`tojson`, `format`, ...) marks its whole result as the user's as soon
as anything of a user's went in: it may only ever make a control token into text, never the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TEMPLATE = b"\0"
USER = b"\1"

_PERCENT = re.compile("%[s%]")


class Marked(str):
    """A string with a mask: one byte per character, 1 where a user wrote it, 0 where the template did."""

    __slots__ = ("mask",)
    mask: bytes

    def __new__(cls, text: str, mask: bytes) -> Self:
        marked = str.__new__(cls, text)
        marked.mask = mask
        return marked

    @classmethod
    def user(cls, text: str) -> Self:
        """All of it is a user's."""
        return cls(text, USER * len(text))

    # ---- kept whole -------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self  # else str(x), which templates do at every turn, would drop the marks

    def __add__(self, other: str) -> Marked:
        return join((self, other))

    def __radd__(self, other: str) -> Marked:
        return join((other, self))

    def __mul__(self, times: SupportsIndex) -> Marked:
        return Marked(str.__mul__(self, times), self.mask * times.__index__())

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        return percent(self, values)

    def __rmod__(self, pattern: str) -> str:
        return percent(pattern, self)

    def __getitem__(self, key: SupportsIndex | slice) -> Marked:
        part = self.mask[key] if isinstance(key, slice) else bytes([self.mask[key]])
        return Marked(str.__getitem__(self, key), part)

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    # ---- parts of it ------------------------------------------------------------------------------------------

    def strip(self, chars: str | None = None, /) -> Marked:
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | None = None, /) -> Marked:
        return self[len(self) - len(str.lstrip(self, chars)) :]

    def rstrip(self, chars: str | None = None, /) -> Marked:
        return self[: len(str.rstrip(self, chars))]

    def removeprefix(self, prefix: str, /) -> Marked:
        return self[len(prefix) :] if self.startswith(prefix) else self

    def removesuffix(self, suffix: str, /) -> Marked:
        return self[: len(self) - len(suffix)] if suffix and self.endswith(suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Marked]:  # type: ignore[override]
        return self._parts(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Marked]:  # type: ignore[override]
        return self._parts(str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[Marked]:  # type: ignore[override]
        return self._parts(str.splitlines(self, keepends), None)

    def partition(self, sep: str, /) -> tuple[Marked, Marked, Marked]:
        head, middle, _ = str.partition(self, sep)
        return self._cut(len(head), len(head) + len(middle))

    def rpartition(self, sep: str, /) -> tuple[Marked, Marked, Marked]:
        head, middle, _ = str.rpartition(self, sep)
        return self._cut(len(head), len(head) + len(middle))

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Marked:
        if not old:  # `new` between all characters
            return conservative(str.replace(self, old, new, count), (self, new))
        return join(self.split(old, count), new)

    def _parts(self, parts: list[str], sep: str | None) -> list[Marked]:
        """Find the parts of a split again, in order."""
        found = []
        position = 0
        for index, part in enumerate(parts):
            start = self.find(part, position) if sep is None else position + (len(sep) if index else 0)
            position = start + len(part)
            found.append(self[start:position])
        return found

    def _cut(self, first: int, second: int) -> tuple[Marked, Marked, Marked]:
        return self[:first], self[first:second], self[second:]

    # ---- other letters ----------------------------------------------------------------------------------------

    def lower(self) -> Marked:
        return self._respelled(str.lower(self))

    def upper(self) -> Marked:
        return self._respelled(str.upper(self))

    def title(self) -> Marked:
        return self._respelled(str.title(self))

    def capitalize(self) -> Marked:
        return self._respelled(str.capitalize(self))

    def _respelled(self, text: str) -> Marked:
        return Marked(text, self.mask) if len(text) == len(self) else conservative(text, (self,))

    def join(self, parts: Iterable[str], /) -> Marked:
        return join(parts, self)


def mask_of(text: str) -> bytes:
    """The marks of any string: a plain one is the template's."""
    return text.mask if isinstance(text, Marked) else TEMPLATE * len(text)


def join(parts: Iterable[str], separator: str = "") -> Marked:
    """`separator.join(parts)` with all marks kept."""
    kept = list(parts)
    return Marked(str.join(separator, kept), mask_of(separator).join(map(mask_of, kept)))


def percent(pattern: str, values: Any) -> str:
    """`pattern % values`. Marks are kept where only %s and %% occur."""
    arguments = list(values) if isinstance(values, tuple) else [values]
    holes = _PERCENT.findall(pattern)
    is_simple = pattern.count("%") == sum(map(len, holes)) - holes.count("%s") and not isinstance(values, Mapping)
    if not is_simple or holes.count("%s") != len(arguments):
        plain = str.__mod__(_plain(pattern), values)
        return conservative(plain, (pattern, values))
    pieces: list[str] = []
    position = 0
    for hole in _PERCENT.finditer(pattern):
        pieces += [pattern[position : hole.start()], "%" if hole.group() == "%%" else str(arguments.pop(0))]
        position = hole.end()
    return join([*pieces, pattern[position:]])


def _plain(text: str) -> str:
    return str.__str__(text)


def conservative(text: str, sources: Any) -> Marked:
    """A result whose characters cannot be followed: all of it the user's if anything of a user's is in `sources`."""
    return Marked(text, (USER if holds_user_text(sources) else TEMPLATE) * len(text))


def holds_user_text(value: Any, depth: int = 0) -> bool:
    """Whether a user's character is anywhere in a value as templates handle them."""
    if isinstance(value, str):
        return isinstance(value, Marked) and USER in value.mask
    if depth > 50:
        return True
    if isinstance(value, Mapping):
        return any(holds_user_text(item, depth + 1) for pair in value.items() for item in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(holds_user_text(item, depth + 1) for item in value)
    return False


def mark(value: Any, convert: Callable[[str], str] = Marked.user) -> Any:
    """A copy of JSON-like data in plain types, with every string, keys too, marked as a user's."""
    if isinstance(value, str):
        return value if isinstance(value, Marked) else convert(value)
    if isinstance(value, Mapping):
        return {mark(key, convert): mark(item, convert) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mark(item, convert) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return convert(f"<{type(value).__name__}>")  # no object with methods of its own ever reaches a template
