"""How many threads the engine takes on a machine that other programs use too."""

from __future__ import annotations

from ctypes import c_double, c_void_p
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.native_probe import Probe

WINDOW_US = 60_000.0  # long enough for one decision


class Threads:
    """The engine's counter, fed with computations of 60 ms."""

    def __init__(self, probe: Probe, most: int) -> None:
        self._lib = probe.lib
        self._lib.probe_threads_new.restype = c_void_p
        self._lib.probe_threads_observe.argtypes = (c_void_p, c_double, c_double)
        self._handle = c_void_p(self._lib.probe_threads_new(most))
        self.count = most

    def compute(self, share: float, seconds: float = WINDOW_US / 1e6) -> int:
        """Compute for `seconds` while the system gives each thread `share` of a core."""
        for _ in range(max(1, round(seconds * 1e6 / WINDOW_US))):
            self.count = self._lib.probe_threads_observe(self._handle, WINDOW_US, WINDOW_US * self.count * share)
        return self.count


def test_a_free_machine_keeps_all_threads(probe: Probe) -> None:
    assert Threads(probe, 8).compute(1.0, seconds=30) == 8


def test_a_starved_engine_goes_down_to_one_thread_and_not_below(probe: Probe) -> None:
    threads = Threads(probe, 4)
    assert [threads.compute(0.4) for _ in range(5)] == [3, 2, 1, 1, 1]


def test_the_threads_come_back_when_the_machine_is_free_again(probe: Probe) -> None:
    threads = Threads(probe, 4)
    threads.compute(0.4, seconds=1)
    assert threads.compute(1.0, seconds=20) == 4


def test_a_try_that_fails_is_repeated_ever_more_rarely(probe: Probe) -> None:
    threads = Threads(probe, 2)
    n_tries = [0, 0]
    for half in (0, 1):
        for _ in range(2000):  # two minutes: one thread is fed, two are not
            before = threads.count
            n_tries[half] += threads.compute(0.5 if before == 2 else 1.0) > before
    assert 0 < n_tries[1] < n_tries[0] < 10


def test_a_short_hiccup_is_not_believed(probe: Probe) -> None:
    threads = Threads(probe, 2)
    threads._lib.probe_threads_observe(threads._handle, 1_000.0, 0.0)  # one preempted step of 1 ms
    assert threads.compute(1.0) == 2
