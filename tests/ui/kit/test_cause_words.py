"""Failures of the engine told in the person's language, with the numbers that make them of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest
from PySide6.QtWidgets import QApplication

from dflash_desktop.base.causes import Cause, CauseCode
from dflash_desktop.base.errors import AppError
from dflash_desktop.binding.abi import Part
from dflash_desktop.engine.events import JobFailed
from dflash_desktop.ui.engine.failures import load_failure
from dflash_desktop.ui.kit.cause_words import cause_words, error_words, told
from dflash_desktop.ui.kit.icons import Icons
from dflash_desktop.ui.kit.language import apply_language
from dflash_desktop.ui.kit.notice import Notice
from dflash_desktop.ui.kit.theme import Theme
from ui.conftest import RESOURCES

TIGHT: dict[str, str | int] = {
    "device": "CUDA0",
    "context_tokens": 8192,
    "needed_bytes": 9 * 2**30,
    "free_bytes": 3 * 2**29,
}
PARTS = ("unknown", "weights", "kv_cache", "compute", "draft", "scorer")
CAUSES = [
    Cause("file_missing", {"file": "t.gguf", "folder": "/models"}),
    Cause("file_broken", {"file": "t.gguf"}),
    Cause("file_unsupported", {"file": "t.gguf", "reason": "an architecture"}),
    Cause("architecture_unknown", {"file": "t.gguf", "architecture": "mamba"}),
    Cause("experts_unsupported", {"file": "t.gguf"}),
    Cause("draft_unsupported", {"file": "d.gguf", "reason": "a recurrent head"}),
    Cause("wrong_role", {"file": "t.gguf", "role": "draft", "wanted": "target"}),
    Cause("wrong_role", {"file": "t.gguf", "role": "target", "wanted": "draft"}),
    Cause("wrong_role", {"file": "t.gguf", "role": "other", "wanted": "target"}),
    Cause("draft_mismatch", {"draft": "d.gguf", "target": "t.gguf"}),
    Cause("tokenizer_unknown", {"file": "t.gguf", "tokenizer": "t5"}),
    Cause("template_refuses", {"reason": "no system"}),
    Cause("device_missing", {"device": "CUDA3", "present": "CPU"}),
    Cause("no_device"),
    Cause("device_failed", {"device": "CUDA0"}),
    Cause("device_failed", {"device": ""}),
    Cause("engine_missing"),
    Cause("out_of_memory", {"device": "CUDA0"}),
    Cause("out_of_memory", {"device": ""}),
    Cause("out_of_memory", {"device": "CPU", "part": "unknown", "needed_bytes": 0, "free_bytes": 3 * 2**29}),
    *(Cause("out_of_memory", {**TIGHT, "part": part}) for part in PARTS),
    Cause("out_of_memory", {**TIGHT, "part": "kv_cache", "free_bytes": 20 * 2**30}),
    Cause("context_too_large", {**TIGHT, "max_context_tokens": 1024}),
    Cause("context_too_large", {**TIGHT, "max_context_tokens": 0}),
    Cause("draft_too_large", TIGHT),
    Cause("no_memory"),
    Cause("context_exceeded", {"prompt_tokens": 9000, "context_tokens": 8192, "is_least": 0}),
    Cause("context_exceeded", {"prompt_tokens": 9000, "context_tokens": 8192, "is_least": 1}),
    Cause("nothing_loaded"),
    Cause("other_model_loaded"),
    Cause("disk_full", {"folder": "/data", "needed_bytes": 5 * 10**9, "free_bytes": 10**9}),
    Cause("disk_full", {"folder": "/data"}),
    Cause("state_broken", {"file": "settings.json", "aside": "settings.broken-1.json"}),
    Cause("state_broken", {"file": "settings.json", "aside": ""}),
    Cause("state_unreadable", {"file": "settings.json"}),
    Cause("state_unwritable", {"file": "settings.json", "reason": "Read-only file system"}),
    Cause("bug", {"kind": "KeyError"}),
]


@pytest.fixture
def chinese(app: QApplication) -> Iterator[None]:
    apply_language(app, RESOURCES, "zh_CN")
    yield
    apply_language(app, RESOURCES, "system")


def test_every_cause_is_among_these() -> None:
    assert {cause.code for cause in CAUSES} == set(get_args(CauseCode))


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: f"{cause.code}-{len(cause.facts)}")
@pytest.mark.usefixtures("chinese")
def test_each_cause_has_words_of_its_own_in_both_languages(app: QApplication, cause: Cause) -> None:
    apply_language(app, RESOURCES, "en")
    english = cause_words(cause)
    apply_language(app, RESOURCES, "zh_CN")
    chinese = cause_words(cause)
    assert english.endswith(".")
    assert chinese.endswith("。")
    assert "{" not in english + chinese
    for key in ("file", "device", "draft", "target", "folder", "present", "kind", "tokenizer", "architecture", "aside"):
        assert cause.name(key) in english
        assert cause.name(key) in chinese


@pytest.mark.usefixtures("chinese")
def test_memory_is_told_with_its_numbers() -> None:
    words = cause_words(Cause("context_too_large", {**TIGHT, "max_context_tokens": 1024}))
    for part in ("8,192", "9.0 GiB", "1.5 GiB", "CUDA0", "1,024"):
        assert part in words
    words = cause_words(Cause("context_exceeded", {"prompt_tokens": 9000, "context_tokens": 8192, "is_least": 0}))
    for part in ("9,000", "8,192", "809"):
        assert part in words


@pytest.mark.usefixtures("chinese")
def test_memory_that_ran_out_in_the_engine_is_told_with_its_numbers_and_its_part() -> None:
    assert set(PARTS) == {part.name.lower() for part in Part}
    told_of = {part: cause_words(Cause("out_of_memory", {**TIGHT, "part": part})) for part in PARTS}
    for words in told_of.values():
        assert "9.0 GiB" in words
        assert "1.5 GiB" in words
        assert "CUDA0" in words
    assert len(set(told_of.values())) == len(PARTS)
    assert told_of["kv_cache"].startswith("KV")
    # Where more is free than was needed, what is free is no reason.
    words = cause_words(Cause("out_of_memory", {**TIGHT, "part": "compute", "free_bytes": 20 * 2**30}))
    assert "9.0 GiB" in words
    assert "20" not in words


def test_what_has_no_cause_is_told_in_its_own_sentence() -> None:
    assert told(None, "The engine's sentence.") == "The engine's sentence."
    assert error_words(AppError("It said so.")) == "It said so."
    assert error_words(OSError("not ours")) == "not ours"


@pytest.mark.usefixtures("chinese")
def test_the_engines_own_sentence_is_the_detail(theme: Theme, icons: Icons) -> None:
    sentence = "t.gguf: tensor 'a': lies outside the file"
    failure = load_failure(
        JobFailed(1, sentence, "bad_request", cause=Cause("file_broken", {"file": "t.gguf"})), None, ()
    )
    assert "t.gguf" in failure.words()
    assert sentence not in failure.words()
    notice = Notice(theme, icons)
    notice.show_error(failure.words(), details=failure.details())
    notice.show()
    assert not notice.details_button.isHidden()
    assert notice._details.isHidden()
    notice.details_button.click()
    assert not notice._details.isHidden()
    assert notice._details.text() == sentence
    notice.show_info("something else")
    assert notice.details_button.isHidden()
    assert notice._details.isHidden()
