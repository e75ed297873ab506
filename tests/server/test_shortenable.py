"""What is put back into a body: the text that is left, in the places it came from, and nothing else."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_desktop.engine.pflash.chat import plan_chat
from dflash_desktop.engine.pflash.compress import Compression, Shortened
from dflash_desktop.engine.pflash.selection import MARK, Unit, join
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.server.shortenable import PATHS, put_back, readable

PATH = {"messages": "/v1/messages", "input": "/v1/responses"}
LINES = st.lists(st.text("ab c.", min_size=1, max_size=12), min_size=1, max_size=60).map("\n\n".join)


def found(body: dict[str, Any], member: str, keeps: Any, front: str = "") -> Compression:
    """The droppable units that `keeps` says, as the engine would hand them back."""
    messages = readable(PATH[member], body).request.messages
    plan = plan_chat(messages, has_tools=False, count=lambda text: len(text) + 250)
    out = [dict(message) for message in messages]
    done = []
    for region in plan.regions:
        units = [
            Unit(segment, n, 0.0, "pinned" if pinned else "score" if keeps() else "dropped")
            for segment, n, pinned in zip(region.units, region.n_tokens, region.is_pinned, strict=True)
        ]
        done.append(Shortened(region.message, region.text, tuple(units), join(region.text, units)))
        out[region.message]["content"] = done[-1].kept_text
    if front:
        out[-1]["content"] = front + content_text(out[-1]["content"])
    return Compression(tuple(out), tuple(done), 0, 0)


def bodies(texts: list[str]) -> list[tuple[str, dict[str, Any]]]:
    kinds = (("messages", "text"), ("input", "input_text"))
    return [
        (
            member,
            {
                "model": "m",
                member: [
                    {"role": "user", "content": [{"type": kind, "text": text, "n": i} for i, text in enumerate(texts)]},
                    {"role": "assistant", "content": "Yes."},
                    {"role": "user", "content": texts[0], "id": "x"},
                ],
            },
        )
        for member, kind in kinds
    ]


@given(st.lists(LINES, min_size=1, max_size=4))
def test_where_all_is_kept_the_body_is_as_it_came(texts: list[str]) -> None:
    for member, body in bodies(texts):
        before = copy.deepcopy(body)
        assert put_back(body, readable(PATH[member], body), found(body, member, lambda: True)) == before
        assert body == before


@given(st.lists(LINES, min_size=1, max_size=4), st.integers(0, 99))
def test_parts_keep_their_number_their_order_and_their_members_and_no_text_is_new(texts: list[str], seed: int) -> None:
    rng = random.Random(seed)
    for member, body in bodies(texts):
        after = put_back(body, readable(PATH[member], body), found(body, member, lambda: rng.random() < 0.4))
        assert {**after, member: 0} == {**body, member: 0}
        first, second, third = after[member]
        assert second == body[member][1]
        assert {**third, "content": 0} == {**body[member][2], "content": 0}
        parts = body[member][0]["content"]
        assert [{**part, "text": 0} for part in first["content"]] == [{**part, "text": 0} for part in parts]
        for part, came in zip(first["content"], parts, strict=True):
            lines = {line.strip() for line in came["text"].split("\n")}
            left = [line.strip() for line in part["text"].replace(f" {MARK} ", f"\n{MARK}\n").split("\n")]
            assert set(left) <= lines | {MARK, ""}


@pytest.mark.parametrize("member", ["messages", "input"])
def test_what_is_recalled_stands_in_front_of_the_question(member: str) -> None:
    _, body = next(each for each in bodies(["a b.", "c."]) if each[0] == member)
    last = {"role": "user", "content": [{"type": "text", "text": "One?"}, {"type": "text", "text": "Two?"}]}
    body[member].append(last)
    after = put_back(body, readable(PATH[member], body), found(body, member, lambda: True, "Again: x.\n\n"))
    assert [part["text"] for part in after[member][-1]["content"]] == ["Again: x.\n\nOne?", "Two?"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["user", "text", "message", "", "tool_result"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["role", "content", "type", "text", "input", "messages", "system", "tools", "id"]),
                inner,
            )
        ),
        max_leaves=20,
    ),
    st.sampled_from(PATHS),
)
def test_any_body_is_read_or_says_why_not(value: Any, path: str) -> None:
    for name in ("messages", "input", "system", "instructions"):
        found = readable(path, {"messages": [{"role": "user", "content": "Hi"}], name: value})
        assert found.why_not or len(found.places) == len(found.request.messages)
        assert found.mixed is not None
