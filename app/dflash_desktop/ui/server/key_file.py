"""The server's key on disk: made once, readable by its owner only."""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

from dflash_desktop.base.json_file import keep_unreadable, put_aside

log = logging.getLogger(__name__)
_PREFIX = "sk-dflash-"


class KeyFile:
    """Reads and replaces one small file. A disk that refuses costs nobody the server: the key lasts until the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = ""

    def key(self) -> str:
        """The stored key; a new one where there is none yet."""
        if not self._key:
            try:
                self._key = self._path.read_text(encoding="ascii").strip()
            except UnicodeDecodeError as error:
                log.warning("the server gets another key: %s", put_aside(self._path, str(error)))
            except OSError as error:
                log.info("there is no key of the server to read: %s", error)
        return self._key or self.renew()

    def renew(self) -> str:
        """Another key, in place of the old one."""
        self._key = _PREFIX + secrets.token_urlsafe(24)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            keep_unreadable(self._path)
            with suppress(FileNotFoundError):
                temporary.unlink()
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(self._key + "\n")
            temporary.replace(self._path)
        except OSError as error:
            log.warning("the server's key could not be stored: %s", error)
        return self._key
