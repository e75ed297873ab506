"""Files from outside become a loaded pair; a second start brings the window up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from dflash_desktop.base.errors import AppError
from dflash_desktop.ui.engine.pair_state import PairFiles, Phase
from dflash_desktop.ui.launch import Launch, LaunchLink
from ui.conftest import Desk

TARGET, DRAFT = Path("/models/t.gguf"), Path("/models/t-dflash.gguf")
MakeLink = Callable[..., LaunchLink]


def find_pair(files: Sequence[Path]) -> PairFiles | None:
    if not files[0].name.endswith(".gguf"):
        raise AppError(f"{files[0].name} is no model.")
    return None if files[0] == DRAFT else PairFiles(files[0], DRAFT)


@pytest.fixture
def link(desk: Desk) -> Iterator[MakeLink]:
    made: list[LaunchLink] = []

    def make(*files: Path) -> LaunchLink:
        made.append(LaunchLink(desk.window, Launch(find_pair, files)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_target_is_loaded_with_the_draft_that_fits(desk: Desk, link: MakeLink, qtbot: QtBot) -> None:
    link(TARGET)
    qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
    assert desk.window.pair_state.asked == PairFiles(TARGET, DRAFT)


def test_a_draft_alone_asks_for_its_target(desk: Desk, link: MakeLink, qtbot: QtBot) -> None:
    link(DRAFT)
    qtbot.waitUntil(lambda: desk.window.findChild(type(desk.window.open_dialog())) is not None)
    dialog = desk.window.open_dialog()
    qtbot.waitUntil(lambda: DRAFT.name in dialog.target.text() + dialog.draft.text())
    dialog.reject()


def test_what_is_no_model_is_said_in_the_window(desk: Desk, link: MakeLink, qtbot: QtBot) -> None:
    link(Path("/models/photo.jpg"))
    qtbot.waitUntil(lambda: desk.window.chat_page.notice.text() == "photo.jpg is no model.")
    assert desk.window.pair_state.phase is Phase.EMPTY


def test_a_second_start_brings_a_minimised_window_up_with_its_file(desk: Desk, link: MakeLink, qtbot: QtBot) -> None:
    first = link()
    desk.window.showMinimized()
    first.on_called((TARGET,))
    assert not desk.window.windowState() & Qt.WindowState.WindowMinimized
    qtbot.waitUntil(lambda: desk.window.pair_state.phase is Phase.LOADED)
