"""Numbers as people read them, in their own notation. A value nobody knows is a dash, never 0 or infinity."""

from __future__ import annotations

import math

from PySide6.QtCore import QCoreApplication, QLocale

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
MAX_BELIEVABLE_TPS = 1e6


translate = QCoreApplication.translate  # this name, and literal arguments, so that lupdate finds the texts


def decimal(value: float, digits: int) -> str:
    """`value` with that many digits after the point; a dash when it is not a number."""
    if not math.isfinite(value):
        return DASH
    return QLocale().toString(float(value), "f", digits)


def count(value: int) -> str:
    """A whole number, grouped."""
    return QLocale().toString(int(value))


def size(n_bytes: int) -> str:
    """Of a file, a download or a disk: '98.4 MB', powers of 1000, as hubs and disks count (see base/sizes.py)."""
    if n_bytes <= 0:
        return DASH
    digits = 0 if n_bytes < 10**6 else 1
    return QLocale().formattedDataSize(n_bytes, digits, QLocale.DataSizeFormat.DataSizeSIFormat)


def memory(n_bytes: int) -> str:
    """Of a device's or the computer's memory: '93.8 MiB', powers of 1024, as drivers count."""
    if n_bytes <= 0:
        return DASH
    digits = 0 if n_bytes < 2**20 else 1
    return QLocale().formattedDataSize(n_bytes, digits, QLocale.DataSizeFormat.DataSizeIecFormat)


def rate(tokens_per_second: float | None) -> str:
    """Tokens per second without the unit; a dash when it was not measured."""
    if tokens_per_second is None or not 0 < tokens_per_second < MAX_BELIEVABLE_TPS:
        return DASH
    return decimal(tokens_per_second, 1 if tokens_per_second < 99.95 else 0)


def seconds(value: float | None) -> str:
    """A time that was measured: '0.31 s', '12 s', '2 min 5 s'."""
    if value is None or not math.isfinite(value) or value <= 0:
        return DASH
    if value < 0.0095:
        return translate("numbers", "{0} ms").format(decimal(value * 1000, 1))
    if value < 9.95:
        return translate("numbers", "{0} s").format(decimal(value, 2))
    if value < 90:
        return translate("numbers", "{0} s").format(decimal(value, 0))
    minutes, rest = divmod(round(value), 60)
    return translate("numbers", "{0} min {1} s").format(count(minutes), count(rest))


def remaining(value: float) -> str:
    """A time still to come, as coarse as it is known: 'about 8 s left'."""
    if not math.isfinite(value) or value < 0:
        return ""
    if value < 1:
        return translate("numbers", "almost done")
    if value < 90:
        return translate("numbers", "about {0} s left").format(count(math.ceil(value)))
    return translate("numbers", "about {0} min left").format(count(round(value / 60)))


def age(value: float) -> str:
    """How long ago something was: 'just now', '3 s ago', '5 min ago', '2 h ago'."""
    if value < 1.5:
        return translate("numbers", "just now")
    if value < 90:
        return translate("numbers", "{0} s ago").format(count(round(value)))
    if value < 5400:
        return translate("numbers", "{0} min ago").format(count(round(value / 60)))
    return translate("numbers", "{0} h ago").format(count(round(value / 3600)))


def percent(share: float) -> str:
    if not math.isfinite(share):
        return DASH
    return translate("numbers", "{0} %").format(decimal(share * 100, 0))


def tokens(value: int) -> str:
    return translate("numbers", "{0} tokens").format(count(value))


def signed_percent(share: float) -> str:
    """A difference: '+13 %', '-2 %'."""
    if not math.isfinite(share):
        return DASH
    return translate("numbers", "{0} %").format(f"{'+' if share >= 0 else MINUS}{decimal(abs(share) * 100, 0)}")
