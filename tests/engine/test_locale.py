"""B157: a comma locale, switched on by Qt, changes nothing in the engine."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.locales import german_environment
from support.native_library import load_library

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = Path(__file__).parents[1] / "support" / "locale_probe.py"


def probe(environment: Mapping[str, str] | None, *, window: bool) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), str(QWEN35_MINI), str(QWEN35_MINI_DRAFT), "window" if window else "plain"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_a_reply_under_a_german_locale_with_a_window_is_that_of_the_c_locale(tmp_path: Path) -> None:
    load_library()
    if importlib.util.find_spec("PySide6") is None:
        pytest.skip("needs PySide6, whose application switches the locale")
    german = german_environment(tmp_path)
    there = probe({**german, "QT_QPA_PLATFORM": "offscreen"}, window=True)
    here = probe(None, window=False)
    assert there["main thread reads 0.7 as"] == 0.0, "the trap is gone: Qt no longer switches the locale"
    assert here["main thread reads 0.7 as"] == 0.7
    assert there["lane reads 0.7 as"] == here["lane reads 0.7 as"] == 0.7
    for part in ("token_ids", "text", "prompt", "date", "freq_base"):
        assert there[part] == here[part], part
