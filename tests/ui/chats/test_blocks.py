"""Growing Markdown in blocks: cut right, cut the same whatever the pieces, at a cost that does not grow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_desktop.ui.chats.blocks import MAX_PROSE_CHARS, Kind, MarkdownBlocks, balanced, plain_blocks
from support.patience import in_time

SAMPLE = """# Title
Intro with **bold** and
a second line
1984. is no list
- a
- b
  - c

  para
- d

Text | x
a | b
---|---
1 | 2

> quote
lazy

1. Do:
   ```bash
   ls -la
     x
   ```
2. Next

---
~~~
tilde
~~~
```python
def f():

    return "``` inside"
```
End
"""


def read(*pieces: str) -> list[tuple[Kind, str, str]]:
    reader = MarkdownBlocks()
    for piece in pieces:
        reader.feed(piece)
    reader.finish()
    return [(block.kind, block.text, block.language) for block in reader.blocks]


def test_blocks_are_cut_at_their_borders() -> None:
    assert read(SAMPLE) == [
        (Kind.HEADING, "# Title", ""),
        (Kind.PROSE, "Intro with **bold** and\na second line\n1984. is no list", ""),
        (Kind.LIST, "- a\n- b\n  - c\n\n  para\n- d", ""),
        (Kind.PROSE, "Text | x", ""),
        (Kind.TABLE, "a | b\n---|---\n1 | 2", ""),
        (Kind.QUOTE, "> quote\nlazy", ""),
        (Kind.LIST, "1. Do:", ""),
        (Kind.CODE, "ls -la\n  x", "bash"),
        (Kind.LIST, "2. Next", ""),
        (Kind.RULE, "", ""),
        (Kind.CODE, "tilde", ""),
        (Kind.CODE, 'def f():\n\n    return "``` inside"', "python"),
        (Kind.PROSE, "End", ""),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_the_pieces_make_no_difference(size: int) -> None:
    assert read(*(SAMPLE[i : i + size] for i in range(0, len(SAMPLE), size))) == read(SAMPLE)


@given(
    st.lists(
        st.sampled_from(["#", " ", "-", "*", "`", "```", "\n", "\n\n", "a", "word ", "|", "1. ", "> ", "~~~", "\r\n"])
    )
)
def test_any_text_is_read_alike_whole_and_in_pieces(pieces: list[str]) -> None:
    assert read(*pieces) == read("".join(pieces))


def test_only_blocks_from_the_returned_index_on_change() -> None:
    reader = MarkdownBlocks()
    before: list[tuple[Kind, str]] = []
    for char in SAMPLE * 3:
        first = reader.feed(char)
        after = [(block.kind, block.text) for block in reader.blocks]
        assert after[:first] == before[:first]
        before = after


def test_an_unfinished_code_block_is_code_already() -> None:
    reader = MarkdownBlocks()
    reader.feed("```python\nprint(")
    assert [(b.kind, b.text) for b in reader.blocks] == [(Kind.CODE, "print(")]
    reader.feed("1)\n``")
    assert reader.blocks[0].text == "print(1)"  # may become the closing line: not shown yet


def test_half_a_mark_is_held_back_until_it_is_clear() -> None:
    reader = MarkdownBlocks()
    reader.feed("``")
    assert reader.blocks == []
    reader.feed("`py")
    assert reader.blocks == []
    reader.finish()
    assert [b.kind for b in reader.blocks] == [Kind.CODE]


@in_time(5)
@pytest.mark.parametrize(
    "text", ["word, and more. ", "x", "| a | b ", "- item and text\n"], ids=["prose", "x", "bars", "list"]
)
def test_text_without_a_border_is_cut_too_and_costs_the_same_at_its_end(text: str, within_s: float) -> None:
    reader = MarkdownBlocks()
    whole = text * (400_000 // len(text))
    begin = time.perf_counter()
    for i in range(0, len(whole), 40):
        reader.feed(whole[i : i + 40])
    assert time.perf_counter() - begin < within_s
    assert max(len(block.text) for block in reader.blocks) <= 3 * MAX_PROSE_CHARS
    assert sum(len(block.text) for block in reader.blocks) >= 0.99 * len(whole)


@pytest.mark.parametrize("text", ["", "short", "two\n\nlines\n", "x" * 50_000, "word " * 30_000, "line\n" * 9000])
def test_plain_text_loses_nothing(text: str) -> None:
    blocks = plain_blocks(text)
    joined = "".join(block.text for block in blocks)
    assert joined.replace("\n", "") == text.replace("\n", "")
    assert max(len(block.text) for block in blocks) <= 3 * MAX_PROSE_CHARS


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a **b", "a **b**"), ("a **b*", "a **b**"), ("a **", "a"), ("a `co", "a `co`"), ("a **b** c", "a **b** c")],
)
def test_half_a_bold_word_is_shown_bold(text: str, shown: str) -> None:
    assert balanced(text) == shown
