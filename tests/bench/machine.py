"""What a figure was measured on: it means nothing without."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
from pathlib import Path

from support.native_library import load_library


def processor() -> str:
    """The maker's name of it, where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def describe() -> dict[str, str]:
    """Processor, cores, load, date and versions."""
    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "engine": importlib.metadata.version("dflash-desktop"),
        "device": next(device.description.decode() for device in load_library().devices()),
        "upstream": f"xllamacpp {importlib.metadata.version('xllamacpp')}",
        "python": platform.python_version(),
    }
