"""Memory over time and per load: sampled while somebody looks, by a clock of its own, and remembered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.devices import Device
from dflash_desktop.engine.events import PairInfo
from dflash_desktop.engine.planning import LoadEstimate
from dflash_desktop.settings.pair_memory import PairMemory
from dflash_desktop.ui.engine import memory_sampler
from dflash_desktop.ui.engine.memory_plot import BANDS, MemoryPlot, bands
from dflash_desktop.ui.engine.memory_sampler import MemorySample, MemorySampler, Watched
from dflash_desktop.ui.engine.page import EnginePage
from dflash_desktop.ui.kit.theme import Theme
from dflash_desktop.ui.parts import EngineTools, Parts
from support.patience import until
from ui.conftest import STARTER, Desk
from ui.engine.test_load_fit import CARD
from ui.scripted_engine import MEMORY, pair_info

MIB = 2**20


class Clock:
    """In place of the sampler's own: goes on by what is waited and by what a look takes, and by nothing else."""

    def __init__(self, looks_s: list[float]) -> None:
        self.now_s = 0.0
        self.threads: set[str] = set()
        self._looks_s = iter(looks_s)

    def monotonic(self) -> float:
        return self.now_s

    def look(self) -> int:
        self.threads.add(threading.current_thread().name)
        self.now_s += next(self._looks_s, 0.0)
        return 300 * MIB

    def event(self) -> threading.Event:
        clock = self

        class Stop(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                clock.now_s += timeout or 0.0
                return super().wait(0.001)

        return Stop()


def test_samples_come_ten_times_a_second_from_a_thread_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([0.0, 0.02, 0.0, 0.35, 0.0])  # what a long look has cost is not caught up on by shorter waits
    monkeypatch.setattr(memory_sampler, "time", clock)
    monkeypatch.setattr(memory_sampler, "resident_bytes", clock.look)
    monkeypatch.setattr(memory_sampler, "threading", SimpleNamespace(Event=clock.event, Thread=threading.Thread))
    sampler = MemorySampler(None)
    sampler.start()
    until(lambda: len(sampler.samples) >= 8, "eight samples")
    sampler.pause()
    assert not sampler.is_running
    n_samples = len(sampler.samples)
    assert [sample.at_s for sample in sampler.samples][:8] == pytest.approx(
        [0, 0.12, 0.2, 0.65, 0.65, 0.75, 0.85, 0.95]
    )
    assert all(sample.process_bytes == 300 * MIB for sample in sampler.samples)
    assert len(sampler.samples) == n_samples
    assert clock.threads == {"memory-sampler"}


def test_a_card_is_sampled_by_asking_for_it_alone() -> None:
    asked = []

    def read(name: str) -> Device:
        asked.append(name)
        return CARD

    sampler = MemorySampler(read)
    sampler.watch(Watched("CUDA0", MEMORY))
    sampler.start()
    until(lambda: len(sampler.samples) >= 2, "two samples")
    sampler.pause()
    assert set(asked) == {"CUDA0"}
    last = sampler.samples[-1]
    assert (last.used_bytes, last.total_bytes) == (4_000 * MIB, 12_000 * MIB)


def test_a_card_that_falls_silent_is_asked_no_more() -> None:
    asked = []

    def read(name: str) -> Device:
        asked.append(name)
        raise AppError("gone")

    sampler = MemorySampler(read)
    sampler.watch(Watched("CUDA0", MEMORY))
    sampler.start()
    until(lambda: len(sampler.samples) >= 3, "three samples")
    sampler.pause()
    assert asked == ["CUDA0"]
    assert sampler.samples[-1].watched.device_name == ""


def test_bands_add_up_to_what_is_in_use() -> None:
    on_card = MemorySample(0.0, 200 * MIB, 4_000 * MIB, 12_000 * MIB, Watched("CUDA0", MEMORY))
    on_cpu = MemorySample(0.1, 300 * MIB, 9_000 * MIB, 32_000 * MIB, Watched("", MEMORY))
    barely = MemorySample(0.2, 50 * MIB, 9_000 * MIB, 32_000 * MIB, Watched("", MEMORY))
    rows = bands([on_card, on_cpu, barely])
    sums = np.sum([rows[name] for name in BANDS], axis=0)
    assert sums.tolist() == [4_000 * MIB, 300 * MIB, 50 * MIB]
    assert rows["others"][0] == 4_000 * MIB - MEMORY.total_bytes
    assert rows["others"][1] == 0
    assert rows["weights"][2] == 50 * MIB  # mapped weights are counted as far as they are in memory


def test_nothing_is_sampled_on_a_page_that_is_not_shown(desk: Desk) -> None:
    page = desk.window.page("engine")
    assert isinstance(page, EnginePage)
    desk.window.show_page("engine")
    plot = page.live.memory_plot
    desk.qtbot.waitUntil(lambda: len(plot.sampler.samples) > 1)
    desk.qtbot.waitUntil(lambda: "This program" in plot.words.whole_text())
    desk.window.show_page("chat")
    assert not plot.sampler.is_running
    page.show_view("load")
    desk.window.show_page("engine")
    assert not plot.sampler.is_running


def test_hours_of_samples_take_no_more_memory_than_minutes(theme: Theme, qtbot: object) -> None:
    """B135"""
    plot = MemoryPlot(theme, None)
    sample = MemorySample(0.0, 300 * MIB, 9_000 * MIB, 32_000 * MIB, Watched("", MEMORY))
    plot.sampler.samples.extend(replace(sample, at_s=number / 10) for number in range(150_000))
    plot._repaint()
    assert len(plot.sampler.samples) == 1200
    assert len(plot._curves["weights"].getData()[0]) <= 620
    plot.deleteLater()


@pytest.fixture
def card_tools() -> EngineTools:
    """A load on a card takes what the plan says and 200 MiB more."""
    used = [4_000 * MIB, 4_000 * MIB + MEMORY.total_bytes + 200 * MIB]
    looks = iter([used[0], used[1], used[1]])
    estimate = LoadEstimate("CUDA0", 8192, 8192, True, MEMORY.target_weights_bytes, MEMORY.draft_weights_bytes,
                            MEMORY.kv_cache_bytes, 0, MEMORY.draft_kv_bytes, MEMORY.compute_bytes, MEMORY.total_bytes,
                            256 * MIB, 8_000 * MIB)  # fmt: skip

    def read(name: str) -> Device:
        return replace(CARD, free_bytes=CARD.total_bytes - next(looks))

    return EngineTools(lambda *_: estimate, lambda _path: None, lambda _path: [], read)  # type: ignore[arg-type,return-value]


def test_what_a_load_really_took_is_remembered_for_the_next_plan(
    make_desk: Callable[..., Desk], card_tools: EngineTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = PairMemory(None)
    desk = make_desk(parts=Parts(engine_tools=card_tools, pair_memory=memory))
    monkeypatch.setattr("ui.scripted_engine.pair_info", on_card)
    gate = desk.engine.script.load_gate = threading.Event()
    record = desk.window.load_desk.record
    with desk.qtbot.waitSignal(record.measured):
        desk.window.load_starter()
        # The look before has its turn, as it has with a file of gigabytes.
        desk.qtbot.waitUntil(lambda: record._before is not None)
        gate.set()
    load = memory.recall(STARTER.target)
    assert load is not None
    assert load.planned_bytes == MEMORY.total_bytes
    assert load.surplus_bytes == 200 * MIB
    assert load.context_tokens == 8192


def on_card(*_files: object) -> PairInfo:
    return replace(pair_info(STARTER.target, STARTER.draft), device_name="CUDA0", memory=MEMORY)
