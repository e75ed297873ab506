"""What startup hands out: the built-in pair, whole and described once."""

from __future__ import annotations

import hashlib
import json

from dflash_desktop.base.paths import resource_path
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.startup import starter_pair


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
