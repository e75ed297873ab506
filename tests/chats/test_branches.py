"""Branches of a chat, and titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_desktop.chats.branches import Branches
from dflash_desktop.chats.titles import MAX_CHARS, title_of


def line_of(n: int) -> Branches:
    branches = Branches()
    for number in range(1, n + 1):
        branches.add(number, number - 1 or None, number)
    return branches


def test_an_edit_opens_a_branch_and_both_can_be_shown() -> None:
    branches = line_of(4)
    branches.add(5, 2, branches.next_order())  # another version of 3
    branches.add(6, 5, branches.next_order())
    assert branches.path() == [1, 2, 5, 6]
    assert branches.place(5) == (2, 2)
    branches.show(3)
    assert branches.path() == [1, 2, 3, 4]
    assert branches.siblings(3) == [3, 5]


def test_coming_back_to_a_branch_shows_what_showed_there() -> None:
    branches = line_of(2)
    branches.add(3, 1, branches.next_order())  # the answer again
    branches.show(2)
    branches.add(4, None, branches.next_order())  # the question again
    assert branches.path() == [4]
    branches.show(1)
    assert branches.path() == [1, 2]


def test_removing_takes_everything_below() -> None:
    branches = line_of(4)
    branches.add(5, 2, branches.next_order())
    assert branches.remove(2) == [2, 3, 5, 4]
    assert branches.path() == [1]
    assert len(branches) == 1


def test_a_message_without_its_parent_is_not_hidden() -> None:
    branches = Branches()
    branches.add(1, None, 1)
    branches.add(9, 8, 2)
    assert branches.path() == [9]
    assert branches.place(9) == (2, 2)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=40))
def test_every_message_can_be_shown_and_none_is_lost(choices: list[tuple[int, bool]]) -> None:
    branches = Branches()
    ids: list[int] = []
    for number, (choice, removes) in enumerate(choices, 1):
        if removes and ids:
            gone = branches.remove(ids[choice % len(ids)])
            ids = [one for one in ids if one not in gone]
        else:
            branches.add(number, ids[choice % len(ids)] if ids and choice else None, branches.next_order())
            ids.append(number)
    for one in ids:
        ancestor: int | None = one
        while ancestor is not None:
            branches.show(ancestor)
            ancestor = branches.parent(ancestor)
        assert one in branches.path()
        place, n_places = branches.place(one)
        assert branches.siblings(one)[place - 1] == one
        assert len(branches.siblings(one)) == n_places
    assert len(branches) == len(ids)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why is the sky blue?", "Why is the sky blue?"),
        ("\n\n  # **Plan** for `today`\nmore", "Plan for today"),
        ("- first\n- second", "first"),
        ("```python\nprint(1)\n```", "python"),
        ("---\n***\n", ""),
        ("", ""),
        ("天空为什么是蓝色的", "天空为什么是蓝色的"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_of(text) == title


def test_a_long_title_is_cut_at_a_word() -> None:
    title = title_of("several words that go on " * 9)
    assert len(title) <= MAX_CHARS
    assert title.endswith("…")
    assert title[:-1].split()[-1] in ("several", "words", "that", "go", "on")
    assert len(title_of("x" * 500)) <= MAX_CHARS
