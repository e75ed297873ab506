"""The text of attached files, whatever they are."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.chats import attachments
from dflash_desktop.chats.attachments import read_attachment


def pdf_of(*pages: str, encrypted: bool = False) -> bytes:
    """A small PDF, written by hand: what a reader is tested with is not made by that reader."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    for number, text in enumerate(pages):
        content = zlib.compress(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1"))
        font = "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * number} 0 R "
            f"/Resources << /Font {font} >> >>".encode()
        )
        head = f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + content + b"\nendstream")
    data = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    xref = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R >>"
    return data + f"trailer\n{trailer}\nstartxref\n{xref}\n%%EOF\n".encode()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("家庭 ü\r\n😀\r".encode(), "家庭 ü\n😀\n"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("wide 家".encode("utf-16"), "wide 家"),
        (b"caf\xe9 \x93old\x94", "café “old”"),
    ],
)
def test_text_files_of_all_ages(tmp_path: Path, data: bytes, text: str) -> None:
    path = tmp_path / "模型 & 'q' #1.txt"
    path.write_bytes(data)
    read = read_attachment(path)
    assert (read.text, read.kind, read.name, read.n_bytes) == (text, "text", path.name, len(data))


def test_the_pages_of_a_pdf(tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf_of("The first page.", "The second."))
    read = read_attachment(path)
    assert read.kind == "pdf"
    assert read.text == "The first page.\n\nThe second."


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.pdf", b"%PDF-1.4\n" + b"garbage" * 50, "cannot be read as a PDF"),
        ("a.pdf", pdf_of(""), "no text that could be read"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is no text file"),
        ("a.txt", b"  \n", "is empty"),
        ("a.txt", b"x" * 300, "can be attached"),
    ],
)
def test_other_files_are_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, why: str
) -> None:
    if data == b"x" * 300:
        monkeypatch.setattr(attachments, "MAX_FILE_BYTES", 200)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AppError, match=why):
        read_attachment(tmp_path / name)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(AppError, match=r"gone\.txt cannot be read"):
        read_attachment(tmp_path / "gone.txt")
