"""Which models of this machine can rate prompts for PFlash: small ones first."""

from __future__ import annotations

from dflash_desktop.hub.catalogue import Catalogue
from dflash_desktop.hub.library import Shelf
from dflash_desktop.ui.engine.pflash_choice import SCORER_FAMILIES
from dflash_desktop.ui.engine.scorer_box import ScorerFile


def scorer_files(shelf: Shelf, catalogue: Catalogue, target_name: str) -> list[ScorerFile]:
    """`target_name`: the file of the loaded target, for which the catalogue may name a scorer. Without the built-in."""
    named = {
        file.rpartition("/")[2].casefold()
        for pair in catalogue.pairs
        if any(target_name == file.rpartition("/")[2] for target in pair.targets for file in target.files)
        for scorer in pair.scorers
        for file in scorer.files
    }
    usable = [
        file
        for file in shelf.targets()
        if file.place.kind != "built_in" and file.facts is not None and file.facts.architecture in SCORER_FAMILIES
    ]
    return [
        ScorerFile(file.path, file.path.stem, file.path.name.casefold() in named)
        for file in sorted(usable, key=lambda file: (file.path.name.casefold() not in named, file.n_bytes))
    ]
