"""The real library, or a skip that says it is not built."""

from __future__ import annotations

import pytest

from dflash_desktop.binding.native import Library
from support.native_library import load_library


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()
