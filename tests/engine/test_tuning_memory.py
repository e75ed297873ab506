"""What is learnt of a pair comes back at the next load of the same files, and nothing unsound ever does."""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING, Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import DraftProbe, PairLoaded
from dflash_desktop.engine.loaded import PairLoader
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.engine.tuning_memory import Learnt, TuningMemory, content_identity
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF
from support.native_library import load_library
from support.real_engine import ask_for, try_load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY: dict[str, Any] = {"target": "a", "draft": "b", "device": ["CPU"], "threads": 2}
LEARNT = Learnt((1.0, 2.5, -1.0), DraftProbe(3.25, 8))


def the_file(folder: Path) -> Path:
    (path,) = folder.glob("*.json")
    return path


# ---- the files --------------------------------------------------------------------------------------------------


def test_what_was_kept_comes_back_for_the_same_key_only(tmp_path: Path) -> None:
    memory = TuningMemory(tmp_path / "tuning")
    assert memory.recall(KEY) is None
    memory.keep(KEY, LEARNT)
    assert memory.recall(KEY) == Learnt(LEARNT.tuning, DraftProbe(3.25, 8, is_remembered=True))
    assert memory.recall({**KEY, "threads": 1}) is None
    memory.keep(KEY, Learnt((7.0,), None))
    assert memory.recall(KEY) == Learnt((7.0,), None)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "\x00\xff" * 100,
        lambda text: "[1, 2]",
        lambda text: "[" * 100_000,
        lambda text: text.replace('"format": 1', '"format": 99'),
        lambda text: text.replace('"threads": 2', '"threads": 3'),
        lambda text: text.replace("2.5", "NaN"),
        lambda text: text.replace("2.5", "Infinity"),
        lambda text: text.replace("2.5", '"many"'),
        lambda text: text.replace("2.5", "1" * 500),
        lambda text: text.replace("3.25", "0.0"),
        lambda text: text.replace('"n_steps": 8', '"n_steps": true').replace("8", "x"),
        lambda text: text.replace('"tuning"', '"nothing"'),
        lambda text: " " * (2 << 20),
    ],
)
def test_a_file_that_is_not_what_was_written_is_ignored_with_a_line_in_the_log(
    tmp_path: Path, spoil: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    memory = TuningMemory(tmp_path)
    memory.keep(KEY, LEARNT)
    path = the_file(tmp_path)
    path.write_text(spoil(path.read_text("ascii")), encoding="latin-1")
    with caplog.at_level(logging.INFO):
        assert memory.recall(KEY) is None
    assert len(caplog.records) == 1
    memory.keep(KEY, LEARNT)  # and it is replaced
    assert memory.recall(KEY) is not None


def test_a_folder_that_cannot_be_written_costs_nothing_but_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in the way").write_text("")
    memory = TuningMemory(tmp_path / "in the way" / "tuning")
    with caplog.at_level(logging.INFO):
        memory.keep(KEY, LEARNT)
        assert memory.recall(KEY) is None
    assert caplog.records


def test_the_folder_does_not_grow_without_end(tmp_path: Path) -> None:
    memory = TuningMemory(tmp_path)
    for number in range(110):
        memory.keep({"number": number}, LEARNT)
    assert len(list(tmp_path.iterdir())) == 100
    assert memory.recall({"number": 109}) is not None


# ---- what a model file is ----------------------------------------------------------------------------------------


def test_a_model_is_known_by_what_it_holds_and_not_by_where_it_lies(tmp_path: Path) -> None:
    original = tmp_path / "a" / "model.gguf"
    original.parent.mkdir()
    content = bytearray(QWEN35_MINI_DRAFT.read_bytes())
    original.write_bytes(content)
    elsewhere = tmp_path / "another name.gguf"
    elsewhere.write_bytes(content)
    assert content_identity(original) == content_identity(elsewhere) == content_identity(QWEN35_MINI_DRAFT)
    content[100] ^= 1  # in the header
    elsewhere.write_bytes(content)
    assert content_identity(elsewhere) != content_identity(original)
    content[100] ^= 1
    content[-1] ^= 1  # in the last weights
    elsewhere.write_bytes(content)
    assert content_identity(elsewhere) != content_identity(original)
    elsewhere.write_bytes(content[:-1])
    assert content_identity(elsewhere) != content_identity(original)
    with pytest.raises(OSError, match="missing"):
        content_identity(tmp_path / "missing.gguf")


def test_a_draft_in_a_folder_is_known_by_its_files() -> None:
    assert len(content_identity(QWEN35_MINI_DRAFT_HF)) == 64
    assert content_identity(QWEN35_MINI_DRAFT_HF) != content_identity(QWEN35_MINI_DRAFT)


# ---- through the engine ------------------------------------------------------------------------------------------


def load_with(memory: TuningMemory, *, n_replies: int = 0) -> tuple[PairLoaded, list[tuple[int, ...]]]:
    engine = Engine(PairLoader(load_library(), memory))
    engine.start()
    try:
        loaded = try_load(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, LoadOptions(context_tokens=256, n_threads=1))
        assert isinstance(loaded, PairLoaded), loaded
        replies = [ask_for(engine, "Count to ten.", max_tokens=24).token_ids for _ in range(n_replies)]
    finally:
        engine.close()
    return loaded, replies


def numbers_in(folder: Path) -> list[float]:
    numbers: list[float] = json.loads(the_file(folder).read_text("ascii"))["tuning"]
    return numbers


@pytest.mark.usefixtures("unhurried_probe")
def test_the_second_load_starts_where_the_first_one_ended(tmp_path: Path) -> None:
    memory = TuningMemory(tmp_path)
    first, replies = load_with(memory, n_replies=2)
    assert first.pair.draft_probe is not None
    assert not first.pair.draft_probe.is_remembered
    assert len(numbers_in(tmp_path)) > 400
    second, again = load_with(memory, n_replies=2)
    assert second.pair.draft_probe is not None
    assert second.pair.draft_probe.is_remembered
    assert second.pair.draft_probe.acceptance_length == first.pair.draft_probe.acceptance_length
    assert again == replies


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first load leaves."""
    folder = tmp_path_factory.mktemp("tuning")
    load_with(TuningMemory(folder))
    return the_file(folder)


@pytest.mark.parametrize("spoil", ["shorter", "longer", "negative", "huge", "zeros", "other buckets"])
def test_numbers_of_the_right_form_that_make_no_sense_are_refused_by_the_engine(
    tmp_path: Path, spoil: str, written: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = TuningMemory(tmp_path)
    path = tmp_path / written.name
    learnt = json.loads(written.read_text("ascii"))
    numbers: list[float] = learnt["tuning"]
    learnt["tuning"] = {
        "shorter": numbers[:-1],
        "longer": [*numbers, 1.0],
        "negative": [-abs(number) for number in numbers],
        "huge": [number * 1e300 for number in numbers],
        "zeros": [0.0] * len(numbers),
        "other buckets": [*numbers[:4], numbers[4] + 1, *numbers[5:]],
    }[spoil]
    assert all(map(math.isfinite, learnt["tuning"]))
    path.write_text(json.dumps(learnt), "ascii")
    with caplog.at_level(logging.INFO):
        load_with(memory, n_replies=1)
    assert any("measured again" in record.getMessage() for record in caplog.records)
    assert numbers_in(tmp_path)[0] == numbers[0]  # what was measured has taken its place
