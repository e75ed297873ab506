"""The program around the window, each time in a process of its own: it ends with 0, in silence, and nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import LONG_S, in_time
from ui.conftest import RESOURCES

PROGRAM = """
import locale, sys, threading, time
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from ui.conftest import STARTER
from ui.scripted_engine import FAKE_DEVICES, Script, ScriptedEngine
from dflash_desktop.ui.app import run_window
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.window import MainWindow

scene, state, resources, within_s = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
script = Script(text="word " * 5000, step_s=0.05, load_chunks=3)
never = threading.Event()
script.load_gate = never if scene == "loading" else None
script.prefill_gate = never if scene == "prefill" else None
engine = ScriptedEngine(script)
settings = SettingsStore(state / "settings.json")
settings.change(language="en")

def when(is_so, then):
    then() if is_so() else QTimer.singleShot(10, lambda: when(is_so, then))

def windows():
    return [w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)]

def is_so_far():
    # What the scene is named after goes on.
    chat, phase = windows()[0].chat, windows()[0].pair_state.phase
    if scene in ("idle", "loading"):
        return phase is (Phase.LOADING if scene == "loading" else Phase.EMPTY)
    if chat.items.rowCount() < 2:
        return False
    reply = chat.items.message(1)
    return reply.state is ReplyState.READING if scene == "prefill" else bool(reply.text)

def act():
    window = windows()[0]
    if scene != "idle":
        window.load_starter()
        window.chat_page.composer.set_text("go")
        window.chat_page.on_send_clicked()
        window.chat_page.composer.set_text("unsent")
        window.show_page("engine")
    if scene == "dialog":
        window.open_dialog()
    print("numbers:", locale.localeconv()["decimal_point"], flush=True)
    when(is_so_far, lambda: go_on(window))

def go_on(window):
    if scene == "bug":
        QTimer.singleShot(0, lambda: 1 / 0)
        when(window.chat_page.notice.text, lambda: tell(window.chat_page.notice.text()))
    elif scene == "language":
        settings.change(language="zh_CN")
        when(lambda: len(windows()) == 1 and windows()[0] is not window and windows()[0].isVisible(), tell)
    elif scene == "signal":
        print("now", flush=True)
    else:
        close()

def tell(words=""):
    if words:
        print("told:", words, flush=True)
    else:
        jobs = [type(job).__name__ for job in engine.jobs]
        print(windows()[0].chat.is_busy, *jobs, flush=True)
        print(*[name for _, name in windows()[0].page_names()], flush=True)
    close()

def close():
    global begin
    begin = time.monotonic()
    windows()[0].close()

QTimer.singleShot(0, lambda: None) if QApplication.instance() else None
begin = 0.0
import dflash_desktop.ui.app as app_module
make = app_module.make_application
def make_and_act(*what):
    made = make(*what)
    QTimer.singleShot(50, act)
    return made
app_module.make_application = make_and_act
code = run_window(engine, list_devices=lambda: FAKE_DEVICES, starter=STARTER, state_folder=state, resources=resources,
                  parts=Parts(settings=settings))
took = time.monotonic() - begin
assert scene == "signal" or took < within_s, took
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
print("over", flush=True)
sys.exit(code)
"""


def start(scene: str, state: Path, *, within_s: float = LONG_S, **environment: str) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-W",
            "error",
            "-c",
            PROGRAM,
            scene,
            str(state),
            str(RESOURCES),
            str(within_s),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": tests, "QT_QPA_PLATFORM": "offscreen", **environment},
    )


def quiet(stderr: str) -> list[str]:
    """What Qt says, less what the offscreen platform says of itself."""
    return [line for line in stderr.splitlines() if line.strip() and "This plugin does not support" not in line]


@in_time(2)
@pytest.mark.parametrize("scene", ["idle", "loading", "prefill", "generating", "dialog"])
def test_closing_ends_with_zero_in_silence(scene: str, tmp_path: Path, within_s: float) -> None:
    """B140; while serving and downloading: test_serving.py, test_models_page.py."""
    process = start(scene, tmp_path, within_s=within_s, LC_ALL="C.UTF-8")
    out, errors = process.communicate(timeout=2 * LONG_S)
    assert (process.returncode, out.splitlines(), quiet(errors)) == (0, ["numbers: .", "over"], [])
    if scene != "idle":
        assert "unsent" in (tmp_path / "window.json").read_text("utf-8")


def test_another_language_in_the_middle_of_a_reply_changes_the_words_and_nothing_else(tmp_path: Path) -> None:
    process = start("language", tmp_path, LC_ALL="C.UTF-8", PYTHONIOENCODING="utf-8")
    out, errors = process.communicate(timeout=LONG_S)
    lines = ["numbers: .", "True LoadPair Generate", "对话 引擎 设置", "over"]
    assert (process.returncode, out.splitlines(), quiet(errors)) == (0, lines, [])
    assert "unsent" in (tmp_path / "window.json").read_text("utf-8")


def test_a_polite_kill_closes_the_window(tmp_path: Path) -> None:
    """B140."""
    process = start("signal", tmp_path, LC_ALL="C.UTF-8")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["numbers: .\n", "now\n"]
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=LONG_S)
    assert (process.returncode, out, quiet(errors)) == (0, "over\n", [])
    assert "unsent" in (tmp_path / "window.json").read_text("utf-8")


def test_a_bug_in_a_slot_is_told_and_the_window_lives_on(tmp_path: Path) -> None:
    process = start("bug", tmp_path, LC_ALL="C.UTF-8")
    out, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, errors
    assert errors.count("Traceback") == 1  # in the log, which here is standard error
    assert "told: Something went wrong in the program itself (ZeroDivisionError)" in out
    assert out.endswith("over\n")


def test_three_starts_in_a_row_all_end_with_zero(tmp_path: Path) -> None:
    """B133, in small."""
    for _ in range(3):
        process = start("generating", tmp_path, LC_ALL="C.UTF-8")
        _, errors = process.communicate(timeout=LONG_S)
        assert (process.returncode, quiet(errors)) == (0, [])


def test_numbers_keep_their_point_under_a_german_locale(tmp_path: Path) -> None:
    """B157. Skipped where the machine has no such locale; the C library then has no comma to fall for."""
    have = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    german = next((name for name in have if name.startswith(("de_DE.utf", "fr_FR.utf", "da_DK.utf"))), None)
    if german is None:
        pytest.skip("no German, French or Danish locale is installed")
    process = start("idle", tmp_path, LC_ALL=german)
    out, errors = process.communicate(timeout=LONG_S)
    assert (process.returncode, out.splitlines(), quiet(errors)) == (0, ["numbers: .", "over"], [])
