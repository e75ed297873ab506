"""What startup hands out: the built-in pair, whole and described once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import app_paths, resource_path
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.startup import find_pair, starter_pair


def test_the_installed_models_are_those_that_were_described() -> None:
    (pair,) = json.loads(resource_path("models", "pairs.json").read_text("utf-8"))["pairs"]
    for part in ("target", "draft"):
        content = resource_path("models", pair[part]["file"]).read_bytes()
        assert len(content) == pair[part]["bytes"]
        assert hashlib.sha256(content).hexdigest() == pair[part]["sha256"]


def test_the_window_is_offered_the_built_in_pair() -> None:
    offered = starter_pair()
    (pair,) = built_in_pairs()
    assert offered is not None
    assert (offered.target, offered.draft) == (pair.target, pair.draft)
    assert offered.n_bytes == 98_362_432 + 14_834_464
    assert offered.licence == "Apache-2.0"


def test_a_target_that_is_opened_finds_its_draft(tmp_path: Path) -> None:
    (pair,) = built_in_pairs()
    assert pair.draft is not None
    alone = tmp_path / "my copy.gguf"
    alone.symlink_to(pair.target)
    for given in ([alone], [alone, pair.draft], [pair.draft, alone]):
        found = find_pair(given, app_paths(tmp_path))
        assert found is not None
        assert (found.target, found.draft) == (alone, pair.draft)
    assert find_pair([pair.draft], app_paths(tmp_path)) is None


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    photo = tmp_path / "photo.gguf"
    photo.write_bytes(b"JFIF" * 100)
    with pytest.raises(AppError, match=r"photo\.gguf"):
        find_pair([photo], app_paths(tmp_path))
    with pytest.raises(AppError, match="There is no model file"):
        find_pair([tmp_path / "gone.gguf"], app_paths(tmp_path))
