"""Where other programs keep models on this machine: Hugging Face's cache, LM Studio, Ollama. Reads, never writes."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger(__name__)
PlaceKind = Literal["built_in", "ours", "hf_cache", "lm_studio", "ollama", "folder"]
_MOST_FILES = 20_000  # a folder with more is no model folder (somebody's home, a network drive)
_UNFINISHED = (".part", ".incomplete", ".tmp", ".crdownload", ".download", ".aria2")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with models."""

    kind: PlaceKind
    path: Path


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that is a model by its name. Whether it can be used is seen when it is opened."""

    path: Path  # a draft in safetensors: the file beside whose config.json it lies
    place: Place
    name: str  # what its owner calls it
    repo_id: str = ""


def other_programs(environ: Mapping[str, str], home: Path) -> list[Place]:
    """The places that exist on this machine."""
    places = [Place("hf_cache", hf_cache(environ, home))]
    places += [Place("lm_studio", folder) for folder in lm_studio_folders(home)]
    places += [Place("ollama", folder) for folder in ollama_folders(environ, home)]
    return [place for place in places if _is_folder(place.path)]


def hf_cache(environ: Mapping[str, str], home: Path) -> Path:
    """Where huggingface_hub puts models, by the same variables as there."""
    if said := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(said).expanduser()
    if said := environ.get("HF_HOME"):
        return Path(said).expanduser() / "hub"
    cache = environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else home / ".cache") / "huggingface" / "hub"


def lm_studio_folders(home: Path) -> list[Path]:
    """Its models folder as its own settings say, else the usual ones of its versions."""
    roots = [home / ".lmstudio", home / ".cache" / "lm-studio"]
    with suppress(OSError, ValueError):
        roots.insert(0, Path((home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()))
    folders: list[Path] = []
    for root in roots:
        said = _json(root / "settings.json").get("downloadsFolder")
        folder = Path(said) if isinstance(said, str) and said else root / "models"
        if folder not in folders:
            folders.append(folder)
    return folders


def ollama_folders(environ: Mapping[str, str], home: Path) -> list[Path]:
    """The person's store, and that of the service on Linux."""
    said = environ.get("OLLAMA_MODELS")
    own = Path(said).expanduser() if said else home / ".ollama" / "models"
    return [own, Path("/usr/share/ollama/.ollama/models")]


def candidates(place: Place) -> Iterator[Candidate]:
    """The model files of a place, in order of path; unfinished downloads are none of them."""
    if place.kind == "ollama":
        yield from _ollama(place)
    elif place.kind == "hf_cache":
        yield from _hf_cache(place)
    else:
        yield from _folder(place)


def _folder(place: Place) -> Iterator[Candidate]:
    n_files = 0
    for at, folders, names in os.walk(place.path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        n_files += len(names)
        if n_files > _MOST_FILES:
            log.warning("%s has too many files to be a models folder; the rest is left out", place.path)
            return
        for name in sorted(names):
            path = Path(at, name)
            if _is_model(path, names):
                yield Candidate(path, place, _name_in(path, place), _repo_in(path, place))


def _hf_cache(place: Place) -> Iterator[Candidate]:
    """models--OWNER--NAME/snapshots/COMMIT/FILE, which are links to blobs; unfinished blobs have no link yet."""
    for repo in sorted(place.path.glob("models--*")):
        repo_id = repo.name.removeprefix("models--").replace("--", "/")
        seen: set[str] = set()
        snapshots = [found for found in (repo / "snapshots").glob("*") if _is_folder(found)]
        for snapshot in sorted(snapshots, key=_changed, reverse=True):  # the newest of each file
            for at, _folders, names in os.walk(snapshot):
                for name in sorted(names):
                    path = Path(at, name)
                    inside = path.relative_to(snapshot).as_posix()
                    if inside not in seen and _is_model(path, names):
                        seen.add(inside)
                        yield Candidate(path, place, path.name, repo_id)


def _ollama(place: Place) -> Iterator[Candidate]:
    """manifests/HOST/NAMESPACE/MODEL/TAG name the blob that holds the model; a blob of another size is unfinished."""
    for manifest in sorted((place.path / "manifests").glob("*/*/*/*")):
        namespace, model, tag = manifest.parts[-3:]
        layers = _json(manifest).get("layers")
        for layer in layers if isinstance(layers, list) else ():
            if not isinstance(layer, dict) or layer.get("mediaType") != "application/vnd.ollama.image.model":
                continue
            blob = place.path / "blobs" / str(layer.get("digest", "")).replace(":", "-")
            with suppress(OSError):
                if blob.stat().st_size == layer.get("size"):
                    owner = "" if namespace == "library" else f"{namespace}/"
                    yield Candidate(blob, place, f"{owner}{model}:{tag}")


def _is_model(path: Path, beside: list[str]) -> bool:
    name = path.name.lower()
    if name.startswith(("downloading_", ".")) or name.endswith(_UNFINISHED) or "mmproj" in name:
        return False
    if name.endswith(".gguf"):
        return True
    # A draft as its makers publish it. Other safetensors files are whole models that this engine does not read.
    if not name.endswith(".safetensors") or "config.json" not in beside:
        return False
    architectures = str(_json(path.with_name("config.json")).get("architectures")).lower()
    return "dflash" in architectures or "dspark" in architectures


def _name_in(path: Path, place: Place) -> str:
    return path.parent.name if path.suffix == ".safetensors" and path.parent != place.path else path.name


def _repo_in(path: Path, place: Place) -> str:
    # Ours and LM Studio's are laid out as OWNER/NAME/FILE.
    parts = path.relative_to(place.path).parts
    return "/".join(parts[:2]) if place.kind in ("ours", "lm_studio") and len(parts) > 2 else ""


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
