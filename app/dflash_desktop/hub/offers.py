"""What the person is shown before a download begins: true files, sizes, hashes, licences and terms, from the hub."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.repository import Repository, repository
from dflash_desktop.hub.wanted import WantedDownload, WantedFile, key_of

if TYPE_CHECKING:
    from dflash_desktop.hub.catalogue import CatalogueModel, CataloguePair
    from dflash_desktop.hub.network import Network

Find = Callable[[WantedFile], Path | None]
"""Where this machine has that very file already; None where it has not."""


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """The target, the draft or the scorer of an offer."""

    repo_id: str
    files: tuple[WantedFile, ...]  # the first is the model
    licence: str
    is_gated: bool
    local: Path | None  # it is here already: nothing to fetch

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Offer:
    """A download that only has to be agreed to."""

    title: str
    target: OfferedModel
    draft: OfferedModel | None
    pair_id: str = ""
    scorer: OfferedModel | None = None  # for PFlash, where it was asked for

    @property
    def models(self) -> tuple[OfferedModel, ...]:
        return tuple(model for model in (self.target, self.draft, self.scorer) if model is not None)

    def wanted(self) -> WantedDownload:
        """The download, less what is on this machine already."""
        return WantedDownload(
            title=self.title,
            files=tuple(file for model in self.models if model.local is None for file in model.files),
            pair_id=self.pair_id,
            target="" if self.target.local else key_of(self.target.files[0]),
            draft=key_of(self.draft.files[0]) if self.draft is not None and not self.draft.local else "",
            local_target=str(self.target.local or ""),
            local_draft=str(self.draft.local or "") if self.draft is not None else "",
        )


def offer_pair(
    network: Network,
    pair: CataloguePair,
    target: CatalogueModel,
    draft: CatalogueModel | None,
    find: Find,
    scorer: CatalogueModel | None = None,
) -> Offer:
    """Ask the hub for the files of a catalogue pair. Raises HubProblem."""
    return Offer(
        pair.name,
        _offered(network, target, find),
        _offered(network, draft, find) if draft is not None else None,
        pair.id,
        _offered(network, scorer, find) if scorer is not None else None,
    )


def offer_file(repo: Repository, parts: tuple[WantedFile, ...], find: Find) -> Offer:
    """One model of a repository that the person found."""
    local = find(parts[0]) if len(parts) == 1 else None
    name = parts[0].name.rpartition("/")[2]
    return Offer(name, OfferedModel(repo.repo_id, parts, repo.licence, repo.is_gated, local), None)


def _offered(network: Network, model: CatalogueModel, find: Find) -> OfferedModel:
    repo = repository(network, model.repo_id)
    main = repo.file(model.files[0]) or _same_quantization(repo, model)
    files = [*repo.parts_of(main.name)]
    for name in model.files[1:]:
        beside = repo.file(name)
        if beside is None:
            raise HubProblem("not_found", name, where=model.repo_id)
        files.append(beside)
    return OfferedModel(model.repo_id, tuple(files), repo.licence, repo.is_gated, find(main))


def _same_quantization(repo: Repository, model: CatalogueModel) -> WantedFile:
    """Files are renamed now and then: one with the same quantization in its name will do, if it is the only one."""
    wanted = model.quantization.casefold().replace("_", "").replace("-", "")
    found = [
        parts[0]
        for parts in repo.models()
        if parts[0].name.casefold().replace("_", "").replace("-", "").endswith(f"{wanted}.gguf")
    ]
    if len(found) != 1:
        raise HubProblem("not_found", model.files[0], where=model.repo_id)
    return found[0]
