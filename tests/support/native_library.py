"""The built engine library for tests."""

from __future__ import annotations

import functools

import pytest

from dflash_desktop.binding.native import Library, library_file


@functools.cache
def load_library() -> Library:
    """The installed library; skips the asking test when this checkout has none."""
    path = library_file()
    if not path.exists():
        pytest.skip(f"no engine library at {path}: install the package first")
    return Library(path)
