"""What a client must be told (address, model, context, key) and where its settings lie on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LM_STUDIO_PORT = 1234


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The running server, seen from a client. An empty key becomes `local`: many clients insist on one."""

    port: int
    model: str
    context_tokens: int
    key: str = ""
    host: str = "127.0.0.1"

    @property
    def base(self) -> str:
        """Without `/v1`."""
        return f"http://{self.host}:{self.port}"

    @property
    def base_v1(self) -> str:
        return f"{self.base}/v1"

    @property
    def key_text(self) -> str:
        return self.key or "local"

    @property
    def output_tokens(self) -> int:
        """What to allow for one reply."""
        return max(256, min(16384, self.context_tokens // 2))


@dataclass(frozen=True, slots=True)
class Machine:
    """Folders and variables of this person; tests hand in their own."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    platform: str = sys.platform

    @staticmethod
    def this() -> Machine:
        return Machine(Path.home(), dict(os.environ))

    def variable(self, name: str) -> Path | None:
        """A folder named by an environment variable."""
        value = self.environment.get(name, "").strip()
        return Path(value).expanduser() if value else None

    @property
    def config(self) -> Path:
        """Where programs that follow the XDG rules on every system keep their settings."""
        return self.variable("XDG_CONFIG_HOME") or self.home / ".config"

    @property
    def app_data(self) -> Path:
        """Per-user application data, in the system's own way."""
        if self.platform == "win32":
            return self.variable("APPDATA") or self.home / "AppData" / "Roaming"
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config

    def has_program(self, *names: str) -> bool:
        """Whether one of these commands is on the PATH."""
        path = self.environment.get("PATH", "")
        return any(shutil.which(name, path=path) is not None for name in names)
