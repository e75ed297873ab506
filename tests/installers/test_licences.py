"""What the table of licences says, against what the packages say of themselves."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

_ROW = re.compile(r"\| (?P<names>.+?) \| (?P<licence>.+?) \| (?P<how>.+?) \|")


def _said(package: str) -> str:
    about = metadata(package)
    return " ".join(
        word for key in ("License-Expression", "License", "Classifier") for word in about.get_all(key) or []
    )


def test_every_package_that_the_program_needs_is_listed_with_the_licence_that_it_names(root: Path) -> None:
    table = (root / "resources" / "licences" / "README.md").read_text("utf-8")
    rows = [row for line in table.splitlines() if (row := _ROW.fullmatch(line))]
    listed = {name.strip().lower(): row["licence"] for row in rows for name in re.split(r",| and ", row["names"])}
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [re.split(r"[><=;\[ ]", line)[0] for line in project["dependencies"]]
    assert len(needed) > 20
    for name in needed:
        licence = listed.get(name.lower().removesuffix("-essentials"), "missing")
        kind = re.split(r"[- ]", licence)[0]  # Apache, MIT, BSD, LGPL: packages spell the rest in several ways
        assert kind in _said(name), f"{name}: {licence} in the table; it says: {_said(name)[:200]}"
