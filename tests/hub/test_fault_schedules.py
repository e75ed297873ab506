"""Random misfortune: cuts, refusals, full disks, restarts and kill -9, in any order and number.

Whenever bytes are asked for, the stand-in hub compares where the answer begins with what lies on the disk at that
moment: it is the very next byte, or, after a kill or a full disk, at most one block before it.
"""

from __future__ import annotations

import errno
import random
from pathlib import Path
from typing import BinaryIO

import pytest

from dflash_desktop.hub import part_file
from dflash_desktop.hub.downloads import Downloads
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, TimeLimits
from dflash_desktop.hub.wanted import WantedDownload
from hub.conftest import BLOCK, QUICK, noise, wanted
from hub.runs import start_child, wait_for
from support.hub_server import Fault, Hub
from support.patience import LONG_S, NEVER_S

N_DEFAULT, N_SLOW = 20, 300
PIECE = 64 * 1024  # what the HTTP client hands over at once, at most


class FullDisk:
    """Takes a number of bytes, then says ENOSPC a few times, then somebody has made room."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.room = 0
        self.n_refusals = 0
        self._write = part_file._write_all
        patch.setattr(part_file, "_write_all", self.write)

    def fill(self, room: int, n_refusals: int) -> None:
        self.room, self.n_refusals = room, n_refusals

    def write(self, file: BinaryIO, data: memoryview) -> None:
        if self.n_refusals and len(data) > self.room:
            self.n_refusals -= 1
            self._write(file, data[: self.room])
            self.room = 0
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room = max(0, self.room - len(data))
        self._write(file, data)


def run_schedule(seed: int, hub: Hub, place: Path, disk: FullDisk) -> None:
    dice = random.Random(seed)
    content = noise(dice.choice([1, 3, 8, 20]) * BLOCK + dice.randrange(1, BLOCK), seed=seed)
    hub.add("maker/a", "a", content)
    network = Network(official=hub.url, limits=TimeLimits(connect_s=LONG_S, silence_s=NEVER_S))
    finished = place / "models" / "maker" / "a" / "a"
    part = finished.with_name("a.part")
    tolerance = 0
    too_early: list[tuple[int, int]] = []

    def judge(begin: int) -> None:
        n_there = size_of(part)
        if not n_there - tolerance <= begin <= n_there:
            too_early.append((begin, n_there))

    hub.on_content = judge
    for life in range(dice.randrange(1, 6)):
        if finished.exists():
            break
        is_killed = dice.random() < 0.25
        hub.faults = [passing_fault(dice, len(content)) for _ in range(dice.randrange(4))]
        hub.head_faults = [Fault(status=503)] * (dice.random() < 0.2)
        hub.faults.append(Fault(silent_after=dice.randrange(len(content))))
        hub.silent_at = None
        if is_killed:
            child = start_child(hub, place)
            wait_for(lambda: hub.silent_at is not None or finished.exists())
            child.kill()
            child.wait()
            tolerance = max(tolerance, BLOCK)
        else:
            if dice.random() < 0.3:
                disk.fill(dice.randrange(2 * BLOCK), dice.randrange(1, 4))
                tolerance = max(tolerance, PIECE)
            downloads = started(hub, network, place)
            wait_for(lambda: hub.silent_at is not None or finished.exists())
            if dice.random() < 0.8:
                wait_for(lambda: finished.exists() or size_of(part) >= (hub.silent_at or 0))
            downloads.close()
        assert not finished.exists() or finished.read_bytes() == content, f"life {life}"
        disk.fill(0, 0)
    hub.faults = []
    downloads = started(hub, network, place)
    wait_for(lambda: [row.state for row in downloads.rows()] == ["done"])
    downloads.close()
    assert finished.read_bytes() == content
    assert not part.exists()
    assert too_early == []


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def started(hub: Hub, network: Network, place: Path) -> Downloads:
    downloads = Downloads(place / "state", network, ModelsFolder(place / "models"), pace=QUICK)
    downloads.start()
    downloads.add(WantedDownload(title="a", files=(wanted(hub, "a", "maker/a"),)))
    return downloads


def passing_fault(dice: random.Random, n_bytes: int) -> Fault:
    return dice.choice(
        [
            Fault(cut_after=dice.randrange(n_bytes)),
            Fault(cut_after=dice.randrange(1, 3 * BLOCK)),
            Fault(status=500),
            Fault(status=503, headers={"Retry-After": "0"}),
            Fault(status=429),
            Fault(wrong_range=True),
            Fault(html=True),
            Fault(gzip_header=True),
        ]
    )


@pytest.mark.parametrize("seed", range(N_DEFAULT))
def test_b113_b114_misfortune_ends_with_the_right_bytes(
    seed: int, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_schedule(seed, hub, tmp_path, FullDisk(monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_DEFAULT, N_DEFAULT + N_SLOW))
def test_b113_b114_much_misfortune_ends_with_the_right_bytes(
    seed: int, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_schedule(seed, hub, tmp_path, FullDisk(monkeypatch))
