"""Whether a text has fallen into a loop: its end is one piece, again and again. Pure functions; they change no output.

Small models at low temperatures do that: what was just said is the likeliest thing to say next. What people ask for may
be regular too, so the rules are strict. The end must be exactly periodic, the piece must hold words (numbers, rules of
dashes and base64 hold none), and code, rows of tables and pieces of one or two words must go on for much longer than
prose. A refrain, a list, a row of zeros never gets there; a loop does within some hundred characters.
"""

from __future__ import annotations

import re

SEEN_CHARS = 6000
"""So much of the end is looked at: the longest piece that is found is a third of it."""
LEAST_BYTES = 400
"""In UTF-8: a Chinese sentence says in a third of the characters what an English one does, and counts the same."""
LEAST_TIMES = 5
LONG_PIECE_BYTES = 200
LONG_PIECE_TIMES = 3
"""Nobody says two hundred bytes three times in a row on purpose."""
STRICT_BYTES = 1200
STRICT_TIMES = 10
LEAST_WORDS = 3
_LONGEST_WORD = 30
_NEEDLE_CHARS = 32

_HEXADECIMAL = frozenset("abcdef")
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_IDEOGRAPHS = re.compile("[\u2600-\u27bf\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U0001f300-\U0001faff]")
"""Chinese, Japanese, pictures: each says as much as a word."""


def is_looping(text: str) -> bool:
    """Whether `text` ends in a loop. Costs microseconds where it doesn't, so it may be asked while a reply grows."""
    end = text[-SEEN_CHARS:].rstrip()
    found = _period(end)
    if found is None:
        return False
    n_period, n_run = found
    n_bytes = len(end[-n_run:].encode("utf-8", "replace"))
    times = n_run / n_period
    n_words = _distinct_words(end[-min(n_run, 2 * n_period + 2 * _LONGEST_WORD) :])
    if n_words == 0:
        return False
    if _is_code(text, end[-LONG_PIECE_TIMES * n_period :]):
        return n_words >= LEAST_WORDS and times >= STRICT_TIMES and n_bytes >= STRICT_BYTES
    if n_words < LEAST_WORDS:
        return times >= STRICT_TIMES and n_bytes >= STRICT_BYTES
    return n_bytes >= LEAST_BYTES and (times >= LEAST_TIMES or n_bytes >= times * LONG_PIECE_BYTES)


def _period(end: str) -> tuple[int, int] | None:
    """The shortest piece that the end consists of LONG_PIECE_TIMES times or more: its length, and that of all of it."""
    needle = end[-_NEEDLE_CHARS:]
    at = len(end) - len(needle)
    while needle and (at := end.rfind(needle, 0, at + len(needle) - 1)) >= 0:
        n_period = len(end) - len(needle) - at
        if n_period * LONG_PIECE_TIMES > len(end):
            break
        n_run = n_period + _shared_end(end, end[:-n_period])
        if n_run >= n_period * LONG_PIECE_TIMES:
            return n_period, n_run
    return None


def _shared_end(one: str, other: str) -> int:
    """How many characters the ends of both have in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[-middle:] == other[-middle:]:
            low = middle
        else:
            high = middle - 1
    return low


def _distinct_words(run: str) -> int:
    """Words of letters in a loop; hexadecimal numbers, base64 and names with digits are none."""
    whole = _WORD.findall(run)[1:-1]  # the first and the last may be cut
    names = {word.casefold().replace("_", "") for word in whole if len(word) <= _LONGEST_WORD}
    words = {name for name in names if len(name) > 1 and name.isalpha() and not _HEXADECIMAL.issuperset(name)}
    return len(words) + len(set(_IDEOGRAPHS.findall(run)))


def _is_code(text: str, run: str) -> bool:
    """Whether the loop lies inside a block of code, or is made of rows of a table. `run`: some pieces of it."""
    if _FENCE.search(run) is None and len(_FENCE.findall(text)) % 2:
        return True
    rows = [row for row in run.splitlines()[1:-1] if row.strip()]  # the first and the last may be cut
    return bool(rows) and all(row.lstrip().startswith("|") for row in rows)
