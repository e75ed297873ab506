"""The models page: downloads, catalogue, this machine, search, network; and each failure in words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton

from dflash_desktop.hub.fit import recommend
from dflash_desktop.hub.problems import HubProblem, ProblemKind
from dflash_desktop.ui.engine.pair_state import Phase
from dflash_desktop.ui.hub.desk import HubParts
from dflash_desktop.ui.hub.get_dialog import GetDialog
from dflash_desktop.ui.hub.words import problem_words
from dflash_desktop.ui.parts import Parts
from support.hub_server import Fault, Hub
from support.patience import in_time
from ui.conftest import Desk
from ui.hub.conftest import DRAFT_REPO, MAKER, MODELS, ModelsRig, catalogue, entry
from ui.hub.test_first_minute import click

SILENT = Fault(silent_after=1_000_000)


def open_dialog(rig: ModelsRig) -> GetDialog:
    rig.window.show_page("models")
    return rig.page.get_pair(rig.models.recommended[0])


def begin_download(rig: ModelsRig, *faults: Fault) -> int:
    """Say yes to the first pair; `faults` are those of its content."""
    dialog = open_dialog(rig)
    rig.wait(lambda: "planned by the engine" in dialog._fit.text() or rig.hub.gated)
    rig.hub.faults = list(faults)
    click(dialog.get_button)
    rig.wait(lambda: rig.models.rows)
    return rig.models.rows[0].download_id


def drop(rig: ModelsRig, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    event = QDropEvent(
        QPointF(10, 10), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    rig.page.dropEvent(event)


# ---- downloads


def test_a_download_shows_its_progress_pauses_goes_on_and_ends_ready(rig: ModelsRig) -> None:
    download_id = begin_download(rig, SILENT)
    rig.wait(lambda: rig.models.rows[0].n_done_bytes == 1_000_000)
    assert rig.window.windowTitle() == "4 % - DFlash Desktop"  # where the task bar shows it
    row = rig.page.downloads.row(download_id)
    assert row.isVisible()
    rail = next(button for button in rig.window.rail.findChildren(QAbstractButton) if button.text() == "Models")
    assert rail.toolTip() == "Downloads under way: 1"
    rig.wait(lambda: row.bar.value() > 0)
    rig.wait(lambda: row.words.text().startswith("1.0 MB of 24.7 MB"))
    rig.wait(lambda: "no data for" in row.words.text())
    click(row.pause_button)
    rig.wait(lambda: row.words.text() == "Paused at 4 %")
    assert row.pause_button.accessibleName() == "Go on with Mini 1B"
    click(row.pause_button)
    rig.wait(lambda: row.words.text() == "Ready: size and hash are right")
    assert rig.window.windowTitle() == "DFlash Desktop"
    assert row.load_button.isVisible()
    click(row.load_button)
    rig.wait(lambda: rig.window.pair_state.phase is Phase.LOADED)
    assert rig.window.pair_state.asked is not None
    assert rig.window.pair_state.asked.target == rig.models.models_folder / MAKER / "mini-Q8_0.gguf"
    click(rig.page.downloads.clear_button)
    rig.wait(lambda: not rig.page.downloads.isVisible())


def test_cancelling_takes_it_off_and_deletes_what_arrived(rig: ModelsRig) -> None:
    download_id = begin_download(rig, SILENT)
    rig.wait(lambda: rig.models.rows[0].n_done_bytes == 1_000_000)
    click(rig.page.downloads.row(download_id).remove_button)
    rig.wait(lambda: not rig.models.rows)
    assert not rig.page.downloads.isVisible()
    rig.wait(lambda: not (rig.models.models_folder / MAKER).exists())


@in_time(3)
def test_b115_closing_the_window_is_quick_while_the_hub_is_silent(rig: ModelsRig, within_s: float) -> None:
    begin_download(rig, SILENT)
    rig.wait(lambda: rig.models.rows[0].n_done_bytes == 1_000_000)
    rig.hub.head_faults = [Fault(silent_after=0)]
    rig.page.search.on_search_clicked()
    n_asked = len(rig.hub.asked)
    rig.wait(lambda: len(rig.hub.asked) > n_asked)
    begin = time.monotonic()
    rig.window.close()
    assert time.monotonic() - begin < within_s
    assert rig.models.rows[0].n_done_bytes == 1_000_000, "the rest was waited for"


def test_a_failed_download_says_why_and_tries_again_when_asked(rig: ModelsRig) -> None:
    download_id = begin_download(rig, Fault(status=404))
    row = rig.page.downloads.row(download_id)
    rig.wait(lambda: rig.models.rows[0].state == "failed")
    rig.wait(lambda: "Look for it with the search" in row.words.text())
    click(row.pause_button)
    rig.wait(lambda: rig.models.rows[0].state == "done")
    rig.wait(lambda: row.words.text() == "Ready: size and hash are right")


def test_a_stall_says_when_it_tries_again(make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub) -> None:
    hub_parts.network.limits = type(hub_parts.network.limits)(connect_s=10, silence_s=0.5)
    rig = ModelsRig(make_desk(parts=Parts(hub=hub_parts)), hub)
    download_id = begin_download(rig, SILENT)
    row = rig.page.downloads.row(download_id)
    rig.wait(lambda: re.fullmatch(r"Stalled, retrying in [1-5] s", row.words.text()))
    click(row.pause_button)  # "try again now"
    rig.wait(lambda: rig.models.rows[0].state == "done")


# ---- before a download


def test_the_dialog_asks_for_nothing_but_sizes_and_headers_and_fetches_after_the_yes(rig: ModelsRig) -> None:
    dialog = open_dialog(rig)
    rig.wait(lambda: "planned by the engine" in dialog._fit.text())
    assert rig.models.rows == ()
    assert "mini-Q8_0.gguf: 24.7 MB" in dialog._files.text()
    rig.wait(lambda: "are free" in dialog._place.text())
    click(dialog.cancel_button)
    rig.wait(lambda: rig.page._dialog is None)
    assert rig.models.rows == ()


def test_a_gated_model_says_what_is_missing_and_goes_on_with_a_token(rig: ModelsRig, home: Path) -> None:
    rig.hub.gated.add(MAKER)
    dialog = open_dialog(rig)
    rig.wait(dialog.get_button.isEnabled)
    assert "terms to accept" in dialog._licence.text()
    assert dialog.page_button.isVisible()
    click(dialog.get_button)
    rig.wait(lambda: rig.models.rows and rig.models.rows[0].state == "failed")
    row = rig.page.downloads.row(rig.models.rows[0].download_id)
    rig.wait(lambda: "access token" in row.words.text())
    network = rig.page.show_network()
    network.token.setText(rig.hub.token)
    click(network.save_button)
    rig.wait(lambda: rig.page._network_dialog is None)
    click(row.pause_button)
    rig.wait(lambda: rig.models.rows[0].state == "done")
    assert (home / "access-token").read_text() == rig.hub.token


def test_a_disk_that_is_too_full_is_said_before_the_start(rig: ModelsRig) -> None:
    rig.hub.files[MAKER]["mini-Q8_0.gguf"].announced_bytes = 10**15
    dialog = open_dialog(rig)
    rig.wait(lambda: "too full" in dialog._problem.text())
    assert not dialog.get_button.isEnabled()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(html=True), "Something else answers"),
        (Fault(status=500), "has a fault of its own"),
        (Fault(status=429), "too many requests"),
    ],
)
def test_b119_a_hub_that_does_not_answer_as_one_is_told_in_the_dialog(fault: Fault, words: str, rig: ModelsRig) -> None:
    rig.hub.head_faults = [fault]
    dialog = open_dialog(rig)
    rig.wait(lambda: words in dialog._problem.text())
    assert dialog._files.text() == "Nothing was downloaded."
    assert not dialog.get_button.isEnabled()
    assert dialog.network_button.isVisible()


def test_b119_offline_is_told_plainly_and_the_machine_works_on(
    make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub
) -> None:
    hub_parts.network._official = "http://no-such-host.invalid"
    rig = ModelsRig(make_desk(parts=Parts(hub=hub_parts)), hub)
    dialog = open_dialog(rig)
    rig.wait(lambda: "There is no network connection" in dialog._problem.text())
    problem = dialog._problem
    rig.wait(lambda: problem.height() >= problem.heightForWidth(problem.width()))  # all its lines are seen
    click(dialog.cancel_button)
    rig.page.show_tab("search")
    click(rig.page.search.search_button)
    rig.wait(lambda: "There is no network connection" in rig.page.notice.text())
    rig.window.load_starter()
    rig.wait(lambda: rig.window.pair_state.phase is Phase.LOADED)


@pytest.mark.parametrize("kind", get_args(ProblemKind))
def test_every_problem_has_its_own_words(kind: ProblemKind) -> None:
    words = problem_words(HubProblem(kind, "detail", where="place", needed_bytes=5 * 2**30, free_bytes=2**30))
    assert len(words) > 20
    assert "{" not in words
    others = [problem_words(HubProblem(other)) for other in get_args(ProblemKind) if other != kind]
    assert problem_words(HubProblem(kind)) not in others


def test_b134_answers_that_come_after_a_dialog_is_closed_are_for_nobody(rig: ModelsRig) -> None:
    for _ in range(10):
        dialog, network = open_dialog(rig), rig.page.show_network()
        click(network.test_button)
        rig.qtbot.wait(5)
        network.reject()
        dialog.reject()
        rig.page.search.on_search_clicked()
    rig.wait(lambda: rig.page.search.results.rowCount() == 2)  # the questions before it are answered by then
    assert rig.page.notice.text() == ""


# ---- catalogue


def test_pairs_are_listed_best_first_and_follow_the_device(
    make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub
) -> None:
    large = entry(id="large", name="Large 70B", rank=90, recurrent_bytes=60 * 2**30)
    pairs = catalogue(large, entry())
    object.__setattr__(hub_parts, "catalogue", pairs)
    rig = ModelsRig(make_desk(parts=Parts(hub=hub_parts)), hub)
    rig.window.show_page("models")
    cards = rig.page.pairs.cards
    assert [cards[key].recommended.pair.id for key in ("mini", "large")] == ["mini", "large"]
    assert cards["mini"].y() < cards["large"].y()
    assert cards["mini"]._best.isVisible() and not cards["large"]._best.isVisible()
    assert cards["large"]._badge.text() == "doesn't fit"
    facts = rig.models.device_facts()
    assert facts is not None
    assert [one.pair.id for one in recommend(pairs, facts)] == ["mini", "large"]


# ---- network


def test_the_network_is_tested_with_a_plain_verdict_and_a_mirror_is_kept(rig: ModelsRig, home: Path) -> None:
    rig.window.show_page("models")
    dialog = rig.page.show_network()
    click(dialog.test_button)
    rig.wait(lambda: dialog._verdict.text() == "It answers.")
    dialog.source.choose("mirror")
    dialog.on_choice_changed()
    dialog.mirror.setText("not an address")
    click(dialog.test_button)
    rig.wait(lambda: "cannot be reached" in dialog._verdict.text())
    with Hub() as mirror:
        mirror.add(MAKER, "a.gguf", b"a")
        dialog.mirror.setText(mirror.url)
        click(dialog.test_button)
        rig.wait(lambda: dialog._verdict.text() == "It answers.")
        assert len(mirror.asked) == 1
    click(dialog.save_button)
    rig.wait(lambda: rig.page._network_dialog is None)
    assert mirror.url in (home / "network.json").read_text()


# ---- all of it


def test_every_control_has_a_name_and_tab_reaches_it(rig: ModelsRig) -> None:
    from ui.test_accessibility import controls

    begin_download(rig, SILENT)
    drop(rig, MODELS)
    rig.wait(lambda: rig.models.shelf is not None and len(rig.models.shelf.files) > 3)
    dialog, network = open_dialog(rig), rig.page.show_network()
    for tab in ("pairs", "here", "search"):
        rig.page.show_tab(tab)
        for root in (rig.page, dialog, network):
            nameless = [
                widget
                for widget in controls(root)
                if widget.isVisible() and not (widget.accessibleName() or getattr(widget, "text", str)())
            ]
            assert [
                (type(widget).__name__, widget.objectName())
                for widget in nameless
                if not widget.objectName().startswith("qt_")
            ] == []
    dialog.reject()
    network.reject()


@pytest.mark.parametrize("tab", ["pairs", "here", "search"])
def test_no_text_is_cut_in_the_smallest_window(rig: ModelsRig, tab: str) -> None:
    from ui.test_accessibility import test_no_text_is_cut_in_the_smallest_window as check

    rig.window.resize(rig.window.minimumSize())
    begin_download(rig, SILENT)
    rig.page.show_tab(tab)
    check(rig.desk, "models")


def test_dropping_on_the_page_is_not_taken_for_dropping_on_the_window(rig: ModelsRig) -> None:
    rig.window.show_page("models")
    assert rig.page.acceptDrops()
    assert rig.window.childAt(rig.page.mapTo(rig.window, QPoint(50, 300))) is not None


def test_the_draft_is_fetched_too_when_it_is_wanted(rig: ModelsRig) -> None:
    dialog = open_dialog(rig)
    dialog.draft_box.setCurrentIndex(0)
    dialog.ask()
    rig.wait(lambda: "mini-dflash.gguf" in dialog._files.text() and dialog.get_button.isEnabled())
    click(dialog.get_button)
    rig.wait(lambda: rig.models.rows and rig.models.rows[0].state == "done")
    files = rig.models.row_files(rig.models.rows[0])
    assert files is not None
    assert files.draft == rig.models.models_folder / DRAFT_REPO / "mini-dflash.gguf"


# ---- what is known of the machine


def test_without_a_device_the_pairs_page_says_why_and_does_not_look_for_ever(rig: ModelsRig) -> None:
    rig.window.show_page("models")
    rig.models.show_devices((), "The driver is too old: 535 is needed.")
    assert "The driver is too old: 535 is needed." in rig.page.pairs._lead.text()
    assert not rig.start._first_rule.isVisibleTo(rig.start)  # no row, no line above it


def test_notes_about_a_draft_show_only_where_a_draft_is_proposed(rig: ModelsRig) -> None:
    rig.window.show_page("models")
    card = rig.page.pairs.cards["mini"]
    for has_draft in (True, False):
        card.show_recommended(replace(card.recommended, has_draft=has_draft), is_best=True)
        assert card._notes.isVisibleTo(card) is has_draft
