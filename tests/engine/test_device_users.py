"""Who uses a device, and why a card is missing from the list: sentences a person can act on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_desktop.engine import device_users
from dflash_desktop.engine.device_users import (
    NvidiaCard,
    NvidiaReport,
    driver_problems,
    drm_users,
    nvidia_report,
    pci_address,
    with_users,
)
from dflash_desktop.engine.devices import Device, DeviceUser

CPU = Device(0, "CPU", "CPU", "cpu", "CPU", "Some processor", 16 << 30, 8 << 30)
CARD = Device(1, "CUDA0", "0000:01:00.0", "gpu", "CUDA", "NVIDIA RTX", 12 << 30, 4 << 30)


def report(cuda: tuple[int, int], driver: str = "580.95.05") -> NvidiaReport:
    users = (DeviceUser(4242, "game", 1 << 30), DeviceUser(7, "", 6 << 30))
    return NvidiaReport(driver, cuda, (NvidiaCard("0000:01:00.0", "NVIDIA RTX", users),))


@pytest.fixture(autouse=True)
def no_cards_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_users, "_pci_cards", set)


def test_the_programs_on_a_card_are_listed_biggest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_users, "nvidia_report", lambda: report((13, 0)))
    cpu, card = with_users([CPU, CARD])
    assert cpu.users == ()
    assert [user.n_bytes for user in card.users] == [6 << 30, 1 << 30]
    assert card.users[1].name == "game"


def test_a_driver_that_is_too_old_is_named_with_the_one_that_is_needed() -> None:
    words = str(driver_problems([CPU], report((12, 2), "535.104"))[0])
    assert "driver 535.104 runs CUDA 12.2 at most" in words
    assert "driver 580 or newer (CUDA 13.0)" in words


def test_a_build_without_cuda_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(device_users, "library_folder", lambda: tmp_path)
    assert [problem.kind for problem in driver_problems([CPU], report((13, 0)))] == ["no_backend"]
    (tmp_path / "libggml-cuda.so").touch()
    assert "could not start" in str(driver_problems([CPU], report((13, 0)))[0])


@pytest.mark.parametrize("found", [report((12, 2), "535.104"), report((13, 0)), None])
def test_a_build_with_vulkan_alone_asks_for_a_vulkan_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: NvidiaReport | None
) -> None:
    """Not for CUDA's newest, which such a build has no use for."""
    monkeypatch.setattr(device_users, "library_folder", lambda: tmp_path)
    monkeypatch.setattr(device_users, "_pci_cards", lambda: {"NVIDIA", "AMD"})
    monkeypatch.setattr(device_users, "nvidia_report", lambda: found)
    (tmp_path / "libggml-vulkan.so").touch()
    problems = driver_problems([CPU])
    assert [problem.kind for problem in problems] == ["no_vulkan", "no_vulkan"]
    for problem in problems:
        assert "libvulkan1" in str(problem) and "CUDA" not in str(problem)
    (tmp_path / "libggml-cuda.so").touch()
    assert driver_problems([CPU])[0].kind != "no_vulkan"


def test_a_card_without_a_driver_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_users, "_pci_cards", lambda: {"NVIDIA", "AMD"})
    monkeypatch.setattr(device_users, "nvidia_report", lambda: None)
    nvidia, amd = driver_problems([CPU])
    assert "Install driver 580 or newer" in str(nvidia)
    assert "AMD" in str(amd)


def test_where_all_is_well_nothing_is_said() -> None:
    assert driver_problems([CPU, CARD], report((13, 0))) == []
    assert driver_problems([CPU]) == [] or nvidia_report() is not None


@pytest.mark.parametrize(
    ("written", "address"), [("00000000:01:00.0", "0000:01:00.0"), ("0000:C1:00.0", "0000:c1:00.0")]
)
def test_addresses_are_compared_as_ggml_writes_them(written: str, address: str) -> None:
    assert pci_address(written) == address


def test_linux_tells_of_cards_of_other_makers(tmp_path: Path) -> None:
    info = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{0}\ndrm-pdev:\t0000:C1:00.0\ndrm-memory-vram:\t{1} KiB\n"
    for number, (client, kib) in enumerate([(5, 1024), (5, 1024), (6, 512)]):
        (tmp_path / "99999999" / "fd").mkdir(parents=True, exist_ok=True)
        (tmp_path / "99999999" / "fdinfo").mkdir(exist_ok=True)
        (tmp_path / "99999999" / "fd" / str(number)).symlink_to("/dev/dri/renderD128")
        (tmp_path / "99999999" / "fdinfo" / str(number)).write_text(info.format(client, kib), "ascii")
    (tmp_path / "99999999" / "fd" / "9").symlink_to("/dev/null")
    (tmp_path / "self").mkdir()
    assert drm_users(tmp_path) == {"0000:c1:00.0": [DeviceUser(99999999, "", 1536 * 1024)]}


def test_the_processes_of_this_machine_can_be_asked() -> None:
    assert isinstance(drm_users(), dict)
    assert [device.name for device in with_users([CPU, CARD])] == ["CPU", "CUDA0"]
