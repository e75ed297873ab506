"""Check for updates: nothing before the button is pressed, then what was found, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from dflash_desktop import __version__
from dflash_desktop.ui.hub.desk import HubParts
from dflash_desktop.ui.parts import Parts
from dflash_desktop.ui.settings.page import SettingsPage
from dflash_desktop.ui.settings.updates_row import UpdatesRow
from support.hub_server import Hub
from ui.conftest import Desk
from ui.hub.conftest import ModelsRig

MakeRow = Callable[[str], tuple[ModelsRig, UpdatesRow]]


@pytest.fixture
def make_row(make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub) -> MakeRow:
    def make(feed: str) -> tuple[ModelsRig, UpdatesRow]:
        rig = ModelsRig(make_desk(parts=Parts(hub=replace(hub_parts, release_feed=feed))), hub)
        rig.window.show_page("settings")
        page = rig.window.page("settings")
        assert isinstance(page, SettingsPage)
        row = page.about_card.updates
        assert row is not None
        assert row.isHidden()
        return rig, row

    return make


def feed(hub: Hub, version: str) -> str:
    hub.add("maker/program", "feed.json", f'{{"version": "{version}", "page": "https://a.example/new"}}'.encode())
    return f"{hub.url}/maker/program/resolve/main/feed.json"


def test_a_newer_version_is_told_and_its_page_opened(
    make_row: MakeRow, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, row = make_row(feed(hub, "99.1"))
    assert hub.asked == []  # nothing before the button
    row.button.click()
    assert not row.button.isEnabled()
    assert "Asking 127.0.0.1" in row.words.text()
    rig.wait(lambda: row.button.isEnabled())
    assert row.words.text() == f"Version 99.1 is out. This is {__version__}."
    assert [asked.path for asked in hub.asked] == ["/maker/program/resolve/main/feed.json"]
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    assert not row.open_button.isHidden()
    row.open_button.click()
    assert opened == [QUrl("https://a.example/new")]


def test_the_newest_version_is_told_as_that(make_row: MakeRow, hub: Hub) -> None:
    rig, row = make_row(feed(hub, __version__))
    row.button.click()
    rig.wait(lambda: row.button.isEnabled())
    assert row.words.text() == f"This is the newest version, {__version__}."
    assert row.open_button.isHidden()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://no-such-host.invalid/feed.json", "no network connection to no-such-host.invalid"),
        ("{hub}/maker/nothing/resolve/main/feed.json", "has no list of releases"),
    ],
)
def test_what_went_wrong_is_told_and_it_may_be_tried_again(
    make_row: MakeRow, hub: Hub, address: str, words: str
) -> None:
    rig, row = make_row(address.format(hub=hub.url))
    row.button.click()
    rig.wait(lambda: row.button.isEnabled())
    assert words in row.words.text()
    assert row.open_button.isHidden()


def test_a_copy_without_an_address_says_so_and_asks_nobody(make_row: MakeRow, hub: Hub) -> None:
    _rig, row = make_row("")
    row.button.click()
    assert row.button.isEnabled()
    assert "built without the address" in row.words.text()
    assert hub.asked == []
