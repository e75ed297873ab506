"""Full-text search: every word of the query anywhere in a message or title, parts of words included."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

MAX_HITS = 200
MAX_QUERY_CHARS = 200
_INDEXED_CHARS = 3  # shorter words are not in the index (schema.py) and are looked for in the text itself
_MAX_MESSAGES = 5000  # a word like "the" is in nearly all of them
_BEFORE, _AFTER = 30, 120


@dataclass(frozen=True, slots=True)
class Hit:
    """A chat in which the words were found. `ranges` are the places in `snippet` to light up: (start, end)."""

    chat_id: int
    message_id: int | None  # None: in the title only
    snippet: str
    ranges: tuple[tuple[int, int], ...]
    n_messages: int  # of this chat that hold all the words


def words_of(query: str) -> list[str]:
    """What to look for, longest first. "Quoted words" stay together."""
    found = re.findall(r'"([^"]+)"|(\S+)', query[:MAX_QUERY_CHARS])
    words = {(quoted or single).strip('"').strip() for quoted, single in found}
    return sorted((word for word in words if word), key=len, reverse=True)


def find(connection: sqlite3.Connection, query: str) -> list[Hit]:
    """Chats with a message or title that holds every word, best first: the newest. Raises sqlite3.Error."""
    words = words_of(query)
    if not words:
        return []
    found: dict[int, Hit] = {}
    for chat_id, message_id, text in _messages(connection, words):
        before = found.get(chat_id)
        if before is not None:
            found[chat_id] = Hit(chat_id, before.message_id, before.snippet, before.ranges, before.n_messages + 1)
        elif len(found) < MAX_HITS:
            found[chat_id] = Hit(chat_id, message_id, *snippet(text, words), n_messages=1)
    for chat_id, title in connection.execute("SELECT id, title FROM chats WHERE deleted_s IS NULL"):
        if chat_id not in found and all(_places(title, word) for word in words):
            found[chat_id] = Hit(chat_id, None, "", (), n_messages=0)
    return list(found.values())


def _messages(connection: sqlite3.Connection, words: list[str]) -> sqlite3.Cursor:
    indexed = [word for word in words if len(word) >= _INDEXED_CHARS]
    others = [word for word in words if len(word) < _INDEXED_CHARS]
    tests = ["chats.deleted_s IS NULL", *(r"messages.text LIKE ? ESCAPE '\'" for _ in others)]
    values = [f"%{_like(word)}%" for word in others]
    source = "messages JOIN chats ON chats.id = chat_id"
    if indexed:
        source = "found JOIN messages ON messages.id = found.rowid JOIN chats ON chats.id = chat_id"
        tests.insert(0, "found MATCH ?")
        values.insert(0, " AND ".join('"' + word.replace('"', '""') + '"' for word in indexed))
    return connection.execute(
        f"SELECT chat_id, messages.id, messages.text FROM {source} WHERE {' AND '.join(tests)} "
        f"ORDER BY chats.changed_s DESC, messages.id DESC LIMIT {_MAX_MESSAGES}",
        values,
    )


def snippet(text: str, words: list[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A piece of `text` around the first word found, on one line, and where the words are in it."""
    first = min((places[0][0] for word in words if (places := _places(text, word, most=1))), default=0)
    start = max(0, first - _BEFORE)
    if start:
        space = text.find(" ", start, first)
        start = space + 1 if space >= 0 else start
    piece = " ".join(text[start : first + _AFTER].split())
    if start:
        piece = "\N{HORIZONTAL ELLIPSIS}" + piece
    ranges = sorted({place for word in words for place in _places(piece, word)})
    return piece, _merged(ranges)


def _places(text: str, word: str, *, most: int = 20) -> list[tuple[int, int]]:
    places = []
    for match in re.finditer(re.escape(word), text, re.IGNORECASE):
        places.append(match.span())
        if len(places) == most:
            break
    return places


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _like(word: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", word)
