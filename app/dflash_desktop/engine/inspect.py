"""What a model file is, whether it can run, and which drafts fit a target. Opens headers only; computes nothing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadArgument, BadFile, NativeError, Unsupported
from dflash_desktop.binding.native import Library, NativeFile
from dflash_desktop.binding.values import text
from dflash_desktop.engine.causes import about_file, cannot_run

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.base.causes import Cause

Role = Literal["target", "draft", "other"]
_ROLES: dict[int, Role] = {abi.Role.TARGET: "target", abi.Role.DRAFT: "draft", abi.Role.OTHER: "other"}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file as its header describes it."""

    path: Path
    role: Role
    can_run: bool
    reason: str  # why not, "" when it can
    architecture: str
    name: str  # general.name, else the file's stem
    quantization: str
    n_parameters: int
    file_bytes: int
    n_layers: int
    n_embd: int
    n_vocab: int
    context_tokens: int  # as trained
    block_size: int  # drafts only, else 0
    mask_token: int | None  # drafts only
    feature_layers: tuple[int, ...]  # drafts only: target layers that are read
    cause: Cause | None = None  # of the reason


def inspect_file(path: Path, library: Library) -> ModelFile:
    """Describe a model file. Raises AppError with file, field and value when it is no sound one."""
    try:
        with about_file(path), NativeFile(library, path) as file:
            return describe(file)
    except (BadFile, BadArgument, Unsupported) as error:
        raise AppError(str(error), cause=error.cause) from error


def describe(file: NativeFile) -> ModelFile:
    """An opened file as plain data."""
    info = file.describe()
    role, architecture, reason = _ROLES.get(info.role, "other"), text(info.architecture), text(info.reason)
    return ModelFile(
        path=file.path,
        role=role,
        can_run=bool(info.can_run),
        reason=reason,
        architecture=architecture,
        name=text(info.name).strip() or file.path.stem,
        quantization=text(info.quantization),
        n_parameters=info.n_parameters,
        file_bytes=info.file_bytes,
        n_layers=info.n_layers,
        n_embd=info.n_embd,
        n_vocab=info.n_vocab,
        context_tokens=info.context_tokens,
        block_size=info.block_size,
        mask_token=info.mask_token if info.mask_token >= 0 else None,
        feature_layers=tuple(info.feature_layers[: info.n_feature_layers]),
        cause=None if info.can_run else cannot_run(file.path.name, role, architecture, reason),
    )


def misfit(target: Path, draft: Path, library: Library) -> str | None:
    """Why `draft` does not fit `target`; None when it does. Raises AppError when one of the files is not sound."""
    with ExitStack() as files:
        try:
            target_file = files.enter_context(NativeFile(library, target))
            draft_file = files.enter_context(NativeFile(library, draft))
        except NativeError as error:
            raise AppError(str(error)) from error
        try:
            library.check_pair(target_file, draft_file)
        except (Unsupported, BadFile) as reason:  # BadFile: no draft at all
            return str(reason)
    return None
