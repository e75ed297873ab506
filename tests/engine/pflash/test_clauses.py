"""Questions that ask several things at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_desktop.engine.pflash.clauses import MOST_CLAUSES, clauses, in_turns


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (
            "Who owns the bike, how do visitors log in, and when is lunch?",
            ["Who owns the bike?", "how do visitors log in?", "when is lunch?"],
        ),
        ("Who owns it now?\nWhat was painted yellow?", ["Who owns it now?", "What was painted yellow?"]),
        ("谁拥有那辆自行车？访客怎么登录无线网？", ["谁拥有那辆自行车?", "访客怎么登录无线网?"]),
        ("Where does she hide the key for the front door?", []),
        ("Well, who is it?", []),
        ("What does version 1.2.3 of a.b.c do?", []),
        ("", []),
    ],
)
def test_a_question_is_cut_where_it_asks_another_thing(question: str, found: list[str]) -> None:
    assert clauses(question) == found


def test_a_list_of_many_wishes_is_one_question() -> None:
    assert len(clauses("Check the names. " * MOST_CLAUSES)) == MOST_CLAUSES
    assert clauses("Check the names. " * (MOST_CLAUSES + 1)) == []


def ordered(scores: list[float]) -> list[int]:
    return sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: -scores[i])


def test_each_clause_has_its_best_unit_kept_before_the_second_best_of_any() -> None:
    loud, low = [9.0, 8.0, 7.0, 0.0, 0.0], [0.0, 0.0, 1.0, 5.0, 0.0]
    assert ordered([9.0, 8.0, 7.0, 5.0, 0.0])[:2] == [0, 1], "as a whole"
    found = in_turns([9.0, 8.0, 7.0, 5.0, 0.0], [loud, low])
    assert ordered(found)[:2] == [0, 3]
    assert found[4] == 0
    assert sorted(found) == [0.0, 5.0, 7.0, 8.0, 9.0]


def test_a_clause_that_nothing_answers_has_no_turn() -> None:
    whole = [3.0, 2.0, 1.0, 0.0]
    assert in_turns(whole, [[6.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.9]]) == whole
    assert in_turns(whole, []) == whole
    assert in_turns(whole, [[0.0] * 4, [0.0] * 4]) == whole


@given(st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(st.floats(0, 9), min_size=n, max_size=n), min_size=3)))
def test_scores_stay_in_their_scale_and_what_nobody_asks_for_has_none(
    rows: list[list[float]],
) -> None:
    found = in_turns(rows[0], rows[1:])
    best = [max(scores) for scores in zip(*rows, strict=True)]
    assert all(0 <= score <= max(best) for score in found)
    assert all(score == 0 for score, most in zip(found, best, strict=True) if most == 0)
