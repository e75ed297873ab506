"""What model files are, which belong together, and what comes with the program."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.inspect import inspect_file, misfit
from dflash_desktop.engine.pairs import built_in_pairs, fitting_drafts, model_files
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF
from support.native_library import load_library
from support.scripted_model import write_scripted

if TYPE_CHECKING:
    from pathlib import Path


def test_the_built_in_pair_is_there_and_fits() -> None:
    pair = next(pair for pair in built_in_pairs() if pair.id == "smollm2-135m")
    assert pair.draft is not None
    target, draft = (inspect_file(path, load_library()) for path in (pair.target, pair.draft))
    assert (target.role, target.architecture, target.can_run, target.n_vocab) == ("target", "llama", True, 49152)
    assert target.quantization.upper() == "Q4_1"
    assert (draft.role, draft.block_size, draft.mask_token, draft.can_run) == ("draft", 8, 16, True)
    assert draft.feature_layers == (1, 8, 14, 20, 27)
    assert misfit(pair.target, pair.draft, load_library()) is None


@pytest.mark.parametrize("content", ["", "[]", '{"pairs": [{"id": "x"}]}', None], ids=repr)
def test_a_broken_list_of_built_in_models_is_named_with_a_way_out(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "pairs.json").write_text(content)
    monkeypatch.setattr("dflash_desktop.engine.pairs.resource_path", lambda _: tmp_path)
    with pytest.raises(AppError, match=r"pairs\.json cannot be read: .*\. Install the program again\."):
        built_in_pairs()


def test_a_draft_for_another_target_does_not_fit_and_says_why() -> None:
    pair = built_in_pairs()[0]
    assert misfit(pair.target, QWEN35_MINI_DRAFT, load_library())
    assert misfit(QWEN35_MINI, QWEN35_MINI, load_library())


def test_the_drafts_that_fit_are_found_in_folders_and_below(tmp_path: Path) -> None:
    deep = tmp_path / "maker" / "模型"
    deep.mkdir(parents=True)
    (deep / "draft.gguf").write_bytes(QWEN35_MINI_DRAFT.read_bytes())
    (deep / "broken.GGUF").write_bytes(b"GGUF broken")
    (deep / "notes.txt").write_text("no model")
    write_scripted(tmp_path / "other.gguf", [b"ab"])
    (tmp_path / "link.gguf").symlink_to(deep / "draft.gguf")
    folders = [tmp_path, deep, tmp_path / "missing"]
    assert [path.name for path in model_files(folders)] == ["link.gguf", "other.gguf", "broken.GGUF"]
    found = fitting_drafts(QWEN35_MINI, folders, load_library())
    assert [draft.path.name for draft in found] == ["link.gguf"]
    published = tmp_path / "a published draft"
    shutil.copytree(QWEN35_MINI_DRAFT_HF, published)
    (deep / "model.safetensors").write_bytes(b"no config.json beside it")
    found = fitting_drafts(QWEN35_MINI, folders, load_library())
    assert [draft.path for draft in found] == [tmp_path / "link.gguf", published / "model.safetensors"]
    assert fitting_drafts(built_in_pairs()[0].target, [tmp_path], load_library()) == []


def test_a_file_that_is_no_model_is_refused_with_its_name(tmp_path: Path) -> None:
    for name, data in (("empty.gguf", b""), ("text.gguf", b"hello " * 100), ("half.gguf", b"GGUF\3\0\0\0")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(AppError, match=name):
            inspect_file(tmp_path / name, load_library())


def test_a_file_without_a_name_of_its_own_is_called_by_its_stem(tmp_path: Path) -> None:
    path = write_scripted(tmp_path / "My Model.gguf", [b"ab"])
    assert inspect_file(path, load_library()).name == "My Model"
