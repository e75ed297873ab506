"""The hub's access token: in the system's keyring, or in a file that only its owner may read where there is none."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from dflash_desktop.hub.failures import disk_problem

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)
SERVICE = "dflash-desktop"
ACCOUNT = "huggingface.co"
TokenPlace = Literal["none", "keyring", "file", "environment"]


class AccessTokenStore:
    """Read and write from any thread but the window's: a keyring may ask the person for a password."""

    def __init__(self, file: Path, *, use_keyring: bool = True) -> None:
        """`file` is the fallback. `use_keyring` False: portable mode, nothing is left on the machine."""
        self._file = file
        self._use_keyring = use_keyring
        self._lock = threading.Lock()
        self._known: tuple[str, TokenPlace] | None = None

    def read(self) -> str | None:
        """The token; None when there is none. HF_TOKEN in the environment counts before all."""
        return self._look()[0] or None

    def place(self) -> TokenPlace:
        """Where it is kept."""
        return self._look()[1]

    def write(self, token: str) -> TokenPlace:
        """Keep `token`, and say where. Raises HubProblem when even the file is refused."""
        token = token.strip()
        self.forget()
        with self._lock:
            self._known = None
            if self._use_keyring and _to_keyring(token):
                return "keyring"
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                # Born with these rights: changed afterwards, there would be a moment for other people to read it.
                handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(token)
                self._file.chmod(0o600)
            except OSError as error:
                raise disk_problem(error, self._file.parent) from error
            return "file"

    def forget(self) -> None:
        """Remove it from keyring and file."""
        with self._lock:
            self._known = None
            if self._use_keyring:
                _forget_in_keyring()
            with suppress(OSError):
                self._file.unlink()

    def _look(self) -> tuple[str, TokenPlace]:
        with self._lock:
            if self._known is None:
                self._known = self._find()
            return self._known

    def _find(self) -> tuple[str, TokenPlace]:
        if found := os.environ.get("HF_TOKEN", "").strip():
            return found, "environment"
        if self._use_keyring and (found := _from_keyring()):
            return found, "keyring"
        with suppress(OSError, UnicodeDecodeError):
            if found := self._file.read_text(encoding="utf-8").strip():
                return found, "file"
        return "", "none"


def _to_keyring(token: str) -> bool:
    try:
        import keyring

        keyring.set_password(SERVICE, ACCOUNT, token)
        return keyring.get_password(SERVICE, ACCOUNT) == token
    except Exception as error:  # noqa: BLE001  each backend fails in a way of its own; none may cost the download
        log.info("no usable keyring: %s", error)
        return False


def _from_keyring() -> str:
    try:
        import keyring

        return (keyring.get_password(SERVICE, ACCOUNT) or "").strip()
    except Exception as error:  # noqa: BLE001  as above
        log.info("no usable keyring: %s", error)
        return ""


def _forget_in_keyring() -> None:
    try:
        import keyring

        keyring.delete_password(SERVICE, ACCOUNT)
    except Exception as error:  # noqa: BLE001  as above
        log.info("nothing to forget in the keyring: %s", error)
