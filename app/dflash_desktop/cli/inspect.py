"""`dflash-desktop inspect`: what a model file is, whether it can run, and what fits it on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.sizes import disk_text
from dflash_desktop.cli import console

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.engine.inspect import ModelFile
    from dflash_desktop.startup import Workbench

_ROLES = {"target": "a model to chat with", "draft": "a DFlash draft", "other": "neither a target nor a draft"}


def require_target(workbench: Workbench, path: Path) -> None:
    """Raises BadInput, with the reason, for a file that is no model to chat with or that cannot run."""
    found = _described(workbench, path)
    if found.role != "target":
        raise BadInput(f"{path.name} is {_ROLES[found.role]}, not {_ROLES['target']} ({found.architecture}).")
    if not found.can_run:
        raise BadInput(f"{path.name} cannot run: {found.reason}")


def _described(workbench: Workbench, path: Path) -> ModelFile:
    try:
        return workbench.inspect(path)
    except AppError as error:
        raise BadInput(str(error)) from error


def describe_file(workbench: Workbench, path: Path, *, has_json: bool) -> int:
    """Print what `path` is; return the exit code. A file that cannot run is an answer, a broken one is an error."""
    found = _described(workbench, path)
    drafts = workbench.drafts_for(path) if found.role == "target" else []
    if has_json:
        console.write_json(as_json(found, drafts))
    else:
        console.write(report(found, drafts))
    return 0


def as_json(found: ModelFile, drafts: list[ModelFile]) -> dict[str, Any]:
    """The file's description with the drafts that fit."""
    return {
        **asdict(found),
        "path": str(found.path),
        "drafts": [{"path": str(draft.path), "name": draft.name, "block_size": draft.block_size} for draft in drafts],
    }


def report(found: ModelFile, drafts: list[ModelFile]) -> str:
    """The same for people."""
    rows = [
        ("file", str(found.path)),
        ("is", f"{_ROLES[found.role]} ({found.architecture or 'no architecture named'})"),
        ("name", found.name),
        ("can run", "yes" if found.can_run else f"no: {found.reason}"),
        ("size", disk_text(found.file_bytes)),
        ("parameters", _count(found.n_parameters)),
        ("weights", found.quantization),
        ("layers", str(found.n_layers)),
        ("width", str(found.n_embd)),
    ]
    if found.n_vocab:
        rows.append(("vocabulary", f"{found.n_vocab} tokens"))
    if found.context_tokens:
        rows.append(("trained context", f"{found.context_tokens} tokens"))
    if found.role == "draft":
        rows.append(("block size", str(found.block_size)))
        rows.append(("reads layers", ", ".join(map(str, found.feature_layers))))
        rows.append(("mask token", "not named" if found.mask_token is None else str(found.mask_token)))
    if found.role == "target":
        rows.extend(("draft that fits", str(draft.path)) for draft in drafts)
        if not drafts:
            rows.append(("draft that fits", "none on this machine"))
    return console.table([(f"{name}:", value) for name, value in rows]) + "\n"


def _count(n_parameters: int) -> str:
    for unit, size in (("billion", 10**9), ("million", 10**6)):
        if n_parameters >= size:
            return f"{n_parameters / size:.2f} {unit}"
    return str(n_parameters)
