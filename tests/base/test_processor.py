"""B152: on a processor that is too old there is a sentence, not an illegal instruction."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_desktop.base import processor
from dflash_desktop.base.errors import AppError

QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")


def test_b152_the_flags_are_those_of_this_processor() -> None:
    assert processor.missing_instructions() == []
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.is_file() or " sse4_2 " not in cpuinfo.read_text():
        pytest.skip("not x86-64 Linux")
    flags = processor._flags()
    listed = set(cpuinfo.read_text().split("flags", 1)[1].split("\n", 1)[0].split())
    for bit, name in ((9, "ssse3"), (13, "cx16"), (19, "sse4_1"), (20, "sse4_2"), (23, "popcnt"), (28, "avx")):
        assert bool(flags >> bit & 1) == (name in listed), name


def test_b152_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(processor, "_flags", lambda: 1 << 0 | 1 << 9 | 1 << 19)
    with pytest.raises(AppError, match=r"lacks SSE4\.2, POPCNT, which Qt and numpy need\. Intel's .* since 2008"):
        processor.require_processor()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    processor.require_processor()


@pytest.mark.skipif(QEMU is None, reason="qemu-user is not installed")
@pytest.mark.parametrize(("cpu", "code"), [("Conroe", 1), ("Nehalem", 0)])
def test_b152_the_program_says_it_on_such_a_processor(cpu: str, code: int) -> None:
    assert QEMU is not None
    command = [QEMU, "-cpu", cpu, sys.executable, "-S", "-c"]
    search = [path for path in sys.path if path]
    program = (
        f"import sys; sys.path[:0] = {search!r}; from dflash_desktop.cli import main; sys.exit(main(['--version']))"
    )
    done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert ("lacks SSE4.1, SSE4.2, POPCNT" in done.stderr) == (code == 1)
