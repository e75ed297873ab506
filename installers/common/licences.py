"""The licence texts of everything shipped, as the one file that the About page shows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from parts import Part

_RULE = "=" * 100

# Wheels that carry no licence file of their own: the texts that their metadata names, from our resources/licences; and
# headers that are compiled in.
_TEXTS_BY_HAND: dict[str, tuple[str, ...]] = {
    "pyside6-essentials": ("LGPL-3.0.txt", "GPL-3.0.txt"),  # and Qt itself, which lies inside
    "shiboken6": ("LGPL-3.0.txt", "GPL-3.0.txt"),
    "tokenizers": ("LICENSE.txt",),  # Apache-2.0
    "Vulkan-Headers": ("LICENSE.txt",),  # Vulkan-Hpp lies in it
}

# Wheels that say it only at the top of their source: the module whose first comment is the licence.
_TEXTS_IN_MODULES = {"nvidia-ml-py": "pynvml"}

_MIT = """MIT License

{holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE."""

# Wheels that say "MIT" and no more: whose it is, by their metadata.
_MIT_HOLDERS = {
    "latex2mathml": "Copyright (c) Ronie Martinez",
    "SPIRV-Headers": "Copyright (c) 2015-2025 The Khronos Group Inc.",
}


def with_texts(parts: Sequence[Part]) -> list[Part]:
    """The parts, each with the text of its licence.

    Raises SystemExit when one has none: nothing is shipped whose licence is unknown.
    """
    folder = Path(str(resources.files("dflash_desktop").joinpath("resources", "licences")))
    completed = []
    for part in parts:
        if not part.texts and part.name in _TEXTS_BY_HAND:
            texts = [(name, (folder / name).read_text(encoding="utf-8")) for name in _TEXTS_BY_HAND[part.name]]
            completed.append(replace(part, texts=tuple(texts)))
        elif not part.texts and part.name in _TEXTS_IN_MODULES:
            module = f"{_TEXTS_IN_MODULES[part.name]}.py"
            completed.append(replace(part, texts=((module, _first_comment(folder.parents[2] / module)),)))
        elif not part.texts and part.name in _MIT_HOLDERS:
            completed.append(replace(part, texts=(("MIT", _MIT.format(holder=_MIT_HOLDERS[part.name])),)))
        else:
            completed.append(part)
    silent = [part.name for part in completed if not part.texts]
    if silent:
        raise SystemExit(f"no licence text found for: {', '.join(silent)}. Add it to licences.py, or do not ship it.")
    return completed


def _first_comment(module: Path) -> str:
    lines = module.read_text(encoding="utf-8").splitlines()
    comment = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return "\n".join(line.removeprefix("#").strip(" #") for line in comment)


def third_party_text(parts: Sequence[Part]) -> str:
    """A table of what is shipped, then every text, each once: the parts that share one are named above it."""
    lines = ["What DFlash Desktop is made of, and under which licences", ""]
    width = max(len(part.name) for part in parts)
    lines += [f"{part.name:{width}}  {part.version:24}  {part.licence}  {part.home}".rstrip() for part in parts]
    lines += [
        "",
        "Qt contains further libraries, listed with their licences at https://doc.qt.io/qt-6/licenses-used-in-qt.html.",
    ]
    holders: dict[str, list[str]] = {}
    for part in parts:
        for file, text in part.texts:
            holders.setdefault(text.replace("\r\n", "\n").strip(), []).append(f"{part.name} {part.version} ({file})")
    for text, names in holders.items():
        lines += ["", _RULE, *names, _RULE, "", text]
    return "\n".join(lines) + "\n"
