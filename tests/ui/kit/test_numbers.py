"""Numbers in words: nothing that was not measured looks measured (B139)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from dflash_desktop.ui.kit import numbers


@pytest.fixture(autouse=True)
def english(app: QApplication) -> Iterator[None]:
    before = QLocale()
    QLocale.setDefault(QLocale("en_US"))
    yield
    QLocale.setDefault(before)


@pytest.mark.parametrize("value", [None, 0.0, -1.0, math.inf, math.nan, 1.28e11])
def test_a_rate_that_nobody_measured_is_a_dash(value: float | None) -> None:
    assert numbers.rate(value) == numbers.DASH


@pytest.mark.parametrize(("value", "text"), [(2.71, "2.7"), (99.94, "99.9"), (99.96, "100"), (1234.6, "1,235")])
def test_rates(value: float, text: str) -> None:
    assert numbers.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "–"), (0.0042, "4.2 ms"), (0.31, "0.31 s"), (12.4, "12 s"), (125.0, "2 min 5 s")],
)
def test_seconds(value: float | None, text: str) -> None:
    assert numbers.seconds(value) == text


def test_files_are_counted_in_thousands_and_memory_in_powers_of_two_and_the_label_says_so() -> None:
    assert numbers.size(98_362_432) == "98.4 MB"
    assert numbers.size(976_600) == "977 kB"
    assert numbers.memory(98_362_432) == "93.8 MiB"
    assert numbers.memory(24 * 2**30) == "24.0 GiB"
    assert numbers.size(0) == numbers.memory(0) == numbers.DASH


def test_numbers_follow_the_persons_notation() -> None:
    QLocale.setDefault(QLocale("de_DE"))
    assert numbers.decimal(2.5, 2) == "2,50"
    assert numbers.count(8192) == "8.192"
    assert numbers.size(1_500_000_000) == "1,5 GB"
    assert numbers.memory(3 * 2**29) == "1,5 GiB"


def test_remaining_time_is_coarse() -> None:
    assert numbers.remaining(0.2) == "almost done"
    assert numbers.remaining(7.2) == "about 8 s left"
    assert numbers.remaining(600) == "about 10 min left"
    assert numbers.remaining(math.inf) == ""
