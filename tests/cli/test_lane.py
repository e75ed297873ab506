"""Waiting for the engine: how each end of a job becomes a result, an error or an interrupt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.cli import chat
from dflash_desktop.cli.arguments import build_parser
from dflash_desktop.cli.lane import generate, ignore_event, load_pair
from dflash_desktop.engine.events import Event, GenerationDone, JobCancelled, JobFailed, StepDone
from dflash_desktop.engine.requests import Generate, Job, LoadOptions, RawPrompt

REQUEST = Generate(RawPrompt("x"), ignore_event)


def step(text: str) -> StepDone:
    return StepDone(1, 0, text, (1,), (), 0, 0, 1, 1, 2, "no_draft", 0, 1, 1, 1, 1.0, 0.1, None)


def done(reason: str) -> GenerationDone:
    return GenerationDone(1, "ab", (1, 2), reason, None, 3, 0, 2, 0, 0, 2, 0.0, 0.1, 0.1, 0.1, 2, 0.0, 0.1)  # type: ignore[arg-type]


class ScriptedLane:
    """Tells `events` at once, and `after_cancel` when it is cancelled."""

    def __init__(self, events: list[Event], after_cancel: list[Event] | None = None) -> None:
        self._events = events
        self._after_cancel = after_cancel or []
        self._job: Job | None = None
        self.n_cancels = 0

    def submit(self, job: Job) -> int:
        self._job = job
        for event in self._events:
            job.subscriber(event)
        return 1

    def cancel(self, job_id: int) -> None:
        assert job_id == 1
        assert self._job is not None
        self.n_cancels += 1
        for event in self._after_cancel:
            self._job.subscriber(event)


def interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_every_step_is_seen_before_the_result() -> None:
    seen: list[str] = []
    result = generate(ScriptedLane([step("a"), step("b"), done("stop")]), REQUEST, lambda each: seen.append(each.text))
    assert seen == ["a", "b"]
    assert result.finish_reason == "stop"


@pytest.mark.parametrize(
    ("kind", "error"),
    [("bad_request", BadInput), ("context_exceeded", BadInput), ("device", AppError), ("bug", AppError)],
)
def test_what_the_person_can_mend_is_bad_input(kind: str, error: type[AppError]) -> None:
    failed = JobFailed(1, "It did not work.", kind)  # type: ignore[arg-type]
    with pytest.raises(AppError, match="It did not work") as caught:
        generate(ScriptedLane([failed]), REQUEST)
    assert caught.type is error
    with pytest.raises(AppError, match="It did not work") as caught:
        load_pair(ScriptedLane([failed]), Path("x"), draft=None, options=LoadOptions())
    assert caught.type is error


def test_an_interrupt_ends_the_reply_and_keeps_it() -> None:
    lane = ScriptedLane([step("a")], after_cancel=[done("cancelled")])
    assert generate(lane, REQUEST, interrupt).finish_reason == "cancelled"
    assert lane.n_cancels == 1


def test_a_second_interrupt_is_not_swallowed() -> None:
    lane = ScriptedLane([step("a")], after_cancel=[step("b")])
    with pytest.raises(KeyboardInterrupt):
        generate(lane, REQUEST, interrupt)


def test_a_job_cancelled_before_it_began_leaves_nothing_to_keep() -> None:
    with pytest.raises(KeyboardInterrupt):
        generate(ScriptedLane([step("a")], after_cancel=[JobCancelled(1)]), REQUEST, interrupt)


def test_a_reader_that_is_gone_ends_the_work() -> None:
    def broken(_: object) -> None:
        raise BrokenPipeError

    lane = ScriptedLane([step("a")])
    with pytest.raises(BrokenPipeError):
        generate(lane, REQUEST, broken)
    assert lane.n_cancels == 1


def test_an_interrupted_load_is_cancelled() -> None:
    lane = ScriptedLane([step("not an event of a load")])
    with pytest.raises(KeyboardInterrupt):
        load_pair(lane, Path("x"), draft=None, options=LoadOptions(), watch=interrupt)
    assert lane.n_cancels == 1


@pytest.mark.parametrize("reply", ["It was a dark night, and nobody was at home. " * 12, "It was a dark night.", ""])
def test_a_reply_in_a_loop_is_told_beside_it_and_left_as_it_is(capsys: pytest.CaptureFixture[str], reply: str) -> None:
    arguments = build_parser().parse_args(["chat", "--prompt", "Hi"])
    lane = ScriptedLane([step(reply), replace(done("length"), text=reply)])
    assert chat._answer(lane, arguments) == 0
    told = capsys.readouterr()
    assert told.out == f"{reply}\n"
    assert ("repeats itself" in told.err) == (len(reply) > 400)
