"""Units of a text: together they are the text, and none ends inside a word, a line of code or a JSON value."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.engine.pflash.segments import MOST_CHARS, cut

CODE = """@dataclass
class Point:
    x: int

    def length(self) -> float:
        return abs(self.x)


def main() -> None:
    for i in range(3):
        print(i)
"""


def bodies(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in cut(text)]


def kinds(text: str) -> list[str]:
    return [unit.kind for unit in cut(text)]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text('ab "\\,{}[]\n', max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("ab,{", max_size=3), inner, max_size=5),
    max_leaves=30,
)
lines = st.sampled_from([
    "", "Some words here.", "- an item", "# Heading", "```", "```py", "    code(1);", "| a | b |", "|---|---|",
    '{"a": 1}', "{", "]", "x" * 300, "中文。" * 80,
])  # fmt: skip


@given(st.text(max_size=400) | st.lists(lines, max_size=40).map("\n".join))
@settings(max_examples=300, deadline=None)
def test_units_are_the_text_in_order(text: str) -> None:
    units = cut(text)
    assert "".join(bodies(text)) == text
    assert all(unit.start < unit.end for unit in units)
    assert all(unit.header is None or unit.header < i for i, unit in enumerate(units))


@given(st.lists(st.text("abcdefg", min_size=1, max_size=12), min_size=1, max_size=900))
@settings(max_examples=60, deadline=None)
def test_prose_is_never_cut_inside_a_word(words: list[str]) -> None:
    text = " ".join(words)
    for body in bodies(text):
        assert set(body.split()) <= set(words)
        assert len(body) <= MOST_CHARS


def test_a_word_without_end_stays_whole() -> None:
    word = "A" * 5000
    assert any(word in body for body in bodies(f"Look at this: {word} and go on.\n"))


def test_chinese_without_gaps_is_cut_between_characters_of_sentences() -> None:
    text = "这是一个很长的句子，没有空格。" * 300
    assert all(body.endswith("。") for body in bodies(text))
    assert max(map(len, bodies(text))) <= MOST_CHARS


@given(st.lists(values, min_size=1, max_size=12), st.sampled_from([None, 1]))
@settings(max_examples=150, deadline=None)
def test_no_json_value_is_cut(found: list[object], indent: int | None) -> None:
    """Every cut lies where a tokenizer of JSON has a token's end."""
    text = json.dumps(found * 20, indent=indent) + "\n"
    ends = {unit.end for unit in cut(text)}
    i = 0
    while i < len(text):  # strings are the only tokens longer than a character that hold other characters
        if text[i] == '"':
            start = i
            i += 1
            while text[i] != '"':
                i += 2 if text[i] == "\\" else 1
            assert not ends & set(range(start + 1, i + 1))
        elif text[i].isalnum() or text[i] == "-":
            start = i
            while i + 1 < len(text) and (text[i + 1].isalnum() or text[i + 1] in ".-+"):
                i += 1
            assert not ends & set(range(start + 1, i + 1))
        i += 1


def test_records_one_per_line_stay_whole() -> None:
    rows = [json.dumps({"id": i, "text": "a, {b} ] " * (i % 9)}) for i in range(200)]
    for body in bodies("\n".join(rows)):
        for line in body.splitlines():
            json.loads(line)


@pytest.mark.parametrize("fence", ["```python\n{}```\n", "{}"])
def test_code_is_cut_between_functions(fence: str) -> None:
    text = fence.format(CODE * 12)
    found = [body for body in bodies(text) if body.strip("`\n ")]
    assert set(kinds(text)) == {"code"}
    assert len(found) > 5
    allowed = set(text.splitlines(keepends=True))
    assert all(line in allowed for body in found for line in body.splitlines(keepends=True))
    assert all(body.lstrip("`pyhton\n").startswith(("@", "class", "def")) for body in found)


def test_rows_of_a_table_know_their_header() -> None:
    text = "Prices:\n\n| fruit | price |\n|---|---|\n| apple | 3 |\n| pear | 4 |\n\nThat is all.\n"
    units = cut(text)
    rows = [unit for unit in units if unit.kind == "row"]
    assert len(rows) == 4
    assert rows[0].header is None
    assert all(unit.header == units.index(rows[0]) for unit in rows[1:])


def test_items_keep_their_further_lines() -> None:
    text = "- one\n  more of one\n- two\n- three\n"
    assert bodies(text) == ["- one\n  more of one\n", "- two\n", "- three\n"]
    assert set(kinds(text)) == {"item"}


def test_paragraphs_set_in_columns_are_prose_and_logs_are_lines() -> None:
    paragraph = (
        "A long paragraph that somebody wrote in an editor\nwhich breaks the lines at about fifty signs, as\n"
        "editors do for people who like that, and then it\nends.\n"
    )
    log = "\n".join(f"2024-01-{i:02} host{i}: started{' again' * (i % 5)}" for i in range(1, 30)) + "\n"
    assert kinds(paragraph) == ["prose"]
    assert set(kinds(log)) == {"line"}
    assert all(body.startswith("2024") and body.endswith("\n") for body in bodies(log))


@pytest.mark.parametrize(
    "text",
    [
        "a | b\n" + "-" * 20_000 + "x\n",
        "[a value that never ends\n\n" * 4_000,
        '{"a": "said \\"so\n\n' * 4_000,
        '{"a": 1}\n' * 20_000,
        "def f(x):\n    return x\n    y = 2;\n\nSome prose, which is no code.\n\n" * 4_000,
    ],
    ids=["rule", "brackets", "quotes", "records", "code"],
)
def test_long_texts_are_cut_in_time_that_grows_with_their_length(text: str) -> None:
    """Each took minutes where the time grew with the square of the length, or its cube."""
    start = time.process_time()
    assert "".join(bodies(text)) == text
    assert time.process_time() - start < 5


def test_a_value_that_never_ends_hides_no_later_one() -> None:
    text = '[see below\n\n{"a": 1, "b": [2, 3]}\n'
    assert kinds(text) == ["prose", "record"]
