"""Ids: no two alike, whoever asks for them. Two messages of one id would be one row, and one of them lost."""

from __future__ import annotations

import sys
import threading

import pytest

from dflash_desktop.chats.records import new_id

N_THREADS, N_IDS = 8, 5_000


@pytest.fixture
def _hasty_threads() -> object:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hasty_threads")
def test_ids_of_many_threads_are_unlike_and_grow() -> None:
    made: list[list[int]] = [[] for _ in range(N_THREADS)]

    def make(mine: list[int]) -> None:
        mine.extend(new_id() for _ in range(N_IDS))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for mine in made for one in mine}) == N_THREADS * N_IDS
    assert all(mine == sorted(mine) and 0 < mine[0] < 2**63 for mine in made)
