"""Files that we fetched: deleted with what that frees, checked against the hub's hash, repaired block by block."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.hub import part_file
from dflash_desktop.hub.abort import Abort
from dflash_desktop.hub.models_folder import ModelsFolder
from dflash_desktop.hub.network import Network
from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.transfer import Transfer
from hub.conftest import BLOCK, QUICK, REPO, TARGET, MakeLibrary, Seen, names, put, wanted
from support.hub_server import Hub


@pytest.fixture
def fetched(hub: Hub, network: Network, folder: ModelsFolder) -> Path:
    """The target, downloaded."""
    hub.add(REPO, "mini.gguf", TARGET.read_bytes())
    Transfer(network, folder, wanted(hub, "mini.gguf"), Seen(), QUICK).run(Abort())
    return folder.path / REPO / "mini.gguf"


def test_our_own_are_deleted_with_what_that_frees_and_nobody_elses(
    make: MakeLibrary, fetched: Path, home: Path, folder: ModelsFolder
) -> None:
    put(TARGET, home / "mine" / "theirs.gguf")
    library = make()
    library.add(home / "mine")
    found = names(library.scan())
    with pytest.raises(AppError, match="belongs to"):
        library.delete(found["theirs.gguf"])
    assert library.delete(found["mini.gguf"]) == TARGET.stat().st_size
    assert not fetched.exists()
    assert not fetched.parent.parent.exists()
    assert set(names(library.scan())) == {"theirs.gguf"}
    assert folder.record(fetched) is None


def test_a_file_with_another_name_elsewhere_frees_nothing(make: MakeLibrary, fetched: Path, tmp_path: Path) -> None:
    (tmp_path / "other name").hardlink_to(fetched)
    library = make()
    assert library.delete(names(library.scan())["mini.gguf"]) == 0


def test_a_damaged_file_is_found_and_only_its_damaged_blocks_are_fetched_again(
    make: MakeLibrary, fetched: Path, hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    library = make()
    file = names(library.scan())["mini.gguf"]
    assert library.check(file, Abort(), lambda _n: None) is True
    content = bytearray(fetched.read_bytes())
    for at in (5 * BLOCK + 3, 300 * BLOCK):
        content[at] ^= 1
    fetched.write_bytes(content)
    assert library.check(file, Abort(), lambda _n: None) is False
    order = library.repair(file)
    hub.asked.clear()
    transfer = Transfer(network, folder, order.files[0], Seen(), QUICK)
    transfer.run(Abort())
    assert fetched.read_bytes() == TARGET.read_bytes()
    assert hub.begins() == [5 * BLOCK, 300 * BLOCK]
    assert transfer.n_received_bytes == 2 * BLOCK


def test_a_file_cut_short_is_repaired_from_where_it_ends(
    make: MakeLibrary, fetched: Path, hub: Hub, network: Network, folder: ModelsFolder
) -> None:
    n_bytes = TARGET.stat().st_size
    with fetched.open("r+b") as out:
        out.truncate(n_bytes // 2)
    library = make()
    file = names(library.scan())["mini.gguf"]
    assert file.state == "unreadable"
    order = library.repair(file)
    transfer = Transfer(network, folder, order.files[0], Seen(), QUICK)
    transfer.run(Abort())
    assert fetched.read_bytes() == TARGET.read_bytes()
    assert transfer.n_received_bytes <= n_bytes // 2 + part_file.BLOCK_BYTES
    assert names(library.scan())["mini.gguf"].is_target


def test_nobody_knows_what_a_foreign_file_should_be(make: MakeLibrary, home: Path) -> None:
    put(TARGET, home / "mine" / "theirs.gguf")
    library = make()
    library.add(home / "mine")
    (file,) = library.scan().files
    assert library.check(file, Abort(), lambda _n: None) is None
    with pytest.raises(HubProblem):
        library.repair(file)
