"""Names from the hub become paths here, and never one that leads elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_desktop.hub.problems import HubProblem
from dflash_desktop.hub.wanted import WantedFile, destination, split_name


def file(repo_id: str, name: str) -> WantedFile:
    return WantedFile(repo_id=repo_id, revision="main", name=name, n_bytes=1)


@pytest.mark.parametrize(
    ("repo_id", "name"),
    [
        ("maker/model", "../../.ssh/authorized_keys"),
        ("maker/model", "/etc/passwd"),
        ("maker/model", "a/../../b.gguf"),
        ("maker/model", "C:\\windows\\x.gguf"),
        ("maker/model", "a\\b.gguf"),
        ("maker/model", "x:stream.gguf"),
        ("maker/model", ".hidden/x.gguf"),
        ("maker/model", ".dflash"),
        ("maker/model", "nul.gguf"),
        ("maker/model", "COM1"),
        ("maker/model", "x.gguf."),
        ("maker/model", "x.gguf "),
        ("maker/model", "x.gguf.part"),
        ("maker/model", "a//b.gguf"),
        ("maker/model", ""),
        ("maker/model", "a\x00b.gguf"),
        ("maker/model", "a\nb.gguf"),
        ("maker/model", "x" * 300 + ".gguf"),
        ("../maker", "x.gguf"),
        ("a/b/c", "x.gguf"),
    ],
)
def test_a_name_that_leads_out_or_means_something_else_is_refused(repo_id: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(HubProblem) as told:
        destination(tmp_path, file(repo_id, name))
    assert told.value.kind == "bad_name"


@pytest.mark.parametrize(
    "name", ["x.gguf", "sub/x-Q4_K_M.gguf", "模型 & 'q' #1 😀.gguf", "-leading dash %41.gguf", "a" * 200]
)
def test_b158_odd_but_honest_names_are_kept(name: str, tmp_path: Path) -> None:
    path = destination(tmp_path, file("maker/model", name))
    assert path == tmp_path / "maker" / "model" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"1")


def test_split_names_are_read_whatever_their_case() -> None:
    split = split_name("Big-00002-of-00003.GGUF")
    assert split is not None and (split.stem, split.number, split.count) == ("Big.GGUF", 2, 3)
    assert split_name("big.gguf") is None
    assert split_name("big-00004-of-00003.gguf") is None
    assert split_name("big-00000-of-00003.gguf") is None
