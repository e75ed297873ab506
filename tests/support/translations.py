"""Brings the translations up to date: `python tests/support/translations.py`. The flow is told in resources/i18n.

lupdate collects the texts of the program into the .ts files, lrelease turns them into the .qm files that are shipped.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "app" / "dflash_desktop"
FOLDER = ROOT / "resources" / "i18n"
LANGUAGES = ("zh_CN",)


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the program. `translations` has an entry per plural form, and one where there is none."""

    context: str
    source: str
    translations: tuple[str, ...]
    is_finished: bool
    is_plural: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.context, self.source


def ts_file(language: str) -> Path:
    return FOLDER / f"dflash_{language}.ts"


def collect(ts: Path, language: str) -> None:
    """Put every text of the program into `ts`; what is translated there stays, what is gone from the program goes."""
    _run(
        "lupdate", "-silent", "-extensions", "py", str(SOURCES), "-no-obsolete", "-locations", "none",
        "-source-language", "en", "-target-language", language, "-ts", str(ts),
    )  # fmt: skip


def compile_ts(ts: Path, qm: Path) -> None:
    _run("lrelease", "-silent", str(ts), "-qm", str(qm))


def read_texts(ts: Path) -> list[Text]:
    texts = []
    for context in ET.parse(ts).getroot().iter("context"):
        name = context.findtext("name", "")
        for message in context.iter("message"):
            translation = message.find("translation")
            assert translation is not None
            forms = tuple(form.text or "" for form in translation.iter("numerusform")) or (translation.text or "",)
            is_finished = translation.get("type") is None and all(forms)
            texts.append(
                Text(name, message.findtext("source", ""), forms, is_finished, message.get("numerus") == "yes")
            )
    return texts


def _run(tool: str, *arguments: str) -> None:
    # The wrapper scripts of PySide6 lie beside this Python; they return nothing worth reading.
    program = Path(sys.executable).parent / f"pyside6-{tool}"
    subprocess.run([str(program), *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    n_open = 0
    for language in LANGUAGES:
        ts = ts_file(language)
        collect(ts, language)
        for text in read_texts(ts):
            if not text.is_finished:
                n_open += 1
                print(f"{language}: not translated: [{text.context}] {text.source}")
        compile_ts(ts, ts.with_suffix(".qm"))
    return 1 if n_open else 0


if __name__ == "__main__":
    sys.exit(main())
