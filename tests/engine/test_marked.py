"""Every operation of a marked string gives the plain string's result and keeps the marks."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.engine.marked import Marked, conservative, holds_user_text, join, mark, percent

if TYPE_CHECKING:
    from collections.abc import Callable

# u: a user's character, in upper case here so that its mark can be read off it
SAMPLES = ["ab CD ef", "  AB  ", "a,B,c", "X", "", "abABab", "A\nb\r\nC\n", "aXbX", "<|im_END|>"]


def sample(text: str) -> Marked:
    """Upper case: a user's. So whatever an operation keeps, its marks can be checked."""
    return Marked(text, bytes(char.isupper() for char in text))


def check(result: str) -> None:
    assert isinstance(result, Marked)
    assert len(result.mask) == len(result)
    letters = [(char, mark) for char, mark in zip(str.__str__(result), result.mask, strict=True) if char.isalpha()]
    assert all(char.isupper() == bool(mark) for char, mark in letters), (str.__str__(result), result.mask)


@pytest.mark.parametrize(
    "operation",
    [
        lambda text: text + "x",
        lambda text: "x" + text,
        lambda text: text + text,
        lambda text: text * 3,
        lambda text: 2 * text,
        lambda text: text.strip(),
        lambda text: text.lstrip("a <"),
        lambda text: text.rstrip("\n b"),
        lambda text: text.replace("a", "xyz"),
        lambda text: text.replace("B", ""),
        lambda text: text.replace("b", "q", 1),
        lambda text: text.removeprefix("a"),
        lambda text: text.removesuffix("X"),
        lambda text: text[1:4],
        lambda text: text[::-1],
        lambda text: text[-1:],
        lambda text: percent("{%s}", text),
        lambda text: percent("%s%% %s", (text, "x")),
        lambda text: str(text),
    ],
)
def test_operations_that_give_one_string(operation: Callable[[str], str]) -> None:
    for text in SAMPLES:
        result = operation(sample(text))
        assert str.__str__(result) == operation(text)
        check(result)


@pytest.mark.parametrize(
    "operation",
    [
        lambda text: text.split(),
        lambda text: text.split("a"),
        lambda text: text.split("ab"),
        lambda text: text.split(",", 1),
        lambda text: text.rsplit("b", 1),
        lambda text: text.rsplit(None, 1),
        lambda text: text.splitlines(),
        lambda text: text.splitlines(True),
        lambda text: list(text.partition("b")),
        lambda text: list(text.rpartition("b")),
        lambda text: list(text),
    ],
)
def test_operations_that_give_several_strings(operation: Callable[[str], list[str]]) -> None:
    for text in SAMPLES:
        results = operation(sample(text))
        assert [str.__str__(result) for result in results] == operation(text)
        for result in results:
            check(result)


def test_splitting_and_joining_random_strings_gives_them_back() -> None:
    source = random.Random(1)
    for _ in range(2000):
        text = "".join(source.choice("abAB") for _ in range(source.randint(0, 12)))
        separator = "".join(source.choice("abAB") for _ in range(source.randint(1, 3)))
        marked = sample(text)
        assert [str.__str__(part) for part in marked.split(separator)] == text.split(separator)
        for part in marked.split(separator) + marked.rsplit(separator, 1):
            check(part)
        check(join(marked.split(separator), sample(separator)))


def test_other_letters_keep_the_marks_or_mark_everything() -> None:
    assert Marked("straße", b"\0\0\0\0\1\0").upper().mask == b"\1" * 7
    assert Marked.user("ab").upper().mask == b"\1\1"
    assert Marked("ab", b"\0\1").title().mask == b"\0\1"


def test_what_cannot_be_followed_becomes_the_user_s_and_never_the_template_s() -> None:
    assert conservative("<|im_end|>", [{"a": Marked.user("x")}]).mask == b"\1" * 10
    assert conservative("<|im_end|>", [{"a": "x"}]).mask == b"\0" * 10
    assert percent("%5s", Marked.user("x")).mask == b"\1" * 5  # type: ignore[attr-defined]
    assert percent("%(a)s", {"a": Marked.user("x")}).mask == b"\1"  # type: ignore[attr-defined]


def test_marking_reaches_every_string_of_json_data_and_leaves_plain_types() -> None:
    marked = mark({"a": ["b", {"c": 1.5}], "d": None, "e": True, "f": object()})
    assert holds_user_text(marked["a"])
    assert all(isinstance(key, Marked) for key in marked)
    assert marked["a"][1]["c"] == 1.5
    assert marked["f"] == "<object>"
    assert not holds_user_text({"a": ["b", {"c": 1.5}]})
