"""Files that are sent along with a message: their text, read here and never sent anywhere else."""

from __future__ import annotations

import locale
from contextlib import suppress
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError
from dflash_desktop.base.sizes import disk_text
from dflash_desktop.chats.records import Attachment

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 64_000_000
MAX_TEXT_CHARS = 20_000_000
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def read_attachment(path: Path) -> Attachment:
    """The text of a text or PDF file. Raises AppError when it cannot be read or has none."""
    try:
        n_bytes = path.stat().st_size
        if n_bytes > MAX_FILE_BYTES:
            raise AppError(f"{path.name} has {disk_text(n_bytes)}; up to {disk_text(MAX_FILE_BYTES)} can be attached.")
        data = path.read_bytes()
    except OSError as error:
        raise AppError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    is_pdf = data[:1024].lstrip().startswith(b"%PDF-")
    text = _pdf_text(path) if is_pdf else _decoded(data, path.name)
    if not text.strip():
        raise AppError(
            f"{path.name} has no text that could be read: perhaps its pages are pictures."
            if is_pdf
            else f"{path.name} is empty."
        )
    if len(text) > MAX_TEXT_CHARS:
        raise AppError(f"{path.name} has {len(text):,} characters; up to {MAX_TEXT_CHARS:,} can be attached.")
    return Attachment(path.name, "pdf" if is_pdf else "text", text, n_bytes)


def _decoded(data: bytes, name: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _unified(data.decode(encoding, "replace"))
    if b"\0" in data[:8192]:
        raise AppError(f"{name} is no text file. Text and PDF files can be attached.")
    for encoding in ("utf-8", locale.getencoding()):
        with suppress(UnicodeDecodeError, LookupError):
            return _unified(data.decode(encoding))
    return _unified(data.decode("cp1252", "replace"))


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _pdf_text(path: Path) -> str:
    import pypdf  # a quarter of a second: not before a PDF is attached
    from pypdf.errors import PyPdfError

    try:
        with pypdf.PdfReader(path) as reader:
            if reader.is_encrypted and not reader.decrypt(""):
                raise AppError(f"{path.name} is protected by a password. Save a copy without one and attach that.")
            pages = [page.extract_text() for page in reader.pages]
    except (PyPdfError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AppError(f"{path.name} cannot be read as a PDF: {error}.") from error
    return "\n\n".join(page.strip() for page in pages if page.strip())
