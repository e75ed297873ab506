"""kill -9 at random points: what was on screen more than a second before is in the file (B128)."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dflash_desktop.chats.opening import open_chat_file

SHOWN_FOR_S = 1.0
TURN_S = 0.02
AT_ONCE = 8
MEMORY = Path("/dev/shm")
"""Where a disk takes its time, changes wait in line for longer than a second: what a kill costs then is the disk's."""

PROGRAM = """
import sys, time
from dataclasses import replace
from pathlib import Path
from dflash_desktop.chats.records import ChatRecord, MessageRecord, new_id
from dflash_desktop.chats.store import ChatStore

store, TURN_S = ChatStore(Path(sys.argv[1])), float(sys.argv[2])
store.start(lambda event: None)

n_turns = 0  # a clock that stands still while this program does

def shown(what, n):
    print(n_turns * TURN_S, what, n, flush=True)

parent, count = None, 0
chat = ChatRecord(new_id(), "Chat", created_s=time.time(), changed_s=time.time())
while True:
    asked = MessageRecord(new_id(), parent, "user", f"question {count}", time.time(), 1)
    reply = MessageRecord(new_id(), asked.message_id, "assistant", "", time.time(), 1, state="writing")
    store.add_messages(chat, [asked, reply])
    shown(f"q{count}", 1)
    text = saved = ""
    saved_at = n_turns
    for number in range(40):
        text += f"{count}.{number} "
        shown(f"a{count}", len(text))
        store.keep_composer_text(chat.chat_id, f"unsent {count} {number}")
        shown("composer", count * 100 + number)
        time.sleep(TURN_S)
        n_turns += 1
        if (n_turns - saved_at) * TURN_S > 0.25:  # as the window does it
            store.extend_reply(reply.message_id, text[len(saved):])
            saved, saved_at = text, n_turns
    store.add_messages(chat, [replace(reply, text=text, state="done")])
    parent, count = reply.message_id, count + 1
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(TURN_S)], stdout=subprocess.PIPE, text=True
    )


def check(folder: Path, output: str) -> None:
    seen: dict[str, int] = {}
    lines = [line.split() for line in output.splitlines()[:-1]]  # the last one may have been cut
    for at_s, name, number in lines:
        if float(at_s) < float(lines[-1][0]) - SHOWN_FOR_S:
            seen[name] = int(number)
    opened = open_chat_file(folder)
    try:
        assert opened.problem == ""
        assert opened.file.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        chats = opened.file.chats()
        if not seen:
            return
        conversation = opened.file.conversation(chats[0].chat_id)
        assert conversation is not None
        texts = {message.text: message for message in conversation.messages}
        answers = [message for message in conversation.messages if message.role == "assistant"]
        for what, n in seen.items():
            if what == "composer":
                count, number = chats[0].composer_text.split()[1:]
                assert int(count) * 100 + int(number) >= n
            elif what[0] == "q":
                assert f"question {what[1:]}" in texts
            else:
                answer = answers[int(what[1:])]
                assert len(answer.text) >= n
                whole = "".join(f"{what[1:]}.{number} " for number in range(40))
                assert whole.startswith(answer.text)
                assert answer.state == ("done" if answer.text == whole and answer is not answers[-1] else answer.state)
        assert all(answer.state in ("done", "interrupted") for answer in answers)
    finally:
        opened.file.close()


def kill_at_random_points(n_points: int, folder: Path, seed: int) -> None:
    moments = random.Random(seed)
    for begin in range(0, n_points, AT_ONCE):
        numbers = range(begin, min(n_points, begin + AT_ONCE))
        children = {number: start(folder / str(number)) for number in numbers}
        outputs: dict[int, str] = {}
        for number, child in children.items():
            assert child.stdout is not None
            outputs[number] = child.stdout.readline()  # it runs
        for child in sorted(children.values(), key=lambda _: moments.random()):
            time.sleep(moments.random() * 2.4 / len(children))
            child.kill()
        for number, child in children.items():
            outputs[number] += child.communicate()[0]
            check(folder / str(number), outputs[number])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX")
def test_a_kill_loses_nothing_that_was_shown_for_a_second(folder: Path) -> None:
    kill_at_random_points(4, folder, seed=2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX")
def test_two_hundred_kills_lose_nothing_that_was_shown_for_a_second(folder: Path) -> None:
    kill_at_random_points(200, folder, seed=1)
