"""Changed copies of targets, loaded and asked for a reply: what is wrong with one ends in a sentence, never in a crash.

test_model_file.py asks the same of opening and describing alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from native.oracles import checkpoints
from native.oracles.checkpoints import Checkpoint
from support.drafts import header_bytes
from support.target_prober import TargetOutcome, flipped, probe_targets, restated

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {kind: Checkpoint(kind=kind, n_vocab=64, n_rot=8) for kind in ("llama", "qwen3", "qwen35")}


def check(outcomes: list[TargetOutcome]) -> None:
    for outcome in outcomes:
        assert (outcome.message == "") == (outcome.reached == "scored"), outcome
        assert outcome.message.isprintable() and len(outcome.message) < 600, outcome
        assert "a bug" not in outcome.message, outcome
    reached = Counter(outcome.reached for outcome in outcomes)
    print(dict(reached))
    assert reached["scored"] > len(outcomes) // 50  # not all die at the door
    assert len(outcomes) - reached["scored"] > len(outcomes) // 3  # nor do all pass unchanged


def probe(folder: Path, seeds: range) -> None:
    """Per kind of target and seed one file with changed bytes, and one that is sound as a file and wrong as a model."""
    for kind, spec in KINDS.items():
        base = checkpoints.write_target(spec, folder / f"{kind}.gguf")
        keys, weights = checkpoints.target_keys(spec), checkpoints.gguf_weights(spec, checkpoints.hf_weights(spec))
        check(
            probe_targets(folder, chain(flipped(base, header_bytes(base), seeds), restated(kind, keys, weights, seeds)))
        )


def test_changed_targets_never_end_the_process(tmp_path: Path) -> None:
    probe(tmp_path, range(40))


TINY = Checkpoint(kind="llama", n_vocab=64, n_embd=32, n_ff=32, n_head=2, n_head_kv=1, head_dim=16, n_rot=8)
LARGE: dict[str, tuple[Checkpoint, dict[str, object]]] = {
    "1024 layers": (replace(TINY, n_layers=1024), {}),
    "256 layers of a hybrid": (replace(TINY, kind="qwen35", n_layers=256, h_k=1, h_v=2, state=16), {}),
    "96 key-value heads": (replace(TINY, n_head=96, n_head_kv=96), {}),
    "a context of 2^31 - 1": (TINY, {"llama.context_length": 2**31 - 1}),
    "-1 for no end of turn": (TINY, {"tokenizer.ggml.eot_token_id": 2**32 - 1}),
}


@pytest.mark.parametrize("name", LARGE)
def test_sizes_beyond_every_known_model_run(tmp_path: Path, name: str) -> None:
    """ggml ends the process where a graph has more operations than it was made for."""
    spec, changed = LARGE[name]
    path = checkpoints.write_target(spec, tmp_path / "large.gguf", changed)
    outcome = probe_targets(tmp_path, iter([(name, path.read_bytes())]))[0]
    assert (outcome.reached, outcome.message) == ("scored", "")


@pytest.mark.slow
def test_thousands_of_changed_targets_never_end_the_process(tmp_path: Path) -> None:
    probe(tmp_path, range(40, 400))
