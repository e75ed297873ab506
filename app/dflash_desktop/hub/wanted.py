"""What is to be fetched, and where it goes: names from the hub, made safe for the file system."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dflash_desktop.hub.problems import HubProblem

if TYPE_CHECKING:
    from pathlib import Path

_SPLIT = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)$", re.IGNORECASE)
_NOT_ON_WINDOWS = re.compile(r'[<>:"|?*\\\x00-\x1f]')
_RESERVED = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
PART_SUFFIX = ".part"


class WantedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a repository, as the hub described it when it was asked."""

    repo_id: str
    revision: str  # a commit where it is known, so that a later resume gets the same bytes
    name: str  # path inside the repository
    n_bytes: int
    sha256: str = ""  # of the content, 64 hex digits; "" for a small file outside LFS
    git_sha1: str = ""  # of git's blob, for those


class WantedDownload(msgspec.Struct, frozen=True, kw_only=True):
    """What is fetched as one thing: a pair, a model in parts, or one file."""

    title: str
    files: tuple[WantedFile, ...]
    pair_id: str = ""  # of the catalogue, "" for files that the person searched
    target: str = ""  # names among `files`, as "repo_id/name"; "" where there is none
    draft: str = ""
    local_target: str = ""  # path of a target that is on this machine already, used where it lies
    local_draft: str = ""

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class SplitName:
    """A part of a model in several files: its name is the only thing that says so before it is opened."""

    stem: str
    number: int  # from 1
    count: int


def split_name(name: str) -> SplitName | None:
    """The numbers in "NAME-00001-of-00003.gguf"; None for a file that is whole."""
    match = _SPLIT.match(name)
    if match is None:
        return None
    number, count = int(match["number"]), int(match["count"])
    return SplitName(match["stem"] + match["suffix"], number, count) if 1 <= number <= count else None


def key_of(file: WantedFile) -> str:
    """How `WantedDownload.target` and `.draft` name a file."""
    return f"{file.repo_id}/{file.name}"


def destination(models: Path, file: WantedFile) -> Path:
    """Where the file goes: MODELS/owner/repository/name. Raises HubProblem for a name that leads out of there.

    Two files of different repositories never meet. Names from the hub are another's words: no "..", no drive letters,
    no device names, nothing that one system allows and another does not.
    """
    parts = [*file.repo_id.split("/"), *file.name.split("/")]
    if not all(_is_safe(part) for part in parts) or len(file.repo_id.split("/")) > 2:
        raise HubProblem("bad_name", where=key_of(file))
    path = models.joinpath(*parts)
    if len(path.name.encode()) > 240:  # 255 less our endings
        raise HubProblem("bad_name", "too long", where=key_of(file))
    return path


def _is_safe(part: str) -> bool:
    return (
        bool(part)
        and not part.startswith(".")
        and not part.endswith((".", " ", PART_SUFFIX))
        and not _NOT_ON_WINDOWS.search(part)
        and not _RESERVED.match(part)
    )
