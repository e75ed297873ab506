"""Targets and the drafts made for them: the pairs that come with the program, and those found on this machine."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.paths import resource_path
from dflash_desktop.engine.inspect import ModelFile, inspect_file, misfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from dflash_desktop.binding.native import Library

_MAX_FILES = 5000  # a folder with more is no model folder (somebody's home, a network drive)


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and the draft made for it."""

    id: str
    name: str
    summary: str
    target: Path
    draft: Path | None


def built_in_pairs() -> list[Pair]:
    """The pairs installed with the program whose files are there (small builds leave the target out)."""
    folder = resource_path("models")
    try:
        written = json.loads((folder / "pairs.json").read_text("utf-8"))["pairs"]
        pairs = [
            Pair(
                id=entry["id"],
                name=entry["name"],
                summary=entry["summary"],
                target=folder / entry["target"]["file"],
                draft=folder / entry["draft"]["file"] if entry.get("draft") else None,
            )
            for entry in written
        ]
    except (OSError, ValueError, LookupError, TypeError) as error:
        words = f"The list of built-in models {folder / 'pairs.json'} cannot be read: {error}."
        raise AppError(f"{words} Install the program again.") from error
    return [pair for pair in pairs if pair.target.is_file() and (pair.draft is None or pair.draft.is_file())]


def model_files(folders: Iterable[Path]) -> Iterator[Path]:
    """The GGUF files in and below `folders`, each once, in order of path. Unreadable folders are passed over."""
    return _files(folders, lambda name, _: name.lower().endswith(".gguf"))


def published_drafts(folders: Iterable[Path]) -> Iterator[Path]:
    """Likewise every `model.safetensors` that lies beside a `config.json`: the form in which drafts are published."""
    return _files(folders, lambda name, names: name == "model.safetensors" and "config.json" in names)


def _files(folders: Iterable[Path], is_wanted: Callable[[str, Sequence[str]], bool]) -> Iterator[Path]:
    """The files whose name, among all names of their folder, is wanted."""
    seen: set[str] = set()
    for folder in folders:
        n_files = 0
        for place, subfolders, names in os.walk(folder):
            subfolders.sort()
            for name in sorted(names):
                n_files += 1
                if is_wanted(name, names):
                    path = folder.__class__(place) / name
                    real = os.path.realpath(path)
                    if real not in seen:
                        seen.add(real)
                        yield path
            if n_files > _MAX_FILES:
                break


def fitting_drafts(target: Path, folders: Iterable[Path], library: Library) -> list[ModelFile]:
    """The drafts in and below `folders` that were made for a target like this one, GGUF files first.

    Unsound files are passed over.
    """
    fitting = []
    places = list(folders)
    for path in itertools.chain(model_files(places), published_drafts(places)):
        try:
            found = inspect_file(path, library)
            if found.role == "draft" and found.can_run and misfit(target, path, library) is None:
                fitting.append(found)
        except AppError:
            continue
    return fitting
