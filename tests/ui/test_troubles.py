"""Failures with a way out: of loads, and of a run that ended in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import read_json
from dflash_desktop.base.paths import AppPaths, app_paths
from dflash_desktop.base.run_marker import LostRun, RunMarker
from dflash_desktop.engine.events import JobFailed
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.settings.pair_memory import PairLoad, PairMemory
from dflash_desktop.settings.store import SettingsStore
from dflash_desktop.ui.engine.failures import WayOut, load_failure
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase
from dflash_desktop.ui.parts import Home, Parts
from ui.conftest import Desk
from ui.scripted_engine import FAKE_DEVICES, Script

MakeDesk = Callable[..., Desk]
PAIR = PairFiles(Path("/m/t.gguf"), Path("/m/d.gguf"))
ALONE = PairFiles(Path("/m/t.gguf"), None)


def kept(target: Path) -> PairMemory:
    memory = PairMemory(None)
    memory.remember(target, PairLoad(context_tokens=2048))
    return memory


def parts(lost: Sequence[LostRun], memory: PairMemory, *, loads_last_pair: bool = True) -> Parts:
    settings = SettingsStore(None)
    settings.change(loads_last_pair=loads_last_pair)
    return Parts(settings=settings, pair_memory=memory, home=Home(app_paths(), None, lost))


def at_home(tmp_path: Path, memory: PairMemory | None = None, *, loads_last_pair: bool = False) -> Parts:
    """A start with folders of its own: the settings are read, as startup.py does it."""
    folders = {name: tmp_path / name for name in ("data", "config", "cache", "logs", "models")}
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "data").mkdir(exist_ok=True)
    settings = SettingsStore(folders["config"] / "settings.json")
    if loads_last_pair:
        settings.change(loads_last_pair=True)
    return Parts(settings=settings, pair_memory=memory, home=Home(AppPaths(**folders, is_portable=False)))


def wait_for_notice(desk: Desk, words: str) -> None:
    desk.qtbot.waitUntil(lambda: words in desk.window.current_notice().text())


def press(desk: Desk, words: str) -> None:
    notice = desk.window.current_notice()
    next(button for button in notice.buttons() if button.text() == words).click()


def test_damaged_files_are_told_at_every_start_until_the_person_has_dealt_with_them(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_bytes(b'{"theme": "da')
    for _ in range(3):
        desk = make_desk(parts=at_home(tmp_path))
        wait_for_notice(desk, "settings.json was damaged")
    press(desk, "Do not tell again")
    desk = make_desk(parts=at_home(tmp_path))
    desk.qtbot.waitUntil(lambda: desk.window.desks.has_begun)
    assert not desk.window.current_notice().text()
    assert b'{"theme": "da' in [path.read_bytes() for path in (tmp_path / "config").iterdir()]


def test_what_is_told_of_damaged_files_stays_while_the_last_pair_is_loaded(
    make_desk: MakeDesk, tmp_path: Path, target: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "library.json").write_bytes(b"{")
    with pytest.raises(AppError):
        read_json(tmp_path / "data" / "library.json")
    desk = make_desk(parts=at_home(tmp_path, kept(target), loads_last_pair=True))
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    assert "library.json was damaged" in desk.window.current_notice().text()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "t.gguf"
    path.touch()
    return path


@pytest.mark.parametrize(
    ("kind", "asked", "headline", "ways"),
    [
        ("out_of_memory", PAIR, "memory is not enough", ("choose", "without_draft")),
        ("out_of_memory", ALONE, "memory is not enough", ("choose",)),
        ("device", PAIR, "device failed", ("again", "choose", "log")),
        ("bad_request", PAIR, "pair cannot be loaded", ("without_draft", "choose")),
        ("bad_request", ALONE, "model cannot be loaded", ("choose",)),
        ("bug", ALONE, "in the program itself", ("again", "log", "report")),
        (
            "bad_request",
            PairFiles(Path("/m/t.gguf"), None, LoadOptions(device="CUDA3")),
            "not there",
            ("choose", "again"),
        ),
    ],
)
def test_each_failure_is_told_with_what_leads_on(
    desk: Desk, kind: str, asked: PairFiles, headline: str, ways: tuple[WayOut, ...]
) -> None:
    failure = load_failure(JobFailed(1, "the engine's sentence", kind), asked, FAKE_DEVICES)  # type: ignore[arg-type]
    assert headline in failure.headline
    assert failure.words().endswith("the engine's sentence")
    assert failure.ways == ways


def test_a_load_that_fails_is_told_on_the_page_that_is_shown(make_desk: MakeDesk) -> None:
    desk = make_desk(Script(load_failure="x.gguf is cut short."))
    desk.window.show_page("engine")
    desk.window.pair_state.load(ALONE)
    desk.qtbot.waitUntil(lambda: "cut short" in desk.window.notice.text())
    assert desk.page.notice.text() == ""
    (button,) = desk.window.notice.buttons()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    dialog = desk.window.dialogs.dialog
    assert dialog is not None
    assert dialog.target.text() == str(ALONE.target)
    dialog.reject()


def test_a_run_that_crashed_is_told_and_its_pair_is_not_loaded_again(make_desk: MakeDesk, target: Path) -> None:
    lost = LostRun("load", {"target": "t.gguf", "device": "CUDA0"}, time.time(), "0.1", "Fatal Python error: Aborted")
    desk = make_desk(parts=parts([lost], kept(target)))
    words = desk.page.notice.text()
    assert "while t.gguf was being loaded on CUDA0" in words
    assert "crashed; the log has the details" in words
    assert "Your chats and what you had typed are still here" in words
    assert desk.window.pair_state.phase is Phase.EMPTY
    assert [button.text() for button in desk.page.notice.buttons()] == [
        "Change what is loaded…",
        "Show the log",
        "Save a report…",
    ]
    desk.page.notice.buttons()[0].click()
    dialog = desk.window.dialogs.dialog
    assert dialog is not None
    assert dialog.target.text() == str(target)
    dialog.reject()


def test_a_run_that_was_killed_is_told_apart_from_a_crash(make_desk: MakeDesk, target: Path) -> None:
    desk = make_desk(parts=parts([LostRun("reply", {"target": "t.gguf"})], PairMemory(None)))
    assert "while t.gguf was answering" in desk.page.notice.text()
    assert "ended from outside" in desk.page.notice.text()
    desk.page.notice.buttons()[0].click()
    assert desk.window._built["settings"].isVisible()


def test_after_a_good_run_the_last_pair_is_loaded_if_that_is_wished(make_desk: MakeDesk, target: Path) -> None:
    desk = make_desk(parts=parts([], kept(target)))
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    asked = desk.window.pair_state.asked
    assert asked is not None
    assert (asked.target, asked.options.context_tokens) == (target, 2048)
    assert desk.page.notice.text() == ""


def test_without_the_wish_nothing_is_loaded(make_desk: MakeDesk, target: Path) -> None:
    desk = make_desk(parts=parts([], kept(target), loads_last_pair=False))
    assert desk.window.pair_state.asked is None


def test_what_the_engine_does_is_noted_for_the_next_start(make_desk: MakeDesk, tmp_path: Path) -> None:
    noted: list[tuple[str, str]] = []

    class Noting(RunMarker):
        def note(self, activity: str, **details: str) -> None:
            if not noted or noted[-1] != (activity, details.get("target", "")):
                noted.append((activity, details.get("target", "")))

    home = Home(app_paths(), Noting(tmp_path, "1"))
    desk = make_desk(Script(text="Hi."), parts=Parts(home=home))
    desk.window.pair_state.load(PAIR)
    desk.qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    desk.send("go")
    desk.wait_for_reply()
    assert [activity for activity, _ in noted if activity != "idle"] == ["load", "reply"]
    assert noted[-1][0] == "idle"
    assert ("load", "t.gguf") in noted
    assert ("reply", "t.gguf") in noted
