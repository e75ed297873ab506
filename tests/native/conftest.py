"""The engine's pure parts, compiled for the tests."""

from __future__ import annotations

import pytest

from support.native_probe import Probe, build_probe


@pytest.fixture(scope="session")
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Probe:
    """Tree, sampler and tuner. Kept in pytest's cache while their sources stay the same."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)  # absent with -p no:cacheprovider
    folder = tmp_path_factory.mktemp("native-probe") if cache is None else cache.mkdir("native-probe")
    return Probe(build_probe(folder))
