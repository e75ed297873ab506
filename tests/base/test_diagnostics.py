"""The diagnostic zip: what helps, and nothing that is nobody's business."""

from __future__ import annotations

import json
import logging
import zipfile
from pathlib import Path

import pytest

from dflash_desktop.base.diagnostics import clean, report_name, write_report
from dflash_desktop.base.errors import AppError
from dflash_desktop.base.log import start_logging, stop_logging


def test_logs_and_facts_are_in_and_secrets_are_not(tmp_path: Path) -> None:
    start_logging(tmp_path)
    logging.getLogger("dflash_desktop.test").info("read %s with hf_abcdefghijklmnop123456", Path.home() / "m.gguf")
    stop_logging()
    zip_path = write_report(
        tmp_path / report_name(), tmp_path, {"settings": {"theme": "dark", "api_key": "secret-value-1234"}}
    )
    with zipfile.ZipFile(zip_path) as archive:
        texts = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
    assert set(texts) == {"machine.json", "settings.json", "dflash-desktop.log"}
    assert json.loads(texts["machine.json"])["memory_bytes"] > 0
    assert "theme" in texts["settings.json"]
    everything = "".join(texts.values())
    assert "~/m.gguf" in everything
    for hidden in (str(Path.home()), "hf_abc", "secret-value"):
        assert hidden not in everything


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh12345678",
        "token=abcdef123456",
        '"api_key": "abcdef123456"',
        "proxy http://abcdef123456:abcdef123456@host:1",
        "sk-abcdef123456abcdef123456",
    ],
)
def test_no_kind_of_secret_passes(text: str) -> None:
    assert "abcdef" not in clean(text)
    assert "[removed]" in clean(text)


def test_ordinary_lines_stay_as_they_are() -> None:
    line = "2026-01-01 INFO engine-lane: loaded 93.8 MB, 8192 tokens of context, token 5"
    assert clean(line) == line


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AppError, match="cannot be written"):
        write_report(tmp_path / "file" / "x.zip", tmp_path, {})
