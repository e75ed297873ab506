"""Compute devices as plain data, and which of them to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import NativeError
from dflash_desktop.binding.native import Library
from dflash_desktop.binding.values import text

if TYPE_CHECKING:
    from collections.abc import Sequence

DeviceKind = Literal["cpu", "gpu", "integrated_gpu", "other"]

_KINDS: dict[int, DeviceKind] = {
    abi.DeviceKind.CPU: "cpu",
    abi.DeviceKind.GPU: "gpu",
    abi.DeviceKind.INTEGRATED_GPU: "integrated_gpu",
    abi.DeviceKind.OTHER: "other",
}
# Drivers that compute on the CPU and call it a GPU.
_SOFTWARE_RENDERERS = ("llvmpipe", "swiftshader", "lavapipe", "softpipe", "microsoft basic render")


@dataclass(frozen=True, slots=True)
class DeviceUser:
    """A program that holds memory of a device. `n_bytes` 0: the system does not say how much."""

    process_id: int
    name: str  # "" where the system hides it
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Device:
    """One device as it was when asked. `free_bytes` counts other programs too."""

    index: int  # what the engine takes; may change between starts
    name: str  # "CPU", "CUDA0": what people type
    id: str  # the same after a reboot
    kind: DeviceKind
    backend: str
    description: str
    total_bytes: int
    free_bytes: int
    users: tuple[DeviceUser, ...] = ()  # who holds its memory, this program too; filled by device_users.with_users


def reserve_bytes(device: Device) -> int:
    """What stays free for the desktop and for what drivers take: the engine's own rule (native/src/plan.cpp)."""
    least = 512 << 20 if device.kind == "cpu" else 256 << 20
    return max(least, device.total_bytes // 50)


def list_devices(library: Library | None = None) -> list[Device]:
    """The devices as they are now. Loads the engine's library when none is given. Raises AppError."""
    try:
        return [_device(found) for found in (library or Library()).devices()]
    except NativeError as error:
        raise AppError(str(error)) from error


def _device(found: abi.Device) -> Device:
    return Device(
        index=found.index,
        name=text(found.name),
        id=text(found.id),
        kind=_KINDS.get(found.kind, "other"),
        backend=text(found.backend),
        description=text(found.description),
        total_bytes=found.total_bytes,
        free_bytes=found.free_bytes,
    )


def choose_device(devices: Sequence[Device], wanted: str | None = None) -> Device:
    """The device to load on: the one that is `wanted` by name or id, else the best one.

    Best: a card of its own before a GPU that shares the machine's memory (whose "memory" looks larger than it is),
    before the CPU; among equals the one with more free memory, then the first. Raises BadInput when the wanted one is
    not there: never another one in silence.
    """
    if not devices:
        words = "The engine finds no device to compute on. Install the program again."
        raise AppError(words, cause=Cause("no_device"))
    if wanted:
        for device in devices:
            if wanted == device.id or wanted.casefold() == device.name.casefold():
                return device
        present = ", ".join(device.name for device in devices)
        cause = Cause("device_missing", {"device": wanted, "present": present})
        raise BadInput(f"There is no device {wanted!r}. Present: {present}.", cause=cause)
    return max(devices, key=lambda device: (_rank(device), device.free_bytes, -device.index))


def choose_draft_device(devices: Sequence[Device], target: Device, wanted: str | None) -> Device:
    """Where a draft computes: beside its target unless another GPU is wanted. Raises BadInput.

    The CPU is refused beside a GPU: a draft takes longer there than it saves.
    """
    if not wanted:
        return target
    device = choose_device(devices, wanted)
    if device.kind == "cpu" and device.index != target.index:
        raise BadInput(
            f"A draft on {device.name} would take longer than it saves {target.name}. Choose a GPU for it, or none."
        )
    return device


def _rank(device: Device) -> int:
    if any(name in device.description.casefold() for name in _SOFTWARE_RENDERERS):
        return -1
    if device.total_bytes == 0 or (device.kind != "cpu" and device.free_bytes == 0):
        return -1 if device.kind != "cpu" else 0
    return {"cpu": 0, "other": -1, "integrated_gpu": 1, "gpu": 2}[device.kind]
