"""One card in the list twice, by its maker's backend and by Vulkan: said as such, and never taken for two.

The lists are as ggml's backends write them: ids are PCI addresses, or the device's name where a driver tells none.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflash_desktop.base.errors import BadInput
from dflash_desktop.engine import device_users
from dflash_desktop.engine.device_users import NvidiaCard, NvidiaReport, driver_problems, with_users
from dflash_desktop.engine.devices import (
    Device,
    DeviceUser,
    choose_device,
    choose_draft_device,
    is_same_card,
    with_same_cards,
)

GIB = 2**30
MIB = 2**20

RTX = "NVIDIA GeForce RTX 4090"
CUDA0 = Device(0, "CUDA0", "0000:01:00.0", "gpu", "CUDA", RTX, 24_080 * MIB, 23_640 * MIB)
# The driver's own Vulkan tells a larger heap, and counts what is free otherwise.
VULKAN0 = Device(1, "Vulkan0", "0000:01:00.0", "gpu", "Vulkan", RTX, 24_564 * MIB, 24_100 * MIB)
RAPHAEL = Device(
    2, "Vulkan1", "0000:0f:00.0", "integrated_gpu", "Vulkan", "AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)",
    31_800 * MIB, 31_000 * MIB,
)  # fmt: skip
CPU = Device(3, "CPU", "CPU", "cpu", "CPU", "AMD Ryzen 9 7950X", 64 * GIB, 60 * GIB)
GAMING_PC = [CUDA0, VULKAN0, RAPHAEL, CPU]


def at(number: int, device: Device, **other: object) -> Device:
    return replace(device, index=number, **other)  # type: ignore[arg-type]


def test_the_maker_s_backend_is_taken_and_the_other_stays_to_be_chosen() -> None:
    devices = with_same_cards(GAMING_PC)
    assert choose_device(devices).name == "CUDA0"
    assert choose_device(devices, "vulkan0").name == "Vulkan0"
    assert [device.same_card_as for device in devices] == ["", "CUDA0", "", ""]
    assert [device.index for device in devices] == [0, 1, 2, 3]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 3, 0]])
def test_the_order_of_the_backends_does_not_matter(order: list[int]) -> None:
    devices = with_same_cards([at(place, GAMING_PC[number]) for place, number in enumerate(order)])
    assert choose_device(devices).name == "CUDA0"


def test_every_id_means_one_device() -> None:
    devices = with_same_cards(GAMING_PC)
    assert len({device.id for device in devices}) == len(devices)
    for device in devices:
        assert choose_device(devices, device.id) is device
        assert choose_device(devices, device.name) is device
    assert devices[1].address == devices[0].address == "0000:01:00.0"


def test_a_kept_choice_means_the_same_card_when_a_backend_comes_or_goes() -> None:
    with_both = with_same_cards(GAMING_PC)
    only_vulkan = with_same_cards([at(0, VULKAN0), at(1, CPU)])
    assert choose_device(only_vulkan, with_both[1].id).name == "Vulkan0"  # CUDA is gone
    assert choose_device(with_both, only_vulkan[0].id).name == "CUDA0"  # CUDA has come: the quicker way to the card
    only_cuda = with_same_cards([at(0, CUDA0), at(1, CPU)])
    with pytest.raises(BadInput):
        choose_device(only_cuda, with_both[1].id)  # Vulkan was asked for: never another one in silence


def test_cards_without_an_address_are_matched_by_name_in_their_order() -> None:
    twins = [
        CUDA0,
        at(1, CUDA0, name="CUDA1", id="0000:02:00.0"),
        at(2, VULKAN0, id="Vulkan0"),
        at(3, VULKAN0, name="Vulkan1", id="Vulkan1"),
        at(4, CPU),
    ]
    devices = with_same_cards(twins)
    assert [device.same_card_as for device in devices] == ["", "", "CUDA0", "CUDA1", ""]
    assert len({device.id for device in devices}) == len(devices)


def test_two_cards_of_one_name_are_told_apart_by_address() -> None:
    swapped = [
        CUDA0,
        at(1, CUDA0, name="CUDA1", id="0000:02:00.0"),
        at(2, VULKAN0, id="0000:02:00.0"),
        at(3, VULKAN0, name="Vulkan1", id="0000:01:00.0"),
    ]
    assert [device.same_card_as for device in with_same_cards(swapped)] == ["", "", "CUDA1", "CUDA0"]


def test_a_card_of_the_same_name_elsewhere_is_another_card() -> None:
    """Hidden from CUDA by its environment variable, for instance."""
    devices = with_same_cards([CUDA0, at(1, VULKAN0, id="0000:02:00.0")])
    assert [device.same_card_as for device in devices] == ["", ""]


def test_amd_s_own_backend_comes_before_vulkan_too() -> None:
    rocm = Device(0, "ROCm0", "0000:03:00.0", "gpu", "ROCm", "AMD Radeon RX 7900 XTX", 24 * GIB, 20 * GIB)
    vulkan = Device(
        1, "Vulkan0", "0000:03:00.0", "gpu", "Vulkan", "AMD Radeon RX 7900 XTX (RADV NAVI31)", 24 * GIB, 23 * GIB
    )
    assert choose_device(with_same_cards([rocm, vulkan, at(2, CPU)])).name == "ROCm0"


def test_a_card_that_only_vulkan_drives_is_taken_where_it_has_more_room() -> None:
    amd = at(1, VULKAN0, name="Vulkan1", id="0000:05:00.0", description="AMD Radeon RX 7900 XTX (RADV NAVI31)")
    small = at(0, CUDA0, total_bytes=8 * GIB, free_bytes=7 * GIB)
    assert choose_device(with_same_cards([small, amd, at(2, CPU)])).name == "Vulkan1"


@pytest.mark.parametrize(
    ("devices", "chosen"),
    [
        ([VULKAN0, CPU], "Vulkan0"),  # the packages as they are: Vulkan alone
        ([at(0, RAPHAEL), at(1, VULKAN0), CPU], "Vulkan0"),
        ([at(0, RAPHAEL, name="Vulkan0"), at(1, VULKAN0, name="Vulkan1", free_bytes=2 * GIB), CPU], "Vulkan1"),
        ([at(0, RAPHAEL), CPU], "Vulkan1"),
        (
            [at(0, VULKAN0, id="Vulkan0", description="llvmpipe (LLVM 19.1.7, 256 bits)", total_bytes=64 * GIB), CPU],
            "CPU",
        ),
        (
            [
                at(0, VULKAN0, id="Vulkan0", description="llvmpipe (LLVM 19.1.7, 256 bits)", free_bytes=60 * GIB),
                at(1, VULKAN0, name="Vulkan1", free_bytes=4 * GIB),
                CPU,
            ],
            "Vulkan1",
        ),
        ([at(0, VULKAN0, id="Vulkan0", description="SwiftShader Device (Subzero)"), CPU], "CPU"),
        ([at(0, VULKAN0, id="Vulkan0", description="Microsoft Basic Render Driver"), CPU], "CPU"),
    ],
)
def test_a_card_of_its_own_comes_first_and_a_software_device_never(devices: list[Device], chosen: str) -> None:
    assert choose_device(with_same_cards(devices)).name == chosen


def test_a_draft_beside_itself_under_another_name_is_refused() -> None:
    devices = with_same_cards(GAMING_PC)
    with pytest.raises(BadInput, match="Vulkan0 is the same card as CUDA0"):
        choose_draft_device(devices, devices[0], "Vulkan0")
    with pytest.raises(BadInput, match="CUDA0 is the same card as Vulkan0"):
        choose_draft_device(devices, devices[1], "CUDA0")
    assert choose_draft_device(devices, devices[0], "Vulkan1") is devices[2]


def test_only_what_shares_memory_is_one_card() -> None:
    cuda, vulkan, shared, cpu = with_same_cards(GAMING_PC)
    assert is_same_card(cuda, vulkan) and is_same_card(vulkan, cuda) and is_same_card(cpu, cpu)
    assert not is_same_card(cuda, shared) and not is_same_card(vulkan, shared) and not is_same_card(vulkan, cpu)


REPORT = NvidiaReport("580.95.05", (13, 0), (NvidiaCard("0000:01:00.0", RTX, (DeviceUser(7, "game", GIB),)),))


def test_both_entries_of_a_card_name_its_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_users, "nvidia_report", lambda: REPORT)
    monkeypatch.setattr(device_users, "drm_users", dict)
    cuda, vulkan, shared, cpu = with_users(with_same_cards(GAMING_PC))
    assert [len(device.users) for device in (cuda, vulkan, shared, cpu)] == [1, 1, 0, 0]


def test_a_card_that_vulkan_drives_is_not_called_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_users, "_pci_cards", lambda: {"NVIDIA", "AMD"})
    old = replace(REPORT, driver="535.104", cuda=(12, 2))
    assert driver_problems([VULKAN0, CPU], old) == []
    (problem,) = driver_problems([RAPHAEL, CPU], REPORT)  # another card by Vulkan does not make up for this one
    assert problem.card == RTX
