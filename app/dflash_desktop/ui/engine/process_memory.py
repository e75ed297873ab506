"""How much memory this process uses, without a library for it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not tell."""
    # A variable, because mypy takes `sys.platform` for the one it runs on and calls the rest unreachable.
    system: str = sys.platform
    if system.startswith("linux"):
        return _linux_resident_bytes()
    if system == "win32":
        return _windows_resident_bytes()
    if system == "darwin":
        return _highest_resident_bytes()
    return 0


def _linux_resident_bytes() -> int:
    try:
        n_pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return n_pages * os.sysconf("SC_PAGE_SIZE")


def _highest_resident_bytes() -> int:
    """The highest so far: macOS has no cheap current one."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class _Counters(ctypes.Structure):
    _fields_ = (
        ("cb", ctypes.c_uint32),
        ("page_fault_count", ctypes.c_uint32),
        ("peak_working_set", ctypes.c_size_t),
        ("working_set", ctypes.c_size_t),
        ("rest", ctypes.c_size_t * 6),
    )


def _windows_resident_bytes() -> int:
    counters = _Counters(cb=ctypes.sizeof(_Counters))
    kernel = ctypes.CDLL("kernel32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    has_read = kernel.K32GetProcessMemoryInfo(
        ctypes.c_void_p(kernel.GetCurrentProcess()), ctypes.byref(counters), counters.cb
    )
    return int(counters.working_set) if has_read else 0
