"""The conversation's rows, as Qt sees them."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from dflash_desktop.engine.events import GenerationDone, StepReason
from dflash_desktop.ui.chats.chat_item_model import STATE_ROLE, ChatItemModel
from dflash_desktop.ui.chats.facts import AskedWith, facts_of
from dflash_desktop.ui.chats.messages import Message, ReplyState, prompt_messages


def test_rows_follow_the_rules_of_item_models(qtmodeltester: Any, app: QApplication) -> None:
    model = ChatItemModel()
    qtmodeltester.check(model)
    model.append(Message("user", "one"))
    reply = Message("assistant", "", ReplyState.QUEUED)
    model.append(reply)
    model.extend_reply(reply, "two")
    model.set_prefill(reply, 5, 10, 1.0)
    model.fail(reply, "no")
    qtmodeltester.check(model)
    model.remove_from(1)
    model.remove_from(7)
    qtmodeltester.check(model)


def test_a_streamed_row_is_updated_and_never_reset(app: QApplication) -> None:
    model = ChatItemModel()
    resets: list[int] = []
    changes: list[int] = []
    model.modelReset.connect(lambda: resets.append(1))
    model.dataChanged.connect(lambda top, _bottom: changes.append(top.row()))
    model.append(Message("user", "one"))
    reply = Message("assistant", "", ReplyState.QUEUED)
    row = model.append(reply)
    for word in ("a", "b", "c"):
        model.extend_reply(reply, word)
    assert (resets, changes) == ([], [1, 1, 1])
    assert model.data(model.index(row)) == "abc"
    assert model.data(model.index(row), STATE_ROLE) == "writing"


def test_a_screen_reader_hears_who_speaks_and_what_failed(app: QApplication) -> None:
    model = ChatItemModel()
    model.append(Message("user", "Why?"))
    reply = Message("assistant", "Because", ReplyState.WRITING)
    row = model.append(reply)
    model.fail(reply, "The device stopped.")
    role = Qt.ItemDataRole.AccessibleTextRole
    assert model.data(model.index(0), role) == "You: Why?"
    assert model.data(model.index(row), role) == "Answer: Because\nThe device stopped."


def test_the_prompt_has_no_empty_replies_and_no_two_neighbours_of_one_role() -> None:
    messages = [Message("user", "a"), Message("assistant", ""), Message("user", "b"), Message("assistant", "c")]
    assert prompt_messages(messages, "  ") == [
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "c"},
    ]
    assert prompt_messages(messages, "Be brief.")[0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("n_plain_steps", "reason", "words"),
    [
        (0, "best", "draft on"),
        (4, "probe", "draft on"),
        (9, "plain_faster", "draft off: plain is faster here"),
        (10, "off", "draft off"),
        (10, "no_draft", "no draft"),
    ],
)
def test_a_probe_now_and_then_makes_no_drafting(n_plain_steps: int, reason: StepReason, words: str) -> None:
    done = GenerationDone(
        1, "", (), "stop", None, 9, 0, 10, 20, 2, 12, 0.0, 0.1, 0.1, 1.0, n_plain_steps, 0.0, 0.0, n_first_committed=1
    )
    assert facts_of(done, reason=reason, asked=AskedWith()).draft_words() == words


def test_a_reply_of_one_token_has_no_speed() -> None:
    """B139."""
    done = GenerationDone(
        1, "a", (1,), "stop", None, 9, 9, 1, 0, 0, 1, 0.0, 0.0, 0.0, 0.0, 1, 0.0, 0.0, n_first_committed=1
    )
    line = facts_of(done, reason="no_draft", asked=AskedWith()).line()
    assert line.startswith("– tok/s")
    assert "inf" not in line
    assert "nan" not in line
