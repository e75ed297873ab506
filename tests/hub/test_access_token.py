"""Where the access token is kept: in the keyring, or in a file for its owner only."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import keyring
import keyring.backend
import pytest

from dflash_desktop.hub.access_token import ACCOUNT, SERVICE, AccessTokenStore


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A keyring that works."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class BrokenKeyring(keyring.backend.KeyringBackend):
    """A keyring whose service is not there."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError("no bus")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError("no bus")

    def delete_password(self, service: str, username: str) -> None:
        raise RuntimeError("no bus")


@pytest.fixture
def use_keyring(monkeypatch: pytest.MonkeyPatch) -> Callable[[keyring.backend.KeyringBackend], None]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    before = keyring.get_keyring()
    monkeypatch.setattr("keyring.core._keyring_backend", before)
    return keyring.set_keyring


def test_the_token_is_kept_in_the_keyring(use_keyring: Callable[[object], None], tmp_path: Path) -> None:
    backend = MemoryKeyring()
    use_keyring(backend)
    store = AccessTokenStore(tmp_path / "token")
    assert (store.read(), store.place()) == (None, "none")
    assert store.write(" hf_secret \n") == "keyring"
    assert backend.kept == {(SERVICE, ACCOUNT): "hf_secret"}
    assert not (tmp_path / "token").exists()
    again = AccessTokenStore(tmp_path / "token")
    assert (again.read(), again.place()) == ("hf_secret", "keyring")
    again.forget()
    assert AccessTokenStore(tmp_path / "token").read() is None


def test_without_a_keyring_it_is_kept_in_a_file_for_its_owner_only(
    use_keyring: Callable[[object], None], tmp_path: Path
) -> None:
    use_keyring(BrokenKeyring())  # type: ignore[no-untyped-call]
    file = tmp_path / "new folder" / "token"
    store = AccessTokenStore(file)
    assert store.write("hf_secret") == "file"
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert AccessTokenStore(file).read() == "hf_secret"
    store.forget()
    assert not file.exists()


def test_portable_mode_leaves_the_keyring_alone(use_keyring: Callable[[object], None], tmp_path: Path) -> None:
    backend = MemoryKeyring()
    use_keyring(backend)
    assert AccessTokenStore(tmp_path / "token", use_keyring=False).write("hf_secret") == "file"
    assert backend.kept == {}


def test_the_environment_counts_before_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_env")
    store = AccessTokenStore(tmp_path / "token", use_keyring=False)
    assert (store.read(), store.place()) == ("hf_env", "environment")
