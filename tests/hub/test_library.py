"""What lies on this machine: other programs' stores, split models, absent drives, damage; opened by the real engine."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import gguf
import numpy as np
import pytest

from dflash_desktop.base.causes import Cause
from hub.conftest import DRAFT, DRAFT_FOLDER, SMALL, TARGET, MakeLibrary, names, put


def put_in_ollama(store: Path, source: Path, model: str, tag: str, *, n_bytes: int | None = None) -> Path:
    content = source.read_bytes()
    digest = sha256(content).hexdigest()
    blob = store / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content[:n_bytes])
    manifest = store / "manifests" / "registry.ollama.ai" / "library" / model / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:00", "size": 1},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": len(content)},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blob


def put_in_hf_cache(cache_folder: Path, source: Path, repo_id: str, name: str) -> Path:
    repo = cache_folder / f"models--{repo_id.replace('/', '--')}"
    blob = repo / "blobs" / "abc"
    put(source, blob)
    link = repo / "snapshots" / "0123" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    (repo / "blobs" / "def.incomplete").write_bytes(b"half a file")
    return link


def test_nothing_is_found_where_nothing_is(make: MakeLibrary) -> None:
    shelf = make().scan()
    assert shelf.files == ()
    assert [place.place.kind for place in shelf.places] == ["ours"]


def test_a_place_that_cannot_be_looked_at_is_absent_and_hides_no_other(make: MakeLibrary, home: Path) -> None:
    library = make()
    library.add(home / ("a" * 300))  # like a folder that may not be entered, for root too
    library.add(home)
    added = [place for place in library.scan().places if place.place.kind == "folder"]
    assert [place.is_present for place in added] == [False, True]


def test_other_programs_models_are_used_where_they_lie(make: MakeLibrary, home: Path) -> None:
    in_cache = put_in_hf_cache(home / ".cache" / "huggingface" / "hub", DRAFT, "z-lab/mini-DFlash", "draft.gguf")
    in_studio = put(TARGET, home / ".lmstudio" / "models" / "maker" / "mini" / "mini-q8_0.gguf")
    in_ollama = put_in_ollama(home / ".ollama" / "models", SMALL, "tiny", "latest")
    shelf = make().scan()
    found = names(shelf)
    assert found["draft.gguf"].path == in_cache
    assert found["draft.gguf"].repo_id == "z-lab/mini-DFlash"
    assert found["mini-q8_0.gguf"].path == in_studio
    assert found["mini-q8_0.gguf"].repo_id == "maker/mini"
    assert found["tiny:latest"].path == in_ollama
    assert {file.state for file in shelf.files} == {"ready"}
    assert {place.place.kind for place in shelf.places} == {"ours", "hf_cache", "lm_studio", "ollama"}
    assert not any(file.is_ours for file in shelf.files)


def test_places_follow_the_variables_and_settings_of_those_programs(
    make: MakeLibrary, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(home / "hf"))
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "ol"))
    (home / ".lmstudio-home-pointer").write_text(str(home / "studio"))
    (home / "studio").mkdir()
    (home / "studio" / "settings.json").write_text(json.dumps({"downloadsFolder": str(home / "elsewhere")}))
    put_in_hf_cache(home / "hf" / "hub", DRAFT, "a/b", "one.gguf")
    put_in_ollama(home / "ol", SMALL, "two", "8b")
    put(TARGET, home / "elsewhere" / "three.gguf")
    assert set(names(make().scan())) == {"one.gguf", "two:8b", "three.gguf"}


def test_a_target_is_matched_with_the_drafts_that_fit_it(make: MakeLibrary, home: Path) -> None:
    put(TARGET, home / ".lmstudio" / "models" / "maker" / "mini" / "mini.gguf")
    draft = put(DRAFT, home / "mine" / "draft.gguf")
    for name in ("config.json", "model.safetensors"):
        put(DRAFT_FOLDER / name, home / "mine" / "mini-DFlash" / name)
    library = make()
    library.add(home / "mine")
    found = names(library.scan())
    assert set(found["mini.gguf"].drafts) == {draft, home / "mine" / "mini-DFlash" / "model.safetensors"}
    assert found["mini-DFlash"].facts is not None
    assert found["mini-DFlash"].facts.role == "draft"


def test_a_safetensors_model_that_is_no_draft_is_not_listed(make: MakeLibrary, home: Path) -> None:
    put(DRAFT_FOLDER / "model.safetensors", home / "mine" / "whole" / "model.safetensors")
    (home / "mine" / "whole" / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"]}))
    library = make()
    library.add(home / "mine")
    assert library.scan().files == ()


@pytest.mark.parametrize("name", ["x.gguf.part", "downloading_x.gguf", "x.gguf.incomplete", "mmproj-x.gguf", ".x.gguf"])
def test_b114_unfinished_files_are_not_listed(name: str, make: MakeLibrary, home: Path) -> None:
    put(TARGET, home / ".lmstudio" / "models" / "maker" / "mini" / name)
    assert make().scan().files == ()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_b114_a_file_that_is_cut_short_is_listed_as_damaged_and_never_as_ready(
    share: float, make: MakeLibrary, home: Path
) -> None:
    content = TARGET.read_bytes()
    path = home / "mine" / "cut.gguf"
    path.parent.mkdir()
    path.write_bytes(content[: int(len(content) * share)])
    library = make()
    library.add(path.parent)
    (file,) = library.scan().files
    assert file.state == "unreadable"
    assert file.problem
    assert file.cause == Cause("file_broken", {"file": "cut.gguf"})
    assert file.why_not == (file.problem, file.cause)
    assert not file.is_target


def test_b114_an_unfinished_blob_of_ollama_is_not_listed(make: MakeLibrary, home: Path) -> None:
    put_in_ollama(home / ".ollama" / "models", SMALL, "tiny", "latest", n_bytes=1000)
    assert make().scan().files == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"layers": 1}', b'{"layers": [1]}', b"\xff"])
def test_a_broken_manifest_costs_that_model_only(content: bytes, make: MakeLibrary, home: Path) -> None:
    store = home / ".ollama" / "models"
    put_in_ollama(store, SMALL, "tiny", "latest")
    (store / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "broken").write_bytes(content)
    assert set(names(make().scan())) == {"tiny:latest"}


def split_model(folder: Path, *, stem: str = "mini", suffix: str = ".gguf") -> list[Path]:
    """The tiny target in three parts, as upstream's splitter writes them."""
    reader = gguf.GGUFReader(SMALL)
    groups = np.array_split(np.arange(len(reader.tensors)), 3)
    paths = []
    for number, group in enumerate(groups):
        path = folder / f"{stem}-{number + 1:05d}-of-00003{suffix}"
        writer = gguf.GGUFWriter(path, "qwen35")
        if number == 0:
            for field in reader.fields.values():
                if field.name.startswith("GGUF.") or field.name == "general.architecture":
                    continue
                kind = field.types[0]
                sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
                writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 3)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for index in group:
            tensor = reader.tensors[index]
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        paths.append(path)
    return paths


@pytest.mark.parametrize("suffix", [".gguf", ".GGUF"])
def test_b122_a_split_model_is_one_item_with_one_size(suffix: str, make: MakeLibrary, home: Path) -> None:
    (home / "mine").mkdir()
    paths = split_model(home / "mine", suffix=suffix)
    split_model(home / "mine", stem="other quantization")
    library = make()
    library.add(home / "mine")
    found = names(library.scan())
    assert set(found) == {f"mini{suffix}", "other quantization.gguf"}
    file = found[f"mini{suffix}"]
    assert file.parts == tuple(paths)
    assert file.n_bytes == sum(path.stat().st_size for path in paths)
    if suffix == ".gguf":  # the engine looks for the other parts by upstream's spelling
        assert file.is_target


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_b122_a_missing_part_is_named(missing: int, make: MakeLibrary, home: Path) -> None:
    (home / "mine").mkdir()
    split_model(home / "mine")[missing].unlink()
    library = make()
    library.add(home / "mine")
    (file,) = library.scan().files
    assert file.state == "part_missing"
    assert file.problem == f"mini-{missing + 1:05d}-of-00003.gguf"
    assert not file.is_target


def test_b122_parts_with_swapped_names_are_refused_by_the_engine(make: MakeLibrary, home: Path) -> None:
    (home / "mine").mkdir()
    first, second, _ = split_model(home / "mine")
    aside = home / "aside"
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    library = make()
    library.add(home / "mine")
    (file,) = library.scan().files
    assert file.state == "unreadable"


def test_b122_any_part_that_is_added_opens_the_whole(make: MakeLibrary, home: Path) -> None:
    (home / "mine").mkdir()
    paths = split_model(home / "mine")
    library = make()
    library.add(paths[1])
    (file,) = library.scan().files
    assert file.parts == tuple(paths)
    assert file.is_target


def test_b121_an_absent_drive_is_said_and_comes_back_with_its_files(make: MakeLibrary, home: Path) -> None:
    put(TARGET, home / "drive" / "mini.gguf")
    library = make()
    library.add(home / "drive")
    assert set(names(library.scan())) == {"mini.gguf"}
    (home / "drive").rename(home / "unplugged")
    again = make()
    place = next(place for place in again.scan().places if place.place.kind == "folder")
    assert not place.is_present
    assert again.added() == (home / "drive",)
    (home / "unplugged").rename(home / "drive")
    assert set(names(again.scan())) == {"mini.gguf"}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"added": [1, ""]}', b"\xff\xfe"])
def test_b126_a_broken_list_of_folders_does_not_stop_the_program(
    content: bytes, make: MakeLibrary, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "library.json").write_bytes(content)
    library = make()
    library.add(home)
    assert make().added() == (home,)


@pytest.mark.parametrize("kind", ["file", "dangling link", "nothing"])
def test_b126_a_folder_that_is_none_does_not_stop_the_scan(kind: str, make: MakeLibrary, home: Path) -> None:
    path = home / "odd"
    match kind:
        case "file":
            path.write_text("no model")
        case "dangling link":
            path.symlink_to(home / "nowhere")
    library = make()
    library.add(path)
    shelf = library.scan()
    assert not shelf.targets()


def test_one_file_behind_two_links_is_listed_once(make: MakeLibrary, home: Path) -> None:
    real = put(TARGET, home / "a" / "mini.gguf")
    (home / "b").mkdir()
    (home / "b" / "link.gguf").symlink_to(real)
    library = make()
    library.add(home / "a")
    library.add(home / "b")
    assert len(library.scan().files) == 1


def test_b158_odd_names_are_found_opened_and_shown_as_they_are(make: MakeLibrary, home: Path) -> None:
    folder = home / "田中　太郎 ü #1 %41 'q'"
    name = "模型 & 'q' #1 😀.gguf"
    put(TARGET, folder / name)
    library = make()
    library.add(folder)
    (file,) = library.scan().files
    assert file.name == name
    assert file.is_target
