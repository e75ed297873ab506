"""The address of an upstream, the file of its key, and that it is never the server itself."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dflash_desktop.base.errors import BadInput
from dflash_desktop.server.upstream import parse_upstream, read_key, refuse_itself


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", socket.gethostname()])
def test_it_is_never_the_server_itself(name: str) -> None:
    with pytest.raises(BadInput, match="this server itself"):
        refuse_itself(parse_upstream(f"http://{name}:4321"), 4321)
    refuse_itself(parse_upstream(f"http://{name}:4322"), 4321)


@pytest.mark.parametrize(
    "text", ["ftp://a", "a.example/v1", "http://", "http://a:99999", "http://k:s@a/v1", "http://a/v1?key=s3cret", ""]
)
def test_addresses_that_are_none_are_refused_without_repeating_them(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_upstream(text)
    assert "s3cret" not in str(refused.value)


def test_addresses_and_key_files_are_read_as_people_write_them(tmp_path: Path) -> None:
    assert parse_upstream("http://a.example").base == "http://a.example:80/v1"
    assert (
        parse_upstream("https://a.example/openai/v1/").url("/v1/models", "") == "https://a.example:443/openai/v1/models"
    )
    assert (
        parse_upstream("http://[::1]:8080").url("/chat/completions", "a=1")
        == "http://[::1]:8080/v1/chat/completions?a=1"
    )
    for words in ("", "two words", "schlüssel"):
        file = tmp_path / "key"
        file.write_text(words, "utf-8")
        with pytest.raises(BadInput, match="one key"):
            read_key(file)
    with pytest.raises(BadInput, match="cannot be read"):
        read_key(tmp_path / "none")
