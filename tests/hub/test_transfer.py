"""One file from the stand-in hub: whatever happens on the way, it ends with the right bytes or says what is wrong."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dflash_desktop.hub.abort import Abort
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network, NetworkSettings, TimeLimits
from dflash_desktop.hub.problems import Aborted, HubProblem
from dflash_desktop.hub.transfer import Transfer
from hub.conftest import BLOCK, NAME, QUICK, REPO, Seen, noise, wanted
from hub.runs import wait_for
from support.hub_server import Fault, Hub
from support.patience import LONG_S, NEVER_S, in_time

CONTENT = noise(10 * BLOCK + 777)


def fetch(
    network: Network, folder: ModelsFolder, hub: Hub, *, seen: Seen | None = None, abort: Abort | None = None
) -> Transfer:
    transfer = Transfer(network, folder, wanted(hub), seen or Seen(), QUICK)
    transfer.run(abort or Abort())
    return transfer


def fetched(folder: ModelsFolder) -> bytes:
    return (folder.path / REPO / NAME).read_bytes()


@pytest.fixture(autouse=True)
def model(hub: Hub) -> None:
    hub.add(REPO, NAME, CONTENT)


def test_a_file_arrives_whole_and_is_recorded(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    seen = Seen()
    transfer = fetch(network, folder, hub, seen=seen)
    assert fetched(folder) == CONTENT
    assert seen.n_done == seen.n_received == transfer.n_received_bytes == len(CONTENT)
    path = folder.path / REPO / NAME
    assert folder.is_ready(path, wanted(hub))
    assert [found.name for found in path.parent.iterdir()] == [NAME]


def test_a_small_file_outside_lfs_is_checked_by_its_git_hash(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    hub.add(REPO, "config.json", b'{"a": 1}')
    Transfer(network, folder, wanted(hub, "config.json"), Seen(), QUICK).run(Abort())
    assert (folder.path / REPO / "config.json").read_bytes() == b'{"a": 1}'


@pytest.mark.parametrize("n_bytes", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_sizes_at_the_edge_of_a_block(n_bytes: int, hub: Hub, network: Network, folder: ModelsFolder) -> None:
    hub.add(REPO, NAME, noise(n_bytes, seed=1))
    fetch(network, folder, hub)
    assert fetched(folder) == noise(n_bytes, seed=1)


@pytest.mark.parametrize("cut", [1, 1000, BLOCK, 4 * BLOCK + 5, len(CONTENT) - 1])
def test_b113_a_connection_that_ends_early_is_taken_up_at_the_byte_reached(
    cut: int, hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    hub.faults = [Fault(cut_after=cut)]
    seen = Seen()
    transfer = fetch(network, folder, hub, seen=seen)
    assert fetched(folder) == CONTENT
    assert hub.begins() == [0, cut]
    assert transfer.n_received_bytes == len(CONTENT)
    assert seen.kinds() == ["unreachable"]


def test_b113_many_cuts_fetch_no_byte_twice(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    hub.faults = [Fault(cut_after=20_000 + 17 * turn) for turn in range(12)]
    transfer = fetch(network, folder, hub)
    assert fetched(folder) == CONTENT
    assert transfer.n_received_bytes == len(CONTENT)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(wrong_range=True), "server_error"),
        (Fault(status=500), "server_error"),
        (Fault(status=503), "server_error"),
        (Fault(status=429, headers={"Retry-After": "0"}), "rate_limited"),
        (Fault(gzip_header=True), "server_error"),
        (Fault(html=True), "not_a_hub"),
        (Fault(silent_after=5000), "stalled"),
        (Fault(silent_after=0), "stalled"),
        (Fault(piece=1, drip_s=0.05), "stalled"),
    ],
)
def test_b113_b115_what_passes_is_tried_again(
    fault: Fault, kind: str, hub: Hub, hasty: Network, folder: ModelsFolder
) -> None:
    hub.faults = [Fault(cut_after=50_000), fault]
    seen = Seen()
    fetch(hasty, folder, hub, seen=seen)
    assert fetched(folder) == CONTENT
    assert kind in seen.kinds()


def test_b113_a_server_that_cannot_begin_in_the_middle_is_read_over(
    hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    hub.faults = [Fault(cut_after=50_000), *[Fault(ignores_range=True)] * 5]
    fetch(network, folder, hub)
    assert fetched(folder) == CONTENT


def test_b113_another_file_under_the_same_name_is_said_not_mixed(
    hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    asked_for = wanted(hub)
    hub.faults = [Fault(cut_after=50_000)]

    def exchange(_begin: int) -> None:
        hub.add(REPO, NAME, noise(len(CONTENT), seed=9))

    hub.on_content = exchange
    with pytest.raises(HubProblem) as told:
        Transfer(network, folder, asked_for, Seen(), QUICK).run(Abort())
    assert told.value.kind == "changed"
    assert not (folder.path / REPO / NAME).exists()


def test_another_size_than_the_person_agreed_to_is_said_before_the_first_byte(
    hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    asked_for = wanted(hub)
    hub.add(REPO, NAME, CONTENT + b"more")
    with pytest.raises(HubProblem) as told:
        Transfer(network, folder, asked_for, Seen(), QUICK).run(Abort())
    assert told.value.kind == "changed"
    assert hub.begins() == []


def test_a_byte_that_arrives_wrong_is_found_and_fetched_again(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    hub.faults = [Fault(flip_at=3 * BLOCK)]
    fetch(network, folder, hub)
    assert fetched(folder) == CONTENT


def test_a_file_that_is_never_what_its_hash_says_is_refused(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    hub.add(REPO, NAME, CONTENT, announced_sha256="0" * 64)
    with pytest.raises(HubProblem) as told:
        fetch(network, folder, hub)
    assert told.value.kind == "corrupt"
    assert not (folder.path / REPO / NAME).exists()


@pytest.mark.parametrize("status", [403, 404, 416])
def test_what_needs_the_person_ends_the_transfer(status: int, hub: Hub, network: Network, folder: ModelsFolder) -> None:
    hub.faults = [Fault(cut_after=50_000), Fault(status=status)]
    with pytest.raises(HubProblem) as told:
        fetch(network, folder, hub)
    assert told.value.kind == {403: "token_needed", 404: "not_found", 416: "changed"}[status]


def test_b114_a_stopped_download_goes_on_at_the_very_byte(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    abort = Abort()
    reached = 4 * BLOCK + 1234
    hub.faults = [Fault(silent_after=reached)]
    seen = Seen()
    thread = fetch_until_stopped(network, folder, hub, abort, seen)
    wait_for(lambda: seen.n_received == reached)
    abort.set()
    thread.join()
    assert not (folder.path / REPO / NAME).exists()
    fetch(network, folder, hub)
    assert fetched(folder) == CONTENT
    assert hub.begins()[-1] == reached


def test_b114_a_flipped_byte_in_the_part_is_found_and_only_its_block_fetched(
    hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    stop_at(hub, network, folder, 6 * BLOCK)
    part = folder.path / REPO / f"{NAME}.part"
    flip(part, 2 * BLOCK + 99)
    transfer = fetch(network, folder, hub)
    assert fetched(folder) == CONTENT
    assert hub.begins()[-2:] == [2 * BLOCK, 6 * BLOCK]
    assert transfer.n_received_bytes == len(CONTENT) - 5 * BLOCK


@pytest.mark.parametrize("damage", ["cut", "empty", "no log", "torn log", "foreign log"])
def test_b114_whatever_a_crash_left_of_the_part_the_result_is_right(
    damage: str, hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    stop_at(hub, network, folder, 6 * BLOCK)
    part = folder.path / REPO / f"{NAME}.part"
    log = folder.path / REPO / f"{NAME}.part.log"
    match damage:
        case "cut":
            part.write_bytes(part.read_bytes()[: 3 * BLOCK + 7])
        case "empty":
            part.write_bytes(b"")
        case "no log":
            log.unlink()
        case "torn log":
            log.write_bytes(log.read_bytes()[:-20])
        case "foreign log":
            log.write_bytes(b"\xff\xfe garbage\n[1,2\n")
    fetch(network, folder, hub)
    assert fetched(folder) == CONTENT


@in_time(2)
@pytest.mark.parametrize("silent", ["metadata", "start", "middle", "end"])
def test_b115_stopping_acts_at_once_while_the_server_is_silent(
    silent: str, hub: Hub, folder: ModelsFolder, within_s: float
) -> None:
    network = Network(official=hub.url, limits=TimeLimits(connect_s=LONG_S, silence_s=NEVER_S))
    if silent == "metadata":
        hub.head_faults = [Fault(silent_after=0)]
    else:
        hub.faults = [Fault(silent_after={"start": 0, "middle": len(CONTENT) // 2, "end": len(CONTENT) - 1}[silent])]
    abort = Abort()
    thread = fetch_until_stopped(network, folder, hub, abort, Seen())
    wait_for(lambda: bool(hub.asked) and (silent == "metadata" or bool(hub.begins())))
    time.sleep(0.1)  # into the silence
    begin = time.monotonic()
    abort.set()
    thread.join()
    assert time.monotonic() - begin < within_s


def test_two_programs_do_not_write_one_file(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    """B124: the second waits, and takes over what the first left."""
    folder.prepare()
    path = folder.path / REPO / NAME
    path.parent.mkdir(parents=True)
    held = folder.writing(path)
    held.__enter__()

    def let_go(_problem: HubProblem) -> None:
        if len(seen.problems) == 1:
            held.__exit__(None, None, None)

    seen = Seen(on_problem=let_go)
    fetch(network, folder, hub, seen=seen)
    assert seen.kinds()[0] == "busy"
    assert fetched(folder) == CONTENT


def test_a_copy_that_lies_there_already_is_taken_after_a_look_at_its_hash(
    hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    path = folder.path / REPO / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    transfer = fetch(network, folder, hub)
    assert transfer.n_received_bytes == 0
    assert folder.is_ready(path, wanted(hub))


def test_b117_where_links_are_refused_one_whole_file_arrives(
    hub: Hub, network: Network, folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    for name in ("symlink", "link"):
        monkeypatch.setattr(f"os.{name}", refuse)
    fetch(network, folder, hub)
    content = [path for path in (folder.path / "maker").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in content] == [len(CONTENT)]


def test_b158_odd_names_arrive_under_odd_paths(hub: Hub, network: Network, tmp_path: Path) -> None:
    name = "Q4 sub/模型 & 'q' #1 %41 😀.gguf"
    hub.add(REPO, name, CONTENT)
    folder = ModelsFolder(tmp_path / "田中　太郎 ü #1 %41 'q' -x" / ("n" * 200))
    hub.faults = [Fault(cut_after=50_000)]
    Transfer(network, folder, wanted(hub, name), Seen(), QUICK).run(Abort())
    assert (folder.path / REPO / name).read_bytes() == CONTENT


def test_the_token_goes_to_the_official_host_only_where_it_is_needed(hub: Hub, folder: ModelsFolder) -> None:
    network = Network(official=hub.url, access_token=lambda: hub.token)
    fetch(network, folder, hub)
    assert {asked.authorization for asked in hub.asked} == {""}
    hub.gated.add(REPO)
    hub.asked.clear()
    hub.add(REPO, NAME, noise(5000, seed=3))
    fetch(network, folder, hub)
    at_cdn = {asked.authorization for asked in hub.asked if "/cdn/" in asked.path}
    assert at_cdn == {""}, "a redirect took the token to another host"
    at_hub = {asked.authorization for asked in hub.asked if asked.method == "GET" and "/cdn/" not in asked.path}
    assert at_hub == {f"Bearer {hub.token}"}


def test_a_mirror_never_sees_the_token(hub: Hub, folder: ModelsFolder) -> None:
    hub.gated.add(REPO)
    network = Network(NetworkSettings(mirror=hub.url), access_token=lambda: hub.token)
    with pytest.raises(HubProblem) as told:
        fetch(network, folder, hub)
    assert told.value.kind == "token_needed"
    assert {asked.authorization for asked in hub.asked} == {""}


@pytest.mark.parametrize(
    ("token", "accepted", "kind"),
    [(None, True, "token_needed"), ("hf_wrong", True, "token_refused"), ("hf_right", False, "terms")],
)
def test_a_gated_file_says_what_is_missing(
    token: str | None, accepted: bool, kind: str, hub: Hub, folder: ModelsFolder
) -> None:
    hub.gated.add(REPO)
    hub.has_accepted_terms = accepted
    with pytest.raises(HubProblem) as told:
        fetch(Network(official=hub.url, access_token=lambda: token), folder, hub)
    assert told.value.kind == kind


def test_nobody_is_asked_which_programs_run_here(hub: Hub, network: Network, folder: ModelsFolder) -> None:
    fetch(network, folder, hub)
    assert all(REPO in asked.path for asked in hub.asked)


def fetch_until_stopped(network: Network, folder: ModelsFolder, hub: Hub, abort: Abort, seen: Seen) -> threading.Thread:
    """A thread that fetches; any other end than being stopped is an error that pytest reports."""

    def run() -> None:
        with pytest.raises(Aborted):
            fetch(network, folder, hub, seen=seen, abort=abort)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def stop_at(hub: Hub, network: Network, folder: ModelsFolder, n_bytes: int) -> None:
    """An interrupted download that has just so much."""
    abort = Abort()
    hub.faults = [Fault(cut_after=n_bytes)]
    with pytest.raises(Aborted):
        fetch(network, folder, hub, seen=Seen(on_problem=lambda _problem: abort.set()), abort=abort)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
