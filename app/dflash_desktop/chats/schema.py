"""The tables of the chat file, and how files of older versions become today's."""

from __future__ import annotations

import sqlite3

VERSION = 2

_VERSION_1 = """
CREATE TABLE chats (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    has_own_title INTEGER NOT NULL DEFAULT 0,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    created_s REAL NOT NULL,
    changed_s REAL NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}',
    composer_text TEXT NOT NULL DEFAULT '',
    deleted_s REAL
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    chat_id INTEGER NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
    parent_id INTEGER,
    shown_order INTEGER NOT NULL,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    created_s REAL NOT NULL,
    text TEXT NOT NULL,
    reasoning TEXT NOT NULL DEFAULT '',
    rest TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX messages_of_chat ON messages(chat_id);
CREATE TABLE attachments (
    message_id INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    n_bytes INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (message_id, position)
);
CREATE TABLE reply_pieces (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    text TEXT NOT NULL,
    reasoning TEXT NOT NULL
);
CREATE TABLE kept (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE presets (name TEXT PRIMARY KEY, settings TEXT NOT NULL);
"""
# reply_pieces: what a reply gained since its message was written. A long reply is thereby saved in pieces, twice a
# second, and not again and again as a whole.

# Three letters in a row are the unit of search, so that a part of a word, an identifier or Chinese is found.
_VERSION_2 = """
CREATE VIRTUAL TABLE found USING fts5(text, content='messages', content_rowid='id', tokenize='trigram');
CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    INSERT INTO found(rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
    INSERT INTO found(found, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER message_changed AFTER UPDATE OF text ON messages BEGIN
    INSERT INTO found(found, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO found(rowid, text) VALUES (new.id, new.text);
END;
INSERT INTO found(found) VALUES ('rebuild');
"""

_STEPS = (_VERSION_1, _VERSION_2)
"""Step n makes version n + 1 of version n. A step that was released is never changed."""


class NewerVersion(Exception):
    """The file was written by a newer program."""

    def __init__(self, version: int) -> None:
        super().__init__(f"schema version {version}, known is {VERSION}")
        self.version = version


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring the file to VERSION, each step as a whole or not at all. Raises NewerVersion and sqlite3.Error."""
    while (version := version_of(connection)) < VERSION:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;{_STEPS[version]}PRAGMA user_version = {version + 1};COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            if version_of(connection) == version:  # else another window of ours was faster
                raise
    if version > VERSION:
        raise NewerVersion(version)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the file's tables; 0 for an empty one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
