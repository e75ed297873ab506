"""A copy of the working tree, for builds that must leave no trace in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def copy_of_the_tree(root: Path, destination: Path) -> Path:
    """What is committed or about to be, in `destination`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listing.stdout.decode().split("\0")):
        source = root / name
        if source.is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, destination / name)
    return destination
