"""What models this machine has, wherever they lie: found, opened, matched into pairs, and used in place."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.json_file import read_json, write_json
from dflash_desktop.base.presence import has_file, is_there
from dflash_desktop.hub.failures import disk_problem
from dflash_desktop.hub.part_file import HashKind, hash_file, make_part_of
from dflash_desktop.hub.places import Candidate, Place, candidates, other_programs
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.wanted import WantedDownload, WantedFile, split_name

if TYPE_CHECKING:
    from dflash_desktop.hub.abort import Abort
    from dflash_desktop.hub.models_folder import ModelsFolder

log = logging.getLogger(__name__)
LIBRARY_FILE = "library.json"
FileState = Literal["ready", "unreadable", "part_missing"]


@dataclass(frozen=True, slots=True)
class HeaderFacts:
    """What the engine reads in a file's header."""

    role: Literal["target", "draft", "other"]
    can_run: bool
    reason: str  # why not
    architecture: str
    name: str
    quantization: str
    n_parameters: int
    context_tokens: int
    cause: Cause | None = None  # of the reason


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file could not be opened: in a sentence, and as a code where it is known."""

    problem: str
    cause: Cause | None


Inspect = Callable[[Path], HeaderFacts]
"""Opens a file. Raises AppError for one that is cut short, damaged or no model."""

Misfit = Callable[[Path, Path], str | None]
"""Why a draft does not fit a target; None when it does. Raises AppError."""


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """A model on this machine; all parts of a split one are one."""

    path: Path  # what is opened: the first part
    parts: tuple[Path, ...]
    place: Place
    name: str
    repo_id: str
    n_bytes: int
    state: FileState
    problem: str  # the engine's words, or the part that is missing
    facts: HeaderFacts | None  # None where it could not be opened
    drafts: tuple[Path, ...] = ()  # for a target: those that fit, best guess first
    cause: Cause | None = None  # of the problem

    @property
    def is_ours(self) -> bool:
        """Whether we may delete it: other programs' files are theirs."""
        return self.place.kind == "ours"

    @property
    def why_not(self) -> tuple[str, Cause | None]:
        """Why it cannot be run, in the engine's words and as a code; ("", None) when it can."""
        if self.problem or self.facts is None or self.facts.can_run:
            return self.problem, self.cause
        return self.facts.reason, self.facts.cause

    @property
    def is_target(self) -> bool:
        return self.state == "ready" and self.facts is not None and self.facts.role == "target" and self.facts.can_run


@dataclass(frozen=True, slots=True)
class LibraryPlace:
    """A place, as it was when it was looked at."""

    place: Place
    is_present: bool  # False: a drive that is not there; what we know of it is kept
    n_files: int


@dataclass(frozen=True, slots=True)
class Shelf:
    """The result of one look."""

    files: tuple[LibraryFile, ...]
    places: tuple[LibraryPlace, ...]

    def find(self, wanted: WantedFile) -> Path | None:
        """That very file, as far as anybody can tell without reading it: same size, name and repository.

        Where the repository is not known the name has to speak for itself, which "model.safetensors" does not.
        """
        base = wanted.name.rpartition("/")[2].casefold()
        for file in self.files:
            name = file.path.name.casefold()
            if file.state != "ready" or name != base or file.n_bytes != wanted.n_bytes:
                continue
            is_telling = (
                not file.repo_id and name.endswith(".gguf") and not name.startswith(("dflash", "draft", "model"))
            )
            if file.repo_id.casefold() == wanted.repo_id.casefold() or is_telling:
                return file.path
        return None

    def targets(self) -> list[LibraryFile]:
        """What could be loaded at once."""
        return [file for file in self.files if file.is_target]


class Library:
    """Scans when asked; its methods wait for the disk, so ask from a thread that may wait."""

    def __init__(
        self,
        state_folder: Path,
        folder: ModelsFolder,
        *,
        built_in: Path,
        inspect: Inspect,
        misfit: Misfit,
        home: Path | None = None,
    ) -> None:
        self._file = state_folder / LIBRARY_FILE
        self._folder = folder
        self._built_in = built_in
        self._inspect = inspect
        self._misfit = misfit
        self._home = home or Path.home()
        self._headers: dict[tuple[Path, int, int], HeaderFacts | Unreadable] = {}
        self._fits: dict[tuple[Path, Path], bool] = {}
        self._added = self._read_added()

    # ---- what the person added

    def added(self) -> tuple[Path, ...]:
        """Folders and files of the person's own."""
        return tuple(self._added)

    def add(self, path: Path) -> None:
        """Look at this folder, or this file, from now on. Nothing is copied or moved."""
        path = path.absolute()
        if path not in self._added:
            self._added.append(path)
            self._write_added()

    def drop(self, path: Path) -> None:
        """Look at it no more. Its files stay."""
        if path in self._added:
            self._added.remove(path)
            self._write_added()

    # ---- looking

    def scan(self) -> Shelf:
        """Everything that is there now."""
        files: list[LibraryFile] = []
        places: list[LibraryPlace] = []
        seen: set[str] = set()
        for place in self._places():
            is_present = is_there(place.path)
            found: list[LibraryFile] = []
            if is_present:
                fresh = [one for one in self._candidates(place) if _is_new(one.path, seen)]
                found = self._opened(fresh)
            files += found
            if place.kind in ("ours", "folder") or found:
                places.append(LibraryPlace(place, is_present, len(found)))
        return Shelf(tuple(self._matched(files)), tuple(places))

    def _places(self) -> list[Place]:
        places = [Place("built_in", self._built_in), Place("ours", self._folder.path)]
        places += other_programs(os.environ, self._home)
        return places + [Place("folder", path) for path in self._added]

    def _candidates(self, place: Place) -> list[Candidate]:
        if has_file(place.path):
            # A part of a split model: its other parts lie beside it.
            split = split_name(place.path.name)
            beside = sorted(place.path.parent.iterdir()) if split else [place.path]
            return [
                Candidate(path, place, path.name)
                for path in beside
                if path == place.path or (split and (other := split_name(path.name)) and other.stem == split.stem)
            ]
        try:
            return list(candidates(place))
        except OSError as error:
            log.warning("%s cannot be read: %s", place.path, error)
            return []

    def _opened(self, found: Sequence[Candidate]) -> list[LibraryFile]:
        whole: list[LibraryFile] = []
        splits: dict[tuple[Path, str, int], list[Candidate]] = {}
        for one in found:
            split = split_name(one.path.name)
            if split is not None and split.count > 1:
                splits.setdefault((one.path.parent, split.stem, split.count), []).append(one)
            else:
                whole.append(self._file_of(one, (one.path,)))
        for (_, stem, count), parts in splits.items():
            whole.append(self._split_file(stem, count, sorted(parts, key=lambda one: one.path.name)))
        return sorted(whole, key=lambda file: str(file.path))

    def _split_file(self, stem: str, count: int, parts: list[Candidate]) -> LibraryFile:
        numbers = {split.number for part in parts if (split := split_name(part.path.name))}
        paths = tuple(part.path for part in parts)
        missing = next((number for number in range(1, count + 1) if number not in numbers), None)
        if missing is None:
            return replace(self._file_of(parts[0], paths), name=stem)
        name = f"{stem.removesuffix('.gguf')}-{missing:05d}-of-{count:05d}.gguf"
        return _broken(parts[0], paths, "part_missing", name)

    def _file_of(self, found: Candidate, paths: tuple[Path, ...]) -> LibraryFile:
        header = self._header(found.path, paths)
        if isinstance(header, Unreadable):
            return _broken(found, paths, "unreadable", header.problem, header.cause)
        n_bytes = _size(paths)
        return LibraryFile(found.path, paths, found.place, found.name, found.repo_id, n_bytes, "ready", "", header)

    def _header(self, path: Path, paths: tuple[Path, ...]) -> HeaderFacts | Unreadable:
        try:
            key = (path, _size(paths), path.stat().st_mtime_ns)
        except OSError as error:
            gone = Cause("file_missing", {"file": path.name, "folder": str(path.parent)})
            return Unreadable(error.strerror or str(error), gone)
        if key not in self._headers:
            try:
                self._headers[key] = self._inspect(path)
            except AppError as error:
                self._headers[key] = Unreadable(str(error), error.cause)
        return self._headers[key]

    def _matched(self, files: list[LibraryFile]) -> list[LibraryFile]:
        drafts = [
            file for file in files if file.facts is not None and file.facts.role == "draft" and file.facts.can_run
        ]
        return [replace(file, drafts=tuple(self._fitting(file, drafts))) if file.is_target else file for file in files]

    def _fitting(self, target: LibraryFile, drafts: list[LibraryFile]) -> list[Path]:
        fitting = [draft for draft in drafts if self._does_fit(target.path, draft.path)]
        # A draft of another generation fits too, at half the acceptance: names tell them apart (Qwen3.5, Qwen3.6).
        return [draft.path for draft in sorted(fitting, key=lambda draft: -_likeness(target, draft))]

    def _does_fit(self, target: Path, draft: Path) -> bool:
        key = (target, draft)
        if key not in self._fits:
            try:
                self._fits[key] = self._misfit(target, draft) is None
            except AppError:
                self._fits[key] = False
        return self._fits[key]

    # ---- our own files

    def delete(self, file: LibraryFile) -> int:
        """Delete one of our own; how many bytes that frees. Raises AppError for other people's files."""
        if not file.is_ours:
            raise AppError(f"{file.path} belongs to another program or to you: delete it there.")
        n_freed = 0
        paths = [*file.parts]
        if file.path.suffix == ".safetensors":
            paths.append(file.path.with_name("config.json"))
        for path in paths:
            try:
                facts = path.stat()
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise disk_problem(error, path.parent) from error
            if facts.st_nlink == 1:  # else the content has another name somewhere
                n_freed += facts.st_size
            self._folder.forget(path)
        return n_freed

    def check(self, file: LibraryFile, abort: Abort, progress: Callable[[int], object]) -> bool | None:
        """Read one of our own files through: is it still what the hub said? None where nobody knows.

        `progress` is told how many bytes were read. Raises Aborted and HubProblem.
        """
        for path in file.parts:
            record = self._folder.record(path) if file.is_ours else None
            if record is None:
                return None
            kind: HashKind = "sha256" if record.sha256 else "git_sha1"
            try:
                found, _ = hash_file(path, kind, record.block_bytes, abort, progress)
            except OSError as error:
                raise disk_problem(error, path.parent) from error
            if found != (record.sha256 or record.git_sha1):
                return False
        return True

    def repair(self, file: LibraryFile) -> WantedDownload:
        """What to download so that a damaged file is whole again: only its damaged blocks will be fetched.

        Raises HubProblem for a file that was not fetched by us: nobody knows what it should be.
        """
        wanted = []
        for path in file.parts:
            record = self._folder.record(path) if file.is_ours else None
            if record is None:
                raise HubProblem("other", "no record of what it should be", where=str(path))
            try:
                identity = record.sha256 or record.git_sha1
                make_part_of(path, record.n_bytes, identity, record.block_bytes, record.digests)
            except OSError as error:
                raise disk_problem(error, path.parent) from error
            wanted.append(
                WantedFile(
                    repo_id=record.repo_id,
                    revision=record.revision,
                    name=record.name,
                    n_bytes=record.n_bytes,
                    sha256=record.sha256,
                    git_sha1=record.git_sha1,
                )
            )
        return WantedDownload(title=file.name, files=tuple(wanted))

    # ---- what is kept

    def _read_added(self) -> list[Path]:
        try:
            kept = read_json(self._file, lambda found: isinstance(found.get("added", []), list)) or {}
        except AppError as error:
            log.warning("the list of added folders: %s", error)
            return []
        return [Path(found) for found in kept.get("added", []) if isinstance(found, str) and found]

    def _write_added(self) -> None:
        try:
            write_json(self._file, {"version": 1, "added": [str(path) for path in self._added]})
        except OSError as error:
            raise disk_problem(error, self._file.parent) from error


def _broken(
    found: Candidate, paths: tuple[Path, ...], state: FileState, problem: str, cause: Cause | None = None
) -> LibraryFile:
    size = _size(paths)
    return LibraryFile(found.path, paths, found.place, found.name, found.repo_id, size, state, problem, None, (), cause)


def _is_new(path: Path, seen: set[str]) -> bool:
    """Once each, whatever number of links lead to it."""
    real = os.path.realpath(path)
    if real in seen:
        return False
    seen.add(real)
    return True


def _size(paths: Sequence[Path]) -> int:
    n_bytes = 0
    for path in paths:
        with suppress(OSError):
            n_bytes += path.stat().st_size
    return n_bytes


def _likeness(target: LibraryFile, draft: LibraryFile) -> int:
    """How many leading characters the names of the two models share, punctuation aside."""
    names = []
    for file in (target, draft):
        name = file.facts.name if file.facts is not None and file.facts.name else file.name
        names.append([c for c in name.casefold() if c.isalnum() or c == "."])
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(*names, strict=False))))
