"""What stays: never more than the budget, always in order, what the question names first."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.engine.pflash.segments import cut
from dflash_desktop.engine.pflash.selection import MARK, Curve, Unit, anchored, join, select

PARAGRAPHS = [
    f"Paragraph {word} is about nothing in particular." for word in ("one", "two", "three", "four", "five", "six")
]


def units_of(text: str, scores: list[float] | None = None, n_tokens: list[int] | None = None) -> list[Unit]:
    segments = cut(text)
    return [
        Unit(segment, n_tokens[i] if n_tokens else 10, scores[i % len(scores)] if scores else 1.0 / (i + 1))
        for i, segment in enumerate(segments)
    ]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=30),
    st.integers(0, 400),
    st.sampled_from(["", "What about paragraph three?", '"nothing in particular"']),
)
@settings(max_examples=200, deadline=None)
def test_the_budget_is_a_ceiling_and_order_is_kept(rated: list[tuple[float, int]], budget: int, question: str) -> None:
    text = "\n\n".join(f"Unit number {i} with words." for i in range(len(rated)))
    units = [Unit(s, n, score) for s, (score, n) in zip(cut(text), rated, strict=True)]
    chosen = select(text, units, question, budget)
    assert sum(unit.n_tokens for unit in chosen if unit.is_kept) <= budget
    kept = [text[unit.segment.start : unit.segment.end] for unit in chosen if unit.is_kept]
    shortened = join(text, chosen)
    position = 0
    for body in kept:
        position = shortened.index(body, position) + len(body)
    assert re.sub(rf" ?{re.escape(MARK)}[ \n]?", "", shortened) == "".join(kept)
    shortened.encode("utf-8")


def test_a_mark_stands_wherever_something_was_left_out_and_nowhere_else() -> None:
    text = "\n\n".join(PARAGRAPHS)
    units = units_of(text, scores=[0, 1, 0, 0, 1, 1])
    assert (
        join(text, select(text, units, "", 1000))
        == f"{MARK}\n{PARAGRAPHS[1]}\n\n{MARK}\n{PARAGRAPHS[4]}\n\n{PARAGRAPHS[5]}"
    )
    everything = select(text, units_of(text), "", 1000)
    assert join(text, everything) == text


def test_what_the_question_quotes_or_names_comes_first() -> None:
    text = "\n\n".join([*PARAGRAPHS, "The file build_all.sh lives here.", "We call it the golden pear of Bath."])
    low = [1.0] * 6 + [0.01, 0.01]
    for question, wanted in (
        ("Where is build_all.sh?", 6),
        ('What is "golden pear of Bath"?', 7),
        ("who called it the golden pear of Bath then", 7),
    ):
        chosen = select(text, units_of(text, low), question, 10)
        assert [i for i, unit in enumerate(chosen) if unit.is_kept] == [wanted]
        assert chosen[wanted].why == "anchor"


def test_what_stands_everywhere_is_no_anchor() -> None:
    text = "\n\n".join(f"The id_1 stands here too, number {i}." for i in range(9))
    chosen = select(text, units_of(text, [0.1 * i for i in range(9)]), "What is id_1?", 20)
    assert [unit.why for unit in chosen if unit.is_kept] == ["score", "score"]


def test_a_row_brings_the_names_of_its_columns_or_stays_away() -> None:
    text = "| fruit | price |\n|---|---|\n| apple | 3 |\n| pear | 4 |\n"
    scores = [0.0, 0.0, 0.0, 1.0]
    chosen = select(text, units_of(text, scores), "", 20)
    assert [unit.why for unit in chosen] == ["header", "dropped", "dropped", "score"]
    assert not any(unit.is_kept for unit in select(text, units_of(text, scores), "", 19))


def test_curves_are_linear_between_points_and_flat_beyond() -> None:
    curve = Curve.parse("16384:0.4, 32768:0.2")
    assert [curve.ratio(n) for n in (0, 16384, 24576, 32768, 10**6)] == pytest.approx([0.4, 0.4, 0.3, 0.2, 0.2])
    assert Curve.parse("0.1").ratio(5) == 0.1


@pytest.mark.parametrize(
    "bad", ["", "x", "0", "1.5", "-0.1", "nan", "100:0.1,100:0.2", "200:0.1,100:0.2", "1:2:3", "a:0.1"]
)
def test_curves_that_make_no_sense_are_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"ratio|points|TOKENS"):
        Curve.parse(bad)


@pytest.mark.parametrize("question", ["-" * 50_000, "1" + "." * 50_000, "a" * 50_000, "a.b" * 20_000])
def test_a_question_of_signs_costs_no_time(question: str) -> None:
    start = time.process_time()
    assert anchored("nothing of that", [], question) == set()
    assert time.process_time() - start < 2
