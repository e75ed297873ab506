"""Whether there is a newer version of this program. Asked only when a person wants to know; nothing is fetched by it.

The feed is one JSON object: {"version": "0.2.0", "page": "https://..."}; what GitHub answers for a repository's latest
release (`tag_name`, `html_url`) is understood as well. Its address is in resources/releases.json; whoever packs the
program writes it there (installers/common/freeze.py --feed).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import msgspec

from dflash_desktop.hub.failures import problem_of
from dflash_desktop.hub.problems import HubProblem

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from dflash_desktop.hub.network import Network

log = logging.getLogger(__name__)
FEED_FILE = "releases.json"
MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Release:
    """The newest version that is published."""

    version: str
    page: str  # where a person gets it; "" when the feed names no https address
    is_newer: bool  # than the one that asks


class _Where(msgspec.Struct):
    feed: str = ""


class _Feed(msgspec.Struct):
    version: str = ""
    page: str = ""
    tag_name: str = ""
    html_url: str = ""


def read_feed(resources: Path) -> str:
    """The feed's address; "" in a copy that was built without one."""
    try:
        return msgspec.json.decode((resources / FEED_FILE).read_bytes(), type=_Where).feed
    except (OSError, msgspec.DecodeError) as error:
        log.warning("no address of the releases: %s", error)
        return ""


def newest_release(network: Network, feed: str, current: str) -> Release:
    """Ask `feed`, over the network, what the newest version is. Raises HubProblem.

    No access token goes along, and nothing about this machine or this program.
    """
    from packaging.version import InvalidVersion, Version

    where = _split(feed).netloc or feed
    try:
        with network.session().stream("GET", feed, headers={"User-Agent": "dflash-desktop"}) as response:
            response.raise_for_status()
            told = msgspec.json.decode(_read(response, where), type=_Feed)
        version = (told.version or told.tag_name).removeprefix("v")
        is_newer = Version(version) > Version(current)
    except (msgspec.DecodeError, InvalidVersion, UnicodeDecodeError, RecursionError) as error:
        raise HubProblem("not_a_hub", "no list of releases", where=where) from error
    except Exception as error:
        raise problem_of(error, where) from error
    page = told.page or told.html_url
    return Release(version, page if _split(page).scheme == "https" else "", is_newer)


def _split(address: str) -> SplitResult:
    """Its parts; none of what is no address, such as one with half a pair of brackets."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _read(response: httpx2.Response, where: str) -> bytes:
    content = b""
    for piece in response.iter_bytes():
        content += piece
        if len(content) > MOST_BYTES:
            raise HubProblem("not_a_hub", "too long for a list of releases", where=where)
    return content
