"""The ways into the models page from the rest of the window, and out of it: the first screen, arrivals, loading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from dflash_desktop.hub.download_status import UNFINISHED, DownloadStatus
from dflash_desktop.hub.fit import Recommendation
from dflash_desktop.ui.engine.pair_state import PairFiles, PairState, Phase
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.kit import numbers
from dflash_desktop.ui.kit.rail import NavigationRail

if TYPE_CHECKING:
    from dflash_desktop.ui.chats.start_view import StartView
    from dflash_desktop.ui.hub.page import ModelsPage

PROGRAM_NAME = "DFlash Desktop"


class Pages(Protocol):
    """What is needed of the window."""

    rail: NavigationRail

    def setWindowTitle(self, title: str) -> None: ...

    def show_page(self, key: str) -> None: ...

    def page(self, key: str) -> QWidget: ...


class ModelsEntry(QObject):
    """Connects the first screen with the models page."""

    def __init__(self, pages: Pages, desk: ModelsDesk, start: StartView, pair_state: PairState) -> None:
        super().__init__()
        self._pages = pages
        self._desk = desk
        self._pair_state = pair_state
        self._share = ""  # of what is being downloaded, as the title shows it
        start.follow(desk)
        start.get_wanted.connect(self.on_get_wanted)
        start.load_wanted.connect(self.on_load_wanted)
        start.models_wanted.connect(self.on_models_wanted)
        desk.download_done.connect(self.on_download_done)
        desk.rows_changed.connect(self.on_rows_changed)
        desk.row_moved.connect(self._show_share)
        self.on_rows_changed()

    def models_page(self) -> ModelsPage:
        """Shown, and built if it was not yet."""
        from dflash_desktop.ui.hub.page import ModelsPage

        self._pages.show_page("models")
        page = self._pages.page("models")
        assert isinstance(page, ModelsPage)
        return page

    @Slot(object)
    def load(self, files: PairFiles) -> None:
        """Load, and show the chat: it says how far it is, and takes messages at once."""
        self._pair_state.load(files)
        self._pages.show_page("chat")

    @Slot(object)
    def on_get_wanted(self, recommended: Recommendation) -> None:
        self._desk.awaited_pair_id = recommended.pair.id
        dialog = self.models_page().get_pair(recommended)
        dialog.download_begun.connect(lambda: self._pages.show_page("chat"))

    @Slot(object)
    def on_load_wanted(self, row: DownloadStatus) -> None:
        files = self._desk.row_files(row)
        if files is not None:
            self.load(files)

    @Slot(object)
    def on_models_wanted(self, tab: str) -> None:
        page = self.models_page()
        page.show_tab(tab)

    @Slot()
    def on_rows_changed(self) -> None:
        """The rail tells on every page whether something is arriving, or needs the person."""
        rows = self._desk.rows
        n_going = self._desk.n_unfinished()
        if any(row.state == "failed" for row in rows):
            self._pages.rail.set_badge("models", "bad", self.tr("A download needs you"))
        elif n_going:
            words = self.tr("Downloads under way: {0}").format(numbers.count(n_going))
            self._pages.rail.set_badge("models", "accent", words)
        else:
            self._pages.rail.set_badge("models", "", "")
        self._show_share()

    @Slot()
    def _show_share(self) -> None:
        """In the window's title, which every task bar shows: people look elsewhere while something large arrives."""
        rows = [row for row in self._desk.rows if row.state in UNFINISHED]
        n_total = sum(row.n_total_bytes for row in rows)
        share = f"{100 * sum(row.n_done_bytes for row in rows) // n_total} % - " if n_total else ""
        if share != self._share:
            self._share = share
            self._pages.setWindowTitle(f"{share}{PROGRAM_NAME}")

    @Slot(object)
    def on_download_done(self, row: DownloadStatus) -> None:
        """The pair that the first screen fetched is loaded when it is here, unless something else is by now.

        Wherever the person is then, there they stay.
        """
        if (
            row.wanted.pair_id
            and row.wanted.pair_id == self._desk.awaited_pair_id
            and self._pair_state.phase is Phase.EMPTY
        ):
            self._desk.awaited_pair_id = ""
            files = self._desk.row_files(row)
            if files is not None:
                self._pair_state.load(files)
