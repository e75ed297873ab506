"""What the hub says of repositories: their files with sizes and hashes, licence, terms; and the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_desktop.hub.failures import problem_of
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.wanted import WantedFile, split_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from huggingface_hub.hf_api import ModelInfo

    from dflash_desktop.hub.network import Network

    Answer = TypeVar("Answer")

SEARCH_LIMIT = 30


@dataclass(frozen=True, slots=True)
class Repository:
    """A model repository at one commit."""

    repo_id: str
    commit: str
    licence: str  # as its card says, "" when it says none
    is_gated: bool  # terms to accept on the hub's page, and an access token
    n_downloads: int
    files: tuple[WantedFile, ...]  # GGUF and safetensors files and config.json

    def file(self, name: str) -> WantedFile | None:
        return next((file for file in self.files if file.name == name), None)

    def models(self) -> list[tuple[WantedFile, ...]]:
        """The GGUF files, each model once: all parts of a split one together, lacking ones missing. By size."""
        found: dict[str, list[WantedFile]] = {}
        for file in self.files:
            if file.name.lower().endswith(".gguf"):
                split = split_name(file.name)
                found.setdefault(split.stem if split else file.name, []).append(file)
        return sorted((tuple(sorted(parts, key=lambda file: file.name)) for parts in found.values()), key=_size)

    def parts_of(self, name: str) -> tuple[WantedFile, ...]:
        """The file with all its parts; raises HubProblem when the repository has none of that name."""
        for parts in self.models():
            if any(part.name == name for part in parts):
                return parts
        found = self.file(name)
        if found is None:
            raise HubProblem("not_found", name, where=self.repo_id)
        return (found,)


def repository(network: Network, repo_id: str, revision: str = "main") -> Repository:
    """Ask for one repository. Raises HubProblem.

    The access token goes along only if the hub does not answer without it.
    """
    info = _ask(
        network,
        repo_id,
        lambda token: network.api().model_info(
            repo_id, revision=revision, files_metadata=True, timeout=network.limits.silence_s, token=token or False
        ),
    )
    return _repository(info)


def search(network: Network, words: str, limit: int = SEARCH_LIMIT) -> list[Repository]:
    """Repositories with GGUF files whose names fit `words`, the most downloaded first; their files are not listed yet.

    Raises HubProblem.
    """
    found = _ask(
        network,
        network.host,
        lambda token: list(
            network.api().list_models(
                filter="gguf",
                search=words or None,
                sort="downloads",
                limit=limit,
                expand=["downloads", "gated", "sha", "tags"],
                token=token or False,
            )
        ),
    )
    return [_repository(info) for info in found]


def _ask(network: Network, where: str, call: Callable[[str | None], Answer]) -> Answer:
    try:
        network.session()
        try:
            return call(None)
        except Exception as error:
            problem = problem_of(error, where)
            token = network.token() if isinstance(problem, HubProblem) and problem.kind == "token_needed" else None
            if token is None:
                raise problem from error
            return call(token)
    except Exception as error:
        raise problem_of(error, where) from error


def _repository(info: ModelInfo) -> Repository:
    commit = info.sha or "main"
    return Repository(
        repo_id=info.id,
        commit=commit,
        licence=_licence(info),
        is_gated=bool(info.gated),
        n_downloads=info.downloads or 0,
        files=tuple(
            WantedFile(
                repo_id=info.id,
                revision=commit,
                name=file.rfilename,
                n_bytes=file.size or 0,
                sha256=file.lfs.sha256 if file.lfs is not None else "",
                git_sha1=(file.blob_id or "") if file.lfs is None else "",
            )
            for file in info.siblings or ()
            if file.rfilename.lower().endswith((".gguf", ".safetensors")) or file.rfilename == "config.json"
        ),
    )


def _licence(info: ModelInfo) -> str:
    card = info.card_data
    said = getattr(card, "license", None) or getattr(card, "license_name", None)
    if isinstance(said, list):
        said = said[0] if said else ""
    if not said:
        said = next((tag.removeprefix("license:") for tag in info.tags or () if tag.startswith("license:")), "")
    return str(said)


def _size(parts: Sequence[WantedFile]) -> int:
    return sum(part.n_bytes for part in parts)
