"""PFlash in the window, on the real engine: looked at, sent shortened or whole, told under the reply, and kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.chats.records import Attachment
from dflash_desktop.chats.store import ChatStore
from dflash_desktop.engine.pflash.options import ScoreProgress
from dflash_desktop.engine.requests import Generate, LoadOptions
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.startup import starter_pair
from dflash_desktop.ui.app import take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.chats.page import ChatPage
from dflash_desktop.ui.chats.shortening_dialog import ShorteningDialog
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.window import MainWindow
from support.fixtures import QWEN35_MINI
from support.patience import LONG_MS, LONG_S
from support.real_engine import running_engine
from ui.scripted_engine import FAKE_DEVICES

NEEDLE = "The secret code for the blue vault is 7391."
TEXT = "\n\n".join(
    f"In the year {1900 + i} the town council spoke about roads and the price of bread." for i in range(24)
)
TEXT = TEXT.replace("\n\nIn the year 1912", f"\n\n{NEEDLE}\n\nIn the year 1912")
PASTE = Attachment("council.txt", "text", TEXT, len(TEXT))
QUESTION = "What is the secret code for the blue vault?"


class Rig:
    """A window over a lane that was loaded before: the models are read once for all tests."""

    def __init__(self, window: MainWindow, bridge: EngineBridge, recorder: Recorder, qtbot: QtBot) -> None:
        self.window, self.bridge, self.recorder, self.qtbot = window, bridge, recorder, qtbot
        self.jobs = recorder.jobs
        self.page: ChatPage = window.chat_page
        self.items = window.chat.items

    def choose(self, **changes: object) -> None:
        state = self.window.pair_state
        state.set_pflash(replace(state.pflash, scorer=QWEN35_MINI, curve="0.2", threshold_tokens=256, **changes))  # type: ignore[arg-type]

    def write(self, question: str = QUESTION) -> None:
        """The engine remembers what it chose for a message: another question is another message."""
        self.page.composer.edit.setPlainText(question)
        self.page.composer.attached.add(PASTE)

    def look(self) -> ShorteningDialog:
        self.qtbot.waitUntil(lambda: self.page.shortening.dialog is not None, timeout=LONG_MS)
        dialog = self.page.shortening.dialog
        assert dialog is not None
        self.qtbot.waitUntil(lambda: dialog._job_id is None, timeout=LONG_MS)
        return dialog

    def wait_for_reply(self) -> None:
        self.qtbot.waitUntil(lambda: not self.window.chat.is_busy, timeout=LONG_MS)

    def line(self) -> str:
        facts = self.items.message(self.items.rowCount() - 1).facts
        assert facts is not None
        return facts.line()


class Recorder:
    """The engine, with a list of what it was asked."""

    def __init__(self, engine: object) -> None:
        self._engine = engine
        self.jobs: list[object] = []
        self.gate: threading.Event | None = None  # the scorer waits for it after each of its steps

    def submit(self, job: Any) -> int:
        self.jobs.append(job)
        if self.gate is not None:
            job = replace(job, subscriber=partial(self._tell, self.gate, job.subscriber))
        return self._engine.submit(job)  # type: ignore[attr-defined,no-any-return]

    def _tell(self, gate: threading.Event, subscriber: Callable[[object], None], event: object) -> None:
        subscriber(event)
        if isinstance(event, ScoreProgress):
            gate.wait(LONG_S)

    def cancel(self, job_id: int) -> None:
        self._engine.cancel(job_id)  # type: ignore[attr-defined]

    def close(self) -> None:
        """The lane outlives this window."""


@pytest.fixture(scope="module")
def engine() -> Iterator[object]:
    with running_engine() as engine:
        yield engine


@pytest.fixture
def make_rig(
    app: QApplication, theme: Theme, icons: Icons, tmp_path: Path, qtbot: QtBot, engine: object
) -> Iterator[Callable[[], Rig]]:
    made: list[Rig] = []
    starter = starter_pair()
    if starter is None:
        pytest.skip("this build has no built-in pair")

    def make() -> Rig:
        recorder = Recorder(engine)
        bridge = EngineBridge(recorder, lambda: FAKE_DEVICES)
        parts = Parts(pair_memory=PairMemory(tmp_path / "pairs.json"), chats=ChatStore(tmp_path / "chats"))
        window = MainWindow(bridge, theme, icons, starter, WindowStateFile(tmp_path / "window.json"), parts=parts)
        window.show()
        window.pair_state.load(PairFiles(QWEN35_MINI, None, LoadOptions(context_tokens=2048, n_threads=1)))
        qtbot.waitUntil(lambda: window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
        window.chat_page.panel.max_tokens.setValue(2)
        made.append(Rig(window, bridge, recorder, qtbot))
        return made[-1]

    yield make
    for rig in made:
        close(rig, app)


def close(rig: Rig, app: QApplication) -> None:
    if rig.window is not None:
        rig.window.close()
        rig.bridge.close()
        take_down(app, rig.window, rig.bridge)
        rig.window = None  # type: ignore[assignment]


def test_a_long_prompt_is_looked_at_sent_shortened_and_told(
    make_rig: Callable[[], Rig], app: QApplication, qtbot: QtBot
) -> None:
    rig = make_rig()
    rig.write()
    assert rig.page.shortening.switch.isVisible()
    rig.choose(mode="off")
    rig.page.shortening.on_text_moved()
    assert "shorten" in rig.page.shortening.switch.text()
    rig.choose(mode="auto")
    QTest.keyClick(rig.page.composer.edit, Qt.Key.Key_Return)
    dialog = rig.look()
    n_before, n_after = dialog.totals()
    assert n_after < 0.5 * n_before
    view = dialog.text
    qtbot.waitUntil(lambda: view.is_filled, timeout=LONG_MS)
    assert NEEDLE in view.toPlainText()
    assert rig.items.rowCount() == 0
    n_jobs = len(rig.jobs)
    qtbot.waitUntil(lambda: dialog._anchors is not None, timeout=LONG_MS)
    dialog.keep.setValue(60)
    assert dialog.totals()[1] > n_after
    assert len(rig.jobs) == n_jobs
    kept = dialog.totals()[1]
    QTest.mouseClick(dialog.send_button, Qt.MouseButton.LeftButton)
    rig.wait_for_reply()
    assert rig.window.focusWidget() is rig.page.composer.edit  # whoever types on writes the next message
    assert rig.items.message(0).keep == 0.6
    facts = rig.items.message(1).facts
    assert facts is not None
    assert facts.shortening is not None
    assert facts.shortening.rated_s > 0
    assert facts.n_prompt_tokens == facts.shortening.n_after
    assert kept < facts.n_prompt_tokens < kept + 80
    assert "prompt shortened: about" in facts.line()

    rig.page.composer.edit.setPlainText("Thanks.")
    rig.page.on_send_clicked()
    assert rig.page.shortening.dialog is None
    rig.wait_for_reply()
    asked = [job for job in rig.jobs if isinstance(job, Generate)]
    assert asked[-1].pflash.chosen == ((0, 0.6),)
    second = rig.items.message(3).facts
    assert second is not None
    assert second.shortening is not None
    assert second.n_prompt_tokens < n_before

    chat_id = rig.window.chat.talk.chat_id
    close(rig, app)
    again = make_rig()
    qtbot.waitUntil(lambda: again.items.rowCount() == 4, timeout=LONG_MS)
    assert again.window.chat.talk.chat_id == chat_id
    assert again.items.message(0).keep == 0.6
    stored = again.items.message(1).facts
    assert stored is not None
    assert stored.shortening == facts.shortening
    assert again.window.pair_state.pflash.mode == "auto"
    assert again.window.pair_state.pflash.scorer == QWEN35_MINI


def test_sent_whole_it_stays_whole_and_cancelled_it_stays_in_the_composer(
    make_rig: Callable[[], Rig], qtbot: QtBot
) -> None:
    rig = make_rig()
    rig.choose(mode="always")
    rig.write()
    rig.page.on_send_clicked()
    rig.look().reject()
    assert rig.items.rowCount() == 0
    assert rig.page.composer.typed_text() == QUESTION
    rig.page.on_send_clicked()
    dialog = rig.look()
    QTest.mouseClick(dialog.whole_button, Qt.MouseButton.LeftButton)
    rig.wait_for_reply()
    assert rig.items.message(0).keep == 1.0
    facts = rig.items.message(1).facts
    assert facts is not None
    assert facts.n_prompt_tokens > 400
    assert "shortened" not in facts.line()


def test_without_asking_first_it_is_shortened_on_the_way(make_rig: Callable[[], Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    rig.choose(mode="always", asks_first=False)
    rig.write("What was the price of bread?")
    rig.page.on_send_clicked()
    assert rig.page.shortening.dialog is None
    seen: set[str] = set()
    rig.items.dataChanged.connect(lambda *_: seen.add(rig.items.message(1).status_words().partition("  ")[0]))
    rig.wait_for_reply()
    assert "Choosing what to keep of the prompt" in seen
    assert "prompt shortened: about" in rig.line()


def test_a_scorer_that_fails_costs_no_reply_and_is_told_in_the_line(
    make_rig: Callable[[], Rig], qtbot: QtBot, tmp_path: Path
) -> None:
    rig = make_rig()
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(QWEN35_MINI.read_bytes()[:5000])
    rig.choose(mode="always", asks_first=False)
    rig.window.pair_state.set_pflash(replace(rig.window.pair_state.pflash, scorer=broken))
    rig.write()
    rig.page.on_send_clicked()
    rig.wait_for_reply()
    assert "prompt sent whole" in rig.line()
    assert "broken.gguf" in rig.line()
    rig.page.composer.edit.setPlainText(QUESTION)
    rig.page.composer.attached.add(PASTE)
    rig.page.shortening.on_preview_wanted()
    dialog = rig.look()
    assert not dialog.send_button.isEnabled()
    assert dialog.whole_button.isEnabled()
    assert "broken.gguf" in dialog._words.text()
    dialog.reject()


def test_switched_off_nothing_is_asked_of_it_until_somebody_looks(make_rig: Callable[[], Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    rig.choose(mode="off")
    rig.write()
    rig.window.activateWindow()  # shortcuts are the active window's, and no window manager may be there to choose it
    qtbot.waitUntil(rig.window.isActiveWindow, timeout=LONG_MS)
    QTest.keyClick(rig.window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    dialog = rig.look()
    QTest.mouseClick(dialog.send_button, Qt.MouseButton.LeftButton)
    rig.wait_for_reply()
    assert rig.items.message(0).keep == pytest.approx(0.2)
    assert "prompt shortened: about" in rig.line()
    assert rig.window.pair_state.pflash.mode == "off"
    rig.page.on_new_clicked()
    rig.page.composer.edit.setPlainText("Hello.")
    rig.page.on_send_clicked()
    rig.wait_for_reply()
    asked = [job for job in rig.jobs if isinstance(job, Generate)]
    assert asked[-1].pflash.mode == "off"
    assert asked[-1].prompt.messages[-1]["content"] == "Hello."  # type: ignore[union-attr]
    assert rig.items.message(1).facts is not None
    assert rig.items.message(1).facts.shortening is None  # type: ignore[union-attr]


def long_message(rig: Rig, question: str) -> None:
    """More than the context of these tests holds."""
    rig.write(question)
    rig.page.composer.attached.add(replace(PASTE, name="more.txt", text=TEXT.replace("town", "city") * 6))


def test_what_did_not_fit_is_sent_shortened_with_auto_and_only_ways_that_help_are_offered(
    make_rig: Callable[[], Rig], qtbot: QtBot
) -> None:
    rig = make_rig()
    rig.choose(mode="off")
    long_message(rig, "Which code is the secret one?")
    rig.page.on_send_clicked()
    rig.wait_for_reply()
    choice = rig.page.context.choice
    assert choice.isVisible()
    assert "longer than the context" in choice.accessibleName()
    assert choice.shorten.isVisible()
    assert not choice.leave_out.isVisible()
    assert not choice.new.isVisible()
    rig.choose(mode="auto")
    state = rig.window.pair_state
    state.set_pflash(replace(state.pflash, threshold_tokens=100_000))
    rig.page.shortening.on_preview_wanted()
    dialog = rig.look()
    assert not dialog.whole_button.isEnabled()
    assert "do not fit" in dialog.whole_button.toolTip()
    n_kept = dialog.totals()[1]
    QTest.mouseClick(dialog.send_button, Qt.MouseButton.LeftButton)
    rig.wait_for_reply()
    assert not rig.page.notice.isVisible()
    facts = rig.items.message(1).facts
    assert facts is not None
    assert n_kept < facts.n_prompt_tokens < 1.3 * n_kept  # with a mark for each gap
    rig.page.composer.edit.setPlainText("What was the price of bread?")
    rig.page.on_send_clicked()
    rig.wait_for_reply()
    second = rig.items.message(3).facts
    assert second is not None
    assert second.shortening is not None
    assert second.shortening.rated_s == 0


def test_a_message_too_long_for_the_context_is_looked_at_with_auto(make_rig: Callable[[], Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    rig.choose(mode="auto")
    state = rig.window.pair_state
    state.set_pflash(replace(state.pflash, threshold_tokens=100_000))
    rig.write("And which code?")
    assert not rig.page.shortening.looks_first()
    long_message(rig, "And which code?")
    assert rig.page.shortening.looks_first()
    rig.look().reject()


def test_stopped_while_the_scorer_reads_a_reply_just_stops(make_rig: Callable[[], Rig], qtbot: QtBot) -> None:
    rig = make_rig()
    rig.choose(mode="always", asks_first=False)
    long_message(rig, "Which code was it again?")
    gate = rig.recorder.gate = threading.Event()
    rig.page.on_send_clicked()
    qtbot.waitUntil(lambda: rig.items.message(1).status_words().startswith("Choosing what to keep"), timeout=LONG_MS)
    run = rig.window.chat.replies.of(rig.window.chat.talk.chat_id)
    rig.window.chat.stop()
    gate.set()
    qtbot.waitUntil(lambda: run not in rig.window.chat.replies._runs, timeout=LONG_MS)
    assert rig.items.rowCount() == 2
    assert rig.items.message(1).state is ReplyState.STOPPED
    assert not rig.page.notice.isVisible()
    assert not rig.page.context.choice.isVisible()


def test_a_full_context_offers_to_leave_out_only_what_makes_room(make_rig: Callable[[], Rig]) -> None:
    rig = make_rig()
    chat, choice = rig.window.chat, rig.page.context.choice
    reply = None
    for _ in range(5):
        reply = chat.talk.add_reply(chat.talk.add_question("word " * 400, (), reply))
    rig.page.context.offer()
    assert choice.leave_out.isVisible()
    assert choice.new.isVisible()
    rig.page.composer.edit.setPlainText("word " * 1500)
    rig.page.context.offer()
    assert not choice.leave_out.isVisible()
