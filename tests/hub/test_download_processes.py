"""Two programs and one list; programs that are killed in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hub.conftest import BLOCK, noise
from hub.runs import SILENT, MakeRun, start_child, wait_for
from support.hub_server import Fault, Hub


def test_b124_a_second_program_leaves_the_list_alone_and_takes_over_later(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.add("maker/b", "b", noise(BLOCK, seed=1))
    hub.faults = [SILENT]
    first = start()
    download_id = first.add("a")
    wait_for(lambda: first.row(download_id).n_done_bytes == 3 * BLOCK)
    second = start()
    assert second.downloads.rows() == ()
    second.add("b")
    first.downloads.close()
    wait_for(lambda: [row.state for row in second.downloads.rows()] == ["done", "done"])
    assert (second.content("a"), second.content("b")) == (noise(9 * BLOCK), noise(BLOCK, seed=1))


@pytest.mark.parametrize("moment", range(4))
def test_b114_b123_kill_minus_nine_in_the_middle_loses_one_block_at_most(
    moment: int, hub: Hub, start: MakeRun, tmp_path: Path
) -> None:
    content = noise(40 * BLOCK + 5, seed=moment)
    hub.add("maker/a", "a", content)
    reached = (3 + 9 * moment) * BLOCK + 100 * moment
    hub.faults = [Fault(silent_after=reached)]
    child = start_child(hub, tmp_path)
    part = tmp_path / "models" / "maker" / "a" / "a.part"
    wait_for(lambda: part.exists() and part.stat().st_size == reached)
    child.kill()
    child.wait()
    assert not part.with_name("a").exists()
    run = start()
    (row,) = run.downloads.rows()
    run.wait(row.download_id, "done")
    assert run.content("a") == content
    assert reached - hub.begins()[-1] <= BLOCK


def test_b124_the_second_program_goes_on_when_the_first_is_killed(hub: Hub, start: MakeRun, tmp_path: Path) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [SILENT]
    child = start_child(hub, tmp_path)
    part = tmp_path / "models" / "maker" / "a" / "a.part"
    wait_for(lambda: part.exists() and part.stat().st_size == 3 * BLOCK)
    run = start()
    assert run.downloads.rows() == ()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    wait_for(lambda: [row.state for row in run.downloads.rows()] == ["done"])
    assert run.content("a") == noise(9 * BLOCK)
