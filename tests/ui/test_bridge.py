"""The thread crossing: everything arrives, in order, in the GUI thread, and nothing after the end."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

from pytestqt.qtbot import QtBot

from dflash_desktop.engine.events import GenerationDone, PairLoaded, StepDone
from dflash_desktop.ui.bridge import EngineBridge
from ui.conftest import Desk
from ui.scripted_engine import FAKE_DEVICES, Script, ScriptedEngine

MANY_EMITS = """
import threading
from PySide6.QtCore import QCoreApplication
from dflash_desktop.engine.events import PairUnloaded
from dflash_desktop.engine.requests import UnloadPair
from dflash_desktop.ui.bridge import EngineBridge

class Engine:
    def submit(self, job):
        def lane():
            for job_id in range(10_000):
                job.subscriber(PairUnloaded(job_id))
        self.lane = threading.Thread(target=lane)
        self.lane.start()
        return 0
    def cancel(self, job_id): ...
    def close(self): self.lane.join()

app = QCoreApplication([])
engine = Engine()
bridge = EngineBridge(engine, lambda: [])
seen = []
def on_event(event):
    assert threading.current_thread() is threading.main_thread()
    seen.append(event.job_id)
    if len(seen) == 10_000:
        app.quit()
bridge.engine_event.connect(on_event)
bridge.unload()
app.exec()
bridge.close()
assert seen == list(range(10_000))
print("all there")
"""


def test_ten_thousand_events_arrive_in_order_in_the_gui_thread() -> None:
    """In a child: PySide6 6.12.0 on Python 3.11 ends the interpreter after some 550 emits."""
    ran = subprocess.run([sys.executable, "-c", MANY_EMITS], capture_output=True, text=True, timeout=300, check=False)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "all there", "")


def test_events_come_in_a_later_turn_of_the_event_loop_than_the_call(desk: Desk) -> None:
    seen: list[object] = []
    desk.bridge.engine_event.connect(seen.append)
    desk.window.load_starter()
    assert not seen
    desk.qtbot.waitUntil(lambda: any(isinstance(event, PairLoaded) for event in seen))


def test_nothing_is_delivered_after_close(app: object, qtbot: QtBot) -> None:
    engine = ScriptedEngine(Script(text="word " * 400, step_s=0.001))
    bridge = EngineBridge(engine, lambda: FAKE_DEVICES)
    seen: list[object] = []
    bridge.engine_event.connect(seen.append)
    bridge.unload()
    bridge.close()
    n_seen = len(seen)
    qtbot.wait(50)
    assert len(seen) == n_seen


def test_a_driver_that_fails_is_told_in_words(app: object, qtbot: QtBot) -> None:
    def broken() -> list[object]:
        raise RuntimeError("The driver is too old.")

    engine = ScriptedEngine()
    bridge = EngineBridge(engine, broken)  # type: ignore[arg-type]
    with qtbot.waitSignal(bridge.devices_listed) as listed:
        bridge.refresh_devices()
    assert listed.args == [(), "The driver is too old."]
    bridge.close()


def test_receivers_run_in_the_gui_thread(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(Script(text="a b c d"))
    threads: set[threading.Thread] = set()
    kinds: set[type] = set()

    def note(event: object) -> None:
        threads.add(threading.current_thread())
        kinds.add(type(event))

    desk.bridge.engine_event.connect(note)
    desk.load()
    desk.send("go")
    desk.wait_for_reply()
    assert {StepDone, GenerationDone} <= kinds
    assert threads == {threading.main_thread()}
