"""Which device is taken (B143), and that another one is never taken in silence (B145)."""

from __future__ import annotations

import pytest

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.engine.devices import Device, DeviceKind, choose_device, list_devices
from support.native_library import load_library

GIB = 2**30
MIB = 2**20


def device(
    index: int, name: str, kind: DeviceKind, *, total: int = 8 * GIB, free: int | None = None, about: str = ""
) -> Device:
    return Device(
        index,
        name,
        f"id-{index}",
        kind,
        name.rstrip("0123456789"),
        about or name,
        total,
        total if free is None else free,
    )


CPU = device(0, "CPU", "cpu", total=32 * GIB)
CARD = device(1, "CUDA0", "gpu", total=15_995 * MIB)
SHARED = device(2, "Vulkan0", "integrated_gpu", total=16_180 * MIB)


@pytest.mark.parametrize(
    ("devices", "chosen"),
    [
        ([CPU], "CPU"),
        ([CPU, CARD], "CUDA0"),
        ([CPU, SHARED], "Vulkan0"),
        ([CPU, SHARED, CARD], "CUDA0"),
        ([CARD, SHARED, CPU], "CUDA0"),
        ([CPU, device(1, "ROCm0", "integrated_gpu", total=96 * GIB, about="AMD Radeon 8060S"), CARD], "CUDA0"),
        ([CPU, CARD, device(2, "CUDA1", "gpu", total=15_995 * MIB)], "CUDA0"),
        ([CPU, CARD, device(2, "CUDA1", "gpu", total=24 * GIB)], "CUDA1"),
        ([CPU, device(1, "CUDA0", "gpu", total=24 * GIB, free=0), SHARED], "Vulkan0"),
        (
            [CPU, device(1, "CUDA0", "gpu", total=24 * GIB, free=2 * GIB), device(2, "CUDA1", "gpu", free=6 * GIB)],
            "CUDA1",
        ),
        ([CPU, device(1, "Vulkan0", "gpu", about="llvmpipe (LLVM 15.0.6, 256 bits)")], "CPU"),
        ([CPU, device(1, "Vulkan0", "gpu", about="Intel(R) Arc(tm) A770 Graphics"), SHARED], "Vulkan0"),
        ([CPU, device(1, "BLAS", "other")], "CPU"),
        ([CPU, device(1, "Vulkan0", "integrated_gpu", total=0)], "CPU"),
    ],
)
def test_the_best_device_is_a_card_of_its_own_then_a_shared_one_then_the_cpu(
    devices: list[Device], chosen: str
) -> None:
    assert choose_device(devices).name == chosen


@pytest.mark.parametrize("wanted", ["CPU", "cpu", "id-0"])
def test_the_person_s_choice_wins(wanted: str) -> None:
    assert choose_device([SHARED, CARD, CPU], wanted) is CPU


def test_a_device_that_is_gone_is_an_error_that_names_what_is_there() -> None:
    with pytest.raises(BadInput, match=r"'CUDA0'.*CPU, Vulkan0"):
        choose_device([CPU, SHARED], "CUDA0")
    with pytest.raises(AppError, match="no device"):
        choose_device([])


def test_the_engine_lists_its_cpu() -> None:
    devices = list_devices(load_library())
    cpu = next(found for found in devices if found.kind == "cpu")
    assert cpu.name == "CPU"
    assert cpu.id
    assert cpu.description
    assert 0 < cpu.free_bytes <= cpu.total_bytes
    assert [found.index for found in devices] == list(range(len(devices)))
