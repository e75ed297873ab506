"""The models page: downloads on top, below them the catalogue, this machine, and the search."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from dflash_desktop.base.presence import has_folder
from dflash_desktop.hub.download_status import DownloadStatus
from dflash_desktop.hub.fit import Recommendation
from dflash_desktop.hub.offers import Offer
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.ui.engine.pair_state import PairState
from dflash_desktop.ui.hub.catalogue_view import CatalogueView
from dflash_desktop.ui.hub.desk import ModelsDesk
from dflash_desktop.ui.hub.download_list import DownloadList
from dflash_desktop.ui.hub.get_dialog import GetDialog
from dflash_desktop.ui.hub.library_view import LibraryView
from dflash_desktop.ui.hub.network_dialog import NetworkDialog
from dflash_desktop.ui.hub.search_view import SearchView
from dflash_desktop.ui.hub.words import problem_words
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.page_frame import PageHead, frame_page
from dflash_desktop.ui.kit.palette import XL, L, M
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.kit.widgets import ElidedLabel, SegmentedControl, push_button

NETWORK_KINDS = ("offline", "unreachable", "tls", "proxy", "not_a_hub", "token_needed", "token_refused")


class ModelsPage(QWidget):
    """Shows what ModelsDesk keeps. Files and folders may be dropped on it."""

    load_wanted = Signal(object)  # PairFiles

    def __init__(self, theme: Theme, icons: Icons, desk: ModelsDesk, pair_state: PairState) -> None:
        super().__init__()
        self._theme = theme
        self._desk = desk
        self._pair_state = pair_state
        self._dialog: GetDialog | None = None
        self._network_dialog: NetworkDialog | None = None
        self.setAcceptDrops(True)
        self.notice = Notice(theme, icons)
        self.downloads = DownloadList(theme, icons, desk)
        self.tabs = SegmentedControl(
            theme,
            [
                ("pairs", self.tr("Pairs")),
                ("here", self.tr("On this machine")),
                ("search", self.tr("Search")),
            ],
            self.tr("Show"),
        )
        self.network_button = push_button(theme, self.tr("Network…"), "secondary")
        icons.put(self.network_button, "network", "muted", size=16)
        self.pairs = CatalogueView(theme, desk)
        self.here = LibraryView(theme, icons, desk)
        self.search = SearchView(theme, icons, desk)
        self._views: dict[str, QWidget] = {"pairs": self.pairs, "here": self.here, "search": self.search}
        self._build()
        self._connect()
        self.on_pair_changed()

    def _build(self) -> None:
        head = PageHead(self._theme, self.tr("Models"))
        head.row.addSpacing(M)
        words = ElidedLabel(self._theme, "body", tone="muted")
        words.setText(self.tr("Nothing is downloaded, and nobody is asked anything, before you say so"))
        head.row.addWidget(words, 1)
        head.row.addWidget(self.network_button)
        page = QWidget()
        page.setProperty("kind", "page")
        column = QVBoxLayout(page)
        column.setContentsMargins(XL, L, XL, XL)
        column.setSpacing(M)
        column.addWidget(self.notice)
        column.addWidget(self.downloads)
        tabs = QHBoxLayout()
        tabs.addWidget(self.tabs)
        tabs.addStretch(1)
        column.addLayout(tabs)
        for view in self._views.values():
            column.addWidget(view, 1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(page)
        frame_page(self, head, scroll)
        self.show_tab("pairs")

    def _connect(self) -> None:
        self.tabs.chosen.connect(self.show_tab)
        self.network_button.clicked.connect(self.show_network)
        self.pairs.get_wanted.connect(self.get_pair)
        self.pairs.load_wanted.connect(self.on_row_load_wanted)
        self.downloads.load_wanted.connect(self.on_row_load_wanted)
        self.here.load_wanted.connect(self.load_wanted)
        self.here.told.connect(self.notice.show_info)
        self.here.refused.connect(self.notice.show_error)
        self.search.get_wanted.connect(self.get_offer)
        self.search.failed.connect(self.show_problem)
        self._desk.failed.connect(self.show_problem)
        self._pair_state.changed.connect(self.on_pair_changed)

    @Slot(object)
    def show_tab(self, key: str) -> None:
        """pairs, here or search."""
        self.tabs.choose(key)
        for name, view in self._views.items():
            view.setVisible(name == key)

    # ---- dialogs

    @Slot(object)
    def get_pair(self, recommended: Recommendation) -> GetDialog:
        """Ask the hub about a pair, and then the person. Over the network."""
        return self._show_dialog(GetDialog(self._theme, self._desk, self.window(), recommended=recommended))

    @Slot(object)
    def get_offer(self, offer: Offer) -> GetDialog:
        """Ask the person about files that were found."""
        dialog = self._show_dialog(GetDialog(self._theme, self._desk, self.window()))
        dialog.show_offer(offer)
        return dialog

    def _show_dialog(self, dialog: GetDialog) -> GetDialog:
        if self._dialog is not None:
            self._dialog.reject()
        self._dialog = dialog
        dialog.network_wanted.connect(self.show_network)
        dialog.use_wanted.connect(self.load_wanted)
        dialog.finished.connect(self.on_dialog_finished)
        dialog.show()
        return dialog

    @Slot()
    def on_dialog_finished(self) -> None:
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None

    @Slot()
    def show_network(self) -> NetworkDialog:
        """The settings of the network; a second call brings the first dialog up."""
        if self._network_dialog is None:
            self._network_dialog = NetworkDialog(self._theme, self._desk, self.window())
            self._network_dialog.saved.connect(self.on_network_saved)
            self._network_dialog.finished.connect(self.on_network_finished)
        self._network_dialog.show()
        self._network_dialog.raise_()
        return self._network_dialog

    @Slot()
    def on_network_saved(self) -> None:
        if self._dialog is not None:
            self._dialog.ask()

    @Slot()
    def on_network_finished(self) -> None:
        if self._network_dialog is not None:
            self._network_dialog.deleteLater()
            self._network_dialog = None

    @Slot(object)
    def show_problem(self, problem: HubProblem) -> None:
        """A failure that no dialog is there to tell."""
        if problem.kind in NETWORK_KINDS:
            self.notice.show_error(problem_words(problem), self.tr("Network…"), self.show_network)
        else:
            self.notice.show_error(problem_words(problem))

    # ---- loading

    @Slot(object)
    def on_row_load_wanted(self, row: DownloadStatus) -> None:
        files = self._desk.row_files(row)
        if files is not None:
            self.load_wanted.emit(files)

    @Slot()
    def on_pair_changed(self) -> None:
        pair = self._pair_state.pair
        files = (pair.target, pair.draft) if pair is not None else ()
        self.here.show_in_use(tuple(path for path in files if path is not None))

    # ---- drag and drop

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._dropped(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = self._dropped(event)
        for path in paths:
            self._desk.add_place(path)
        event.acceptProposedAction()
        self.show_tab("here")
        self.notice.show_info(self.tr("Added. Files are used where they are; nothing was copied."))

    def _dropped(self, event: QDropEvent) -> list[Path]:
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        return [path for path in paths if has_folder(path) or path.suffix.lower() in (".gguf", ".safetensors")]
