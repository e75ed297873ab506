"""The download list: order, pause, restart, kill, full disk; every end is the right bytes or a state that says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dflash_desktop.hub.download_status import DownloadEvent, DownloadMoved, QueueChanged
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, NetworkSettings
from dflash_desktop.hub.problems import HubProblem
from hub.conftest import BLOCK, noise
from hub.runs import SILENT, MakeRun, Run, wait_for
from support.hub_server import Fault, Hub
from support.patience import LONG_S, in_time


def test_a_list_without_rows_asks_nobody_anything(hub: Hub, start: MakeRun) -> None:
    run = start()
    run.downloads.network_changed()
    run.downloads.clear_done()
    run.downloads.close()
    assert hub.asked == []


def test_a_pair_is_one_row_with_one_size(hub: Hub, start: MakeRun) -> None:
    target, draft = noise(5 * BLOCK), noise(2 * BLOCK + 1, seed=1)
    hub.add("maker/t.gguf", "t.gguf", target)
    hub.add("maker/d.gguf", "d.gguf", draft)
    run = start()
    download_id = run.add("t.gguf", "d.gguf", title="the pair")
    row = run.wait(download_id, "done")
    assert row.n_done_bytes == row.n_total_bytes == len(target) + len(draft)
    assert (run.content("t.gguf"), run.content("d.gguf")) == (target, draft)
    wait_for(run.done)
    assert run.done() == [download_id]


def test_rows_are_fetched_in_order_and_can_be_moved(hub: Hub, start: MakeRun) -> None:
    for name in ("a", "b", "c"):
        hub.add(f"maker/{name}", name, noise(4 * BLOCK, seed=ord(name)))
    hub.faults = [SILENT]
    run = start()
    first, second, third = run.add("a"), run.add("b"), run.add("c")
    wait_for(lambda: run.row(first).n_done_bytes > 0)
    run.downloads.move(third, 0)
    wait_for(lambda: len(run.done()) == 3)
    assert run.done() == [third, first, second]
    assert [run.content(name) for name in "abc"] == [noise(4 * BLOCK, seed=ord(name)) for name in "abc"]


def test_a_paused_row_stays_paused_and_the_next_one_is_fetched(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(6 * BLOCK))
    hub.add("maker/b", "b", noise(BLOCK, seed=1))
    hub.faults = [SILENT]
    run = start()
    first, second = run.add("a"), run.add("b")
    wait_for(lambda: run.row(first).n_done_bytes == 3 * BLOCK)
    run.downloads.pause(first)
    run.wait(second, "done")
    assert run.row(first).state == "paused"
    assert run.row(first).n_done_bytes == 3 * BLOCK
    run.downloads.resume(first)
    run.wait(first, "done")
    assert run.content("a") == noise(6 * BLOCK)
    assert [begin for begin in hub.begins() if begin] == [3 * BLOCK]


def test_removing_a_row_deletes_what_arrived_and_its_folders(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(6 * BLOCK))
    hub.faults = [SILENT]
    run = start()
    download_id = run.add("a")
    wait_for(lambda: run.row(download_id).n_done_bytes == 3 * BLOCK)
    run.downloads.remove(download_id)
    assert run.downloads.rows() == ()
    wait_for(lambda: not (run.folder.path / "maker").exists())


def test_b111_a_disk_without_room_for_the_whole_queue_is_said_before_the_start(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(6 * BLOCK), announced_bytes=10**15)
    run = start()
    with pytest.raises(HubProblem) as told:
        run.add("a")
    assert told.value.kind == "disk_full"
    assert told.value.needed_bytes == 10**15
    assert 0 < told.value.free_bytes < 10**15
    assert run.downloads.rows() == ()
    assert hub.asked == []


def test_b111_the_queue_is_counted_as_a_sum(hub: Hub, start: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        hub.add(f"maker/{name}", name, noise(6 * BLOCK))
    hub.faults = [Fault(silent_after=0)] * 1000
    run = start()
    monkeypatch.setattr(run.folder, "free_bytes", lambda: 10 * BLOCK)
    run.add("a")
    with pytest.raises(HubProblem) as told:
        run.add("b")
    assert told.value.needed_bytes == 12 * BLOCK


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="mounts a small disk")
def test_b111_a_disk_that_fills_up_pauses_and_goes_on_when_there_is_room(
    hub: Hub, network: Network, tmp_path: Path
) -> None:
    disk = tmp_path / "small disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounting is not allowed here")
    content = noise(3 * 2**20)
    hub.add("maker/a", "a", content)
    started = threading.Event()
    hub.on_content = lambda _begin: started.set()
    hub.faults = [Fault(drip_s=0.001)]
    try:
        run = Run(hub, network, disk / "models", tmp_path / "state")
        filler = disk / "filler"
        download_id = run.add("a")
        assert started.wait(LONG_S)
        filler.write_bytes(b"x" * (3 * 2**19))  # it had room; now it has not
        row = run.wait(download_id, "waiting")
        wait_for(lambda: run.row(download_id).problem is not None)
        problem = run.row(download_id).problem
        assert problem is not None and problem.kind == "disk_full"
        assert problem.needed_bytes > problem.free_bytes
        assert row.n_done_bytes > 0
        filler.unlink()
        run.wait(download_id, "done")
        assert run.content("a") == content
        run.downloads.close()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_b114_after_a_restart_it_goes_on_by_itself(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [Fault(silent_after=5 * BLOCK + 17)]
    run = start()
    download_id = run.add("a")
    wait_for(lambda: run.row(download_id).n_done_bytes == 5 * BLOCK + 17)
    run.downloads.close()
    again = start()
    again.wait(download_id, "done")
    assert again.content("a") == noise(9 * BLOCK)
    assert hub.begins() == [0, 5 * BLOCK + 17]


def test_a_paused_row_is_still_paused_after_a_restart_and_asks_nothing(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [SILENT]
    run = start()
    download_id = run.add("a")
    wait_for(lambda: run.row(download_id).n_done_bytes == 3 * BLOCK)
    run.downloads.pause(download_id)
    run.downloads.close()
    n_asked = len(hub.asked)
    again = start()
    assert again.row(download_id).state == "paused"
    assert again.row(download_id).n_done_bytes == 3 * BLOCK
    again.downloads.close()
    assert len(hub.asked) == n_asked


def test_another_source_takes_over_a_running_download_at_the_byte_reached(
    hub: Hub, network: Network, start: MakeRun
) -> None:
    content = noise(9 * BLOCK)
    hub.add("maker/a", "a", content)
    hub.faults = [SILENT]
    run = start()
    download_id = run.add("a")
    wait_for(lambda: run.row(download_id).n_done_bytes == 3 * BLOCK)
    with Hub() as mirror:
        mirror.add("maker/a", "a", content)
        network.use(NetworkSettings(mirror=mirror.url))
        run.downloads.network_changed()
        run.wait(download_id, "done")
        assert run.content("a") == content
        assert mirror.begins() == [3 * BLOCK]


def test_a_failure_says_why_still_says_it_after_a_restart_and_is_gone_after_success(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [Fault(status=404)]
    run = start()
    download_id = run.add("a")
    run.wait(download_id, "failed")
    run.downloads.close()
    again = start()
    problem = again.row(download_id).problem
    assert problem is not None and problem.kind == "not_found"
    again.downloads.resume(download_id)
    assert again.wait(download_id, "done").problem is None


@in_time(2)
def test_b115_closing_is_quick_while_the_server_is_silent(hub: Hub, start: MakeRun, within_s: float) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [SILENT]
    run = start()
    download_id = run.add("a")
    wait_for(lambda: run.row(download_id).n_done_bytes == 3 * BLOCK)
    begin = time.monotonic()
    run.downloads.close()
    assert time.monotonic() - begin < within_s
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("download")]


def test_a_silence_that_grows_is_told_while_it_lasts(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [SILENT]
    run = start()
    run.add("a")

    def silences() -> list[float]:
        return [event.row.silence_s for event in run.events if isinstance(event, DownloadMoved) and event.row.silence_s]

    wait_for(lambda: len(silences()) > 3 and silences()[-1] > 0.5)
    assert silences()[-3:] == sorted(silences()[-3:])


def test_a_stall_is_told_and_tried_again(hub: Hub, start: MakeRun, hasty: Network) -> None:
    hub.add("maker/a", "a", noise(9 * BLOCK))
    hub.faults = [SILENT]
    run = start(network=hasty)
    download_id = run.add("a")
    wait_for(lambda: any(_is_stalled(event) for event in run.events))
    run.wait(download_id, "done")


def test_numbers_come_at_most_ten_times_a_second(hub: Hub, start: MakeRun) -> None:
    hub.add("maker/a", "a", noise(20 * BLOCK))
    hub.faults = [Fault(drip_s=0.02)]
    run = start()
    begin = time.monotonic()
    run.wait(run.add("a"), "done")
    n_told = sum(isinstance(event, DownloadMoved) for event in run.events)
    assert 1 < n_told <= (time.monotonic() - begin) / 0.1 + 2


def test_b121_an_absent_drive_is_waited_for_and_nothing_is_written_into_its_place(
    hub: Hub, network: Network, tmp_path: Path
) -> None:
    hub.add("maker/a", "a", noise(3 * BLOCK))
    models = tmp_path / "drive"
    folder = ModelsFolder(models, is_made_when_missing=False)
    folder.claim()
    models.rename(tmp_path / "elsewhere")
    models.mkdir()  # the empty mount point
    run = Run(hub, network, folder, tmp_path / "state")
    try:
        download_id = run.add("a")
        row = run.wait(download_id, "waiting")
        wait_for(lambda: run.row(download_id).problem is not None)
        assert row.problem is None or row.problem.kind == "folder_missing"
        assert list(models.iterdir()) == []
        models.rmdir()
        (tmp_path / "elsewhere").rename(models)
        run.wait(download_id, "done")
        assert run.content("a") == noise(3 * BLOCK)
    finally:
        run.downloads.close()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1, "rows": [{"a": 1}]}', b"\xff\xfe\x00"])
def test_b123_b126_a_broken_list_costs_the_list_only(content: bytes, tmp_path: Path, start: MakeRun, hub: Hub) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "downloads.json").write_bytes(content)
    hub.add("maker/a", "a", noise(BLOCK))
    run = start()
    run.wait(run.add("a"), "done")
    assert json.loads((tmp_path / "state" / "downloads.json").read_text())["rows"][0]["state"] == "done"


@pytest.mark.parametrize("kind", ["file", "dangling link", "read-only"])
def test_b126_a_models_folder_that_cannot_be_used_is_said(
    kind: str, hub: Hub, network: Network, tmp_path: Path
) -> None:
    hub.add("maker/a", "a", noise(BLOCK))
    models = tmp_path / "models"
    match kind:
        case "file":
            models.write_text("not a folder")
        case "dangling link":
            models.symlink_to(tmp_path / "nowhere")
        case _:
            if os.geteuid() == 0:
                pytest.skip("root may write anywhere")
            models.mkdir(mode=0o555)
    run = Run(hub, network, models, tmp_path / "state")
    try:
        download_id = run.add("a")
        row = run.wait(download_id, "waiting", "failed")
        wait_for(lambda: run.row(download_id).problem is not None)
        problem = run.row(download_id).problem or row.problem
        assert problem is not None and problem.kind in ("folder_missing", "folder_read_only")
    finally:
        run.downloads.close()


def _is_stalled(event: DownloadEvent) -> bool:
    return isinstance(event, QueueChanged) and any(
        row.state == "waiting" and row.problem is not None and row.problem.kind == "stalled" for row in event.rows
    )
