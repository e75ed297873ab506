"""Where the installers' sources lie."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def version(root: Path) -> str:
    import tomllib

    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])
