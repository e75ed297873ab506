"""The catalogue of pairs: a data file that is checked as it is read, and what it proposes for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from dflash_desktop.base.errors import AppError

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30
KV_SHARE = {"f16": 1.0, "bf16": 1.0, "f32": 2.0, "q8_0": 34 / 64, "q4_0": 18 / 64}
"""KV bytes against f16, for the types that the catalogue uses."""

Record = TypeVar("Record")
_NOMINAL = 0.93  # a "24 GB" card reports a little less than 24 GiB
Note = Literal["thinking_slows_draft", "no_thinking", "q4_draft_loses"]


class CatalogueModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of one repository, in one quantization."""

    repo_id: str
    files: tuple[str, ...]  # the first is the model, the others have to lie beside it
    quantization: str
    approx_bytes: int
    is_gated: bool = False


class Proposal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to take on a device with so much memory."""

    memory_gib: int
    target: str  # quantization
    draft: str
    kv: str
    context_tokens: int


class MeasuredSpeed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure that somebody published."""

    device: str
    tps: float
    setting: str


class CataloguePair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target, the drafts made for it, and the scorers that read its vocabulary."""

    id: str
    name: str
    rank: int  # higher is better, where it fits
    architecture: str
    licence: str
    context_tokens: int  # as trained
    summary: str
    notes: tuple[Note, ...]
    kv_bytes_per_token: int  # at f16
    recurrent_bytes: int
    targets: tuple[CatalogueModel, ...]
    drafts: tuple[CatalogueModel, ...]
    scorers: tuple[CatalogueModel, ...]
    settings: tuple[Proposal, ...]  # by memory, smallest first
    measured: tuple[MeasuredSpeed, ...]

    def target(self, quantization: str) -> CatalogueModel:
        return _with(self.targets, quantization)

    def draft(self, quantization: str) -> CatalogueModel:
        return _with(self.drafts, quantization)

    def proposal(self, device_bytes: int) -> Proposal:
        """The largest one made for such a device; the smallest where even that is too large."""
        fitting = [found for found in self.settings if found.memory_gib * GIB * _NOMINAL <= device_bytes]
        return fitting[-1] if fitting else self.settings[0]


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    version: Literal[1]
    pairs: tuple[CataloguePair, ...]

    def pair(self, pair_id: str) -> CataloguePair | None:
        return next((pair for pair in self.pairs if pair.id == pair_id), None)


class DeviceSpeeds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory bandwidth by name, and the two shares that make an estimate of it."""

    version: Literal[1]
    plain_share: float
    step_overhead_s: float
    draft_speed_up: float
    bandwidth_gb_per_s: dict[str, float]

    def bytes_per_s(self, device_name: str) -> float | None:
        """Of the longest name that occurs in the driver's one; None for a device that nobody listed."""
        found = [name for name in self.bandwidth_gb_per_s if name.casefold() in device_name.casefold()]
        return self.bandwidth_gb_per_s[max(found, key=len)] * 1e9 if found else None

    def expected_tps(self, device_name: str, target_bytes: int, *, has_draft: bool) -> float | None:
        """Tokens per second in chat: an estimate, and to be called one. None where nothing is known."""
        bandwidth = self.bytes_per_s(device_name)
        if bandwidth is None or target_bytes <= 0:
            return None
        plain = 1 / (target_bytes / (bandwidth * self.plain_share) + self.step_overhead_s)
        return plain * self.draft_speed_up if has_draft else plain


def read_catalogue(folder: Path) -> Catalogue:
    """The pairs, best first. Raises AppError with file, field and reason when it is not sound."""
    file = folder / "pairs.json"
    catalogue = _read(file, Catalogue)
    ids = [pair.id for pair in catalogue.pairs]
    if len(set(ids)) != len(ids):
        raise AppError(f"The catalogue {file} names a pair twice. Install the program again.")
    for pair in catalogue.pairs:
        _check(pair, file)
    return Catalogue(version=1, pairs=tuple(sorted(catalogue.pairs, key=lambda pair: -pair.rank)))


def read_device_speeds(folder: Path) -> DeviceSpeeds:
    """Raises AppError when the file is not sound."""
    return _read(folder / "devices.json", DeviceSpeeds)


def _check(pair: CataloguePair, file: Path) -> None:
    try:
        if not pair.targets or not pair.settings:
            raise ValueError("it has no target or no settings")
        if list(pair.settings) != sorted(pair.settings, key=lambda proposal: proposal.memory_gib):
            raise ValueError("settings are not in order of memory")
        for proposal in pair.settings:
            pair.target(proposal.target)
            pair.draft(proposal.draft)
            if proposal.kv not in KV_SHARE or not 0 < proposal.context_tokens <= pair.context_tokens:
                raise ValueError(f"the proposal for {proposal.memory_gib} GiB is out of bounds")
    except ValueError as error:
        raise AppError(f"The catalogue {file}, pair {pair.id}: {error}. Install the program again.") from error


def _with(models: tuple[CatalogueModel, ...], quantization: str) -> CatalogueModel:
    for model in models:
        if model.quantization == quantization:
            return model
    raise ValueError(f"there is no {quantization}")


def _read(file: Path, kind: type[Record]) -> Record:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise AppError(f"The catalogue {file} cannot be read: {error}. Install the program again.") from error
