"""How large the context becomes when a pair is loaded, and that nobody is left in the dark about it (B082)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dflash_desktop.engine import loaded
from dflash_desktop.engine.events import JobFailed, PairLoaded
from dflash_desktop.engine.planning import LoadEstimate, plan_load
from dflash_desktop.engine.requests import FIT_CONTEXT, LoadOptions
from support.fixtures import QWEN35_MINI
from support.real_engine import running_engine, try_load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Members of the plan to change, as a machine with less memory would have them."""
    changes: dict[str, Any] = {}

    def plan(target: Path, draft: Path | None, options: LoadOptions, library: Any) -> LoadEstimate:
        return replace(plan_load(target, draft, options, library), **changes)

    monkeypatch.setattr(loaded, "plan_load", plan)
    return changes


def load(context_tokens: int) -> Any:
    with running_engine() as engine:
        return try_load(engine, QWEN35_MINI, None, LoadOptions(context_tokens=context_tokens, n_threads=1))


def test_what_was_asked_for_is_what_is_loaded(memory: dict[str, Any]) -> None:
    done = load(300)
    assert isinstance(done, PairLoaded)
    assert (done.pair.context_tokens, done.pair.context_choice, done.pair.notices) == (300, "asked", ())


def test_left_open_it_is_the_models_own(memory: dict[str, Any]) -> None:
    done = load(0)
    assert isinstance(done, PairLoaded)
    assert (done.pair.context_tokens, done.pair.context_choice, done.pair.notices) == (2048, "default", ())


def test_left_open_where_memory_is_short_it_is_less_and_said(memory: dict[str, Any]) -> None:
    memory["max_context_tokens"] = 768
    done = load(0)
    assert isinstance(done, PairLoaded)
    assert (done.pair.context_tokens, done.pair.context_choice) == (768, "reduced")
    (notice,) = done.pair.notices
    assert "reduced to 768 tokens" in notice


def test_as_much_as_fits_is_said_with_its_number(memory: dict[str, Any]) -> None:
    memory["max_context_tokens"] = 1280
    done = load(FIT_CONTEXT)
    assert isinstance(done, PairLoaded)
    assert (done.pair.context_tokens, done.pair.context_choice) == (1280, "fitted")
    (notice,) = done.pair.notices
    assert "1280 tokens, the largest that fits" in notice


def test_more_than_there_is_memory_for_is_refused_with_both_numbers(memory: dict[str, Any]) -> None:
    memory.update(max_context_tokens=1024, total_bytes=5 << 30, free_bytes=3 << 30)
    failed = load(2048)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "out_of_memory"
    assert "5.0 GiB" in failed.message
    assert "3.0 GiB free" in failed.message
    assert failed.cause is not None
    assert failed.cause.code == "context_too_large"
    facts = ("context_tokens", "needed_bytes", "free_bytes", "max_context_tokens")
    assert [failed.cause.number(key) for key in facts] == [2048, 5 << 30, 3 << 30, 1024]
    assert "1024 tokens" in failed.message


@pytest.mark.parametrize("context_tokens", [-2, 2**31])
def test_a_number_that_is_no_context_is_refused(context_tokens: int) -> None:
    failed = load(context_tokens)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "bad_request"
