"""Cuts a text into the units that a person would keep or leave out: paragraphs, functions, table rows, records.

A unit never ends inside a word, a code line or a JSON value. Together the units are the text, in order, without gaps.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["prose", "heading", "item", "row", "code", "record", "line"]

MOST_CHARS = 1200
"""Longer units are cut at the best place inside, where there is one. About 300 tokens of English."""
LEAST_CHARS = 80
"""Code lines and records are gathered up to this, so that a unit says something by itself. More would be kept for the
sake of its neighbours: with 240, of three facts one question asks for all were kept half as often."""
MOST_VAIN_READS = 4
"""How often a text is read as JSON in vain, all of it: nobody who writes JSON leaves so much of it open."""

_FENCE = re.compile(r"[ \t]*(```+|~~~+)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,4}[.)])[ \t]+\S")
_HEADING = re.compile(r"#{1,6}[ \t]+\S")
_RULE_OF_TABLE = re.compile(r"[ \t:|-]+\n?")  # with --- in it
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？；])")
_WORD_GAP = re.compile(
    r"\s+|(?<=[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff])(?=[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff])"
)
_CODE_LINE = re.compile(
    r"[ \t]+\S|[})\]]|(?:def|class|func|fn|public|private|static|import|from|#include|return|if|for)\b.*[:;{(]"
)
_STARTS_UNIT_OF_CODE = re.compile(
    r"(?:@|(?:def|class|async def|func|fn|pub|impl|struct|enum|interface|type|export|public|private|static|template)\b)"
)


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters [start, end) of the text. `header` is the index of the unit that names its columns or its function."""

    start: int
    end: int
    kind: Kind
    header: int | None = None


def cut(text: str) -> list[Segment]:
    """All of `text` in order. [] for the empty text."""
    found: list[Segment] = []
    for start, end, kind in _blocks(text):
        if kind == "code":
            found.extend(_code(text, start, end))
        elif kind == "row":
            first = len(found)
            rows = [(a, b) for a, b in _lines(text, start, end) if text[a:b].strip()]
            rows[-1] = (rows[-1][0], end)
            found.extend(Segment(a, b, "row", first if i > 0 else None) for i, (a, b) in enumerate(rows))
        elif kind == "record":
            found.extend(Segment(a, b, "record") for a, b in _records(text, start, end))
        elif kind == "line":
            found.extend(Segment(a, b, "line") for a, b in _gathered(_lines(text, start, end)))
        else:
            found.extend(Segment(a, b, kind) for a, b in _bounded(text, start, end))
    return found


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop + 1
        yield start, stop
        start = stop


def _blocks(text: str) -> Iterator[tuple[int, int, Kind]]:
    """Runs of lines of one kind. Blank lines belong to the block before them."""
    lines = list(_lines(text, 0, len(text)))
    json = _JsonFinder(text, lines)
    i = 0
    while i < len(lines):
        start = lines[i][0]
        kind, n = _block_at(text, lines, i, json)
        i += n
        while i < len(lines) and not text[slice(*lines[i])].strip():
            i += 1
        yield start, lines[i - 1][1], kind


def _block_at(text: str, lines: list[tuple[int, int]], i: int, json: _JsonFinder) -> tuple[Kind, int]:
    """Kind and number of lines of the block that begins with line i."""

    def line(at: int) -> str:
        return text[slice(*lines[at])] if at < len(lines) else ""

    def run(matches: object, at: int) -> int:
        n = 0
        while at + n < len(lines) and matches(line(at + n)):  # type: ignore[operator]
            n += 1
        return n

    first = line(i)
    if fence := _FENCE.match(first):
        for n, at in enumerate(range(i + 1, len(lines)), start=2):
            if line(at).strip().startswith(fence[1]) and not line(at).strip().strip(fence[1][0]):
                return "code", n
        return "code", len(lines) - i
    if not first.strip():
        return "prose", 1
    if _HEADING.match(first):
        return "heading", 1
    if "|" in first and "---" in line(i + 1) and _RULE_OF_TABLE.fullmatch(line(i + 1)):
        return "row", max(2, run(lambda s: "|" in s and bool(s.strip()), i))
    if first.lstrip()[:1] in "{[" and (n := json.n_lines(i)):
        return "record", n
    if _ITEM.match(first):
        n = 1
        while line(i + n).strip() and not _ITEM.match(line(i + n)) and not _FENCE.match(line(i + n)):
            n += 1
        return "item", n
    n = run(lambda s: bool(s.strip()) and not _FENCE.match(s) and not _HEADING.match(s) and not _ITEM.match(s), i) or 1
    body = [line(at) for at in range(i, i + n)]
    n_code = sum(bool(_CODE_LINE.match(s)) for s in body)
    if n_code * 2 > n and (n >= 3 or _STARTS_UNIT_OF_CODE.match(first)):
        return "code", n + _more_code(line(at) for at in range(i + n, len(lines)))
    if _is_listing(body):
        return "line", n
    return "prose", n


def _more_code(lines: Iterable[str]) -> int:
    """How many of the lines go on with the code before them, across empty lines: what is indented or begins a unit."""
    n = 0
    was_blank = True
    for i, line in enumerate(lines):
        if was_blank and line.strip() and not (line.startswith((" ", "\t")) or _STARTS_UNIT_OF_CODE.match(line)):
            break
        was_blank = not line.strip()
        if not was_blank:
            n = i + 1
    return n


def _is_listing(lines: list[str]) -> bool:
    """Logs and the like: lines that end where they end, not where a column is full or a sentence is over."""
    if len(lines) < 4:
        return False
    lengths = [len(line) for line in lines[:-1]]
    n_ended = sum(line.rstrip().endswith((".", ",", ";", ":", "?", "!")) for line in lines)
    return n_ended * 3 < len(lines) and max(lengths) > 1.5 * min(lengths)


# ---- JSON ---------------------------------------------------------------------------------------------------------


class _JsonFinder:
    """Which lines of a text are JSON. One that keeps opening brackets for nothing is no longer asked."""

    def __init__(self, text: str, lines: list[tuple[int, int]]) -> None:
        self._text = text
        self._lines = lines
        self._n_left = MOST_VAIN_READS * len(text)

    def n_lines(self, i: int) -> int:
        """Lines of the JSON value, or of the values one per line, that begin with line i; 0 when it is none."""
        text, lines = self._text, self._lines
        n = 0
        while i + n < len(lines) and self._n_left > 0:
            start = lines[i + n][0]
            if text[start : lines[i + n][1]].lstrip()[:1] not in ("{", "["):
                break
            end = _end_of_value(text, start)
            after = bisect.bisect_left(lines, (end or len(text),))  # the first line that begins behind the value
            if end is None or text[end : lines[after - 1][1]].strip(" \t\n,"):
                self._n_left -= (end or len(text)) - start
                break
            n = after - i
        return n


def _marks(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Brackets and commas of JSON, and where they are: not those inside strings."""
    i = start
    while i < end:
        if text[i] == '"':
            i += 1
            while i < end and text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif text[i] in "{}[],":
            yield i, text[i]
        i += 1


def _end_of_value(text: str, start: int) -> int | None:
    """Where the bracketed value at `start` ends; None when it never does."""
    depth = 0
    for i, mark in _marks(text, start, len(text)):
        depth += (mark in "{[") - (mark in "}]")
        if depth == 0 and mark in "}]":
            return i + 1
    return None


def _records(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Values one by one; a long one is opened and its members are the units, down to what is short enough."""
    cuts = sorted({start, end, *_value_cuts(text, start, end)})
    yield from _gathered(itertools.pairwise(cuts))


def _value_cuts(text: str, start: int, end: int) -> Iterator[int]:
    """Places between values: after the commas and between the lines of whatever holds more than MOST_CHARS."""
    n_open = 0
    ends = _all_ends(text, start, end)
    whole_until = start  # short values are walked over
    for i, mark in _marks(text, start, end):
        if i < whole_until:
            continue
        if mark in "{[":
            close = ends.get(i, end)
            if close - i > MOST_CHARS:
                n_open += 1
                continue
            whole_until = close
            if n_open == 0:
                yield _after_blank(text, close, end)
        elif mark in "}]":
            n_open = max(0, n_open - 1)
            if n_open == 0:
                yield _after_blank(text, i + 1, end)
        elif n_open > 0:
            yield _after_blank(text, i + 1, end)


def _after_blank(text: str, at: int, end: int) -> int:
    """Past the comma and the line's end that belong to what came before."""
    while at < end and text[at] in " \t,":
        at += 1
    return at + 1 if at < end and text[at] == "\n" else at


def _all_ends(text: str, start: int, end: int) -> dict[int, int]:
    """Opening bracket -> just past its closing one, in one walk."""
    ends: dict[int, int] = {}
    stack: list[int] = []
    for i, mark in _marks(text, start, end):
        if mark in "{[":
            stack.append(i)
        elif mark in "}]" and stack:
            ends[stack.pop()] = i + 1
    return ends


# ---- code and prose -----------------------------------------------------------------------------------------------


def _code(text: str, start: int, end: int) -> Iterator[Segment]:
    """Whole lines: functions and blocks between empty lines; what is too long is cut between its lines."""
    unit_start = start
    units: list[tuple[int, int]] = []
    was_blank = False
    for a, b in _lines(text, start, end):
        line = text[a:b]
        is_new = bool(_STARTS_UNIT_OF_CODE.match(line)) or (was_blank and not line.startswith((" ", "\t")))
        if is_new and a > unit_start and line.strip():
            units.append((unit_start, a))
            unit_start = a
        was_blank = not line.strip()
    units.append((unit_start, end))
    for a, b in _gathered(iter(units)):
        if b - a <= MOST_CHARS:
            yield Segment(a, b, "code")
        else:
            yield from (Segment(c, d, "code") for c, d in _gathered(_lines(text, a, b), MOST_CHARS // 2))


def _gathered(parts: Iterator[tuple[int, int]], least: int = LEAST_CHARS) -> Iterator[tuple[int, int]]:
    """Neighbours together until they hold `least` characters, never more than MOST_CHARS unless one alone does."""
    start: int | None = None
    end = 0
    for a, b in parts:
        if start is not None and (end - start >= least or b - start > MOST_CHARS):
            yield start, end
            start = None
        if start is None:
            start = a
        end = b
    if start is not None:
        yield start, end


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A paragraph, or its sentences gathered, or its words where a sentence never ends."""
    if end - start <= MOST_CHARS:
        yield start, end
        return
    sentences = list(_cut_after(_SENTENCE_END, text, start, end))
    for a, b in _gathered(iter(sentences), MOST_CHARS // 2):
        if b - a <= MOST_CHARS:
            yield a, b
        else:
            yield from _gathered(_cut_after(_WORD_GAP, text, a, b), MOST_CHARS // 2)


def _cut_after(gap: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for match in gap.finditer(text, start, end):
        if at < match.end() < end:
            yield at, match.end()
            at = match.end()
    yield at, end
