"""A stand-in hub, and the rooms' parts pointed at it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.engine.inspect import misfit
from dflash_desktop.hub.abort import Abort
from dflash_desktop.hub.library import Library, LibraryFile, Shelf
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, TimeLimits
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.transfer import Pace
from dflash_desktop.hub.wanted import WantedFile
from support.hub_home import empty_home, inspect, native
from support.hub_server import COMMIT, Hub
from support.patience import LONG_S, NEVER_S

if TYPE_CHECKING:
    from hub.runs import MakeRun

MODELS = Path(__file__).parents[1] / "support" / "models"
TARGET = MODELS / "qwen35-mini-q8_0.gguf"
DRAFT = MODELS / "qwen35-mini-dflash-q8_0.gguf"
DRAFT_FOLDER = MODELS / "qwen35-mini-dflash-hf"
SMALL = MODELS / "qwen35-random-tiny" / "qwen35-random-tiny-f32.gguf"
MakeLibrary = Callable[[], Library]
BLOCK = 32 * 1024
REPO = "maker/model-GGUF"
NAME = "model-Q4_K_M.gguf"
QUICK = Pace(
    block_bytes=BLOCK, retry_s=(0.01, 0.02), stall_retry_s=0.02, watch_disk_s=0.02, slow_s=0.5, reserve_bytes=0
)


def noise(n_bytes: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(n_bytes)


def wanted(hub: Hub, name: str = NAME, repo_id: str = REPO) -> WantedFile:
    """The file as the hub describes it."""
    file = hub.files[repo_id][name]
    return WantedFile(
        repo_id=repo_id,
        revision=COMMIT,
        name=name,
        n_bytes=file.n_bytes,
        sha256=file.sha256 if file.is_lfs else "",
        git_sha1="" if file.is_lfs else file.git_sha1,
    )


class Seen:
    """A watcher that keeps what it was told."""

    def __init__(self, on_problem: Callable[[HubProblem], None] = lambda _problem: None) -> None:
        self.n_done = 0
        self.n_received = 0
        self.n_checked = 0
        self.problems: list[HubProblem] = []
        self._on_problem = on_problem

    def on_connecting(self) -> None:
        """Nothing to keep."""

    def on_reached(self, n_bytes: int) -> None:
        self.n_done = n_bytes

    def on_received(self, n_bytes: int) -> None:
        self.n_done += n_bytes
        self.n_received += n_bytes

    def on_checking(self, n_bytes: int) -> None:
        self.n_checked += n_bytes

    def on_problem(self, problem: HubProblem, retry_in_s: float) -> None:
        self.problems.append(problem)
        self._on_problem(problem)

    def kinds(self) -> list[str]:
        return [problem.kind for problem in self.problems]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        yield hub


@pytest.fixture
def network(hub: Hub) -> Network:
    return Network(official=hub.url, limits=TimeLimits(connect_s=LONG_S, silence_s=NEVER_S))


@pytest.fixture
def hasty(hub: Hub) -> Network:
    """For tests in which silence has to be noticed. A busy machine is silent at times, too: not for others."""
    return Network(official=hub.url, limits=TimeLimits(connect_s=LONG_S, silence_s=0.4))


@pytest.fixture
def folder(tmp_path: Path) -> ModelsFolder:
    return ModelsFolder(tmp_path / "models")


@pytest.fixture
def abort() -> Abort:
    return Abort()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


@pytest.fixture
def make(home: Path, folder: ModelsFolder, tmp_path: Path) -> MakeLibrary:
    def make() -> Library:
        return Library(
            tmp_path / "state",
            folder,
            built_in=tmp_path / "built in",
            inspect=inspect,
            misfit=lambda target, draft: misfit(target, draft, native()),
            home=home,
        )

    return make


def names(shelf: Shelf) -> dict[str, LibraryFile]:
    return {file.name: file for file in shelf.files}


def put(source: Path, destination: Path) -> Path:
    destination.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, destination)
    return destination


@pytest.fixture
def start(hub: Hub, network: Network, tmp_path: Path) -> Iterator[MakeRun]:
    """Makes started lists that share one state and one models folder, as one program does after the other."""
    from hub.runs import Run

    runs: list[Run] = []

    def make(network: Network = network) -> Run:
        run = Run(hub, network, tmp_path / "models", tmp_path / "state")
        runs.append(run)
        return run

    yield make
    for run in runs:
        run.downloads.close()
