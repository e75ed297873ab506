"""Compute devices as plain data, and which of them to take."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
# Backends for cards of every maker. Where the maker's own backend lists a card too, that one is faster.
_FOR_EVERY_MAKER = ("Vulkan", "OpenCL")
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


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
    id: str  # the same after a reboot: a card's PCI address, with "/Vulkan" where another backend lists it too
    kind: DeviceKind
    backend: str
    description: str
    total_bytes: int
    free_bytes: int
    users: tuple[DeviceUser, ...] = ()  # who holds its memory, this program too; filled by device_users.with_users
    same_card_as: str = ""  # the name under which its maker's own backend lists this card; filled by list_devices

    @property
    def address(self) -> str:
        """The card's own id, whichever backend lists it."""
        return self.id.partition("/")[0]

    def answers_to(self, wanted: str) -> bool:
        """Whether a person, or a choice that was kept, means this one: by name, by id, or as card and backend."""
        return wanted in (self.id, f"{self.address}/{self.backend}") or wanted.casefold() == self.name.casefold()


def is_same_card(first: Device, second: Device) -> bool:
    """Whether both compute on one card, and so share its memory."""
    return (first.same_card_as or first.name) == (second.same_card_as or second.name)


def reserve_bytes(device: Device) -> int:
    """What stays free for the desktop and for what drivers take: the engine's own rule (native/src/plan.cpp)."""
    least = 512 << 20 if device.kind == "cpu" else 256 << 20
    return max(least, device.total_bytes // 50)


def list_devices(library: Library | None = None) -> list[Device]:
    """The devices as they are now. Loads the engine's library when none is given. Raises AppError."""
    try:
        return with_same_cards([_device(found) for found in (library or Library()).devices()])
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


def with_same_cards(devices: Sequence[Device]) -> list[Device]:
    """The devices, each with an id of its own; one that is a card of another in the list says of which.

    Backends know a card by its PCI address. A driver that does not tell it is matched by the card's name: the first of
    that name with the first that no address was found for.
    """
    makers_own = [device for device in devices if device.kind != "cpu" and device.backend not in _FOR_EVERY_MAKER]
    of_every_maker = [device for device in devices if device.kind != "cpu" and device.backend in _FOR_EVERY_MAKER]
    pairs: dict[int, Device] = {}  # by the index of the device that comes second
    for is_same in (_has_same_address, _has_same_name):
        for device in of_every_maker:
            free = [own for own in makers_own if own not in pairs.values()]
            own = next((own for own in free if is_same(own, device)), None)
            if device.index not in pairs and own is not None:
                pairs[device.index] = own
    return [
        replace(device, id=f"{pairs[device.index].address}/{device.backend}", same_card_as=pairs[device.index].name)
        if device.index in pairs
        else device
        for device in devices
    ]


def _pci_address(device: Device) -> str:
    found = _PCI_ADDRESS.match(device.id.casefold())  # CUDA adds to it where it splits a card
    return found.group() if found else ""


def _has_same_address(first: Device, second: Device) -> bool:
    return bool(_pci_address(first)) and _pci_address(first) == _pci_address(second)


def _has_same_name(first: Device, second: Device) -> bool:
    tell_addresses = bool(_pci_address(first)) and bool(_pci_address(second))
    return not tell_addresses and first.description.casefold() == second.description.casefold()


def choose_device(devices: Sequence[Device], wanted: str | None = None) -> Device:
    """The device to load on: the one that is `wanted` by name or id, else the best one.

    Best: a card of its own before a GPU that shares the machine's memory (whose "memory" looks larger than it is),
    before the CPU; a card by its maker's own backend; among equals the one with more free memory, then the first.
    Raises BadInput when the wanted one is not there: never another one in silence.
    """
    if not devices:
        words = "The engine finds no device to compute on. Install the program again."
        raise AppError(words, cause=Cause("no_device"))
    if wanted:
        for device in devices:
            if device.answers_to(wanted):
                return device
        present = ", ".join(device.name for device in devices)
        cause = Cause("device_missing", {"device": wanted, "present": present})
        raise BadInput(f"There is no device {wanted!r}. Present: {present}.", cause=cause)
    return max(devices, key=lambda device: (_rank(device), not device.same_card_as, device.free_bytes, -device.index))


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
    if device.index != target.index and is_same_card(device, target):
        raise BadInput(f"{device.name} is the same card as {target.name}. Choose another one for the draft, or none.")
    return device


def _rank(device: Device) -> int:
    if any(name in device.description.casefold() for name in _SOFTWARE_RENDERERS):
        return -1
    if device.total_bytes == 0 or (device.kind != "cpu" and device.free_bytes == 0):
        return -1 if device.kind != "cpu" else 0
    return {"cpu": 0, "other": -1, "integrated_gpu": 1, "gpu": 2}[device.kind]
