"""Opening the chat file whatever state it is in: whole, broken, emptied, newer than we are, or not writable."""

from __future__ import annotations

import logging
import sqlite3
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import make_folder
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.salvage import move_aside, salvage
from dflash_desktop.chats.schema import VERSION, NewerVersion

log = logging.getLogger(__name__)

FILE_NAME = "chats.sqlite3"
BACKUP_NAME = "chats-backup.sqlite3"
CHECKED_BYTES = 64 * 2**20
"""Up to this size the whole file is checked at each start, a larger one after a crash only: it takes a while."""
DELETED_KEPT_S = 3600.0
"""A deleted chat is erased at the first start after this time, or when the program that deleted it ends."""


@dataclass(slots=True)
class OpenedFile:
    """The file in use, and what the person should know about it. `is_lasting`: it is there at the next start."""

    file: ChatFile
    problem: str = ""
    is_lasting: bool = True


def open_chat_file(folder: Path) -> OpenedFile:
    """Open the chats in `folder`. Never fails: at worst the chats of this run are kept in a temporary file."""
    path = folder / FILE_NAME
    try:
        make_folder(folder)
        opened = _open(path)
        opened.file.finish_replies()
        opened.file.purge(before_s=time.time() - DELETED_KEPT_S)
        return opened
    except NewerVersion as error:
        log.warning("%s: %s", path, error)
        return _open_beside(folder)
    except (sqlite3.Error, OSError, AppError) as error:
        log.exception("%s cannot be opened", path)
        return _open_for_now(f"{path} cannot be opened: {_reason(error)}")


def _open(path: Path) -> OpenedFile:
    backup = path.with_name(BACKUP_NAME)
    log_file = path.with_name(path.name + "-wal")
    was_cut_off = log_file.exists() and log_file.stat().st_size > 0  # the last run did not close the file
    is_empty = path.exists() and path.stat().st_size == 0 and not was_cut_off
    try:
        if is_empty and backup.exists():
            raise sqlite3.DatabaseError("the file is empty")
        file = ChatFile(path)
        try:
            file.chats()
            _check(file, is_thorough=was_cut_off or path.stat().st_size < CHECKED_BYTES)
        except BaseException:
            file.close()
            raise
        return OpenedFile(file)
    except sqlite3.DatabaseError as error:
        if not is_broken(error):
            raise
        log.warning("%s is broken: %s", path, error)
    kept = move_aside(path)
    file = ChatFile(path)
    found = salvage(kept, file)
    n_chats, n_messages = found.n_chats, found.n_messages
    if backup.exists():
        more = salvage(backup, file)
        n_chats, n_messages = n_chats + more.n_chats, n_messages + more.n_messages
    problem = (
        f"The file with your chats was damaged. {n_chats} chats with {n_messages} messages were recovered from it; "
        f"the damaged file is kept as {kept.name} in {kept.parent}."
    )
    return OpenedFile(file, problem)


def _check(file: ChatFile, *, is_thorough: bool) -> None:
    """Raise for a file that is cut or has bad pages: better noticed here than when a chat is opened."""
    (n_pages,) = file.connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = file.connection.execute("PRAGMA page_size").fetchone()
    file.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    if file.path.stat().st_size < n_pages * page_bytes:
        raise sqlite3.DatabaseError(f"the file is cut: {n_pages} pages of {page_bytes} bytes are not there")
    if is_thorough:
        problems = [row for (row,) in file.connection.execute("PRAGMA quick_check(3)") if row != "ok"]
        if problems:
            raise sqlite3.DatabaseError(f"malformed: {'; '.join(problems)}")


def is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether the file's content is bad, and not the disk, its rights or another program's lock."""
    if isinstance(error, sqlite3.OperationalError):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code not in (
            sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM,
        )  # fmt: skip
    return True


def _open_beside(folder: Path) -> OpenedFile:
    """A newer program's file is left alone; this version keeps its own beside it."""
    path = folder / f"chats-v{VERSION}.sqlite3"
    problem = (
        f"Your chats were written by a newer version of this program. They are untouched in {folder / FILE_NAME} and "
        f"show again after an update. New chats go to {path.name} meanwhile."
    )
    try:
        file = ChatFile(path)
        file.finish_replies()
        return OpenedFile(file, problem)
    except (sqlite3.Error, NewerVersion, OSError) as error:
        log.exception("%s cannot be opened", path)
        return _open_for_now(f"{problem} But that file cannot be opened: {_reason(error)}")


def _open_for_now(problem: str) -> OpenedFile:
    folder = Path(tempfile.mkdtemp(prefix="dflash-chats-"))
    words = f"{problem} Chats of this session are kept until the window closes only: export those that matter."
    return OpenedFile(ChatFile(folder / FILE_NAME), words, is_lasting=False)


def forget(opened: OpenedFile) -> None:
    """Close the file; remove it when it was for this run only."""
    opened.file.close()
    if not opened.is_lasting:
        folder = opened.file.path.parent
        with suppress(OSError):
            for left in folder.iterdir():
                left.unlink()
            folder.rmdir()


def _reason(error: Exception) -> str:
    """Why, as a sentence: our own errors are some already, the system's are not."""
    return f"{str(error).rstrip('.')}."
