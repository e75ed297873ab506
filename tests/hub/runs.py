"""A started download list, and a program of its own with one: for tests to drive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dflash_desktop.hub.download_status import DownloadDone, DownloadEvent, DownloadStatus
from dflash_desktop.hub.downloads import Downloads
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network
from dflash_desktop.hub.wanted import WantedDownload
from hub.conftest import BLOCK, QUICK, wanted
from support.hub_server import Fault, Hub
from support.patience import until

SILENT = Fault(silent_after=3 * BLOCK)


class Run:
    """A started list and what it said."""

    def __init__(self, hub: Hub, network: Network, models: Path | ModelsFolder, state: Path) -> None:
        self.hub = hub
        self.folder = models if isinstance(models, ModelsFolder) else ModelsFolder(models)
        self.downloads = Downloads(state, network, self.folder, pace=QUICK)
        self.events: list[DownloadEvent] = []
        self.downloads.subscribe(self.events.append)
        self.downloads.start()

    def add(self, *names: str, title: str = "") -> int:
        files = tuple(wanted(self.hub, name, f"maker/{name}") for name in names)
        return self.downloads.add(WantedDownload(title=title or names[0], files=files))

    def row(self, download_id: int) -> DownloadStatus:
        return next(row for row in self.downloads.rows() if row.download_id == download_id)

    def wait(self, download_id: int, *states: str) -> DownloadStatus:
        wait_for(lambda: self.row(download_id).state in states)
        return self.row(download_id)

    def done(self) -> list[int]:
        return [event.row.download_id for event in self.events if isinstance(event, DownloadDone)]

    def content(self, name: str) -> bytes:
        return (self.folder.path / "maker" / name / name).read_bytes()


MakeRun = Callable[..., Run]


def start_child(hub: Hub, tmp_path: Path) -> subprocess.Popen[str]:
    file = hub.files["maker/a"]["a"]
    program = Path(__file__).parents[1] / "support" / "download_child.py"
    places = [str(tmp_path / "models"), str(tmp_path / "state")]
    child = subprocess.Popen(
        [sys.executable, program, hub.url, *places, "maker/a", "a", str(file.n_bytes), file.sha256],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "started\n"
    return child


def wait_for(condition: Callable[[], object]) -> None:
    until(condition, "what was waited for")
