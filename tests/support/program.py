"""Runs the installed program as a person does: another process, its own streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.patience import LONG_S

PROGRAM = (sys.executable, "-m", "dflash_desktop")
UNHURRIED = (
    sys.executable,
    "-c",
    """
import sys
from dflash_desktop.cli import main
from dflash_desktop.engine import draft_probe
draft_probe.LIMIT_S = 3600.0
sys.exit(main(sys.argv[1:]))
""",
)
"""The same, on a machine so busy that the probe at load would find no time for its steps."""
LIMIT_S = LONG_S


def run_program(
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    typed: str = "",
    program: tuple[str, ...] = PROGRAM,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end with `typed` as its input; `environment` is added to ours."""
    return subprocess.run(
        [*program, *map(str, arguments)],
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
