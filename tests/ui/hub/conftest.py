"""The window with its models page, a stand-in hub behind it, and a catalogue whose pairs really are on that hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from dflash_desktop.engine.inspect import misfit
from dflash_desktop.engine.planning import plan_load
from dflash_desktop.hub.access_token import AccessTokenStore
from dflash_desktop.hub.catalogue import Catalogue, read_device_speeds
from dflash_desktop.hub.downloads import Downloads
from dflash_desktop.hub.library import Library
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, TimeLimits
from dflash_desktop.hub.transfer import Pace
from dflash_desktop.ui.hub.desk import HubParts, ModelsDesk
from dflash_desktop.ui.hub.page import ModelsPage
from dflash_desktop.ui.parts import Parts
from support.hub_home import empty_home, inspect, native
from support.hub_server import Hub
from support.patience import LONG_S, NEVER_S
from ui.conftest import RESOURCES, Desk

MODELS = Path(__file__).parents[2] / "support" / "models"
TARGET = MODELS / "qwen35-mini-q8_0.gguf"
DRAFT = MODELS / "qwen35-mini-dflash-q8_0.gguf"
QUICK = Pace(block_bytes=64 * 1024, retry_s=(0.1,), stall_retry_s=5, watch_disk_s=0.05, reserve_bytes=0)
MAKER = "maker/Mini-GGUF"
DRAFT_REPO = "z-lab/Mini-DFlash"


def entry(**changes: object) -> dict[str, object]:
    """A pair of the catalogue as the file has it."""

    def model(repo_id: str, name: str, **extra: object) -> dict[str, object]:
        return {
            "repo_id": repo_id,
            "files": [name],
            "quantization": "Q8_0",
            "approx_bytes": TARGET.stat().st_size,
            **extra,
        }

    return {
        "id": "mini",
        "name": "Mini 1B",
        "rank": 10,
        "architecture": "qwen35",
        "licence": "Apache-2.0",
        "context_tokens": 2048,
        "summary": "Small enough for anything.",
        "notes": ["thinking_slows_draft"],
        "kv_bytes_per_token": 1024,
        "recurrent_bytes": 0,
        "targets": [model(MAKER, "mini-Q8_0.gguf")],
        "drafts": [model(DRAFT_REPO, "mini-dflash.gguf")],
        "scorers": [],
        "settings": [{"memory_gib": 1, "target": "Q8_0", "draft": "Q8_0", "kv": "f16", "context_tokens": 1024}],
        "measured": [],
        **changes,
    }


def catalogue(*entries: dict[str, object]) -> Catalogue:
    return msgspec.convert({"version": 1, "pairs": list(entries)}, Catalogue)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_home(tmp_path, monkeypatch)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.add(MAKER, "mini-Q8_0.gguf", TARGET.read_bytes())
        hub.add(DRAFT_REPO, "mini-dflash.gguf", DRAFT.read_bytes())
        yield hub


@pytest.fixture
def hub_parts(hub: Hub, home: Path, tmp_path: Path) -> HubParts:
    network = Network(official=hub.url, limits=TimeLimits(connect_s=LONG_S, silence_s=NEVER_S))
    token = AccessTokenStore(home / "access-token", use_keyring=False)
    network._access_token = token.read
    folder = ModelsFolder(tmp_path / "models")
    return HubParts(
        catalogue=catalogue(entry()),
        speeds=read_device_speeds(RESOURCES / "catalogue"),
        network=network,
        network_file=home / "network.json",
        access_token=token,
        folder=folder,
        downloads=Downloads(home / "data", network, folder, pace=QUICK),
        library=Library(
            home / "data",
            folder,
            built_in=tmp_path / "built in",
            inspect=inspect,
            misfit=lambda target, draft: misfit(target, draft, native()),
            home=home,
        ),
        plan=lambda target, draft, options: plan_load(target, draft, options, native()),
    )


class ModelsRig:
    """The window, its models page and what is behind them."""

    def __init__(self, desk: Desk, hub: Hub) -> None:
        assert desk.window.models_desk is not None
        self.desk, self.hub, self.window, self.qtbot = desk, hub, desk.window, desk.qtbot
        self.models: ModelsDesk = desk.window.models_desk
        self.start = desk.page.start
        self.wait(lambda: self.models.shelf is not None and self.models.recommended)

    @property
    def page(self) -> ModelsPage:
        found = self.window.page("models")
        assert isinstance(found, ModelsPage)
        return found

    def wait(self, condition: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()))


@pytest.fixture
def rig(make_desk: Callable[..., Desk], hub_parts: HubParts, hub: Hub) -> ModelsRig:
    return ModelsRig(make_desk(parts=Parts(hub=hub_parts)), hub)
