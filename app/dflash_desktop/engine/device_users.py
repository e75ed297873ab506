"""Who else uses a device, and why a card that is in the machine is not in the engine's list.

The system's answers, as far as it gives them: NVIDIA's management library, and what Linux tells of other drivers.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from dflash_desktop.base.driver_guard import are_drivers_left_out
from dflash_desktop.base.paths import app_paths, library_folder
from dflash_desktop.engine.devices import Device, DeviceUser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

log = logging.getLogger(__name__)

CUDA_NEEDED = (13, 0)
"""What our CUDA backend is built with (pyproject.toml, the extra `cuda`)."""
DRIVER_NEEDED = "580"
"""The first NVIDIA driver that runs it."""

NEEDED = f"driver {DRIVER_NEEDED} or newer (CUDA {CUDA_NEEDED[0]}.{CUDA_NEEDED[1]})"

_PCI_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD"}
_RENDER_NODES = "/dev/dri/render"


@dataclass(frozen=True, slots=True)
class NvidiaCard:
    """One card, and the programs that hold its memory."""

    id: str  # PCI address as ggml writes it: "0000:01:00.0"
    name: str
    users: tuple[DeviceUser, ...]


@dataclass(frozen=True, slots=True)
class NvidiaReport:
    """What the driver itself says."""

    driver: str  # "580.95.05"
    cuda: tuple[int, int]  # the newest CUDA that it runs
    cards: tuple[NvidiaCard, ...]


@dataclass(frozen=True, slots=True)
class DriverProblem:
    """Why a card is not used."""

    kind: Literal["no_driver", "driver_too_old", "no_backend", "backend_failed", "no_vulkan", "left_out"]
    card: str  # "" for all of them
    driver: str = ""
    cuda: str = ""  # the newest that the driver runs

    def __str__(self) -> str:
        match self.kind:
            case "no_driver":
                return f"{self.card}: the card is not used, for its driver does not run. Install {NEEDED} and restart."
            case "driver_too_old":
                return (
                    f"{self.card}: the card is not used. Its driver {self.driver} runs CUDA {self.cuda} at most. "
                    f"Install {NEEDED}."
                )
            case "no_backend":
                return f"{self.card}: the card is not used, for this build has no backend for it. Install one that has."
            case "backend_failed":
                return f"{self.card}: the card is not used, for its backend could not start. The log says why."
            case "left_out":
                return (
                    "Graphics cards are not used this time: the last start ended while their drivers were started. "
                    "Start again to try them once more."
                )
            case "no_vulkan":
                return (
                    f"{self.card}: the card is not used, for no Vulkan driver answers. Install the card's driver; on "
                    "Linux also the Vulkan loader (package libvulkan1), for AMD and Intel mesa-vulkan-drivers."
                )


def with_users(devices: Sequence[Device]) -> list[Device]:
    """The devices with the programs that hold their memory, biggest first. Nothing found is no error."""
    users: dict[str, tuple[DeviceUser, ...]] = {}
    if any(device.kind != "cpu" for device in devices):
        report = nvidia_report()
        users = {card.id: card.users for card in report.cards} if report is not None else {}
        for address, found in drm_users().items():
            users.setdefault(address, tuple(found))
    return [
        replace(device, users=tuple(sorted(users.get(device.address.lower(), ()), key=lambda user: -user.n_bytes)))
        for device in devices
    ]


def driver_problems(devices: Sequence[Device], report: NvidiaReport | None = None) -> list[DriverProblem]:
    """One for every maker whose graphics card is in the machine and not in the engine's list."""
    if are_drivers_left_out(app_paths(ignores_moves=True).cache):
        return [DriverProblem("left_out", "")]
    report = report if report is not None else nvidia_report()
    present = _pci_cards()
    backends = {device.backend for device in devices}
    has_nvidia = "CUDA" in backends or any("nvidia" in device.description.casefold() for device in devices)
    problems = []
    if not has_nvidia and ("NVIDIA" in present or (report is not None and report.cards)):
        problems.append(_nvidia_problem(report))
    if "AMD" in present and not backends & {"Vulkan", "ROCm", "HIP"}:
        problems.append(DriverProblem("no_vulkan" if _has_module("vulkan") else "no_backend", "AMD"))
    return problems


def _has_module(backend: str) -> bool:
    return any(library_folder().glob(f"*ggml-{backend}*"))


def _nvidia_problem(report: NvidiaReport | None) -> DriverProblem:
    card = report.cards[0].name if report is not None and report.cards else "NVIDIA"
    if _has_module("vulkan") and not _has_module("cuda"):
        return DriverProblem("no_vulkan", card)  # any driver of the last years does for that one
    if report is None:
        return DriverProblem("no_driver", card)
    if report.cuda < CUDA_NEEDED:
        return DriverProblem("driver_too_old", card, report.driver, f"{report.cuda[0]}.{report.cuda[1]}")
    if not _has_module("cuda"):
        return DriverProblem("no_backend", card, report.driver)
    return DriverProblem("backend_failed", card, report.driver)


def nvidia_report() -> NvidiaReport | None:
    """What NVIDIA's driver says; None where there is none."""
    import pynvml as nvml

    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        log.debug("no NVIDIA driver: %s", error)
        return None
    try:
        version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return NvidiaReport(
            driver=str(nvml.nvmlSystemGetDriverVersion()),
            cuda=(version // 1000, version % 1000 // 10),
            cards=tuple(
                NvidiaCard(
                    id=pci_address(str(nvml.nvmlDeviceGetPciInfo(handle).busId)),
                    name=str(nvml.nvmlDeviceGetName(handle)),
                    users=tuple(_nvidia_users(nvml, handle)),
                )
                for handle in handles
            ),
        )
    except nvml.NVMLError as error:
        log.warning("NVIDIA's driver does not answer: %s", error)
        return None
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _nvidia_users(nvml: Any, handle: Any) -> Iterator[DeviceUser]:
    found: dict[int, int] = {}
    for ask in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        with suppress(nvml.NVMLError):
            for process in ask(handle):
                found[process.pid] = max(found.get(process.pid, 0), process.usedGpuMemory or 0)
    return (DeviceUser(pid, _process_name(pid), n_bytes) for pid, n_bytes in found.items())


def pci_address(text: str) -> str:
    """A PCI address as ggml writes it: four digits of domain, lower case."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def drm_users(proc: Path = Path("/proc")) -> dict[str, list[DeviceUser]]:
    """Programs on cards of other makers, by PCI address: what Linux tells of one's own processes."""
    held: dict[str, dict[tuple[int, str], int]] = {}
    for pid, client, address, n_bytes in _drm_clients(proc):
        clients = held.setdefault(address, {})
        clients[pid, client] = n_bytes  # one client may be open under several numbers
    return {
        address: [
            DeviceUser(pid, _process_name(pid), sum(n for (owner, _), n in clients.items() if owner == pid))
            for pid in sorted({owner for owner, _ in clients})
        ]
        for address, clients in held.items()
    }


def _drm_clients(proc: Path) -> Iterator[tuple[int, str, str, int]]:
    for folder in proc.glob("[0-9]*"):
        with suppress(OSError):  # other people's processes, and those that ended meanwhile
            for link in (folder / "fd").iterdir():
                with suppress(OSError):
                    if str(link.readlink()).startswith(_RENDER_NODES):
                        yield from _drm_client(int(folder.name), folder / "fdinfo" / link.name)


def _drm_client(pid: int, path: Path) -> Iterator[tuple[int, str, str, int]]:
    values: dict[str, str] = {}
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        key, _, value = line.partition(":")
        values[key.strip()] = value.strip()
    address = values.get("drm-pdev", "")
    if address:
        yield pid, values.get("drm-client-id", ""), address.lower(), _drm_bytes(values)


def _drm_bytes(values: dict[str, str]) -> int:
    for prefix in ("drm-resident-vram", "drm-memory-vram", "drm-resident-local", "drm-total-vram"):
        sizes = [_bytes_of(text) for key, text in values.items() if key.startswith(prefix)]
        if sizes:
            return sum(sizes)
    return 0


def _bytes_of(text: str) -> int:
    number, _, unit = text.partition(" ")
    factors = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    return int(number) * factors.get(unit.strip(), 0) if number.isdigit() else 0


def _process_name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except (psutil.Error, ValueError):
        return ""


def _pci_cards(devices: Path = Path("/sys/bus/pci/devices")) -> set[str]:
    """The makers of the graphics cards in this machine, as far as the system lists them."""
    makers = set()
    for folder in devices.glob("*"):
        with suppress(OSError):
            kind = (folder / "class").read_text("ascii").strip()
            vendor = (folder / "vendor").read_text("ascii").strip()
            if kind.startswith("0x03") and vendor in _PCI_VENDORS:
                makers.add(_PCI_VENDORS[vendor])
    return makers
