"""Icons, the licence text and the bill of materials: made from real packages, here."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def common(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "installers" / "common"))
    for name in ("icons", "parts", "licences"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def icons(common: None) -> ModuleType:
    import icons as module  # type: ignore[import-not-found,unused-ignore]

    return module  # type: ignore[no-any-return,unused-ignore]


def test_icons_have_their_sizes_and_are_not_empty(icons: ModuleType, tmp_path: Path) -> None:
    icons.write_theme(icons.SOURCE, tmp_path)
    assert (tmp_path / "scalable/apps/dflash-desktop.svg").is_file()
    for size in icons.SIZES:
        content = (tmp_path / f"{size}x{size}/apps/dflash-desktop.png").read_bytes()
        assert content.startswith(b"\x89PNG")
        assert struct.unpack(">II", content[16:24]) == (size, size)
        assert len(content) > 200


def test_the_ico_holds_every_size(icons: ModuleType, tmp_path: Path) -> None:
    icons.write_ico(icons.SOURCE, tmp_path / "a.ico")
    content = (tmp_path / "a.ico").read_bytes()
    kind, n_pictures = struct.unpack("<HH", content[2:6])
    assert (kind, n_pictures) == (1, len(icons.ICO_SIZES))
    for index, size in enumerate(icons.ICO_SIZES):
        width, *_, n_bytes, offset = struct.unpack("<BBBBHHII", content[6 + 16 * index : 22 + 16 * index])
        picture = content[offset : offset + n_bytes]
        assert width == size % 256
        assert struct.unpack(">II", picture[16:24]) == (size, size)


@pytest.mark.parametrize("name", ["libggml-vulkan.so", "ggml-vulkan.dll"])
def test_what_is_compiled_into_the_vulkan_backend_is_named_with_its_licence(
    common: None, tmp_path: Path, name: str
) -> None:
    import licences  # type: ignore[import-not-found,unused-ignore]
    import parts  # type: ignore[import-not-found,unused-ignore]

    libraries = tmp_path / "_internal" / "dflash_desktop" / "binding" / "lib"
    libraries.mkdir(parents=True)
    assert list(parts._vulkan_parts(tmp_path, "1.4.309")) == []
    (libraries / name).touch()
    found = licences.with_texts(list(parts._vulkan_parts(tmp_path, "1.4.309")))
    assert [part.purl for part in found] == [
        "pkg:github/khronosgroup/vulkan-headers@1.4.309",
        "pkg:github/khronosgroup/spirv-headers@1.4.309",
    ]
    text = licences.third_party_text(found)
    assert "Apache License" in text and "The Khronos Group" in text and "Permission is hereby granted" in text


def test_every_required_package_brings_its_licence(common: None) -> None:
    """What freezing asks, of the packages installed here: a new one without a text is found at once."""
    import licences  # type: ignore[import-not-found,unused-ignore]
    import parts  # type: ignore[import-not-found,unused-ignore]

    found = [parts._package_part(dist) for dist in parts._shipped_dists()]
    names = {part.name for part in found}
    assert {"numpy", "pyside6-essentials", "shiboken6", "tokenizers"} <= names
    text = licences.third_party_text(licences.with_texts([part for part in found if part.name != "dflash-desktop"]))
    for words in ("GNU LESSER GENERAL PUBLIC LICENSE", "Apache License", "numpy"):
        assert words in text
