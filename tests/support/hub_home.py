"""What tests of the models folder share: headers read by the real engine, and a home without anybody's models."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dflash_desktop.binding.native import Library as Native
from dflash_desktop.engine.inspect import inspect_file
from dflash_desktop.hub.library import HeaderFacts
from dflash_desktop.startup import header_facts

_ELSEWHERE = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME", "HF_TOKEN")


@cache
def native() -> Native:
    return Native()


def inspect(path: Path) -> HeaderFacts:
    return header_facts(inspect_file(path, native()))


def empty_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new home in `folder`; no variable leads to the models or the token of whoever runs the tests."""
    for name in _ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    home = folder / "home"
    home.mkdir()
    return home
