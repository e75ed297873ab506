"""From the start of the process to a usable window with a very long chat open, and what the window itself takes.

    python -m bench.window_start [--tokens 200000] [--rounds 5]

From tests/, with a display or with QT_QPA_PLATFORM=offscreen. Each round is a process of its own that opens the real
window in a home with one such chat, the one that was open when the program was left. Times count from the start of the
process. *Usable* is the first turn of the event loop after the window was painted (*computed*: what of it was this
program's own work); *chat* is when its messages show. *Own* memory is what no other process shares.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent

from bench.machine import processor
from dflash_desktop.base.paths import app_paths
from dflash_desktop.chats.chat_file import ChatFile
from dflash_desktop.chats.opening import FILE_NAME
from dflash_desktop.startup import open_window
from dflash_desktop.ui.chats.keeper import OPEN_CHAT
from dflash_desktop.ui.window import MainWindow

SETTLE_MS = 1500
POLL_MS = 2


def own_home(folder: Path) -> dict[str, str]:
    names = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA")
    return {**os.environ, **{name: str(folder / name.lower()) for name in names}}


def child(n_messages: int, began: float) -> int:
    """Open the window as the program does, write down when what happened, and close it."""
    told: dict[str, float] = {}
    show = MainWindow.showEvent

    def tell(what: str) -> None:
        told.setdefault(what, time.time() - began)

    def on_shown(window: MainWindow, event: QShowEvent) -> None:
        show(window, event)
        QTimer.singleShot(0, lambda: on_turn(window))

    def on_turn(window: MainWindow) -> None:
        if "usable_s" not in told:
            tell("usable_s")
            told["computed_s"] = time.process_time()
        if window.chat.items.rowCount() < n_messages:
            QTimer.singleShot(POLL_MS, lambda: on_turn(window))
            return
        tell("chat_s")
        QTimer.singleShot(SETTLE_MS, lambda: on_settled(window))

    def on_settled(window: MainWindow) -> None:
        whole = psutil.Process().memory_full_info()
        told["rss_mb"], told["own_mb"] = whole.rss / 2**20, whole.uss / 2**20
        window.close()

    MainWindow.showEvent = on_shown  # type: ignore[method-assign, assignment]
    code = open_window()
    print(json.dumps(told))
    return code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, default=0.0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child >= 0:
        return child(arguments.child, arguments.began)
    from bench.window_stream import write_chat  # not in the child: it would import pytest as well

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"{processor()}, {os.cpu_count()} cores, load {load:.1f}")
    with tempfile.TemporaryDirectory() as name:
        env = own_home(Path(name))
        os.environ.update(env)
        chats = app_paths().data / "chats"
        chat_id, n_messages = write_chat(chats, arguments.tokens)
        file = ChatFile(chats / FILE_NAME)
        file.keep(OPEN_CHAT, str(chat_id))
        file.close()
        command = [sys.executable, "-m", "bench.window_start", "--child", str(n_messages)]
        rounds = []
        for _ in range(arguments.rounds):
            began = ["--began", str(time.time())]  # the system's own record of it may be a second off
            done = subprocess.run([*command, *began], env=env, check=False, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(done.stderr)
            rounds.append(json.loads(done.stdout.splitlines()[-1]))
    for key in rounds[0]:
        values = [one[key] for one in rounds]
        print(f"{key}: median {statistics.median(values):.2f}, from {min(values):.2f} to {max(values):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
