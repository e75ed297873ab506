"""The theme: which palette is in force, applied to the whole application, switched while it runs."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QLocale, QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from dflash_desktop.ui.kit.palette import DARK, FONT_PIXELS, LIGHT, Palette
from dflash_desktop.ui.kit.style_sheet import style_sheet

ThemeMode = Literal["system", "light", "dark"]
FontRole = Literal["caption", "body", "reading", "heading", "title", "display"]

# Fonts that are made for screens, if the machine has one; else Qt's own choice. We ship none.
_UI_FAMILIES = ("Inter", "Segoe UI Variable Text", "Segoe UI", "SF Pro Text", "Cantarell", "Adwaita Sans", "Noto Sans")
_CODE_FAMILIES = (
    "JetBrains Mono",
    "Cascadia Mono",
    "SF Mono",
    "Menlo",
    "Consolas",
    "Noto Sans Mono",
    "DejaVu Sans Mono",
)
# Chinese and Japanese share characters that they write differently: left to itself, a system set to neither takes the
# Japanese form.
_SIMPLIFIED_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Microsoft YaHei UI",
    "Microsoft YaHei",
    "PingFang SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
)
_REFERENCE_DPI = 96.0


class Theme(QObject):
    """Owns the palette and fonts. Whoever paints by hand reads `palette` and repaints on `changed`."""

    changed = Signal()

    def __init__(self, app: QApplication, mode: ThemeMode = "system", *, font_percent: int = 100) -> None:
        """`font_percent`: the person's own wish, on top of the screen's text setting."""
        super().__init__(app)
        self._app = app
        self._mode: ThemeMode = mode
        self._system_font = QFont(app.font())
        self._families = _installed(_UI_FAMILIES)
        self._code_families = _installed(_CODE_FAMILIES)
        self._font_factor = _font_factor(font_percent)
        self._zoom = 1.0
        self._colors: dict[str, QColor] = {}  # of the palette in force
        self._fonts: dict[tuple[FontRole, QFont.Weight], QFont] = {}
        self._code_font_families: list[str] = []
        self.palette: Palette = LIGHT
        app.setStyle("Fusion")
        app.setFont(self.font("body"))
        app.styleHints().colorSchemeChanged.connect(self.on_system_scheme_changed)
        self._apply()

    @property
    def mode(self) -> ThemeMode:
        return self._mode

    def set_mode(self, mode: ThemeMode) -> None:
        """Switch at once; every open window follows."""
        if mode != self._mode:
            self._mode = mode
            self._apply()

    @property
    def zoom_percent(self) -> int:
        return round(self._zoom * 100)

    def set_zoom(self, percent: int) -> None:
        """How large the text of conversations is, on top of everything else. Takes effect at once."""
        if percent != self.zoom_percent:
            self._zoom = percent / 100
            self.changed.emit()

    def set_font_percent(self, font_percent: int) -> None:
        """For windows that are built from now on: those that stand keep the lengths they were built with."""
        self._font_factor = _font_factor(font_percent)
        self._fonts.clear()
        self._code_font_families = []
        self._app.setFont(self.font("body"))
        self._app.setStyleSheet(style_sheet(self.palette, self._font_factor))

    def zoomed(self, font: QFont) -> QFont:
        """`font` in the size that it has inside a conversation."""
        larger = QFont(font)
        larger.setPixelSize(round(font.pixelSize() * self._zoom))
        return larger

    @Slot()
    def on_system_scheme_changed(self) -> None:
        if self._mode == "system":
            self._apply()

    def color(self, name: str) -> QColor:
        known = self._colors.get(name)
        if known is None:
            known = self._colors[name] = QColor(str(getattr(self.palette, name)))
        return QColor(known)  # whoever asked may change it

    def font(self, role: FontRole, *, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        known = self._fonts.get((role, weight))
        if known is None:
            known = QFont(self._system_font)
            families = [*self._families, *self._system_font.families()]
            if han := _han_families():
                # Beside others a name such as "Sans Serif" means no font: the one that it stands for does.
                families += [QFontInfo(self._system_font).family(), *han]
            known.setFamilies(families)
            known.setPixelSize(round(FONT_PIXELS[role] * self._font_factor))
            known.setWeight(weight)
            self._fonts[role, weight] = known
        return QFont(known)  # whoever asked may change it

    def figure_font(self, role: FontRole, *, weight: QFont.Weight = QFont.Weight.DemiBold) -> QFont:
        """For numbers that change: digits of one width, so that nothing dances."""
        font = self.font(role, weight=weight)
        font.setFeature(QFont.Tag("tnum"), 1)
        return font

    def code_font(self, role: FontRole = "body") -> QFont:
        font = self.font(role)
        if not self._code_font_families:
            fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
            self._code_font_families = [*self._code_families, *fixed.families(), "monospace", *_han_families()]
        font.setFamilies(self._code_font_families)
        font.setFixedPitch(True)
        return font

    def px(self, pixels: float) -> int:
        """A length that must grow with the text."""
        return round(pixels * self._font_factor)

    def _apply(self) -> None:
        if self._mode == "system":
            is_dark = self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark
        else:
            is_dark = self._mode == "dark"
        self.palette = DARK if is_dark else LIGHT
        self._colors.clear()
        self._app.setPalette(self._qt_palette())
        self._app.setStyleSheet(style_sheet(self.palette, self._font_factor))
        self.changed.emit()

    def _qt_palette(self) -> QPalette:
        role = QPalette.ColorRole
        colors = {
            role.Window: "window",
            role.Base: "surface",
            role.AlternateBase: "sunken",
            role.Button: "surface",
            role.WindowText: "text",
            role.Text: "text",
            role.ButtonText: "text",
            role.BrightText: "bad",
            role.PlaceholderText: "muted",
            role.ToolTipBase: "surface",
            role.ToolTipText: "text",
            role.Highlight: "selection",
            role.HighlightedText: "text",
            role.Link: "accent_text",
            role.LinkVisited: "accent_text",
            role.Accent: "accent",
            role.Light: "surface",
            role.Midlight: "hover",
            role.Mid: "border",
            role.Dark: "outline",
            role.Shadow: "outline",
        }
        palette = QPalette()
        for color_role, name in colors.items():
            palette.setColor(color_role, self.color(name))
        disabled = QPalette.ColorGroup.Disabled
        for color_role in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(disabled, color_role, self.color("muted"))
        return palette


def _font_factor(percent: int) -> float:
    # macOS counts 72 points to the inch and scales elsewhere: never below 1.
    return max(1.0, QGuiApplication.primaryScreen().logicalDotsPerInch() / _REFERENCE_DPI) * percent / 100


def _han_families() -> list[str]:
    """What writes Chinese characters as the language in force does; nothing where the system's choice is as good."""
    is_simplified = QLocale().script() == QLocale.Script.SimplifiedHanScript
    return _installed(_SIMPLIFIED_FAMILIES) if is_simplified else []


def _installed(wanted: tuple[str, ...]) -> list[str]:
    families = set(QFontDatabase.families())
    return [name for name in wanted if name in families][:1]
