"""The window while tokens stream fast into a very long chat: how long a frame takes, and whether memory stays flat.

    python -m bench.window_stream [--tokens 200000] [--rate 300] [--seconds 20]

From tests/, with a display or with QT_QPA_PLATFORM=offscreen. The window, the store and the engine's thread are the
real ones; what the engine says is a script, so that the model's own work takes no part. A *frame* is a turn of the
event loop in which the conversation was painted; its time is how long that turn kept the window from anything else.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from PySide6.QtCore import QEvent, QObject, QTimer, qVersion
from PySide6.QtWidgets import QApplication

from bench.machine import processor
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.opening import FILE_NAME
from dflash_desktop.chats.records import ChatRecord, MessageRecord, new_id
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.ui.app import make_application, take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.window import MainWindow
from ui.conftest import RESOURCES, STARTER
from ui.scripted_engine import FAKE_DEVICES, Script, ScriptedEngine

PROSE = "The **sky** is blue because `light` is scattered by the air, more so at short wavelengths. "
CODE = "```python\nfor n in range(100):  # count\n    print(f'{n} is a number', n * 2)\n```\n\n"
TABLE = "| within | share |\n|---|---:|\n| one | 68.3 % |\n| two | 95.4 % |\n\n"
LIST = "- first of all\n- then *more* of it\n  - inside\n- last\n\n"
ANSWER = f"## Colours\n\n{PROSE * 4}\n\n{CODE}{TABLE}{LIST}{PROSE * 3}\n\n"
CHARS_PER_TOKEN = 4
TOKENS_PER_STEP = 2.28  # of the script, on average


def write_chat(folder: Path, n_tokens: int) -> tuple[int, int]:
    """A chat of that length in a chat file; return its id and how many messages it has."""
    folder.mkdir(parents=True)
    file = ChatFile(folder / FILE_NAME)
    chat = ChatRecord(new_id(), "A very long talk", created_s=time.time(), changed_s=time.time())
    messages: list[MessageRecord] = []
    n_chars = 0
    while n_chars < n_tokens * CHARS_PER_TOKEN:
        parent = messages[-1].message_id if messages else None
        asked = MessageRecord(new_id(), parent, "user", f"Question {len(messages)}: and what follows?", time.time(), 1)
        reply = MessageRecord(new_id(), asked.message_id, "assistant", ANSWER * 2, time.time(), 1)
        messages += [asked, reply]
        n_chars += len(asked.text) + len(reply.text)
    file.add_messages(chat, messages)
    file.close()
    return chat.chat_id, len(messages)


class Frames(QObject):
    """Turns of the event loop: those that painted the conversation, and the longest of all.

    Of each frame also what this thread computed: the rest it waited for others, on a busy machine the longer part.
    """

    def __init__(self, painted: QObject) -> None:
        super().__init__()
        self.frames_ms: list[float] = []
        self.computed_ms: list[float] = []
        self._longest_ms = 0.0
        self._has_painted = False
        self._last, self._last_computed = time.perf_counter(), time.thread_time()
        painted.installEventFilter(self)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._turn)
        self._timer.start(0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self._has_painted |= event.type() == QEvent.Type.Paint
        return super().eventFilter(watched, event)

    def _turn(self) -> None:
        now, computed = time.perf_counter(), time.thread_time()
        took = (now - self._last) * 1000
        self._longest_ms = max(self._longest_ms, took)
        if self._has_painted:
            self.frames_ms.append(took)
            self.computed_ms.append((computed - self._last_computed) * 1000)
            self._has_painted = False
        self._last, self._last_computed = now, computed

    def take(self) -> tuple[list[float], list[float], float]:
        taken = self.frames_ms, self.computed_ms, self._longest_ms
        self.frames_ms, self.computed_ms, self._longest_ms = [], [], 0.0
        return taken

    def stop(self) -> None:
        self._timer.stop()


def share(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def wait(app: QApplication, condition: Callable[[], bool], timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("that took too long")
        app.processEvents()


def pump(app: QApplication, seconds: float, each: Callable[[float], object] | None = None) -> None:
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        app.processEvents()
        if each is not None:
            each(now)


def megabytes() -> float:
    return psutil.Process().memory_info().rss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--rate", type=float, default=300.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"{processor()}, {os.cpu_count()} cores, load {load:.1f}, Qt {qVersion()}")
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    chat_id, n_messages = write_chat(folder / "chats", arguments.tokens)
    app = make_application(RESOURCES)
    theme = Theme(app, "light")
    n_chars = int(arguments.rate * arguments.seconds * 3 * CHARS_PER_TOKEN)
    text = ANSWER * (n_chars // len(ANSWER) + 1)
    engine = ScriptedEngine(
        Script(text=text, step_s=TOKENS_PER_STEP / arguments.rate, max_committed=6, keeps_rate=True)
    )
    bridge = EngineBridge(engine, lambda: FAKE_DEVICES)
    parts = Parts(chats=ChatStore(folder / "chats"))
    state = WindowStateFile(folder / "window.json")
    window = MainWindow(bridge, theme, Icons(RESOURCES / "icons", theme), STARTER, state, parts=parts)
    window.resize(1280, 800)
    window.show()
    page = window.chat_page
    frames = Frames(page.view.viewport())
    gc.freeze()  # as run_window does
    wait(app, lambda: bool(page.keeper.chats()), 20)
    pump(app, 1.0)
    frames.take()
    page.desk.on_chat_chosen(chat_id)
    wait(app, lambda: window.chat.items.rowCount() == n_messages, 20)
    pump(app, 0.5)
    report("opening the chat", *frames.take())
    window.load_starter()
    wait(app, lambda: window.pair_state.pair is not None, 20)
    page.composer.set_text("Go on")
    page.on_send_clicked()
    pump(app, 2.0)
    gc.collect()
    before, n_before, begin = megabytes(), _n_tokens(window), time.monotonic()
    frames.take()
    pump(app, arguments.seconds)
    rate = (_n_tokens(window) - n_before) / (time.monotonic() - begin)
    report(f"streaming {rate:.0f} tok/s", *frames.take())
    gc.collect()
    print(f"memory: {before:.0f} MB, after {_n_tokens(window) - n_before:,} tokens more {megabytes():.0f} MB")
    frames.take()
    bar = page.view.verticalScrollBar()
    pump(app, arguments.seconds / 2, lambda now: bar.setValue(int(bar.maximum() * abs((now / 3) % 2 - 1))))
    report("streaming and scrolling through all of it", *frames.take())
    page.view.follow()
    pump(app, arguments.seconds / 4, lambda now: window.resize(1280 - int(now * 100) % 240, 800))
    report("streaming and resizing the window", *frames.take())
    gc.collect()
    print(f"memory with all of it looked at: {megabytes():.0f} MB")
    frames.stop()
    window.close()
    bridge.close()
    gc.unfreeze()
    take_down(app, window, bridge)


def report(what: str, frames_ms: list[float], computed_ms: list[float], longest_ms: float) -> None:
    print(
        f"{what}: {len(frames_ms)} frames, median {share(frames_ms, 0.5):.1f} ms, p99 {share(frames_ms, 0.99):.1f} ms, "
        f"longest {max(frames_ms, default=0.0):.1f} ms; computing {share(computed_ms, 0.5):.1f}, "
        f"{share(computed_ms, 0.99):.1f}, {max(computed_ms, default=0.0):.1f} ms; "
        f"longest turn of all {longest_ms:.1f} ms",
        flush=True,
    )


def _n_tokens(window: MainWindow) -> int:
    return window.figures.n_committed


if __name__ == "__main__":
    main()
