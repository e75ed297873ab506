"""The lane over a scripted session: whatever fails, the lane lives and says what happened."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest

from dflash_desktop.binding.failures import BadFile, DeviceFailed, OutOfMemory, Unsupported
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobFailed,
    JobQueued,
    LoadProgress,
    PairLoaded,
    PairUnloaded,
    StepDone,
)
from dflash_desktop.engine.requests import (
    DraftOptions,
    Generate,
    RawPrompt,
    Sampling,
    TokenPrompt,
    UnloadPair,
)
from support.patience import in_time
from support.scripted_session import (
    Listener,
    ScriptedLoader,
    ScriptedSession,
    ask,
    load,
    run,
)


def test_without_a_pair_a_reply_fails_with_its_own_kind(engine: Engine) -> None:
    failed, _ = run(engine)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "no_pair"


def test_a_prompt_as_long_as_the_context_is_refused_before_any_work(loaded: Engine, session: ScriptedSession) -> None:
    failed, _ = run(loaded, text="x" * 512)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "context_exceeded"
    assert "has 512 tokens" in failed.message
    assert "holds 512" in failed.message
    assert session.prompts == []
    assert isinstance(run(loaded, text="x" * 511)[0], GenerationDone)


@in_time(2)
def test_a_prompt_of_many_megabytes_is_refused_before_it_is_tokenised(
    loaded: Engine, session: ScriptedSession, within_s: float
) -> None:
    began = time.perf_counter()
    failed, _ = run(loaded, text="a b " * 5_000_000)
    assert time.perf_counter() - began < within_s
    assert isinstance(failed, JobFailed)
    assert failed.kind == "context_exceeded"
    assert "at least" in failed.message
    assert session.prompts == []


@pytest.mark.parametrize("error", [OutOfMemory("no room for it"), MemoryError()])
def test_running_out_of_memory_leaves_the_engine_usable(
    loaded: Engine, session: ScriptedSession, error: Exception
) -> None:
    session.faults[2] = error
    failed, _ = run(loaded)
    assert isinstance(failed, JobFailed)
    assert (failed.kind, failed.text) == ("out_of_memory", "one two ")
    session.faults.clear()
    assert isinstance(run(loaded)[0], GenerationDone)


def test_a_device_error_in_the_middle_keeps_the_text_and_the_engine(loaded: Engine, session: ScriptedSession) -> None:
    """B146"""
    session.faults[5] = DeviceFailed("CUDA error: device lost")
    failed, _ = run(loaded)
    assert failed == JobFailed(failed.job_id, "CUDA error: device lost", "device", "one two three four five ")
    session.faults.clear()
    assert isinstance(load(loaded), PairLoaded)
    assert isinstance(run(loaded)[0], GenerationDone)


def test_a_bug_is_logged_with_its_traceback_and_said_in_one_sentence(
    loaded: Engine, session: ScriptedSession, caplog: pytest.LogCaptureFixture
) -> None:
    session.faults[0] = ZeroDivisionError("division by zero")
    failed, _ = run(loaded)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "bug"
    assert "ZeroDivisionError" in failed.message
    assert "Traceback" in caplog.text
    session.faults.clear()
    assert isinstance(run(loaded)[0], GenerationDone)


def test_a_listener_that_fails_is_logged_its_job_cancelled_and_the_lane_lives(
    loaded: Engine, session: ScriptedSession, caplog: pytest.LogCaptureFixture
) -> None:
    session.tokens = [260, 261] * 100_000
    heard = []

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, StepDone):
            raise RuntimeError("the window is gone")  # noqa: TRY004

    with caplog.at_level(logging.ERROR):
        loaded.submit(ask(listen))
        session_after = Listener()
        loaded.submit(UnloadPair(session_after))
        assert isinstance(session_after.wait_for_end(), PairUnloaded)
    assert "the window is gone" in caplog.text
    assert isinstance(heard[-1], StepDone)


def test_a_bad_file_leaves_the_old_pair_loaded(
    loaded: Engine, loader: ScriptedLoader, session: ScriptedSession
) -> None:
    for error in (BadFile("broken.gguf: magic is 0"), Unsupported("the draft reads 5 layers, the target has 2")):
        loader.check_fault = error
        failed = load(loaded)
        assert failed == JobFailed(failed.job_id, str(error), "bad_request")
        assert session.is_closed is False
        assert isinstance(run(loaded)[0], GenerationDone)


def test_a_load_that_fails_later_leaves_nothing_loaded(
    loaded: Engine, loader: ScriptedLoader, session: ScriptedSession
) -> None:
    loader.load_fault = OutOfMemory("The context takes 99 GB, 3 GB are free.")
    failed = load(loaded)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "out_of_memory"
    assert session.is_closed
    assert isinstance(run(loaded)[0], JobFailed)
    loader.load_fault = None
    assert isinstance(load(loaded), PairLoaded)
    assert isinstance(run(loaded)[0], GenerationDone)


def test_a_load_says_that_the_pair_before_is_gone_even_if_it_gets_no_further(
    loaded: Engine, loader: ScriptedLoader
) -> None:
    """Whoever hears only the failure could not know whether the old pair, let go for its memory, still answers."""
    loader.n_pieces = 0
    loader.load_fault = OutOfMemory("The context takes 99 GB, 3 GB are free.")
    listener = Listener()
    assert isinstance(load(loaded, listener), JobFailed)
    assert [type(event) for event in listener.events] == [JobQueued, LoadProgress, JobFailed]
    nothing_to_lose = Listener()
    load(loaded, nothing_to_lose)
    assert [type(event) for event in nothing_to_lose.events] == [JobQueued, JobFailed]


@pytest.mark.parametrize(
    "request_",
    [
        Generate(RawPrompt(""), print),
        Generate(TokenPrompt(()), print),
        Generate(TokenPrompt((5, -1)), print),
        Generate(TokenPrompt((5, 10**6)), print),
        Generate(RawPrompt("x"), print, max_tokens=-1),
        Generate(RawPrompt("x"), print, draft=DraftOptions("backwards")),  # type: ignore[arg-type]
        Generate(RawPrompt("x"), print, sampling=Sampling(temperature=float("nan"))),
        Generate(RawPrompt("x"), print, sampling=Sampling(top_p=float("inf"))),
        Generate(RawPrompt("x"), print, sampling=Sampling(top_k=-3)),
        Generate(RawPrompt("x"), print, sampling=Sampling(penalty_window=-2)),
    ],
    ids=lambda request: repr(request)[:70],
)
def test_what_makes_no_sense_is_refused_in_words(loaded: Engine, request_: Generate) -> None:
    listener = Listener()
    loaded.submit(replace(request_, subscriber=listener))
    failed = listener.wait_for_end()
    assert isinstance(failed, JobFailed)
    assert failed.kind == "bad_request"
