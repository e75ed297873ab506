"""Contrast, by the formula of WCAG 2."""

from __future__ import annotations

import pytest

from dflash_desktop.ui.kit.palette import DARK, LIGHT, Palette

TEXT_PAIRS = [
    ("text", "window"), ("text", "surface"), ("text", "sunken"), ("text", "bubble"), ("text", "rail"),
    ("text", "hover"), ("text", "selection"), ("text", "bad_soft"), ("text", "accent_soft"), ("text", "pressed"),
    ("muted", "window"), ("muted", "surface"), ("muted", "sunken"), ("muted", "rail"),
    ("on_accent", "accent"), ("on_accent", "accent_hover"),
    ("accent_text", "window"), ("accent_text", "surface"), ("accent_text", "accent_soft"),
    ("flash_text", "window"), ("flash_text", "surface"), ("bad", "window"), ("bad", "bad_soft"), ("good", "surface"),
    ("code_keyword", "sunken"), ("code_string", "sunken"), ("code_comment", "sunken"), ("code_number", "sunken"),
    ("code_name", "sunken"),
]  # fmt: skip
GRAPHIC_PAIRS = [
    ("outline", "surface"),
    ("outline", "window"),
    ("flash", "surface"),
    ("flash", "window"),
    ("accent", "surface"),
]


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(palette: Palette, one: str, other: str) -> float:
    a, b = sorted((luminance(getattr(palette, one)), luminance(getattr(palette, other))))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_on_its_surface(palette: Palette) -> None:
    low = {pair: round(contrast(palette, *pair), 2) for pair in TEXT_PAIRS if contrast(palette, *pair) < 4.5}
    assert low == {}


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_that_mean_something_can_be_seen(palette: Palette) -> None:
    low = {pair: round(contrast(palette, *pair), 2) for pair in GRAPHIC_PAIRS if contrast(palette, *pair) < 3.0}
    assert low == {}


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_parts_of_memory_can_be_told_from_the_card(palette: Palette) -> None:
    assert all(
        (max(luminance(c), luminance(palette.surface)) + 0.05) / (min(luminance(c), luminance(palette.surface)) + 0.05)
        >= 3
        for c in palette.parts
    )
