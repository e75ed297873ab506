"""Is there a newer version: what a feed may say, and what may answer in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflash_desktop.hub.network import Network
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.releases import MOST_BYTES, Release, newest_release, read_feed
from support.hub_server import Hub

ROOT = Path(__file__).parents[2]


def feed(hub: Hub, content: bytes) -> str:
    hub.add("maker/program", "feed.json", content)
    return f"{hub.url}/maker/program/resolve/main/feed.json"


@pytest.mark.parametrize(
    ("told", "release"),
    [
        ({"version": "0.2.0", "page": "https://a.example/b"}, Release("0.2.0", "https://a.example/b", is_newer=True)),
        ({"version": "0.10.0"}, Release("0.10.0", "", is_newer=True)),
        ({"version": "0.1.0"}, Release("0.1.0", "", is_newer=False)),
        ({"version": "0.1"}, Release("0.1", "", is_newer=False)),
        ({"version": "0.1.0rc1"}, Release("0.1.0rc1", "", is_newer=False)),
        (
            {"tag_name": "v1.0", "html_url": "https://a.example/r", "assets": []},
            Release("1.0", "https://a.example/r", is_newer=True),
        ),
        ({"version": "0.2.0", "page": "file:///etc/passwd"}, Release("0.2.0", "", is_newer=True)),
        ({"version": "0.2.0", "page": "http://a.example"}, Release("0.2.0", "", is_newer=True)),
        ({"version": "0.2.0", "page": "https://[half"}, Release("0.2.0", "", is_newer=True)),
    ],
)
def test_what_a_feed_says(hub: Hub, network: Network, told: dict[str, object], release: Release) -> None:
    assert newest_release(network, feed(hub, json.dumps(told).encode()), "0.1.0") == release


@pytest.mark.parametrize(
    "content",
    [
        b"<html>Sign in</html>",
        b"[]",
        b"{}",
        b'{"version": "soon"}',
        b'{"version": 2}',
        b"{" + b" " * 2000,
        b'{"x":' + b"[" * 9000,
    ],
)
def test_what_is_no_feed_is_told_as_that(hub: Hub, network: Network, content: bytes) -> None:
    with pytest.raises(HubProblem) as told:
        newest_release(network, feed(hub, content), "0.1.0")
    assert told.value.kind == "not_a_hub"


def test_a_feed_without_end_is_not_read_to_the_end(hub: Hub, network: Network) -> None:
    with pytest.raises(HubProblem, match="too long"):
        newest_release(network, feed(hub, b" " * (MOST_BYTES + 1)), "0.1.0")


def test_no_network_no_such_file_and_no_address_are_told(hub: Hub, network: Network) -> None:
    for address, kind in (
        ("http://no-such-host.invalid/feed.json", "offline"),
        (f"{hub.url}/maker/nothing/resolve/main/feed.json", "not_found"),
        ("no address", "unreachable"),
    ):
        with pytest.raises(HubProblem) as told:
            newest_release(network, address, "0.1.0")
        assert told.value.kind == kind


def test_no_access_token_goes_along(hub: Hub) -> None:
    network = Network(official=hub.url, access_token=lambda: "hf_right")
    newest_release(network, feed(hub, b'{"version": "9"}'), "0.1.0")
    assert [asked.authorization for asked in hub.asked] == [""]


def test_the_address_comes_from_the_resources(tmp_path: Path) -> None:
    assert read_feed(tmp_path) == ""
    (tmp_path / "releases.json").write_text('{"feed": "https://a.example/feed.json"}')
    assert read_feed(tmp_path) == "https://a.example/feed.json"
    (tmp_path / "releases.json").write_text("no JSON")
    assert read_feed(tmp_path) == ""
    assert (tmp_path / "releases.json").read_text() == "no JSON"
    assert json.loads((ROOT / "resources" / "releases.json").read_text("utf-8")).keys() == {"feed"}
