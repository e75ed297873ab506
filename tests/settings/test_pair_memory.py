"""What each pair was last loaded with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_desktop.settings.pair_memory import MOST_PAIRS, PairLoad, PairMemory

LOAD = PairLoad(
    draft="/m/d.gguf", device="0000:01:00.0", context_tokens=32768, kv_k="q8_0", kv_v="f16", n_threads=4,
    draft_method="tree", tree_budget=22, block_size=16, planned_bytes=1000, measured_bytes=1300,
)  # fmt: skip


def test_each_pair_keeps_its_own_settings(tmp_path: Path) -> None:
    memory = PairMemory(tmp_path / "pairs.json")
    one, other = tmp_path / "模型 & 'q' #1 😀.gguf", tmp_path / "b.gguf"
    memory.remember(one, LOAD)
    memory.remember(other, PairLoad())
    again = PairMemory(tmp_path / "pairs.json")
    assert again.recall(one) == LOAD
    assert again.recall(other) == PairLoad()
    assert again.recall(tmp_path / "c.gguf") is None
    assert again.last_target == other


def test_the_surplus_of_the_last_load_is_what_was_measured_above_the_plan() -> None:
    assert LOAD.surplus_bytes == 300
    assert replace(LOAD, measured_bytes=900).surplus_bytes == 0
    assert replace(LOAD, measured_bytes=0).surplus_bytes == 0


def test_the_oldest_pair_is_forgotten_first(tmp_path: Path) -> None:
    memory = PairMemory(None)
    for number in range(MOST_PAIRS + 1):
        memory.remember(tmp_path / f"{number}.gguf", LOAD)
    memory.remember(tmp_path / "1.gguf", LOAD)
    memory.remember(tmp_path / "new.gguf", LOAD)
    assert memory.recall(tmp_path / "0.gguf") is None
    assert memory.recall(tmp_path / "1.gguf") == LOAD
    assert memory.recall(tmp_path / "2.gguf") is None


@pytest.mark.parametrize("pairs", [[], {"K": 5}, {"K": {"context_tokens": -5, "kv_k": 7, "new": 1}}, None])
def test_nonsense_in_the_file_is_passed_over(tmp_path: Path, pairs: object) -> None:
    target = tmp_path / "t.gguf"
    text = json.dumps({"version": 1, "last": 7, "pairs": pairs}).replace("K", str(target))
    (tmp_path / "pairs.json").write_text(text, "utf-8")
    memory = PairMemory(tmp_path / "pairs.json")
    assert memory.recall(target) in (None, PairLoad())
    assert memory.last_target is None
    memory.remember(target, LOAD)
    assert PairMemory(tmp_path / "pairs.json").recall(target) == LOAD


def test_a_damaged_file_is_kept_and_told(tmp_path: Path) -> None:
    (tmp_path / "pairs.json").write_bytes(b"{")
    memory = PairMemory(tmp_path / "pairs.json")
    assert "damaged" in memory.problem
    memory.remember(tmp_path / "t.gguf", LOAD)
    assert len(list(tmp_path.iterdir())) == 2


def test_forgetting_forgets_all(tmp_path: Path) -> None:
    memory = PairMemory(tmp_path / "pairs.json")
    memory.remember(tmp_path / "t.gguf", LOAD)
    memory.forget_all()
    again = PairMemory(tmp_path / "pairs.json")
    assert again.recall(tmp_path / "t.gguf") is None
    assert again.last_target is None
