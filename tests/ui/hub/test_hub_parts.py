"""What startup builds for the models page: at once, without the network, and without what takes long to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base.paths import AppPaths
from dflash_desktop.startup import hub_parts

PROGRAM = """
import sys
from pathlib import Path
from dflash_desktop.base.paths import AppPaths
from dflash_desktop.startup import hub_parts
from dflash_desktop.ui.hub.desk import ModelsDesk
home = Path(sys.argv[1])
parts = hub_parts(AppPaths(home, home, home, home, home / "models", is_portable=True))
print(len(parts.catalogue.pairs) > 5)
print(sorted({"huggingface_hub", "httpx2", "keyring", "hf_xet"} & set(sys.modules)))
"""


def test_building_it_imports_no_http_client_and_writes_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines() == ["True", "[]"]
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_catalogue_costs_the_catalogue_and_not_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dflash_desktop.startup.resource_path", lambda *parts: tmp_path.joinpath("nowhere", *parts))
    home = tmp_path / "home"
    parts = hub_parts(AppPaths(home, home, home, home, home / "models", is_portable=True))
    assert parts.catalogue.pairs == ()
    parts.library.scan()
    assert not parts.library.scan().targets()
