"""A broken file hides no chat that can still be read, is kept, and is told (B128, B126)."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chats.conftest import OpenStore, chat_of, message_of
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.events import ChatOpened
from dflash_desktop.chats.opening import BACKUP_NAME, FILE_NAME, open_chat_file
from dflash_desktop.chats.schema import _STEPS, VERSION, NewerVersion, version_of

MakeStore = Callable[..., OpenStore]
N_CHATS = 20


def fill(path: Path) -> list[str]:
    """Write chats whose texts are easy to find in the file; return their titles."""
    file = ChatFile(path)
    titles = []
    for number in range(N_CHATS):
        chat = chat_of(f"chat {number:02}", changed_s=float(number))
        asked = message_of("user", f"question {number:02} " + "x" * 3000)
        file.add_messages(chat, [asked, message_of("assistant", f"answer {number:02} " + "y" * 3000, asked)])
        titles.append(chat.title)
    file.close()
    return titles


def open_all(store: OpenStore) -> dict[str, list[str]]:
    texts = {}
    for chat in store.opened.chats:
        store.store.open_chat(chat.chat_id)
        conversation = store.wait(ChatOpened).conversation
        assert conversation is not None
        texts[chat.title] = [" ".join(message.text.split()[:2]) for message in conversation.messages]
    return texts


def test_bad_utf8_in_one_record_hides_no_other(open_store: MakeStore, tmp_path: Path) -> None:
    titles = fill(tmp_path / FILE_NAME)
    content = (tmp_path / FILE_NAME).read_bytes()
    for at in (content.find(b"question 07"), content.find(b"chat 03")):
        content = content[:at] + b"\xff\xfe" + content[at + 2 :]
    (tmp_path / FILE_NAME).write_bytes(content)
    texts = open_all(open_store())
    assert len(texts) == len(titles)
    assert "\ufffd\ufffdestion 07" in texts["chat 07"][0]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.97])
def test_a_file_that_was_cut_gives_back_what_is_left(open_store: MakeStore, tmp_path: Path, share: float) -> None:
    path = tmp_path / FILE_NAME
    fill(path)
    whole = path.read_bytes()
    cut = whole[: int(len(whole) * share)]
    path.write_bytes(cut)
    store = open_store()
    assert "was damaged" in store.opened.problem
    (kept,) = [file for file in tmp_path.iterdir() if "-broken-" in file.name and file.suffix == ".sqlite3"]
    assert kept.name in store.opened.problem
    assert kept.read_bytes()[4096:] == cut[4096:]  # SQLite may have written into its first page
    texts = open_all(store)
    whole_chats = [found for found in texts.values() if len(found) == 2]
    assert all(asked[-2:] == answer[-2:] for asked, answer in whole_chats)
    assert len(whole_chats) >= N_CHATS * (share - 0.35)
    store.store.add_messages(chat_of("new"), [message_of("user", "goes on")])


def test_what_the_file_has_lost_comes_from_the_backup(open_store: MakeStore, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    titles = fill(path)
    file = ChatFile(path)
    file.back_up(tmp_path / BACKUP_NAME)
    file.add_messages(chat_of("later", changed_s=99.0), [message_of("user", "after the backup")])
    file.close()
    path.write_bytes(b"")
    store = open_store()
    assert f"{N_CHATS} chats with {2 * N_CHATS} messages were recovered" in store.opened.problem
    assert sorted(open_all(store)) == titles


@pytest.mark.parametrize("seed", range(6))
def test_noise_in_the_file_never_stops_the_start(open_store: MakeStore, tmp_path: Path, seed: int) -> None:
    path = tmp_path / FILE_NAME
    fill(path)
    content = bytearray(path.read_bytes())
    noise = random.Random(seed)
    for _ in range(40):
        at = noise.randrange(100, len(content) - 64)
        content[at : at + 32] = noise.randbytes(32)
    path.write_bytes(content)
    store = open_store()
    open_all(store)
    store.store.add_messages(chat_of("new"), [message_of("user", "goes on")])
    store.store.list_chats()


def test_a_file_that_is_none_of_ours_is_kept(open_store: MakeStore, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("something else entirely, " * 400)
    store = open_store()
    assert store.opened.chats == ()
    assert "was damaged" in store.opened.problem
    kept = next(file for file in tmp_path.iterdir() if "-broken-" in file.name)
    assert kept.read_text().startswith("something else")


def test_a_file_of_a_newer_program_is_left_alone(open_store: MakeStore, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    store = open_store()
    assert "newer version" in store.opened.problem
    store.store.save_chat(chat_of("meanwhile"))
    store.store.close()
    assert path.read_bytes() == before
    assert [chat.title for chat in open_store().opened.chats] == ["meanwhile"]


def test_each_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(_STEPS[0] + "PRAGMA user_version = 1;")
    connection.execute("INSERT INTO chats (id, title, created_s, changed_s) VALUES (1, 'old', 1, 1)")
    connection.execute("INSERT INTO messages VALUES (2, 1, NULL, 1, 'user', 'done', 1, 'an old needle', '', '{}')")
    connection.close()
    opened = open_chat_file(tmp_path)
    assert (opened.problem, version_of(opened.file.connection)) == ("", VERSION)
    found = opened.file.connection.execute("SELECT rowid FROM found WHERE found MATCH 'needle'").fetchall()
    conversation = opened.file.conversation(1)
    opened.file.close()
    assert found == [(2,)]
    assert conversation is not None
    assert conversation.messages[0].text == "an old needle"


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    fill(path)
    monkeypatch.setattr("dflash_desktop.chats.schema.VERSION", VERSION + 1)
    monkeypatch.setattr(
        "dflash_desktop.chats.schema._STEPS", (*_STEPS, "CREATE TABLE more (x); CREATE TABLE more (x);")
    )
    with pytest.raises(sqlite3.Error):
        ChatFile(path)
    monkeypatch.undo()
    file = ChatFile(path)
    assert len(file.chats()) == N_CHATS
    file.close()


def test_a_newer_version_has_its_own_name(tmp_path: Path) -> None:
    file = ChatFile(tmp_path / "x.sqlite3")
    file.connection.execute("PRAGMA user_version = 7")
    file.close()
    with pytest.raises(NewerVersion) as found:
        ChatFile(tmp_path / "x.sqlite3")
    assert found.value.version == 7


@pytest.mark.parametrize("kind", ["file", "dangling", "read-only", "folder"])
def test_a_folder_that_cannot_be_used_is_told_and_chats_work(open_store: MakeStore, tmp_path: Path, kind: str) -> None:
    """B126."""
    folder = tmp_path / "data"
    if kind == "file":
        folder.write_text("no folder")
    elif kind == "dangling":
        folder.symlink_to(tmp_path / "nowhere" / "deep")
        (tmp_path / "nowhere").write_text("")
    elif kind == "folder":
        (folder / FILE_NAME).mkdir(parents=True)
    else:
        if sys.platform == "win32" or os.geteuid() == 0:
            pytest.skip("nothing is read-only for this user")
        folder.mkdir(mode=0o555)
    store = open_store(folder)
    assert "cannot be" in store.opened.problem
    assert "export those that matter" in store.opened.problem
    chat = chat_of()
    store.store.add_messages(chat, [message_of("user", "kept for now")])
    store.store.open_chat(chat.chat_id)
    conversation = store.wait(ChatOpened).conversation
    assert conversation is not None
    assert conversation.messages[0].text == "kept for now"
    path = store.store._opened.file.path  # type: ignore[union-attr]
    store.store.close()
    assert not path.parent.exists()
