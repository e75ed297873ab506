"""Whether this processor has what the libraries around the engine are compiled for: x86-64 of 2008 (x86-64-v2).

The engine itself runs on older ones too; Qt and numpy end the process there without a word (illegal instruction).
"""

from __future__ import annotations

import ctypes
import platform
import sys

from dflash_desktop.base.errors import AppError

# Bit of ECX of CPUID leaf 1 -> its name.
_NEEDED = {0: "SSE3", 9: "SSSE3", 19: "SSE4.1", 20: "SSE4.2", 23: "POPCNT"}
_WINDOWS_SSE42 = 38  # PF_SSE4_2_INSTRUCTIONS_AVAILABLE


def require_processor() -> None:
    """Raise AppError where the libraries would crash. Asked before any of them is imported."""
    missing = missing_instructions()
    if missing:
        raise AppError(
            f"This processor lacks {', '.join(missing)}, which Qt and numpy need. "
            "Intel's processors have it since 2008, AMD's since 2011."
        )


def missing_instructions() -> list[str]:
    """Names; none where they are all there, or where nobody can be asked."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    try:
        flags = _flags()
    except (OSError, AttributeError):  # glibc before 2.33, musl
        return []
    return [name for bit, name in _NEEDED.items() if not flags >> bit & 1]


def _flags() -> int:
    """ECX of CPUID leaf 1, of which only the bits of _NEEDED are looked at."""
    if sys.platform == "win32":
        has_it = ctypes.windll.kernel32.IsProcessorFeaturePresent(_WINDOWS_SSE42)
        return sum(1 << bit for bit, name in _NEEDED.items() if has_it or name != "SSE4.2")
    ask = ctypes.CDLL(None)["__x86_get_cpuid_feature_leaf"]  # glibc's
    ask.restype = ctypes.POINTER(ctypes.c_uint32 * 4)  # EAX, EBX, ECX, EDX
    return int(ask(0).contents[2])
