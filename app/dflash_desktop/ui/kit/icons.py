"""Our icons: small SVG files with `currentColor`, painted in the theme's colours and sharp at every scale."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QDir, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton

from dflash_desktop.ui.kit.theme import Theme

WORDS_GAP = 4
"""Between an icon and the words on the same button, on top of what Qt leaves there."""
_RATIOS = (1.0, 2.0, 3.0)


class Icons(QObject):
    """Reads icons from one folder. Buttons given to `put` follow the theme by themselves."""

    def __init__(self, folder: Path, theme: Theme) -> None:
        super().__init__(theme)
        self._folder = folder
        QDir.setSearchPaths("icons", [str(folder)])  # for the style sheet
        self._theme = theme
        self._sources: dict[str, str] = {}
        self._pixmaps: dict[tuple[str, str, int, float], QPixmap] = {}

    def px(self, pixels: float) -> int:
        """A length that grows with the text, as the theme's."""
        return self._theme.px(pixels)

    def pixmap(self, name: str, color: str, size: int, ratio: float = 1.0) -> QPixmap:
        """The icon, `size` wide and high, in the palette's colour of that name."""
        shade = self._theme.color(color)
        key = (name, shade.name(), size, ratio)
        found = self._pixmaps.get(key)
        if found is None:
            found = self._pixmaps[key] = self._draw(name, shade, size, ratio)
        return found

    def icon(
        self, name: str, color: str = "text", *, checked: str | None = None, size: int = 18, gap: int = 0
    ) -> QIcon:
        """The icon for a button, in this size; `gap` is left free on its right, where the button's words follow."""
        icon = QIcon()
        for ratio in _RATIOS:
            icon.addPixmap(self._with_gap(self.pixmap(name, color, size, ratio), gap))
            icon.addPixmap(self._with_gap(self.pixmap(name, "outline", size, ratio), gap), QIcon.Mode.Disabled)
            if checked:
                shown = self._with_gap(self.pixmap(name, checked, size, ratio), gap)
                icon.addPixmap(shown, QIcon.Mode.Normal, QIcon.State.On)
        return icon

    def _with_gap(self, pixmap: QPixmap, gap: int) -> QPixmap:
        if not gap:
            return pixmap
        ratio = pixmap.devicePixelRatio()
        wider = QPixmap(pixmap.width() + round(gap * ratio), pixmap.height())
        wider.setDevicePixelRatio(ratio)
        wider.fill(Qt.GlobalColor.transparent)
        painter = QPainter(wider)
        painter.drawPixmap(0, 0, pixmap)
        painter.end()
        return wider

    def put(
        self, button: QAbstractButton, name: str, color: str = "text", *, checked: str | None = None, size: int = 18
    ) -> None:
        """Show the icon on `button`, now and after every change of the theme; `size` grows with the text.

        Call again for another icon.
        """
        button.setProperty("icon_name", name)
        size = self.px(size)
        gap = WORDS_GAP if button.text() else 0
        button.setProperty("icon_size", size)
        button.setProperty("icon_gap", gap)
        button.setIconSize(QSize(size + gap, size))
        button.setIcon(self.icon(name, color, checked=checked, size=size, gap=gap))
        if button.property("icon_is_bound"):
            return
        button.setProperty("icon_is_bound", True)
        follower = _Follower(self, button, color, checked)
        self._theme.changed.connect(follower.on_theme_changed)

    def app_icon(self) -> QIcon:
        """The program's own icon, in its own colours."""
        icon = QIcon()
        renderer = QSvgRenderer(str(self._folder / "dflash-desktop.svg"))
        for size in (16, 24, 32, 48, 64, 128, 256):
            icon.addPixmap(_render(renderer, size, 1.0))
        return icon

    def app_pixmap(self, size: int, ratio: float) -> QPixmap:
        return _render(QSvgRenderer(str(self._folder / "dflash-desktop.svg")), size, ratio)

    def _draw(self, name: str, color: QColor, size: int, ratio: float) -> QPixmap:
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = (self._folder / f"{name}.svg").read_text(encoding="utf-8")
        data = QByteArray(source.replace("currentColor", color.name()).encode())
        return _render(QSvgRenderer(data), size, ratio)


class _Follower(QObject):
    """Repaints one button's icon; dies with the button, and its connection with it."""

    def __init__(self, icons: Icons, button: QAbstractButton, color: str, checked: str | None) -> None:
        super().__init__(button)
        self._icons, self._button, self._color, self._checked = icons, button, color, checked

    def on_theme_changed(self) -> None:
        button = self._button
        name, size, gap = button.property("icon_name"), button.property("icon_size"), button.property("icon_gap")
        button.setIcon(self._icons.icon(name, self._color, checked=self._checked, size=size, gap=gap))


def _render(renderer: QSvgRenderer, size: int, ratio: float) -> QPixmap:
    pixmap = QPixmap(QSize(round(size * ratio), round(size * ratio)))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, size * ratio, size * ratio))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap
