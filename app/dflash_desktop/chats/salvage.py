"""A broken chat file: what can still be read of it is written into a new one. The broken file itself is kept."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dflash_desktop.chats import rows
from dflash_desktop.chats.chat_file import ChatFile, connect
from dflash_desktop.chats.records import Attachment, ChatRecord, MessageRecord
from dflash_desktop.chats.titles import title_of

log = logging.getLogger(__name__)
_SIDE_FILES = ("-wal", "-shm")
_HEADER_BYTES = 100


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What came over from a broken file."""

    kept_as: Path
    n_chats: int
    n_messages: int


def move_aside(path: Path) -> Path:
    """Rename a file of ours, with its write-ahead log, to a name that nothing else has; return that name."""
    stamp = time.strftime("%Y-%m-%d")
    for number in range(1, 1000):
        kept = path.with_name(f"{path.stem}-broken-{stamp}{f'-{number}' if number > 1 else ''}{path.suffix}")
        if not kept.exists():
            break
    path.replace(kept)
    for side in _SIDE_FILES:
        # With its log beside it under the new name, the broken file can be read as far as possible.
        with suppress(FileNotFoundError):
            path.with_name(path.name + side).replace(kept.with_name(kept.name + side))
    return kept


def salvage(broken: Path, into: ChatFile) -> Salvaged:
    """Copy what can be read of `broken` into `into`; what is there already stays. Never raises for the broken file."""
    chats: dict[int, ChatRecord] = {}
    messages: dict[int, dict[int, MessageRecord]] = {}
    deleted: set[int] = set()
    readable = _uncut(broken)
    try:
        with closing(connect(readable)) as connection:
            for row in _rows(connection, "chats", f"{rows.CHAT_COLUMNS}, deleted_s"):
                if row[-1] is None:
                    chats[row[0]] = rows.chat_of(row[:-1])
                else:
                    deleted.add(row[0])
            pieces = _pieces(connection)
            attachments = _attachments(connection)
            for chat_id, *columns in _rows(connection, "messages", f"chat_id, {rows.MESSAGE_COLUMNS}"):
                message = rows.message_of(tuple(columns), attachments.get(columns[0], ()))
                message = _with_pieces(message, pieces)
                messages.setdefault(chat_id if isinstance(chat_id, int) else 0, {})[message.message_id] = message
    except (sqlite3.Error, OSError) as error:
        log.warning("%s: read as far as possible: %s", broken, error)
    if readable != broken:
        for name in ("", *_SIDE_FILES):
            readable.with_name(readable.name + name).unlink(missing_ok=True)
    n_chats = n_messages = 0
    for chat_id in (chats.keys() | messages.keys()) - deleted:
        have = into.conversation(chat_id)
        known = {message.message_id for message in have.messages} if have else set()
        own = sorted(messages.get(chat_id, {}).values(), key=lambda message: message.message_id)
        missing = [message for message in own if message.message_id not in known]
        if have and not missing:
            continue
        into.add_messages(have.chat if have else chats.get(chat_id) or _chat_for(chat_id, own), missing)
        n_chats += have is None
        n_messages += len(missing)
    return Salvaged(broken, n_chats, n_messages)


def _uncut(broken: Path) -> Path:
    """A copy whose header says as many pages as there are, for a file that was cut: SQLite reads none of it else."""
    try:
        size = broken.stat().st_size
        with broken.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        page_bytes = int.from_bytes(header[16:18], "big")
        page_bytes = 65536 if page_bytes == 1 else page_bytes
        if len(header) < _HEADER_BYTES or page_bytes < 512:
            return broken
        n_pages = size // page_bytes
        if n_pages == 0 or n_pages >= int.from_bytes(header[28:32], "big"):
            return broken
        copy = broken.with_name(broken.name + ".readable")
        shutil.copyfile(broken, copy)
        with copy.open("r+b") as file:
            file.seek(28)
            file.write(n_pages.to_bytes(4, "big"))
            file.truncate(n_pages * page_bytes)
        return copy
    except OSError as error:
        log.warning("%s: no readable copy: %s", broken, error)
        return broken


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """All rows that can be read: from the front up to the first bad page, then from the back, then one by one."""
    seen: set[int] = set()
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error):
            for row_id, *row in connection.execute(f"SELECT rowid, {columns} FROM {table} ORDER BY rowid {order}"):
                if row_id in seen:
                    return
                seen.add(row_id)
                yield tuple(row)
    if table != "messages":
        return
    ids: list[int] = []
    with suppress(sqlite3.Error):  # the index names rows whose neighbours cannot be read
        ids += [one for (one,) in connection.execute("SELECT rowid FROM messages INDEXED BY messages_of_chat")]
    for row_id in ids:
        if row_id not in seen:
            with suppress(sqlite3.Error):
                row = connection.execute(f"SELECT {columns} FROM {table} WHERE rowid = ?", (row_id,)).fetchone()
                if row:
                    yield row


def _pieces(connection: sqlite3.Connection) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {}
    for _, message_id, text, reasoning in sorted(
        _rows(connection, "reply_pieces", "position, message_id, text, reasoning")
    ):
        found.setdefault(message_id, []).append((str(text), str(reasoning)))
    return found


def _attachments(connection: sqlite3.Connection) -> dict[int, list[Attachment]]:
    found: dict[int, list[Attachment]] = {}
    for message_id, *row in _rows(connection, "attachments", "message_id, name, kind, n_bytes, text"):
        found.setdefault(message_id, []).append(rows.attachment_of(tuple(row)))
    return found


def _with_pieces(message: MessageRecord, pieces: dict[int, list[tuple[str, str]]]) -> MessageRecord:
    more = pieces.get(message.message_id, [])
    return replace(
        message,
        text=message.text + "".join(text for text, _ in more),
        reasoning=message.reasoning + "".join(thought for _, thought in more),
        state="interrupted" if message.state == "writing" else message.state,
    )


def _chat_for(chat_id: int, messages: list[MessageRecord]) -> ChatRecord:
    """A chat whose own row is lost."""
    return ChatRecord(
        chat_id,
        title=title_of(messages[0].text),
        created_s=messages[0].created_s,
        changed_s=messages[-1].created_s,
    )
