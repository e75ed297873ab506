"""The header of a model that is not here yet: enough for the engine to plan a load before anything is downloaded.

A model file's header says everything that a plan needs. Its first megabytes are fetched into a sparse file of the full
size, which the engine opens like any other; the empty rest takes no room.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_desktop.hub.failures import disk_problem, problem_of, status_problem
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.transfer import USER_AGENT
from dflash_desktop.hub.wanted import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dflash_desktop.hub.network import Network
    from dflash_desktop.hub.wanted import WantedFile

FIRST_BYTES = 6 * 2**20
"""Holds the header of a model with a small vocabulary; those with 250,000 tokens need about 20 MB."""

MOST_BYTES = 64 * 2**20


@contextmanager
def headers(network: Network, files: Sequence[WantedFile], n_bytes: int) -> Iterator[list[Path]]:
    """The first `n_bytes` of each file, in sparse files of their full size that last as long as the context.

    Files of one repository lie in one folder, as a draft and its config.json have to. Raises HubProblem.
    """
    if not can_be_sparse():
        raise HubProblem("other", "this file system has no sparse files")
    with tempfile.TemporaryDirectory(prefix="dflash-header-", ignore_cleanup_errors=True) as place:
        paths = []
        for file in files:
            folder = Path(place) / file.repo_id.replace("/", "_")
            path = folder / file.name.replace("/", "_")
            try:
                folder.mkdir(exist_ok=True)
                with path.open("wb") as out:
                    out.write(_first_bytes(network, file, min(n_bytes, file.n_bytes)))
                    out.truncate(file.n_bytes)
            except OSError as error:
                raise disk_problem(error, folder) from error
            paths.append(path)
        yield paths


def can_be_sparse() -> bool:
    """Whether the temporary folder's file system leaves holes out. NTFS does so on request only: not tried there."""
    if os.name == "nt":
        return False
    with suppress(OSError), tempfile.TemporaryFile() as file:
        file.truncate(64 * 2**20)
        return os.fstat(file.fileno()).st_blocks * 512 < 2**20
    return False


def _first_bytes(network: Network, file: WantedFile, n_bytes: int) -> bytes:
    from huggingface_hub import hf_hub_url

    if n_bytes == 0:
        return b""
    asked = {"Range": f"bytes=0-{n_bytes - 1}", "Accept-Encoding": "identity", "User-Agent": USER_AGENT}
    url = hf_hub_url(file.repo_id, file.name, revision=file.revision, endpoint=network.endpoint)
    try:
        found = b""
        for token in (None, network.token()):
            extra = {"Authorization": f"Bearer {token}"} if token else {}
            with network.session().stream("GET", url, headers=asked | extra) as response:
                if response.status_code in (401, 403) and token is None and network.token():
                    continue
                if response.status_code not in (200, 206):
                    raise status_problem(response, key_of(file))
                for piece in response.iter_raw():
                    found += piece
                    if len(found) >= n_bytes:
                        break
            break
    except Exception as error:
        raise problem_of(error, network.host) from error
    if len(found) < n_bytes:
        raise HubProblem("unreachable", "the connection ended early", where=network.host)
    return found[:n_bytes]
