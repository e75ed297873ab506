"""Runs the installed program as a person does: another process, its own streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "dflash_desktop")
LIMIT_S = 120


def run_program(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run it to its end with `typed` as its input; `environment` is added to ours."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(environment or {})},
        timeout=LIMIT_S,
        check=False,
    )


def run_for_json(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> Any:
    """Run it with --json and return what it printed; it must succeed and say nothing else."""
    done = run_program(*arguments, "--json", environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)
