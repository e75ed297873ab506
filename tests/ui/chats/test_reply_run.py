"""A reply's raw text becomes thoughts and answer, and its tokens become runs of characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_desktop.engine.events import StepDone
from dflash_desktop.ui.chats.messages import Message
from dflash_desktop.ui.chats.reply_run import ReplyRun, ReplySplitter, TokenRuns
from dflash_desktop.ui.chats.reply_settings import ReplySettings
from dflash_desktop.ui.chats.talk import Talk


def split(raw: str, *, starts_in_thoughts: bool = False, step: int = 3) -> tuple[str, str]:
    splitter = ReplySplitter(starts_in_thoughts)
    for at in range(0, len(raw), step):
        splitter.feed(raw[at : at + step])
    splitter.finish()
    return splitter.take()


@pytest.mark.parametrize("step", [1, 3, 100])
@pytest.mark.parametrize(
    ("raw", "starts", "text", "reasoning"),
    [
        ("Plain.", False, "Plain.", ""),
        ("<think>\nHm.\n</think>\n\nSo.", False, "So.", "Hm."),
        ("Hm.\n</think>\n\nSo.", True, "So.", "Hm."),
        ("<think>\n\n</think>\n\nSo.", False, "So.", ""),
        ("<think>never ends", False, "", "never ends"),
        ("A <think> in the text", False, "A <think> in the text", ""),
        ("", True, "", ""),
    ],
)
def test_thoughts_and_answer(raw: str, starts: bool, text: str, reasoning: str, step: int) -> None:
    assert split(raw, starts_in_thoughts=starts, step=step) == (text, reasoning)


TOKENS = {1: b"Hel", 2: b"lo ", 3: "😀".encode()[:2], 4: "😀".encode()[2:], 5: "家".encode(), 6: b"", 7: b"!"}


def step_of(tokens: tuple[int, ...], n_accepted: int) -> StepDone:
    return StepDone(
        1, 0, "", tokens, (), 7, n_accepted, len(tokens), 0, 0, "best", 0, 0, 0, 0, 0.0, 0.0, None
    )  # fmt: skip


def runs_of(*steps: StepDone) -> TokenRuns:
    runs = TokenRuns(lambda token: TOKENS[token])
    for step in steps:
        runs.add(step)
    return runs


def test_runs_are_characters_by_turns_own_and_accepted() -> None:
    runs = runs_of(step_of((1,), 0), step_of((2, 5, 7), 2), step_of((3, 4), 1))
    raw = "Hello 家!😀"
    assert runs.in_characters(raw, len(raw)) == (3, 4, 1, 1, 0)
    assert runs.in_characters(raw, 3) == (0, 1, 1, 1, 0)  # the answer after thoughts: the last characters


def test_runs_that_do_not_add_up_are_left_out() -> None:
    runs = runs_of(step_of((1, 2), 1))
    assert runs.in_characters("Hello and more", 14) == ()
    assert runs.in_characters("Hel\ufffd", 4) == ()
    assert TokenRuns(None).in_characters("Hello ", 6) == ()


@given(
    st.lists(st.tuples(st.lists(st.sampled_from([1, 2, 5, 7]), min_size=1, max_size=5), st.integers(0, 5)), min_size=1)
)
def test_runs_cover_the_text_exactly(steps: list[tuple[list[int], int]]) -> None:
    runs = runs_of(*(step_of(tuple(tokens), min(n, len(tokens))) for tokens, n in steps))
    raw = b"".join(TOKENS[token] for tokens, _ in steps for token in tokens).decode()
    counts = runs.in_characters(raw, len(raw))
    assert counts == () or sum(counts) == len(raw)
    n_accepted = sum(len(TOKENS[token].decode()) for tokens, n in steps for token in tokens[: min(n, len(tokens))])
    assert sum(counts[1::2]) == (n_accepted if counts else 0)


def test_a_continued_reply_keeps_what_was_there() -> None:
    talk = Talk()
    message = Message("assistant", "One, ", message_id=1)
    run = ReplyRun(talk, message, "continue", ReplySettings(), prefix="One, ")
    run.tokens = runs_of(step_of((1, 2), 1))
    run.raw.append("Hello ")
    text, _ = run.advance()
    rest, _ = run.finish()
    message.text += text + rest
    assert message.text == "One, Hello "
    assert run.accepted_runs() == (5, 3, 3)
