"""The program's icon in every size that a desktop asks for, drawn from its SVG.

python icons.py FOLDER      FOLDER/<size>x<size>/apps/dflash-desktop.png and FOLDER/scalable/apps/dflash-desktop.svg
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
from pathlib import Path

NAME = "dflash-desktop"
SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512)
ICO_SIZES = (16, 20, 24, 32, 40, 48, 64, 256)
SOURCE = Path(__file__).parents[2] / "resources" / "icons" / f"{NAME}.svg"


def png(source: Path, size: int) -> bytes:
    """The icon as a PNG of `size` by `size` pixels."""
    from PySide6.QtCore import QBuffer, QIODevice, Qt
    from PySide6.QtGui import QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(source)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # its types want bytes, it takes a string
    return bytes(buffer.data().data())


def write_ico(source: Path, destination: Path) -> None:
    """All of Windows' sizes in one file. Each picture is a PNG, which Windows reads since Vista."""
    pictures = [png(source, size) for size in ICO_SIZES]
    offset = 6 + 16 * len(pictures)
    entries = b""
    for size, picture in zip(ICO_SIZES, pictures, strict=True):
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(picture), offset)
        offset += len(picture)
    destination.write_bytes(struct.pack("<HHH", 0, 1, len(pictures)) + entries + b"".join(pictures))


def write_theme(source: Path, folder: Path) -> None:
    """What belongs in an icon theme folder such as hicolor."""
    for size in SIZES:
        place = folder / f"{size}x{size}" / "apps"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{NAME}.png").write_bytes(png(source, size))
    place = folder / "scalable" / "apps"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place / f"{NAME}.svg")


if __name__ == "__main__":
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    write_theme(SOURCE, Path(sys.argv[1]))
