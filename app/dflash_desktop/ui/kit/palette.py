"""The colours, spaces and sizes of the window. Values only; theme.py applies them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """One colour scheme, as #rrggbb. Text on its surface keeps 4.5:1, lines that mean something 3:1 (tested)."""

    is_dark: bool
    window: str  # behind everything
    rail: str  # navigation
    surface: str  # cards, composer, tables
    sunken: str  # wells: code, tracks, plots
    hover: str
    pressed: str
    border: str  # quiet separation, decoration only
    outline: str  # edge of a control
    thumb: str  # scroll bars
    text: str
    muted: str  # secondary text
    accent: str  # filled buttons
    accent_hover: str
    on_accent: str
    accent_text: str  # links, selected icons
    accent_soft: str  # tinted background
    flash: str  # what the draft got right: lit path, acceptance
    flash_text: str
    flash_soft: str
    good: str
    bad: str
    bad_soft: str
    bubble: str  # what the person wrote
    selection: str
    code_keyword: str
    code_string: str
    code_comment: str
    code_number: str
    code_name: str
    parts: tuple[str, ...]  # memory by part


LIGHT = Palette(
    is_dark=False,
    window="#f8f7f4",
    rail="#f0eeea",
    surface="#ffffff",
    sunken="#f2f0ec",
    hover="#eae8e3",
    pressed="#dfdcd5",
    border="#e3e0d9",
    outline="#8f8c86",
    thumb="#c6c2ba",
    text="#1c1b20",
    muted="#5d5b64",
    accent="#4250d0",
    accent_hover="#3642b4",
    on_accent="#ffffff",
    accent_text="#3d4ac6",
    accent_soft="#e6e8fb",
    flash="#bf7600",
    flash_text="#8a5500",
    flash_soft="#fbefd7",
    good="#1d774a",
    bad="#b3262b",
    bad_soft="#fbe8e7",
    bubble="#e9e9f7",
    selection="#c8cefa",
    code_keyword="#7a2ea0",
    code_string="#1d6f42",
    code_comment="#6b6870",
    code_number="#a04a00",
    code_name="#2347a8",
    parts=("#4250d0", "#bf7600", "#2b8a7b", "#8b5cc0", "#c25b7c", "#8a8780", "#5f7d1c"),
)

DARK = Palette(
    is_dark=True,
    window="#15161a",
    rail="#101114",
    surface="#1c1d23",
    sunken="#101115",
    hover="#282a32",
    pressed="#33353f",
    border="#2b2d35",
    outline="#6e707d",
    thumb="#42444f",
    text="#ececf1",
    muted="#a7a8b5",
    accent="#5966e4",
    accent_hover="#4e5bd6",
    on_accent="#ffffff",
    accent_text="#a5afff",
    accent_soft="#272b4a",
    flash="#ffc04a",
    flash_text="#ffcb6b",
    flash_soft="#3a2f18",
    good="#5cc48f",
    bad="#ff8a86",
    bad_soft="#3b2024",
    bubble="#282b42",
    selection="#3c4683",
    code_keyword="#d3a6ff",
    code_string="#8fd6a5",
    code_comment="#8b8d9b",
    code_number="#ffb27a",
    code_name="#8ab6ff",
    parts=("#7c88ff", "#ffc04a", "#4fc3ae", "#b892ea", "#f08cab", "#8e909d", "#a9c95b"),
)

XS, S, M, L, XL = 4, 8, 12, 16, 24
"""The spacing scale, in device-independent pixels."""

CONTROL_RADIUS = 7
CARD_RADIUS = 12
BUBBLE_RADIUS = 16
CONTROL_HEIGHT = 32
RAIL_WIDTH = 84
READING_WIDTH = 760
"""Lines longer than this are hard to read; the conversation stays this wide on any screen."""

FONT_PIXELS = {"caption": 12, "body": 13, "reading": 15, "heading": 16, "title": 22, "display": 30}
"""The type scale at 96 dots per inch; theme.py scales it with the screen's text setting."""
