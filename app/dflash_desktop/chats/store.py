"""The store: two threads that read and write the chat file, so that nobody who asks ever waits for the disk.

`ChatStore`'s methods may be called from any thread and return at once. Changes are made in the order in which they
were asked for. A question is answered after the changes that were asked for before it. Events come on the store's
threads.

When the disk refuses a change, it waits in memory together with all later ones and is tried again every RETRY_S;
SavingFailed tells it once, SavingWorks when it is over.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from dflash_desktop.base.causes import Cause
from dflash_desktop.chats import search
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.events import (
    ChatOpened,
    ChatsFound,
    ChatsListed,
    SavingFailed,
    SavingWorks,
    StoreEvent,
    StoreOpened,
)
from dflash_desktop.chats.opening import BACKUP_NAME, OpenedFile, forget, open_chat_file
from dflash_desktop.chats.records import Attachment, ChatRecord, Conversation, MessageRecord, Preset

log = logging.getLogger(__name__)

RETRY_S = 2.0
BACKUP_AFTER_S = 60.0
BACKUP_EVERY_S = 24 * 3600.0

Change = Callable[[ChatFile], object]
Question = Callable[[ChatFile], StoreEvent | None]
Subscriber = Callable[[StoreEvent], None]


class ChatStore:
    """Start it once, close it once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._subscriber: Subscriber = _nobody
        self._changes: queue.Queue[Change | None] = queue.Queue()
        self._questions: queue.Queue[tuple[int, Question] | None] = queue.Queue()
        self._n_asked = 0  # changes asked for so far
        self._n_made = 0
        self._made = threading.Condition()
        self._is_stuck = False
        self._is_closing = threading.Event()
        self._opened: OpenedFile | None = None
        self._is_open = threading.Event()
        self._ask_lock = threading.Lock()
        self._writer = threading.Thread(target=self._write, name="chats-writer")
        self._reader = threading.Thread(target=self._read, name="chats-reader")

    def start(self, subscriber: Subscriber) -> None:
        """Open the file and tell it with StoreOpened."""
        self._subscriber = subscriber
        self._writer.start()
        self._reader.start()

    def close(self) -> None:
        """Make all changes that were asked for, erase what was deleted, and end the threads."""
        if not self._writer.is_alive() and not self._is_open.is_set():
            return
        self._is_closing.set()
        self._changes.put(None)
        self._questions.put(None)
        self._writer.join()
        self._reader.join()

    # ---- changes

    def save_chat(self, chat: ChatRecord) -> None:
        self._change(partial(ChatFile.save_chat, chat=chat))

    def add_messages(self, chat: ChatRecord, messages: Sequence[MessageRecord]) -> None:
        """Write these messages, or write them again, and their chat."""
        self._change(partial(ChatFile.add_messages, chat=chat, messages=tuple(messages)))

    def extend_reply(self, message_id: int, text: str, reasoning: str = "") -> None:
        """Save what a reply has gained since the last call."""
        self._change(partial(ChatFile.extend_reply, message_id=message_id, text=text, reasoning=reasoning))

    def show_message(self, message_id: int, shown_order: int) -> None:
        self._change(partial(ChatFile.show_message, message_id=message_id, shown_order=shown_order))

    def delete_messages(self, message_ids: Sequence[int]) -> None:
        self._change(partial(ChatFile.delete_messages, message_ids=tuple(message_ids)))

    def delete_chat(self, chat_id: int) -> None:
        """Hide a chat; it is erased when the store closes, unless `restore_chat` comes before."""
        self._change(partial(ChatFile.delete_chat, chat_id=chat_id))

    def restore_chat(self, chat_id: int) -> None:
        self._change(partial(ChatFile.restore_chat, chat_id=chat_id))

    def keep(self, name: str, value: str) -> None:
        self._change(partial(ChatFile.keep, name=name, value=value))

    def keep_composer_text(self, chat_id: int, text: str) -> None:
        self._change(partial(ChatFile.keep_composer_text, chat_id=chat_id, text=text))

    def keep_unsent(self, chat_id: int | None, attachments: Sequence[Attachment]) -> None:
        self._change(partial(ChatFile.keep_unsent, chat_id=chat_id, attachments=tuple(attachments)))

    def save_preset(self, preset: Preset) -> None:
        self._change(partial(ChatFile.save_preset, preset=preset))

    def delete_preset(self, name: str) -> None:
        self._change(partial(ChatFile.delete_preset, name=name))

    def add_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Write whole chats, as an import does; ChatsListed follows."""
        for one in conversations:
            self.add_messages(one.chat, one.messages)
        self.list_chats()

    # ---- questions

    def list_chats(self) -> None:
        self._ask(lambda file: ChatsListed(file.chats()))

    def open_chat(self, chat_id: int) -> None:
        self._ask(lambda file: ChatOpened(chat_id, file.conversation(chat_id)))

    def find(self, query: str) -> None:
        self._ask(lambda file: ChatsFound(query, tuple(search.find(file.connection, query))))

    def read(self, question: Callable[[ChatFile], object]) -> None:
        """Run `question` on the reading thread, for work that takes the chats from the file: an export of all."""

        def ask(file: ChatFile) -> None:
            question(file)

        self._ask(ask)

    # ---- the threads

    def _change(self, change: Change) -> None:
        with self._ask_lock:
            self._n_asked += 1
            self._changes.put(change)

    def _ask(self, question: Question) -> None:
        with self._ask_lock:
            self._questions.put((self._n_asked, question))

    def _write(self) -> None:
        try:
            opened = self._opened = open_chat_file(self._folder)
        except Exception as error:  # the top of this thread
            log.exception("no chat file can be opened")
            self._tell(StoreOpened((), {}, (), f"Chats cannot be kept: {error}."))
            return
        finally:
            self._is_open.set()
        file = opened.file
        self._tell(StoreOpened(file.chats(), file.kept(), file.presets(), opened.problem, file.unsent()))
        backup_at = time.monotonic() + BACKUP_AFTER_S if opened.is_lasting else None
        while True:
            try:
                wait_s = None if backup_at is None else max(0.0, backup_at - time.monotonic())
                change = self._changes.get(timeout=wait_s)
            except queue.Empty:
                self._back_up(file)
                backup_at = None
                continue
            if change is None:
                break
            self._make(file, change)
        self._end(opened)

    def _make(self, file: ChatFile, change: Change) -> None:
        """Make this change, whatever time the disk takes to allow it."""
        while True:
            try:
                change(file)
            except sqlite3.DatabaseError as error:
                if self._wait_for_disk(error):
                    continue
            except Exception:  # the top of this thread; one change that is a bug must not stop the others
                log.exception("a change of the chats failed")
            break
        if self._is_stuck and not self._is_closing.is_set():
            self._tell(SavingWorks())
        with self._made:
            self._is_stuck = False
            self._n_made += 1
            self._made.notify_all()

    def _wait_for_disk(self, error: sqlite3.DatabaseError) -> bool:
        """Tell it once, wait, and return whether to try again."""
        reason = _why_not_saved(error)
        if reason is None:
            log.error("a change of the chats failed", exc_info=error)
            return False
        if not self._is_stuck:
            log.warning("the chats cannot be saved: %s", error)
            with self._made:
                self._is_stuck = True
                self._made.notify_all()
            words = f"Chats cannot be saved in {self._folder}: {reason} Until then they are kept in memory."
            cause = Cause("disk_full", {"folder": str(self._folder)}) if _is_full(error) else None
            self._tell(SavingFailed(words, cause))
        if self._is_closing.wait(RETRY_S):
            log.error("closing, and the disk refused %d changes: %s", 1 + self._changes.qsize(), error)
            return False
        return True

    def _end(self, opened: OpenedFile) -> None:
        with suppress(sqlite3.Error):
            opened.file.purge()
        self._reader.join()
        forget(opened)

    def _back_up(self, file: ChatFile) -> None:
        backup = self._folder / BACKUP_NAME
        try:
            age_s = time.time() - backup.stat().st_mtime if backup.exists() else -1.0
            if not 0 <= age_s <= BACKUP_EVERY_S:  # below 0: there is none, or it is of a day when the clock was wrong
                file.back_up(backup)
        except (sqlite3.Error, OSError) as error:
            log.warning("no backup of the chats: %s", error)

    def _read(self) -> None:
        self._is_open.wait()
        file: ChatFile | None = None
        while (item := self._questions.get()) is not None:
            n_before, question = item
            with self._made:
                self._made.wait_for(lambda n=n_before: self._n_made >= n or self._is_stuck)  # type: ignore[misc]
            if self._opened is None:
                continue
            try:
                file = file or ChatFile(self._opened.file.path)
                answer = question(file)
            except Exception:  # the top of this thread
                log.exception("a question about the chats failed")
                continue
            if answer is not None:
                self._tell(answer)
        if file is not None:
            file.close()

    def _tell(self, event: StoreEvent) -> None:
        try:
            self._subscriber(event)
        except Exception:  # a listener's bug is not the store's
            log.exception("a listener of the chats failed")


def _nobody(_event: StoreEvent) -> None:
    """Listens while nobody else does."""


def _is_full(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def _why_not_saved(error: sqlite3.DatabaseError) -> str | None:
    """Why the disk refuses, and what helps; None for what trying again cannot mend: a bug."""
    return {
        sqlite3.SQLITE_FULL: "the disk is full. Free some space.",
        sqlite3.SQLITE_READONLY: "the folder is read-only. Allow writing there.",
        sqlite3.SQLITE_PERM: "the folder does not allow it. Allow writing there.",
        sqlite3.SQLITE_BUSY: "another program holds the file. Close that program.",
        sqlite3.SQLITE_LOCKED: "another program holds the file. Close that program.",
        sqlite3.SQLITE_CANTOPEN: f"the file cannot be opened ({error}). Is the drive still there?",
        sqlite3.SQLITE_IOERR: f"the disk reports an error ({error}). Is the drive still there?",
        sqlite3.SQLITE_CORRUPT: "the file is damaged. Export this chat, then start again: the file is repaired then.",
        sqlite3.SQLITE_NOTADB: "the file is damaged. Export this chat, then start again: the file is repaired then.",
    }.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
