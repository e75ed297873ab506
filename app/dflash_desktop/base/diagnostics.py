"""The diagnostic zip: logs and facts about the machine for a bug report. Never chat text, never a secret."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import sys
import time
import zipfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.log import LOG_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECRETS = (
    re.compile(r"\bhf_[A-Za-z0-9]{8,}"),
    re.compile(r"\b(?:sk|df)-[A-Za-z0-9_-]{12,}"),
    re.compile(r"(?i)(bearer\s+)[^\s\"']{8,}"),
    re.compile(r"(?i)((?:api[_-]?key|token|password|secret)[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]{6,}"),
    re.compile(r"(?i)(https?://)[^/\s:@]+:[^/\s@]+@"),
)
_PACKAGES = ("PySide6-Essentials", "numpy", "huggingface-hub", "tokenizers", "starlette", "uvicorn", "psutil")


def clean(text: str) -> str:
    """`text` without secrets and without the name of the person."""
    for pattern in _SECRETS:
        text = pattern.sub(lambda match: f"{match.group(1) if match.re.groups else ''}[removed]", text)
    home = str(Path.home())
    for spelled in {home, home.replace("\\", "\\\\"), Path(home).as_posix()}:
        if len(spelled) > 3:
            text = text.replace(spelled, "~")
    with suppress(OSError, KeyError):
        name = getpass.getuser()
        if len(name) > 2 and name != "root":
            text = re.sub(rf"\b{re.escape(name)}\b", "[user]", text)
    return text


def machine_facts() -> dict[str, Any]:
    """What a bug report needs to know of the machine."""
    memory = psutil.virtual_memory()
    versions = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "python": sys.version,
        "is_frozen": bool(getattr(sys, "frozen", False)),
        "processor": platform.processor(),
        "n_cores": psutil.cpu_count(logical=False),
        "n_threads": psutil.cpu_count(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "packages": versions,
        "language": os.environ.get("LANG", ""),
        "session": os.environ.get("XDG_SESSION_TYPE", ""),
    }


def write_report(destination: Path, logs: Path, facts: Mapping[str, Any]) -> Path:
    """Write the zip and return its path: the log files, and `facts` (settings, devices ...) as JSON.

    Everything passes through `clean`. Raises AppError when the disk refuses.
    """
    written = {"machine": machine_facts(), **facts}
    try:
        with zipfile.ZipFile(destination, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, values in written.items():
                archive.writestr(f"{name}.json", clean(json.dumps(values, indent=1, default=str, ensure_ascii=False)))
            for path in sorted(logs.glob(f"{LOG_NAME}*")):
                with suppress(OSError):
                    archive.writestr(path.name, clean(path.read_text(encoding="utf-8", errors="replace")))
    except OSError as error:
        with suppress(OSError):
            destination.unlink()
        raise AppError(f"The report cannot be written to {destination}: {error.strerror or error}.") from error
    return destination


def report_name() -> str:
    """A file name for a report of now."""
    return f"dflash-desktop-report-{time.strftime('%Y%m%d-%H%M%S')}.zip"
