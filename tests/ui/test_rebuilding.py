"""Another language while everything runs: other words in the window, and nothing below it hears of it."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from dflash_desktop.chats.store import ChatStore
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.requests import Generate, LoadPair
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.app import take_down
from dflash_desktop.ui.bridge import EngineBridge
from dflash_desktop.ui.chats.message_stack import Anchor
from dflash_desktop.ui.chats.messages import ReplyState
from dflash_desktop.ui.desks import Desks
from dflash_desktop.ui.engine.pair_state import Phase, StarterPair
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.language import apply_language
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.window_state import WindowStateFile
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.rebuilding import ShownWindow
from dflash_desktop.ui.window import MainWindow
from support.patience import LONG_MS
from ui.conftest import RESOURCES, STARTER, installed_pair
from ui.scripted_engine import FAKE_DEVICES, Script, ScriptedEngine

ANSWER = "A line of an answer that is long enough to need some room.\n\n" * 60


class Home:
    """A shown window, with what it is made of."""

    def __init__(self, shown: ShownWindow, store: SettingsStore, bridge: EngineBridge, qtbot: QtBot) -> None:
        self.shown, self.store, self.bridge, self.qtbot = shown, store, bridge, qtbot
        self.engine: ScriptedEngine | None = None

    @property
    def window(self) -> MainWindow:
        return self.shown.window

    def speak(self, language: str) -> MainWindow:
        """Choose it as the settings page does, and wait for the window that speaks it."""
        with self.qtbot.waitSignal(self.shown.changed, timeout=LONG_MS):
            self.store.change(language=language)
        self.qtbot.wait(1)  # the old one is deleted in the same turn
        return self.window

    def ask(self, text: str) -> None:
        self.window.chat_page.composer.set_text(text)
        self.window.chat_page.on_send_clicked()


MakeHome = Callable[..., Home]


@pytest.fixture
def make_home(
    app: QApplication, theme: Theme, icons: Icons, state_file: WindowStateFile, tmp_path: Path, qtbot: QtBot
) -> Iterator[MakeHome]:
    made: list[Home] = []

    def make(engine: ScriptedEngine | Engine, starter: StarterPair = STARTER) -> Home:
        store = SettingsStore(tmp_path / "settings.json")
        parts = Parts(settings=store, chats=ChatStore(tmp_path / "chats"))
        bridge = EngineBridge(engine, lambda: FAKE_DEVICES)

        def make_window(desks: Desks | None) -> MainWindow:
            return MainWindow(bridge, theme, icons, starter, state_file, parts=parts, desks=desks)

        def put_in_force() -> None:
            apply_language(app, RESOURCES, store.values.language)
            theme.set_font_percent(store.values.font_percent)

        home = Home(ShownWindow(make_window, put_in_force), store, bridge, qtbot)
        made.append(home)
        with qtbot.waitSignal(bridge.devices_listed):
            home.window.show()
        return home

    yield make
    for home in made:
        home.window.close()
        home.bridge.close()
        take_down(app, home.window, home.bridge)
        shiboken6.delete(home.shown)
    gc.unfreeze()
    apply_language(app, RESOURCES, "system")
    theme.set_font_percent(100)
    theme.set_mode("light")


@pytest.fixture
def home(make_home: MakeHome) -> Home:
    engine = ScriptedEngine(Script(text=ANSWER))
    made = make_home(engine)
    made.engine = engine
    made.window.load_starter()
    made.qtbot.waitUntil(lambda: made.window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    return made


def n_jobs(home: Home, kind: type) -> int:
    assert home.engine is not None
    return sum(isinstance(job, kind) for job in home.engine.jobs)


def is_same(one: Anchor | None, other: Anchor | None) -> bool:
    """The same place to within a pixel: scroll bars know whole ones only."""
    if one is None or other is None:
        return one is other
    return (one.row, one.block_index) == (other.row, other.block_index) and abs(one.offset - other.offset) < 1


def test_the_words_change_and_the_pair_stays(home: Home) -> None:
    old = home.window
    pair = old.pair_state.pair
    old.show_page("engine")
    new = home.speak("zh_CN")
    assert not shiboken6.isValid(old)
    assert new.isVisible()
    assert new.pair_state.pair is pair
    assert n_jobs(home, LoadPair) == 1
    assert [name for _, name in new.page_names()] == ["对话", "引擎", "设置"]
    assert new.model_bar.names().startswith(new.pair_state.title())
    assert new.desks.state.page == "engine"
    again = home.speak("en")
    assert [name for _, name in again.page_names()] == ["Chat", "Engine", "Settings"]
    assert n_jobs(home, LoadPair) == 1


def test_a_running_reply_goes_on_in_the_new_window_to_its_last_word(home: Home) -> None:
    assert home.engine is not None
    home.engine.script.step_s = 0.1
    home.ask("Begin")
    home.qtbot.waitUntil(
        lambda: home.window.chat.items.rowCount() == 2 and bool(home.window.chat.items.message(1).text),
        timeout=LONG_MS,
    )
    new = home.speak("zh_CN")
    assert new.chat.is_busy
    assert not new.chat_page.is_start_shown
    home.engine.script.step_s = 0.0
    home.qtbot.waitUntil(lambda: not new.chat.is_busy, timeout=LONG_MS)
    reply = new.chat.items.message(1)
    assert (reply.state, reply.text) == (ReplyState.DONE, ANSWER)
    assert n_jobs(home, Generate) == 1
    home.ask("And again")
    home.qtbot.waitUntil(lambda: not new.chat.is_busy and new.chat.items.rowCount() == 4, timeout=LONG_MS)


def test_what_is_being_written_and_where_one_reads_stay(home: Home) -> None:
    home.ask("Begin")
    home.qtbot.waitUntil(lambda: not home.window.chat.is_busy, timeout=LONG_MS)
    page = home.window.chat_page
    home.qtbot.waitUntil(lambda: page.view.verticalScrollBar().maximum() > 400)
    page.view.verticalScrollBar().setValue(300)
    assert not page.view.is_following
    page.composer.set_text("not sent yet")
    cursor = page.composer.edit.textCursor()
    cursor.setPosition(3)
    page.composer.edit.setTextCursor(cursor)
    page.desk.on_edit_wanted(home.window.chat.items.message(0))
    QTest.keyClicks(page.composer.edit, " anew")
    place = page.view.place()
    page = home.speak("zh_CN").chat_page
    assert page.composer.is_editing
    assert page.composer.typed_text() == "Begin anew"
    assert page.desk.edited is home.window.chat.items.message(0)
    home.qtbot.waitUntil(lambda: is_same(page.view.place(), place))
    QTest.keyClick(page.composer.edit, Qt.Key.Key_Escape)
    assert page.composer.typed_text() == "not sent yet"
    page.view.follow()
    home.speak("en")
    assert home.window.chat_page.view.is_following


def test_larger_letters_too_leave_the_engine_alone(home: Home, theme: Theme) -> None:
    height = theme.font("body").pixelSize()
    with home.qtbot.waitSignal(home.shown.changed, timeout=LONG_MS):
        home.store.change(font_percent=150)
    assert theme.font("body").pixelSize() == round(height * 1.5)
    assert home.window.pair_state.phase is Phase.LOADED
    assert n_jobs(home, LoadPair) == 1


def test_nothing_of_the_old_window_stays(home: Home) -> None:
    """Else what is left of it would go on hearing of everything, and touch widgets that are gone."""

    def ours() -> Counter[str]:
        gc.unfreeze()
        gc.collect()
        found = (one for one in gc.get_objects() if isinstance(one, QObject) and shiboken6.isValid(one))
        return Counter(type(one).__name__ for one in found if type(one).__module__.startswith("dflash_desktop"))

    for key, _ in home.window.page_names():
        home.window.show_page(key)
    home.speak("zh_CN")
    for key, _ in home.window.page_names():
        home.window.show_page(key)
    before = ours()
    home.speak("en")
    for key, _ in home.window.page_names():
        home.window.show_page(key)
    assert ours() - before == Counter()


def test_on_the_real_engine_a_reply_is_written_on_without_a_second_load(make_home: MakeHome, qtbot: QtBot) -> None:
    starter = installed_pair()
    engine = Engine(PairLoader())
    engine.start()
    home = make_home(engine, starter)
    home.window.load_starter()
    loads: list[object] = []
    home.window.pair_state.load_began.connect(loads.append)
    qtbot.waitUntil(lambda: home.window.pair_state.phase is Phase.LOADED, timeout=LONG_MS)
    home.window.chat_page.panel.max_tokens.setValue(40)
    home.ask("Count to one hundred.")
    chat = home.window.chat
    qtbot.waitUntil(lambda: chat.items.rowCount() == 2 and bool(chat.items.message(1).text), timeout=LONG_MS)
    begun = chat.items.message(1).text
    home.speak("zh_CN")
    qtbot.waitUntil(lambda: not home.window.chat.is_busy, timeout=LONG_MS)
    reply = home.window.chat.items.message(1)
    assert reply.state is ReplyState.DONE
    assert reply.text.startswith(begun)
    assert reply.facts is not None
    assert loads == []
    assert home.window.pair_state.phase is Phase.LOADED
