"""The chat file: one SQLite database, read and written here and nowhere else. Every call is one whole change.

Methods may raise sqlite3.Error; store.py knows what to make of it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dflash_desktop.chats import rows
from dflash_desktop.chats.records import Attachment, ChatRecord, Conversation, MessageRecord, Preset
from dflash_desktop.chats.schema import upgrade

UNSENT = "unsent attachments "
"""What is kept under this and the number of a chat (nothing: the new one) was attached and not sent."""
BUSY_MS = 5000
"""How long to wait for another window that is writing."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the file as it is. Text that is no UTF-8 any more is read with replacement characters."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return connection


class ChatFile:
    """Open for reading and writing; used from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open or create the file and bring it to today's schema. Raises sqlite3.Error and schema.NewerVersion."""
        self.path = path
        self._connection = connect(path)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            # Each change is on the disk when its call returns, so that not even a power cut takes it back.
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.execute("PRAGMA secure_delete = ON")
            upgrade(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; the write-ahead log becomes part of it."""
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        return self._connection

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    # ---- chats

    def chats(self) -> tuple[ChatRecord, ...]:
        """All chats, the one that was changed last first."""
        found = self._connection.execute(
            f"SELECT {rows.CHAT_COLUMNS} FROM chats WHERE deleted_s IS NULL ORDER BY changed_s DESC, id DESC"
        )
        return tuple(map(rows.chat_of, found))

    def chat(self, chat_id: int) -> ChatRecord | None:
        found = self._connection.execute(
            f"SELECT {rows.CHAT_COLUMNS} FROM chats WHERE id = ? AND deleted_s IS NULL", (chat_id,)
        ).fetchone()
        return rows.chat_of(found) if found else None

    def save_chat(self, chat: ChatRecord) -> None:
        """Write the chat's own facts; its messages, and the unsent text of one that is there, stay as they are."""
        with self._change() as connection:
            _put_chat(connection, chat)

    def delete_chat(self, chat_id: int) -> None:
        """Hide a chat until `restore_chat` or `purge`."""
        with self._change() as connection:
            connection.execute("UPDATE chats SET deleted_s = ? WHERE id = ?", (time.time(), chat_id))

    def restore_chat(self, chat_id: int) -> None:
        with self._change() as connection:
            connection.execute("UPDATE chats SET deleted_s = NULL WHERE id = ?", (chat_id,))

    def purge(self, *, before_s: float | None = None) -> int:
        """Erase what was deleted (before that time), and return how many chats that was."""
        limit = time.time() if before_s is None else before_s
        with self._change() as connection:
            gone = connection.execute("SELECT ? || id FROM chats WHERE deleted_s <= ?", (UNSENT, limit)).fetchall()
            connection.executemany("DELETE FROM kept WHERE name = ?", gone)
            return connection.execute("DELETE FROM chats WHERE deleted_s <= ?", (limit,)).rowcount

    # ---- messages

    def conversation(self, chat_id: int) -> Conversation | None:
        """A chat with all its messages, parents first."""
        chat = self.chat(chat_id)
        if chat is None:
            return None
        found = self._connection.execute(
            f"SELECT {rows.MESSAGE_COLUMNS} FROM messages WHERE chat_id = ? ORDER BY id", (chat_id,)
        ).fetchall()
        attachments = self._attachments(chat_id)
        return Conversation(chat, tuple(rows.message_of(row, attachments[row[0]]) for row in found))

    def _attachments(self, chat_id: int) -> Mapping[int, list[Attachment]]:
        found = defaultdict[int, list[Attachment]](list)
        for message_id, *row in self._connection.execute(
            "SELECT message_id, name, kind, n_bytes, attachments.text FROM attachments "
            "JOIN messages ON messages.id = message_id WHERE chat_id = ? ORDER BY message_id, position",
            (chat_id,),
        ):
            found[message_id].append(rows.attachment_of(tuple(row)))
        return found

    def add_messages(self, chat: ChatRecord, messages: Sequence[MessageRecord]) -> None:
        """Write a chat and some of its messages; those that are there already are replaced."""
        with self._change() as connection:
            _put_chat(connection, chat)
            for message in messages:
                _put_message(connection, chat.chat_id, message)

    def extend_reply(self, message_id: int, text: str, reasoning: str) -> None:
        """Save what a reply gained. Costs its own length, however long the reply has become."""
        with self._change() as connection:
            connection.execute(
                "INSERT INTO reply_pieces (message_id, text, reasoning) SELECT id, ?, ? FROM messages WHERE id = ?",
                (rows.storable(text), rows.storable(reasoning), message_id),
            )

    def show_message(self, message_id: int, shown_order: int) -> None:
        with self._change() as connection:
            connection.execute("UPDATE messages SET shown_order = ? WHERE id = ?", (shown_order, message_id))

    def delete_messages(self, message_ids: Sequence[int]) -> None:
        with self._change() as connection:
            connection.executemany("DELETE FROM messages WHERE id = ?", [(one,) for one in message_ids])

    def finish_replies(self) -> list[int]:
        """Put together the replies in whose middle the program ended, and return their ids."""
        with self._change() as connection:
            ids = [
                one
                for (one,) in connection.execute(
                    "SELECT id FROM messages WHERE state = 'writing' UNION SELECT message_id FROM reply_pieces"
                )
            ]
            for message_id in ids:
                pieces = connection.execute(
                    "SELECT text, reasoning FROM reply_pieces WHERE message_id = ? ORDER BY position", (message_id,)
                ).fetchall()
                connection.execute(
                    "UPDATE messages SET text = text || ?, reasoning = reasoning || ?, state = 'interrupted' "
                    "WHERE id = ?",
                    ("".join(text for text, _ in pieces), "".join(thought for _, thought in pieces), message_id),
                )
                connection.execute("DELETE FROM reply_pieces WHERE message_id = ?", (message_id,))
        return ids

    # ---- the rest

    def keep(self, name: str, value: str) -> None:
        """Remember a text under a name: unsent text of the new chat, the chat that was open."""
        with self._change() as connection:
            connection.execute("REPLACE INTO kept (name, value) VALUES (?, ?)", (name, rows.storable(value)))

    def keep_composer_text(self, chat_id: int, text: str) -> None:
        with self._change() as connection:
            connection.execute("UPDATE chats SET composer_text = ? WHERE id = ?", (rows.storable(text), chat_id))

    def keep_unsent(self, chat_id: int | None, attachments: Sequence[Attachment]) -> None:
        """Remember what is attached to the message that is not sent yet; None: of the new chat."""
        name = f"{UNSENT}{chat_id or ''}"
        written = json.dumps([rows.attachment_row(0, 0, one)[2:] for one in attachments])
        with self._change() as connection:
            connection.execute("DELETE FROM kept WHERE name = ?", (name,))
            if attachments:
                connection.execute("INSERT INTO kept (name, value) VALUES (?, ?)", (name, written))

    def unsent(self) -> dict[int | None, tuple[Attachment, ...]]:
        """What keep_unsent has kept, by chat; what cannot be read is left out."""
        found: dict[int | None, tuple[Attachment, ...]] = {}
        for name, value in self._connection.execute("SELECT name, value FROM kept WHERE name GLOB ?", (f"{UNSENT}*",)):
            number = name.removeprefix(UNSENT)
            with suppress(TypeError, ValueError, RecursionError):
                found[int(number) if number else None] = tuple(
                    rows.attachment_of(tuple(one)) for one in json.loads(value)
                )
        return found

    def kept(self) -> dict[str, str]:
        """What `keep` has kept."""
        found = self._connection.execute("SELECT name, value FROM kept WHERE name NOT GLOB ?", (f"{UNSENT}*",))
        return dict(found.fetchall())

    def presets(self) -> tuple[Preset, ...]:
        found = self._connection.execute("SELECT name, settings FROM presets ORDER BY name COLLATE NOCASE")
        return tuple(Preset(name, rows.json_object(settings)) for name, settings in found)

    def save_preset(self, preset: Preset) -> None:
        with self._change() as connection:
            connection.execute(
                "REPLACE INTO presets (name, settings) VALUES (?, ?)",
                (rows.storable(preset.name), json.dumps(dict(preset.settings))),
            )

    def delete_preset(self, name: str) -> None:
        with self._change() as connection:
            connection.execute("DELETE FROM presets WHERE name = ?", (name,))

    def back_up(self, destination: Path) -> None:
        """Write a copy of the file as it is now; a copy that is there is replaced when the new one is whole."""
        part = destination.with_name(destination.name + ".part")
        part.unlink(missing_ok=True)
        copy = sqlite3.connect(part)
        try:
            self._connection.backup(copy)
        finally:
            copy.close()
        part.replace(destination)


def _put_chat(connection: sqlite3.Connection, chat: ChatRecord) -> None:
    connection.execute(
        f"INSERT INTO chats ({rows.CHAT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "title = excluded.title, has_own_title = excluded.has_own_title, is_pinned = excluded.is_pinned, "
        "created_s = excluded.created_s, changed_s = excluded.changed_s, settings = excluded.settings",
        rows.chat_row(chat),
    )


def _put_message(connection: sqlite3.Connection, chat_id: int, message: MessageRecord) -> None:
    connection.execute(
        f"INSERT INTO messages (chat_id, {rows.MESSAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET shown_order = excluded.shown_order, state = excluded.state, "
        "text = excluded.text, reasoning = excluded.reasoning, rest = excluded.rest",
        (chat_id, *rows.message_row(message)),
    )
    connection.execute("DELETE FROM attachments WHERE message_id = ?", (message.message_id,))
    connection.executemany(
        "INSERT INTO attachments (message_id, position, name, kind, n_bytes, text) VALUES (?, ?, ?, ?, ?, ?)",
        _attachment_rows(message.message_id, message.attachments),
    )
    # The text is whole now: what had been saved of it in pieces is no longer needed.
    connection.execute("DELETE FROM reply_pieces WHERE message_id = ?", (message.message_id,))


def _attachment_rows(message_id: int, attachments: Iterable[Attachment]) -> list[tuple[Any, ...]]:
    return [rows.attachment_row(message_id, place, one) for place, one in enumerate(attachments)]
