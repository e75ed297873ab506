"""All about models that is no widget: asks the hub room in threads, keeps its answers, says when they change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

from dflash_desktop import __version__
from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.devices import Device, choose_device
from dflash_desktop.engine.planning import LoadEstimate
from dflash_desktop.engine.requests import KvType, LoadOptions
from dflash_desktop.hub.abort import Abort, watching
from dflash_desktop.hub.access_token import AccessTokenStore
from dflash_desktop.hub.catalogue import Catalogue, CatalogueModel, DeviceSpeeds
from dflash_desktop.hub.download_status import (
    UNFINISHED,
    DownloadDone,
    DownloadEvent,
    DownloadMoved,
    DownloadStatus,
    QueueChanged,
)
from dflash_desktop.hub.downloads import Downloads
from dflash_desktop.hub.fit import DeviceFacts, Fit, Recommendation, recommend
from dflash_desktop.hub.library import Library, LibraryFile, Shelf
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, NetworkSettings, write_network_settings
from dflash_desktop.hub.offers import Offer, offer_file, offer_pair
from dflash_desktop.hub.problems import Aborted, HubProblem
from dflash_desktop.hub.releases import Release, newest_release
from dflash_desktop.hub.repository import Repository, repository, search
from dflash_desktop.hub.wanted import WantedDownload, WantedFile
from dflash_desktop.ui.engine.pair_state import PairFiles
from dflash_desktop.ui.hub.fitting import fit_of_offer
from dflash_desktop.ui.kit.worker import Worker

log = logging.getLogger(__name__)
CLOSE_S = 2.0
KV_TYPES: dict[str, KvType] = {"q8_0": "q8_0", "q4_0": "q4_0", "f16": "f16"}

Answer = TypeVar("Answer")
Failed = Callable[[HubProblem], object]


@dataclass(frozen=True, slots=True)
class HubParts:
    """The hub room's long-lived objects, built in startup.py."""

    catalogue: Catalogue
    speeds: DeviceSpeeds
    network: Network
    network_file: Path
    access_token: AccessTokenStore
    folder: ModelsFolder
    downloads: Downloads
    library: Library
    plan: Callable[[Path, Path | None, LoadOptions], LoadEstimate]
    release_feed: str = ""  # where releases are announced; "" in a copy that was built without


class ModelsDesk(QObject):
    """Lives in the GUI thread. Nothing goes over the network before a method that says so is called."""

    rows_changed = Signal()  # downloads came, went, or changed their state
    row_moved = Signal(object)  # DownloadStatus
    download_done = Signal(object)  # DownloadStatus
    shelf_changed = Signal()
    recommended_changed = Signal()
    failed = Signal(object)  # HubProblem of something that nobody waits for
    load_wanted = Signal(object)  # PairFiles
    _event_arrived = Signal(object)

    def __init__(self, parts: HubParts) -> None:
        super().__init__()
        self._parts = parts
        self._is_open = True
        self._is_scanning = False
        self._abort = Abort()
        self._asking = Worker("hub-questions")
        self._orders = Worker("download-orders")  # apart: a pause must not wait for a look at all folders
        self._disk = Worker("library")
        self.rows: tuple[DownloadStatus, ...] = ()
        self.shelf: Shelf | None = None
        self.device: Device | None = None
        self.device_problem = ""  # why there is none, once they were listed
        self.awaited_pair_id = ""  # the pair that the first screen's button fetches: it is loaded when it is here
        self.recommended: list[Recommendation] = []
        self._event_arrived.connect(self.on_event_arrived, Qt.ConnectionType.QueuedConnection)
        parts.downloads.subscribe(self._event_arrived.emit)

    @property
    def network(self) -> NetworkSettings:
        return self._parts.network.settings

    @property
    def release_feed(self) -> str:
        return self._parts.release_feed

    @property
    def models_folder(self) -> Path:
        return self._parts.folder.path

    @property
    def catalogue(self) -> Catalogue:
        return self._parts.catalogue

    def start(self) -> None:
        """After the window is shown: go on with unfinished downloads, and look what is on this machine."""
        self._orders.do(self._parts.downloads.start)
        self.scan()

    def close(self) -> None:
        """Stop downloads where they are, and whatever is being asked."""
        self._is_open = False
        self._abort.set()
        self._parts.downloads.close()
        self._asking.close(CLOSE_S)
        self._orders.close(CLOSE_S)
        self._disk.close(CLOSE_S)

    # ---- this machine

    def show_devices(self, devices: Sequence[Device], problem: str = "") -> None:
        """What the pairs are judged by: the device that a load would take. `problem`: why there is none."""
        self.device = choose_device(devices) if devices else None
        self.device_problem = problem
        facts = self.device_facts()
        self.recommended = recommend(self._parts.catalogue, facts, self._parts.speeds) if facts is not None else []
        self.recommended_changed.emit()

    def device_facts(self) -> DeviceFacts | None:
        device = self.device
        if device is None:
            return None
        return DeviceFacts(
            device.description or device.name, device.kind == "cpu", device.total_bytes, device.free_bytes
        )

    def scan(self) -> None:
        """Look at all places again. Reads headers, in a thread."""
        if not self._is_scanning:
            self._is_scanning = True
            self._disk.do(self._parts.library.scan, self._take_shelf, self._scan_failed)

    def add_place(self, path: Path) -> None:
        """A folder or a file of the person's own, used where it is."""
        self._change_library(lambda: self._parts.library.add(path))

    def drop_place(self, path: Path) -> None:
        self._change_library(lambda: self._parts.library.drop(path))

    def delete(self, file: LibraryFile, then: Callable[[int], object]) -> None:
        """Delete one of our own; `then` is told what that freed."""

        def after(n_bytes: int) -> None:
            then(n_bytes)
            self.scan()

        self._disk.do(lambda: self._parts.library.delete(file), after, self._tell)

    def check(self, file: LibraryFile, then: Callable[[bool | None], object]) -> None:
        """Read one of our files through; `then` is told whether it is sound, or None where nobody knows."""
        self._disk.do(lambda: self._parts.library.check(file, self._abort, lambda _n: None), then, self._tell)

    def repair(self, file: LibraryFile) -> None:
        """Fetch what is damaged of a file, and nothing else."""

        def work() -> None:
            self._parts.downloads.add(self._parts.library.repair(file))

        self._disk.do(work, lambda _none: self.scan(), self._tell)

    # ---- downloads

    def row_files(self, row: DownloadStatus) -> PairFiles | None:
        """What a finished download is loaded as; None when it has no target (a draft on its own)."""
        wanted = row.wanted
        by_key = {f"{file.repo_id}/{file.name}": path for file, path in zip(wanted.files, row.paths, strict=True)}
        target = Path(wanted.local_target) if wanted.local_target else by_key.get(wanted.target)
        draft = Path(wanted.local_draft) if wanted.local_draft else by_key.get(wanted.draft)
        return PairFiles(target, draft, self.load_options(wanted.pair_id)) if target is not None else None

    def files_of(self, offer: Offer) -> PairFiles | None:
        """What is loaded when all of an offer is on this machine already."""
        if offer.target.local is None or (offer.draft is not None and offer.draft.local is None):
            return None
        draft = offer.draft.local if offer.draft is not None else None
        return PairFiles(offer.target.local, draft, self.load_options(offer.pair_id))

    def load_options(self, pair_id: str) -> LoadOptions:
        """What the catalogue proposes for the device; the engine's own choice for everything else."""
        for found in self.recommended:
            if found.pair.id == pair_id and self.device is not None and self.device.kind != "cpu":
                kv = KV_TYPES.get(found.proposal.kv, "auto")
                return LoadOptions(kv_k=kv, kv_v=kv)
        return LoadOptions()

    def row_of_pair(self, pair_id: str) -> DownloadStatus | None:
        return next((row for row in self.rows if row.wanted.pair_id == pair_id), None)

    def n_unfinished(self) -> int:
        return sum(row.state in UNFINISHED for row in self.rows)

    def pause(self, download_id: int) -> None:
        self._orders.do(lambda: self._parts.downloads.pause(download_id))

    def resume(self, download_id: int) -> None:
        self._orders.do(lambda: self._parts.downloads.resume(download_id))

    def remove(self, download_id: int) -> None:
        self._orders.do(lambda: self._parts.downloads.remove(download_id))

    def move(self, download_id: int, index: int) -> None:
        self._orders.do(lambda: self._parts.downloads.move(download_id, index))

    def clear_done(self) -> None:
        self._orders.do(self._parts.downloads.clear_done)

    def free_bytes(self, then: Callable[[tuple[int, int]], object]) -> None:
        """Free room on the models' disk, and what the queue still needs of it."""
        self._orders.do(
            lambda: (self._parts.folder.free_bytes(), self._parts.downloads.needed_bytes()), then, self._tell
        )

    def download(self, wanted: WantedDownload, failed: Failed) -> None:
        """Put it on the list. This is what the person's yes means."""
        self._orders.do(lambda: self._parts.downloads.add(wanted), None, _as_problem(failed))

    # ---- questions to the hub

    def ask_pair(
        self,
        recommended: Recommendation,
        target: CatalogueModel,
        draft: CatalogueModel | None,
        then: Callable[[Offer], object],
        failed: Failed,
        scorer: CatalogueModel | None = None,
    ) -> None:
        """Over the network: the true sizes, hashes and licences of a pair."""
        network, pair = self._parts.network, recommended.pair
        self._ask(lambda: offer_pair(network, pair, target, draft, self._find, scorer), then, failed)

    def ask_file(
        self, repo: Repository, parts: tuple[WantedFile, ...], then: Callable[[Offer], object], failed: Failed
    ) -> None:
        """An offer for one found model."""
        self._ask(lambda: offer_file(repo, parts, self._find), then, failed)

    def ask_search(self, words: str, then: Callable[[list[Repository]], object], failed: Failed) -> None:
        """Over the network: repositories with GGUF files."""
        self._ask(lambda: search(self._parts.network, words), then, failed)

    def ask_repository(self, repo_id: str, then: Callable[[Repository], object], failed: Failed) -> None:
        """Over the network: the files of one repository."""
        self._ask(lambda: repository(self._parts.network, repo_id), then, failed)

    def ask_release(self, then: Callable[[Release], object], failed: Failed) -> None:
        """Over the network: the newest version of this program."""
        self._ask(lambda: newest_release(self._parts.network, self._parts.release_feed, __version__), then, failed)

    def ask_fit(self, offer: Offer, options: LoadOptions, then: Callable[[Fit], object], failed: Failed) -> None:
        """Over the network: the headers of the offered files; then the engine's own plan for them."""
        self._ask(lambda: fit_of_offer(offer, options, self._parts.network, self._parts.plan), then, failed)

    # ---- network settings

    def use_network(self, settings: NetworkSettings, then: Callable[[], object], failed: Failed) -> None:
        """Keep and use them. Asks nothing."""

        def work() -> None:
            self._parts.network.use(settings)
            write_network_settings(self._parts.network_file, settings)
            self._parts.downloads.network_changed()

        self._orders.do(work, lambda _none: then(), _as_problem(failed))

    def try_network(self, then: Callable[[], object], failed: Failed) -> None:
        """Over the network: one small question."""
        self._ask(self._parts.network.try_out, lambda _none: then(), failed)

    def write_token(self, token: str, then: Callable[[str], object], failed: Failed) -> None:
        """Keep the access token ("" forgets it); `then` is told where it lies."""

        def work() -> str:
            if token:
                self._parts.access_token.write(token)
            else:
                self._parts.access_token.forget()
            self._parts.downloads.network_changed()
            return self._parts.access_token.place()

        self._orders.do(work, then, _as_problem(failed))

    def read_token_place(self, then: Callable[[str], object]) -> None:
        """Where an access token lies: none, keyring, file, environment."""
        self._orders.do(self._parts.access_token.place, then)

    # ---- in the threads

    def _find(self, wanted: WantedFile) -> Path | None:
        path = self._parts.folder.destination(wanted)
        if self._parts.folder.is_ready(path, wanted):
            return path
        return self.shelf.find(wanted) if self.shelf is not None else None

    def _ask(self, work: Callable[[], Answer], then: Callable[[Answer], object], failed: Failed) -> None:
        def watched() -> Answer:
            with watching(self._abort):
                return work()

        self._asking.do(watched, then, _as_problem(failed))

    # ---- answers

    @Slot(object)
    def on_event_arrived(self, event: DownloadEvent) -> None:
        if not self._is_open:
            return
        match event:
            case QueueChanged():
                self.rows = event.rows
                self.rows_changed.emit()
            case DownloadMoved():
                self.rows = tuple(event.row if row.download_id == event.row.download_id else row for row in self.rows)
                self.row_moved.emit(event.row)
            case DownloadDone():
                self.scan()
                self.download_done.emit(event.row)

    def _take_shelf(self, shelf: Shelf) -> None:
        self._is_scanning = False
        self.shelf = shelf
        self.shelf_changed.emit()

    def _scan_failed(self, error: Exception) -> None:
        self._is_scanning = False
        self._tell(error)

    def _change_library(self, work: Callable[[], None]) -> None:
        self._disk.do(work, lambda _none: self.scan(), self._tell)

    def _tell(self, error: Exception) -> None:
        _as_problem(self.failed.emit)(error)


def _as_problem(failed: Failed) -> Callable[[Exception], object]:
    """AppErrors go to whoever waits; being stopped is no failure; the rest is a bug and is raised as one."""

    def on_failure(error: Exception) -> None:
        match error:
            case HubProblem():
                failed(error)
            case Aborted():
                return
            case AppError():
                failed(HubProblem("other", str(error)))
            case _:
                raise error

    return on_failure
