"""The store: what is written is there again, in order, whatever the disk does."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chats.conftest import OpenStore, chat_of, message_of
from dflash_desktop.chats import store as store_module
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.events import ChatOpened, ChatsListed, SavingFailed, SavingWorks
from dflash_desktop.chats.opening import BACKUP_NAME, FILE_NAME
from dflash_desktop.chats.records import Attachment, Preset, new_id
from dflash_desktop.chats.store import ChatStore
from support.patience import until

MakeStore = Callable[..., OpenStore]


def test_a_chat_comes_back_with_all_that_was_known_of_it(open_store: MakeStore) -> None:
    first = open_store()
    chat = chat_of("Skies", is_pinned=True, has_own_title=True, settings={"temperature": 0.5}, composer_text="half")
    asked = message_of("user", "Why? 家庭 😀", attachments=(Attachment("a.txt", "text", "long\ntext", 9),))
    answer = message_of(
        "assistant",
        "Because.",
        asked,
        reasoning="Hm.",
        reasoning_s=1.5,
        facts={"decode_tps": 81.5, "seed": 7},
        accepted_runs=(1, 3, 2),
        state="stopped",
        error="It broke.",
    )
    first.store.add_messages(chat, [asked, answer])
    first.store.close()
    second = open_store()
    assert second.opened.chats == (chat,)
    second.store.open_chat(chat.chat_id)
    found = second.wait(ChatOpened).conversation
    assert found is not None
    assert found.chat == chat
    assert found.messages == (asked, answer)


def test_a_reply_in_pieces_is_whole_after_its_end_and_after_a_crash(open_store: MakeStore, tmp_path: Path) -> None:
    one = open_store()
    chat, asked = chat_of(), message_of("user", "Go")
    reply = message_of("assistant", "", asked, state="writing")
    one.store.add_messages(chat, [asked, reply])
    for piece in ("one ", "two ", "three"):
        one.store.extend_reply(reply.message_id, piece, "t")
    one.store.list_chats()
    one.wait(ChatsListed)
    # What another process would find if this one were gone now.
    file = ChatFile(tmp_path / FILE_NAME)
    assert file.finish_replies() == [reply.message_id]
    found = file.conversation(chat.chat_id)
    file.close()
    assert found is not None
    assert (found.messages[1].text, found.messages[1].reasoning, found.messages[1].state) == (
        "one two three", "ttt", "interrupted",
    )  # fmt: skip
    # The first process lives after all, and goes on.
    one.store.extend_reply(reply.message_id, " four")
    one.store.add_messages(chat, [replace(reply, text="one two three four", state="done")])
    one.store.open_chat(chat.chat_id)
    conversation = one.wait(ChatOpened).conversation
    assert conversation is not None
    assert (conversation.messages[1].text, conversation.messages[1].state) == ("one two three four", "done")


def test_the_chat_that_changed_last_comes_first(open_store: MakeStore) -> None:
    one = open_store()
    for number in (2, 3, 1):
        one.store.save_chat(chat_of(str(number), changed_s=float(number)))
    one.store.list_chats()
    assert [chat.title for chat in one.wait(ChatsListed).chats] == ["3", "2", "1"]


def test_a_deleted_chat_can_be_brought_back_until_the_store_closes(open_store: MakeStore, tmp_path: Path) -> None:
    one = open_store()
    kept, gone = chat_of("kept"), chat_of("gone")
    for chat in (kept, gone):
        one.store.add_messages(chat, [message_of("user", "a secret of " + chat.title)])
        one.store.delete_chat(chat.chat_id)
    one.store.restore_chat(kept.chat_id)
    one.store.open_chat(gone.chat_id)
    assert one.wait(ChatOpened).conversation is None
    one.store.close()
    content = (tmp_path / FILE_NAME).read_bytes()
    assert b"a secret of kept" in content
    assert b"a secret of gone" not in content
    assert [chat.title for chat in open_store().opened.chats] == ["kept"]


def test_a_question_waits_for_the_changes_before_it(open_store: MakeStore) -> None:
    one = open_store()
    chat = chat_of()
    for number in range(50):
        one.store.add_messages(chat, [message_of("user", str(number))])
        one.store.open_chat(chat.chat_id)
        conversation = one.wait(ChatOpened).conversation
        assert conversation is not None
        assert len(conversation.messages) == number + 1


def test_unsent_text_and_presets_are_kept(open_store: MakeStore) -> None:
    one = open_store()
    chat = chat_of()
    one.store.save_chat(chat)
    one.store.keep_composer_text(chat.chat_id, "half a thought")
    one.store.save_chat(replace(chat, title="Renamed"))  # does not know the text, and does not erase it
    one.store.keep("composer_text", "new chat's")
    one.store.save_preset(Preset("Poet", {"temperature": 1.2}))
    one.store.save_preset(Preset("Coder", {}))
    one.store.delete_preset("Coder")
    one.store.close()
    again = open_store().opened
    assert (again.chats[0].title, again.chats[0].composer_text) == ("Renamed", "half a thought")
    assert again.kept == {"composer_text": "new chat's"}
    assert again.presets == (Preset("Poet", {"temperature": 1.2}),)


def test_what_is_attached_to_unsent_text_is_kept_and_goes_with_its_chat(open_store: MakeStore) -> None:
    one = open_store()
    chat, gone = chat_of(), chat_of("gone")
    file = Attachment("a \ud83d.txt", "text", "words 家庭", 12)
    for each in (chat, gone):
        one.store.save_chat(each)
    for chat_id in (None, chat.chat_id, gone.chat_id):
        one.store.keep_unsent(chat_id, (file, file))
    one.store.keep_unsent(None, ())
    one.store.keep("unsent attachments 77", "no JSON")
    one.store.delete_chat(gone.chat_id)
    one.store.close()  # erases what was deleted
    again = open_store().opened
    known = replace(file, name="a ?.txt")
    assert again.unsent == {chat.chat_id: (known, known)}
    assert again.kept == {}


def test_half_an_emoji_is_no_reason_to_lose_a_message(open_store: MakeStore) -> None:
    one = open_store()
    chat = chat_of("\ud83d")
    one.store.add_messages(chat, [message_of("user", "broken \ud83d half")])
    one.store.open_chat(chat.chat_id)
    conversation = one.wait(ChatOpened).conversation
    assert conversation is not None
    assert conversation.messages[0].text == "broken ? half"


def test_a_full_disk_is_told_and_nothing_is_lost(
    open_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is SQLite's own, on the pages of the file: the error is the one of a full disk."""
    monkeypatch.setattr(store_module, "RETRY_S", 0.05)
    one = open_store()
    file = one.store._opened.file  # type: ignore[union-attr]
    (n_pages,) = file.connection.execute("PRAGMA page_count").fetchone()
    file.connection.execute(f"PRAGMA max_page_count = {n_pages + 4}")
    chat = chat_of()
    messages = [message_of("user", f"{number} " + "x" * 20_000) for number in range(8)]
    for message in messages:
        one.store.add_messages(chat, [message])
    failed = one.wait(SavingFailed)
    assert "the disk is full" in failed.message
    one.store.list_chats()  # questions are answered meanwhile
    one.wait(ChatsListed)
    file.connection.execute("PRAGMA max_page_count = 100000")
    one.wait(SavingWorks)
    one.store.open_chat(chat.chat_id)
    conversation = one.wait(ChatOpened).conversation
    assert conversation is not None
    assert conversation.messages == tuple(messages)


def test_a_bug_in_one_change_stops_no_other(open_store: MakeStore, caplog: pytest.LogCaptureFixture) -> None:
    one = open_store()
    one.store._change(lambda file: file.connection.execute("no sql at all"))
    one.store._change(lambda _file: 1 / 0)
    one.store._ask(lambda _file: 1 / 0)  # type: ignore[arg-type,return-value]
    one.store.save_chat(chat_of("fine"))
    one.store.list_chats()
    assert [chat.title for chat in one.wait(ChatsListed).chats] == ["fine"]
    assert sum("failed" in record.message for record in caplog.records) == 3


def test_a_store_that_never_started_closes(tmp_path: Path) -> None:
    ChatStore(tmp_path).close()


def test_two_windows_write_into_one_file(open_store: MakeStore) -> None:
    windows = [open_store(), open_store()]
    chats = [chat_of("one"), chat_of("two")]

    def write(window: OpenStore, number: int) -> None:
        for count in range(40):
            window.store.add_messages(chats[number], [message_of("user", str(count))])
        window.store.list_chats()
        window.wait(ChatsListed)

    threads = [threading.Thread(target=write, args=(window, number)) for number, window in enumerate(windows)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for chat in chats:
        windows[0].store.open_chat(chat.chat_id)
        conversation = windows[0].wait(ChatOpened).conversation
        assert conversation is not None
        assert len(conversation.messages) == 40


def test_a_backup_is_made_when_the_store_has_been_open_for_a_while(
    open_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BACKUP_AFTER_S", 0.2)
    one = open_store()
    one.store.save_chat(chat_of("copied"))
    until((tmp_path / BACKUP_NAME).exists, "a backup")
    with sqlite3.connect(tmp_path / BACKUP_NAME) as copy:
        assert copy.execute("SELECT title FROM chats").fetchall() == [("copied",)]
    copy.close()


def test_a_backup_from_the_future_is_made_anew(
    open_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BACKUP_AFTER_S", 0.1)
    backup = tmp_path / BACKUP_NAME
    backup.touch()
    os.utime(backup, (time.time() + 1e8, time.time() + 1e8))  # the clock was wrong, and is right again
    open_store()
    until(lambda: backup.stat().st_mtime < time.time() + 1e7, "a backup of today")


def test_ids_grow_and_fit_into_sqlite() -> None:
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert ids[-1] < 2**63
