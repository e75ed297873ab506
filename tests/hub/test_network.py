"""What is asked of whom: offline, mirrors, proxies, tokens, search, and the offers that a person is shown."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_desktop.engine.planning import plan_load
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.hub.catalogue import CatalogueModel, CataloguePair, Proposal
from dflash_desktop.hub.headers import can_be_sparse, headers
from dflash_desktop.hub.network import (
    Network,
    NetworkSettings,
    TimeLimits,
    read_network_settings,
    write_network_settings,
)
from dflash_desktop.hub.offers import offer_file, offer_pair
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.repository import repository, search
from dflash_desktop.hub.wanted import WantedFile
from hub.conftest import DRAFT_FOLDER, REPO, TARGET, noise, wanted
from support.hub_home import native
from support.hub_server import Fault, Hub
from support.patience import LONG_S, in_time
from support.ports import free_port


def kind_of(call: Callable[[], object]) -> str:
    with pytest.raises(HubProblem) as told:
        call()
    return told.value.kind


# ---- reaching the hub


def test_a_hub_that_answers_passes_the_test(hub: Hub, network: Network) -> None:
    hub.add(REPO, "a.gguf", b"a")
    network.try_out()
    assert [asked.path for asked in hub.asked] == ["/api/models"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(html=True), "not_a_hub"),
        (Fault(status=500), "server_error"),
        (Fault(status=404), "not_found"),
        (Fault(status=429, headers={"Retry-After": "7"}), "rate_limited"),
        (Fault(status=429, headers={"Retry-After": "²"}), "rate_limited"),
        (Fault(silent_after=0), "stalled"),
    ],
)
def test_b119_what_else_may_answer_is_said_as_what_it_is(
    fault: Fault, kind: str, hub: Hub, network: Network, hasty: Network
) -> None:
    hub.head_faults = [fault]
    assert kind_of((hasty if kind == "stalled" else network).try_out) == kind


def test_b119_nobody_listens() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert kind_of(Network(official=url, limits=TimeLimits(LONG_S, LONG_S)).try_out) == "unreachable"


def test_b119_a_name_that_cannot_be_looked_up_means_offline() -> None:
    assert (
        kind_of(Network(official="http://no-such-host.invalid", limits=TimeLimits(LONG_S, LONG_S)).try_out) == "offline"
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="takes the network away with unshare")
@in_time(20)
def test_b119_without_a_network_every_question_says_offline_and_the_list_starts(
    within_s: float, tmp_path: Path
) -> None:
    program = """
import sys, time
from pathlib import Path
from dflash_desktop.hub.downloads import Downloads
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.repository import repository, search
begin = time.monotonic()
network = Network()
downloads = Downloads(Path(sys.argv[1]), network, ModelsFolder(Path(sys.argv[1]) / "models"))
downloads.start()
for ask in (network.try_out, lambda: search(network, "qwen"), lambda: repository(network, "a/b")):
    try:
        ask()
    except HubProblem as problem:
        print(problem.kind)
downloads.close()
print("quick" if time.monotonic() - begin < float(sys.argv[2]) else "slow")
"""
    have = subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True)
    if have.returncode:
        pytest.skip("unshare is not allowed here")
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-c", program, str(tmp_path), str(within_s)],
        capture_output=True,
        text=True,
        check=True,
        timeout=2 * LONG_S,
    )
    assert done.stdout.split() == ["offline", "offline", "offline", "quick"]


def test_a_mirror_is_asked_in_place_of_the_hub(hub: Hub) -> None:
    hub.add(REPO, "a.gguf", noise(5000))
    network = Network(NetworkSettings(mirror=hub.url + "/"))
    assert [found.repo_id for found in search(network, "model")] == [REPO]
    assert repository(network, REPO).files[0].sha256 == wanted(hub, "a.gguf").sha256


@pytest.mark.parametrize(
    "address", ["hf-mirror.com", "ftp://x", "http://", "http://[", "file:///etc/passwd", "http://a:0"]
)
def test_an_address_that_is_none_is_refused_before_it_is_used(address: str) -> None:
    network = Network()
    assert kind_of(lambda: network.use(NetworkSettings(mirror=address))) == "unreachable"
    assert kind_of(lambda: network.use(NetworkSettings(proxy="manual", proxy_url=address))) == "proxy"
    assert network.settings == NetworkSettings()


def test_settings_are_kept_and_hf_endpoint_is_the_first_mirror(tmp_path: Path) -> None:
    file = tmp_path / "network.json"
    assert read_network_settings(file, {}) == NetworkSettings()
    assert read_network_settings(file, {"HF_ENDPOINT": "https://mirror.example/"}).mirror == "https://mirror.example"
    assert read_network_settings(file, {"HF_ENDPOINT": "https://huggingface.co"}).mirror == ""
    chosen = NetworkSettings(proxy="manual", proxy_url="http://127.0.0.1:7890")
    write_network_settings(file, chosen)
    assert read_network_settings(file, {"HF_ENDPOINT": "https://mirror.example"}) == chosen


@pytest.mark.parametrize("content", [b"", b"{", b'{"proxy": "teleport"}', b'{"mirror": 1}', b"\xff"])
def test_b126_broken_settings_begin_anew(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "network.json").write_bytes(content)
    assert read_network_settings(tmp_path / "network.json", {}) == NetworkSettings()


class Proxy:
    """A proxy that counts what goes through it; it answers everything from the hub behind it."""

    def __init__(self, hub: Hub) -> None:
        self.lines: list[bytes] = []
        self._hub = ("127.0.0.1", int(hub.url.rpartition(":")[2]))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        socket.create_connection(self._server.getsockname()).close()
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        while True:
            client, _ = self._server.accept()
            with client:
                head = client.recv(65536)
                if not head:
                    return
                line, _, rest = head.partition(b"\r\n")
                self.lines.append(line)
                method, url, version = line.split(b" ")
                path = b"/" + url.split(b"/", 3)[3]
                with socket.create_connection(self._hub) as behind:
                    rest = rest.replace(b"keep-alive", b"close")
                    behind.sendall(b" ".join((method, path, version)) + b"\r\n" + rest)
                    while piece := behind.recv(65536):
                        client.sendall(piece)


def test_the_proxy_that_was_entered_is_used_and_none_means_none(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add(REPO, "a.gguf", b"a")
    proxy = Proxy(hub)
    try:
        target = "http://hub.invalid"  # only the proxy knows where that is
        Network(NetworkSettings(proxy="manual", proxy_url=proxy.url), official=target).try_out()
        assert proxy.lines == [b"GET http://hub.invalid/api/models?limit=1 HTTP/1.1"]
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        Network(official=target).try_out()
        assert len(proxy.lines) == 2
        Network(NetworkSettings(proxy="none"), official=hub.url).try_out()
        assert len(proxy.lines) == 2
    finally:
        proxy.close()


# ---- what the hub says


def test_a_repository_says_sizes_hashes_licence_and_terms(hub: Hub, network: Network) -> None:
    hub.add(REPO, "m-Q4_K_M.gguf", noise(5000))
    hub.add(REPO, "m-Q8_0.gguf", noise(9000))
    hub.add(REPO, "big-00001-of-00002.gguf", noise(3000))
    hub.add(REPO, "big-00002-of-00002.gguf", noise(4000))
    hub.add(REPO, "README.md", b"hello")
    hub.gated.add(REPO)
    hub.licences[REPO] = "llama3.1"
    found = repository(network, REPO)
    assert (found.licence, found.is_gated) == ("llama3.1", True)
    assert [[part.name for part in parts] for parts in found.models()] == [
        ["m-Q4_K_M.gguf"],
        ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"],
        ["m-Q8_0.gguf"],
    ]
    assert found.file("m-Q4_K_M.gguf") == wanted(hub, "m-Q4_K_M.gguf")
    assert len(found.parts_of("big-00002-of-00002.gguf")) == 2


def test_a_repository_that_is_not_there_is_said(hub: Hub, network: Network) -> None:
    assert kind_of(lambda: repository(network, "no/such")) == "not_found"
    assert kind_of(lambda: repository(network, "not a repository!")) == "not_found"


def pair(**changes: object) -> CataloguePair:
    values: dict[str, object] = {
        "id": "mini",
        "name": "Mini",
        "rank": 1,
        "architecture": "qwen35",
        "licence": "Apache-2.0",
        "context_tokens": 2048,
        "summary": "",
        "notes": (),
        "kv_bytes_per_token": 1,
        "recurrent_bytes": 0,
        "targets": (CatalogueModel(repo_id=REPO, files=("mini-Q8_0.gguf",), quantization="Q8_0", approx_bytes=1),),
        "drafts": (
            CatalogueModel(
                repo_id="z-lab/mini-DFlash",
                files=("model.safetensors", "config.json"),
                quantization="BF16",
                approx_bytes=1,
            ),
        ),
        "scorers": (),
        "settings": (Proposal(memory_gib=1, target="Q8_0", draft="BF16", kv="f16", context_tokens=1024),),
        "measured": (),
    }
    return CataloguePair(**values | changes)  # type: ignore[arg-type]


@pytest.fixture
def mini(hub: Hub) -> CataloguePair:
    """A pair of the catalogue's kind, with real files on the stand-in hub."""
    hub.add(REPO, "mini-Q8_0.gguf", TARGET.read_bytes())
    for name in ("model.safetensors", "config.json"):
        hub.add("z-lab/mini-DFlash", name, (DRAFT_FOLDER / name).read_bytes())
    return pair()


def test_an_offer_holds_the_true_files_of_target_and_draft(hub: Hub, network: Network, mini: CataloguePair) -> None:
    offer = offer_pair(network, mini, mini.targets[0], mini.drafts[0], lambda _file: None)
    order = offer.wanted()
    assert [file.name for file in order.files] == ["mini-Q8_0.gguf", "model.safetensors", "config.json"]
    assert order.n_bytes == sum(len(file.content) for files in hub.files.values() for file in files.values())
    assert (order.target, order.draft) == (f"{REPO}/mini-Q8_0.gguf", "z-lab/mini-DFlash/model.safetensors")


def test_what_is_on_this_machine_already_is_not_fetched(network: Network, mini: CataloguePair) -> None:
    def find(file: WantedFile) -> Path | None:
        return TARGET if file.name.endswith(".gguf") else None

    order = offer_pair(network, mini, mini.targets[0], mini.drafts[0], find).wanted()
    assert [file.name for file in order.files] == ["model.safetensors", "config.json"]
    assert order.local_target == str(TARGET)


def test_a_renamed_file_is_found_by_its_quantization_if_there_is_one_only(
    hub: Hub, network: Network, mini: CataloguePair
) -> None:
    hub.files[REPO] = {"Mini-v2-Q8_0.gguf": hub.files[REPO]["mini-Q8_0.gguf"]}
    offer = offer_pair(network, mini, mini.targets[0], None, lambda _file: None)
    assert offer.target.files[0].name == "Mini-v2-Q8_0.gguf"
    hub.files[REPO]["Mini-v3-Q8_0.gguf"] = hub.files[REPO]["Mini-v2-Q8_0.gguf"]
    assert kind_of(lambda: offer_pair(network, mini, mini.targets[0], None, lambda _file: None)) == "not_found"


def test_the_scorer_comes_along_where_it_is_asked_for(hub: Hub, network: Network) -> None:
    scorer = CatalogueModel(repo_id="maker/scorer", files=("scorer.gguf",), quantization="Q8_0", approx_bytes=1)
    hub.add(REPO, "mini-Q8_0.gguf", TARGET.read_bytes())
    hub.add("maker/scorer", "scorer.gguf", TARGET.read_bytes())
    made = pair(scorers=(scorer,))
    without = offer_pair(network, made, made.targets[0], None, lambda _file: None).wanted()
    order = offer_pair(network, made, made.targets[0], None, lambda _file: None, scorer).wanted()
    assert [file.name for file in order.files] == ["mini-Q8_0.gguf", "scorer.gguf"]
    assert (order.target, order.draft) == (without.target, "")
    assert [file.name for file in without.files] == ["mini-Q8_0.gguf"]


@pytest.mark.skipif(not can_be_sparse(), reason="the temporary folder's file system has no sparse files")
def test_the_engine_plans_with_headers_alone_what_it_plans_with_the_files(
    network: Network, mini: CataloguePair
) -> None:
    offer = offer_pair(network, mini, mini.targets[0], mini.drafts[0], lambda _file: None)
    options = LoadOptions(context_tokens=1024)
    files = offer.wanted().files
    with headers(network, files, 2 * 2**20) as (target, draft, _config):
        assert target.stat().st_blocks * 512 < target.stat().st_size / 2
        planned = plan_load(target, draft, options, native())
        place = target.parent.parent
    assert not place.exists()
    real = plan_load(TARGET, DRAFT_FOLDER / "model.safetensors", options, native())
    assert (planned.total_bytes, planned.context_tokens) == (real.total_bytes, real.context_tokens)


def test_a_header_from_a_hub_that_stops_is_said(hub: Hub, network: Network, mini: CataloguePair) -> None:
    hub.faults = [Fault(cut_after=1000)]

    def fetch() -> None:
        with headers(network, [wanted(hub, "mini-Q8_0.gguf")], 100_000):
            raise AssertionError

    assert kind_of(fetch) == "unreachable"


def test_a_found_file_is_offered_with_all_its_parts(hub: Hub, network: Network) -> None:
    hub.add(REPO, "big-00001-of-00002.gguf", noise(3000))
    hub.add(REPO, "big-00002-of-00002.gguf", noise(4000))
    found = repository(network, REPO)
    order = offer_file(found, found.models()[0], lambda _file: None).wanted()
    assert order.n_bytes == 7000
    assert order.target == f"{REPO}/big-00001-of-00002.gguf"


@in_time(10)
def test_reaching_a_silent_host_takes_no_longer_than_its_limit(within_s: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        network = Network(official=f"http://127.0.0.1:{silent.getsockname()[1]}", limits=TimeLimits(0.3, 0.3))
        begin = time.monotonic()
        assert kind_of(lambda: search(network, "x")) == "stalled"
        assert time.monotonic() - begin < within_s
