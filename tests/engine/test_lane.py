"""The lane over a scripted session: order, stop strings, cancelling, closing."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import (
    Event,
    GenerationDone,
    JobCancelled,
    JobFailed,
    JobQueued,
    LoadProgress,
    PairLoaded,
    PairUnloaded,
    PrefillProgress,
    PromptReady,
    StepDone,
)
from dflash_desktop.engine.requests import (
    LoadOptions,
    LoadPair,
    UnloadPair,
)
from support.patience import LONG_S, in_time
from support.scripted_session import (
    LAST_EVENTS,
    PIECES,
    Listener,
    ScriptedLoader,
    ScriptedSession,
    ask,
    load,
    run,
)

TEXT = b"".join(PIECES).decode()


# ---- what a job says -------------------------------------------------------------------------------------------


def test_a_reply_says_everything_in_order(loaded: Engine) -> None:
    began = time.perf_counter()
    done, listener = run(loaded)
    took_s = time.perf_counter() - began
    assert isinstance(done, GenerationDone)
    kinds = [type(event) for event in listener.events]
    assert kinds == [JobQueued, PromptReady, PrefillProgress, *[StepDone] * 9, GenerationDone]
    assert done.text == TEXT == "".join(step.text for step in listener.of(StepDone))
    assert done.finish_reason == "stop"
    assert done.token_ids[-1] == 257  # the end token counts, but has no text
    assert done.n_committed == len(done.token_ids) == 9
    assert (done.n_steps, done.n_plain_steps, done.n_prompt_tokens) == (9, 9, 6)
    assert 0 < done.ttft_s < took_s


def test_a_load_says_everything_in_order(engine: Engine) -> None:
    listener = Listener()
    assert isinstance(load(engine, listener), PairLoaded)
    assert [type(event) for event in listener.events] == [JobQueued, LoadProgress, LoadProgress, PairLoaded]


def test_all_native_calls_and_all_events_come_from_one_thread(loaded: Engine, session: ScriptedSession) -> None:
    threads: set[int] = set()
    ended = threading.Event()

    def listen(event: Event) -> None:
        threads.add(threading.get_ident())
        if isinstance(event, GenerationDone):
            ended.set()

    loaded.submit(ask(listen))
    assert ended.wait(LONG_S)
    assert threads == session.threads
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_block_becomes_one_event_with_its_tree_and_times() -> None:
    session = ScriptedSession(PIECES, block=4)
    engine = Engine(ScriptedLoader(session))
    engine.start()
    try:
        load(engine)
        done, listener = run(engine)
    finally:
        engine.close()
    assert isinstance(done, GenerationDone)
    steps = listener.of(StepDone)
    assert [step.n_committed for step in steps] == [4, 4, 1]
    assert steps[0].tree is not None
    assert len(steps[0].tree.tokens) == 4
    assert (done.n_drafted, done.n_plain_steps, done.n_first_committed) == (9, 0, 4)
    assert done.verify_s == pytest.approx(30e-6)


# ---- stop strings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 3, 8, 16])
@pytest.mark.parametrize(
    ("stop", "text", "n_tokens"),
    [("three", "one two ", 3), ("e four", "one two thre", 4), ("wo thr", "one t", 3), ("eight ", TEXT[:-6], 8)],
)
def test_a_stop_string_ends_the_reply_at_its_exact_place(block: int, stop: str, text: str, n_tokens: int) -> None:
    engine = Engine(ScriptedLoader(ScriptedSession(PIECES, block=block)))
    engine.start()
    try:
        load(engine)
        done, listener = run(engine, stop=("never", stop))
    finally:
        engine.close()
    assert isinstance(done, GenerationDone)
    assert (done.text, done.finish_reason, done.stop_string) == (text, "stop", stop)
    assert "".join(step.text for step in listener.of(StepDone)) == text
    assert done.n_committed == n_tokens == sum(step.n_committed for step in listener.of(StepDone))


def test_text_held_for_a_stop_string_that_does_not_come_is_given_at_the_end(loaded: Engine) -> None:
    done, _ = run(loaded, stop=("eight or nine",))
    assert isinstance(done, GenerationDone)
    assert (done.text, done.stop_string) == (TEXT, None)


# ---- order and cancelling --------------------------------------------------------------------------------------


def test_jobs_run_in_the_order_of_their_submission_whichever_thread_asks(loaded: Engine) -> None:
    order: list[int] = []
    lock = threading.Lock()
    submitted: list[int] = []
    listeners = [Listener() for _ in range(30)]

    def submit(mine: list[Listener]) -> None:
        for listener in mine:

            def listen(event: Event, listener: Listener = listener) -> None:
                if isinstance(event, PromptReady):
                    order.append(event.job_id)
                listener(event)

            with lock:  # so that the test knows the order
                submitted.append(loaded.submit(ask(listen)))

    threads = [threading.Thread(target=submit, args=(listeners[start::3],)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for listener in listeners:
        end = listener.wait_for_end()
        assert isinstance(end, GenerationDone)
        assert end.text == TEXT
        assert len([event for event in listener.events if isinstance(event, LAST_EVENTS)]) == 1
    assert order == submitted == sorted(submitted)


def test_a_waiting_job_is_told_how_many_come_first_and_can_be_cancelled_at_once(
    loaded: Engine, session: ScriptedSession
) -> None:
    session.gate = threading.Event()
    running, second, third = Listener(), Listener(), Listener()
    loaded.submit(ask(running))
    running.wait_for(PromptReady)
    second_id = loaded.submit(ask(second))
    loaded.submit(ask(third))
    session.gate.set()
    session.gate = None
    assert second.wait_for(JobQueued).n_ahead >= 1
    loaded.cancel(second_id)
    assert isinstance(second.wait_for_end(), (JobCancelled, GenerationDone))
    assert isinstance(third.wait_for_end(), GenerationDone)


def test_a_waiting_job_is_cancelled_while_another_one_runs(session: ScriptedSession) -> None:
    session.tokens = [260, 261] * 100_000
    engine = Engine(ScriptedLoader(session))
    engine.start()
    try:
        load(engine)
        running, waiting = Listener(), Listener()
        running_id = engine.submit(ask(running))
        running.wait_for(StepDone)
        waiting_id = engine.submit(ask(waiting))
        assert waiting.wait_for(JobQueued).n_ahead == 1
        engine.cancel(waiting_id)
        assert isinstance(waiting.wait_for_end(), JobCancelled)
        engine.cancel(running_id)
        done = running.wait_for_end()
    finally:
        engine.close()
    assert isinstance(done, GenerationDone)
    assert done.finish_reason == "cancelled"
    assert done.text.startswith("one two ")


@in_time(0.5)
def test_cancelling_during_prefill_ends_the_reply_without_text(
    loaded: Engine, session: ScriptedSession, within_s: float
) -> None:
    session.gate = threading.Event()
    listener = Listener()
    job = loaded.submit(ask(listener))
    listener.wait_for(PromptReady)
    began = time.perf_counter()
    loaded.cancel(job)
    done = listener.wait_for_end()
    assert time.perf_counter() - began < within_s
    assert isinstance(done, GenerationDone)
    assert (done.finish_reason, done.text, done.n_steps, done.ttft_s) == ("cancelled", "", 0, 0.0)
    session.gate.set()
    assert isinstance(run(loaded)[0], GenerationDone)


def test_a_cancel_before_the_job_begins_is_not_lost(loaded: Engine, session: ScriptedSession) -> None:
    for _ in range(50):
        listener = Listener()
        loaded.cancel(loaded.submit(ask(listener)))
        end = listener.wait_for_end()
        assert isinstance(end, JobCancelled) or (isinstance(end, GenerationDone) and end.finish_reason == "cancelled")
    assert isinstance(run(loaded)[0], GenerationDone)
    assert session.is_closed is False


def test_a_late_cancel_never_hits_the_next_job(loaded: Engine) -> None:
    for _ in range(50):
        first, second = Listener(), Listener()
        first_id = loaded.submit(ask(first))
        loaded.submit(ask(second))
        first.wait_for(PromptReady)
        loaded.cancel(first_id)
        done = second.wait_for_end()
        assert isinstance(done, GenerationDone)
        assert (done.finish_reason, done.text) == ("stop", TEXT)


def test_cancelling_what_is_unknown_or_finished_is_no_error(loaded: Engine) -> None:
    done, _ = run(loaded)
    assert isinstance(done, GenerationDone)
    loaded.cancel(done.job_id)
    loaded.cancel(99_999)


def test_a_load_is_cancelled_between_two_pieces_and_frees_what_it_opened(
    engine: Engine, loader: ScriptedLoader
) -> None:
    loader.gate = threading.Event()
    loader.n_pieces = 1000
    listener = Listener()
    job = engine.submit(LoadPair(Path("target.gguf"), None, LoadOptions(), listener))
    listener.wait_for(JobQueued)
    engine.cancel(job)
    loader.gate.set()
    assert isinstance(listener.wait_for_end(), JobCancelled)
    assert loader.n_unfinished_loads == 0
    assert isinstance(run(engine)[0], JobFailed)


# ---- closing ---------------------------------------------------------------------------------------------------


@in_time(1)
def test_closing_while_a_reply_and_others_wait_ends_all_of_them_within_a_second(
    session: ScriptedSession, within_s: float
) -> None:
    session.gate = threading.Event()
    engine = Engine(ScriptedLoader(session))
    engine.start()
    load(engine)
    running, waiting = Listener(), Listener()
    engine.submit(ask(running))
    engine.submit(ask(waiting))
    running.wait_for(PromptReady)
    began = time.perf_counter()
    engine.close()
    assert time.perf_counter() - began < within_s
    done = running.wait_for_end()
    assert isinstance(done, GenerationDone)
    assert done.finish_reason == "cancelled"
    assert isinstance(waiting.wait_for_end(), JobCancelled)
    assert session.is_closed


def test_closing_twice_or_unstarted_is_fine_and_later_jobs_are_refused(loader: ScriptedLoader) -> None:
    engine = Engine(loader)
    engine.close()
    engine = Engine(loader)
    engine.start()
    engine.close()
    engine.close()
    with pytest.raises(AppError, match="closed"):
        engine.submit(ask(print))


def test_unloading_frees_the_pair(loaded: Engine, session: ScriptedSession) -> None:
    listener = Listener()
    loaded.submit(UnloadPair(listener))
    assert isinstance(listener.wait_for_end(), PairUnloaded)
    assert session.is_closed
