"""Bytes as people read them. Files, downloads and disks: powers of 1000, as hubs and disks count. Memory: of 1024, as
drivers count. The label says which: MB and GB, or MiB and GiB. The window does the same in the person's notation."""

from __future__ import annotations


def disk_text(n_bytes: int) -> str:
    """Of a file, a download or a disk: 98362432 -> "98.4 MB"."""
    return _text(n_bytes, 1000, ("bytes", "kB", "MB", "GB", "TB"))


def memory_text(n_bytes: int) -> str:
    """Of a device's or the computer's memory: 98362432 -> "93.8 MiB"."""
    return _text(n_bytes, 1024, ("bytes", "KiB", "MiB", "GiB", "TiB"))


def _text(n_bytes: int, step: int, units: tuple[str, ...]) -> str:
    size = float(n_bytes)
    for unit in units:
        # As printed: 999.97 MB would read "1000.0 MB".
        if round(size, 1) < step or unit == units[-1]:
            break
        size /= step
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
