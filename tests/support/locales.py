"""A comma locale, built on the spot: Debian images have none (device F8 of the bug log)."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def german_environment(folder: Path) -> dict[str, str]:
    """The environment of a person in Germany. Skips the asking test where the locale cannot be built."""
    if shutil.which("localedef") is None:
        pytest.skip("needs localedef to build de_DE.UTF-8")
    place = folder / "de_DE.UTF-8"
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(place)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if not place.exists():
        pytest.skip(f"localedef cannot build de_DE.UTF-8: {built.stderr.strip()}")
    return {**os.environ, "LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
