"""Bytes in words: files count in thousands, memory in powers of two, and the label says which."""

from __future__ import annotations

import pytest

from dflash_desktop.base.sizes import disk_text, memory_text


@pytest.mark.parametrize(
    ("n_bytes", "disk", "memory"),
    [
        (0, "0 bytes", "0 bytes"),
        (999, "999 bytes", "999 bytes"),
        (1010, "1.0 kB", "1010 bytes"),
        (98_362_432, "98.4 MB", "93.8 MiB"),
        (999_970_000, "1.0 GB", "953.6 MiB"),
        (24 * 2**30, "25.8 GB", "24.0 GiB"),
        (2**30 - 1, "1.1 GB", "1.0 GiB"),
        (3 * 10**12, "3.0 TB", "2.7 TiB"),
        (5 * 10**15, "5000.0 TB", "4547.5 TiB"),
    ],
)
def test_the_label_says_how_it_was_counted(n_bytes: int, disk: str, memory: str) -> None:
    assert disk_text(n_bytes) == disk
    assert memory_text(n_bytes) == memory
