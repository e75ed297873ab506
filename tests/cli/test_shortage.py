"""Memory that runs out inside the engine, as a person in a terminal reads it; in a child process that has little."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from native.oracles.prompts import starter_pair

CHAT = """
import resource, sys
from pathlib import Path
from dflash_desktop.cli import main

main(["--list-devices"])  # what a process takes for itself, once
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (330 << 20), resource.RLIM_INFINITY))
options = ["--context", "8192", "--kv-k", "f32", "--kv-v", "f32", "--threads", "1"]
sys.exit(main(["chat", "--prompt", "Hello", *options]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")
def test_the_terminal_says_what_was_needed_and_what_is_free() -> None:
    starter_pair()
    done = subprocess.run([sys.executable, "-c", CHAT], capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode not in (0, -6), done.stderr
    n_slots = (8192 + 64 + 1 + 255) // 256 * 256
    # SmolLM2 135M: layers, key-value heads, their width; keys and values, in F32.
    needed = n_slots * 30 * 3 * 64 * 2 * 4 / 2**20
    found = re.search(r"Not enough memory on CPU for the KV cache: ([\d.]+) MiB are needed, ([\d.]+) MiB", done.stderr)
    assert found is not None, done.stderr
    assert float(found[1]) == pytest.approx(needed, abs=0.06)
    assert 0 < float(found[2]) <= 330
    assert done.stderr.endswith("are free. Choose a smaller context.\n")
    assert "Traceback" not in done.stderr
