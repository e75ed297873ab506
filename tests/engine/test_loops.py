"""Loops are found in what the built-in model really wrote, and in nothing that people, programs or tables write."""

from __future__ import annotations

import base64
import json
import random
from itertools import cycle, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_desktop.engine.loops import LEAST_BYTES, STRICT_BYTES, is_looping

ROOT = Path(__file__).parents[2]
REPLIES = json.loads((Path(__file__).parent / "starter_replies.json").read_text("utf-8"))
"""By the built-in model, alone on a CPU, top-k 40, top-p 0.95, cut at 2600 characters; sorted by reading them."""
LOOPS = [(one["prompt"], one["text"]) for one in REPLIES if one["loops"]]
SOUND = [(one["prompt"], one["text"]) for one in REPLIES if not one["loops"]]

REFRAIN = "Row on, row on,\nThe night is long,\nAnd far away the shore.\n"
PEOPLE = (
    ("Anna", "harbour", "dawn", "gulls"),
    ("Ben", "river", "noon", "reeds"),
    ("Clara", "lake", "dusk", "frogs"),
    ("David", "well", "midnight", "stones"),
    ("Emil", "sea", "last", "tide"),
)
VERSES = [
    f"{who} went down to the {where} at {when},\nAnd sang what the {what} had said.\n"
    for who, where, when, what in PEOPLE
]
CODE = "".join(f"    case {n}:\n        return handle(request, {n}, table[{n}]);\n" for n in range(60))
NOT_LOOPS = {
    "table": "| name | born | city |\n|---|---|---|\n"
    + "".join(f"| User {n} | {1900 + n} | Paris |\n" for n in range(90)),
    "table of one value": "| a | b | answer |\n|---|---|---|\n" + "| yes | no | not known |\n" * 40,
    "empty table": "|   |   |   |\n" * 200,
    "wide table": "| a | b |\n|" + "-" * 900 + "|" + "-" * 900 + "|\n",
    "code": f"```c\nswitch (kind) {{\n{CODE}}}\n```\n",
    "alike code": "```python\n" + "    assert is_sound(found)\n" * 40,
    "matrix": "```c\n" + "    {0, 0, 0, 0, 0, 0, 0, 0},\n" * 200 + "```",
    "bytes": "0xff, " * 2000,
    "html": "<table>\n" + "  <tr><td></td><td></td></tr>\n" * 25 + "</table>",
    "numbered list": "".join(f"{n}. An animal that lives in the forest\n" for n in range(1, 80)),
    "list": "".join(f"- {word} and more of it\n" for word in ("Bread", "Milk", "Rice", "Salt", "Tea") * 4),
    "json": json.dumps([{"id": n, "name": f"User {n}", "mail": f"user{n}@example.com"} for n in range(40)], indent=1),
    "poem": "\n".join(f"{verse}\n{REFRAIN}" for verse in VERSES),
    "chorus at the end": "\n".join(VERSES) + REFRAIN * 4,
    "chant": "We will, we will rock you!\n" * 8,
    "base64 of zeros": base64.b64encode(bytes(6000)).decode("ascii"),
    "base64 in lines": base64.encodebytes(b"abcdef" * 900).decode("ascii"),
    "hexadecimal": "00 00 00 00 de ad be ef\n" * 100,
    "one third": "1 / 3 = 0." + "3" * 4000,
    "one seventh": "1 / 7 = 0." + "142857" * 700,
    "numbers": "0, 1, 0, 1, " * 400,
    "rules": ("-" * 80 + "\n") * 20,
    "asked for": "I will not talk in class.\n" * 10,
    "words that were asked for": "banana " * 100,
    "form": "Name: ________ Date: ________\n" * 20,
    "nothing": "",
    "blank": "\n" * 5000,
}


@pytest.mark.parametrize(("prompt", "text"), LOOPS, ids=[prompt for prompt, _ in LOOPS])
def test_a_loop_of_the_built_in_model_is_found(prompt: str, text: str) -> None:
    assert is_looping(text)


@pytest.mark.parametrize(("prompt", "text"), LOOPS, ids=[prompt for prompt, _ in LOOPS])
def test_the_beginning_before_it_is_none(prompt: str, text: str) -> None:
    assert not any(is_looping(text[:n_chars]) for n_chars in range(0, LEAST_BYTES, 7))


@pytest.mark.parametrize(("prompt", "text"), SOUND, ids=[prompt for prompt, _ in SOUND])
def test_its_other_replies_are_none_however_far_they_are(prompt: str, text: str) -> None:
    assert not any(is_looping(text[:n_chars]) for n_chars in range(0, len(text) + 11, 11))


@pytest.mark.parametrize("name", NOT_LOOPS)
def test_what_is_regular_on_purpose_is_none_however_far_it_is(name: str) -> None:
    text = "This is what you asked for:\n\n" + NOT_LOOPS[name]
    assert not any(is_looping(text[:n_chars]) for n_chars in range(0, len(text) + 13, 13))


@pytest.mark.parametrize("folder", ["app", "native", "resources/docs", "resources/i18n", "tests/bench", "installers"])
def test_nothing_in_our_own_sources_and_documents_is_one(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".py", ".md", ".cpp", ".h", ".json", ".ts", ".iss") and path.is_file():
            text = path.read_text("utf-8")[:60_000]
            for n_chars in range(400, len(text) + 400, 400):
                assert not is_looping(text[:n_chars]), (path, n_chars)


SENTENCE = "The wind had carried her song over the hills to the old town. "
CHINESE = "今天我们来谈谈这个问题，它很重要。"


@pytest.mark.parametrize(
    ("piece", "most_bytes"),
    [
        (SENTENCE, LEAST_BYTES + 80),
        (SENTENCE * 4, 800),
        (CHINESE, LEAST_BYTES + 60),
        ("and so on and on, ", LEAST_BYTES + 40),
        ("again ", STRICT_BYTES + 20),
        ("- A gift for somebody whom you love\n", LEAST_BYTES + 60),
        ("Стоит лес, а за лесом поле. ", LEAST_BYTES + 60),
        ("👩", STRICT_BYTES + 20),
        ("```python\nprint('hello')\n```\n\nThat prints hello to the world.\n\n", 700),
    ],
)
def test_a_loop_is_found_soon(piece: str, most_bytes: int) -> None:
    before = "An answer begins in its own words, and goes on for a while. "
    n_bytes = 0
    text = before
    for char in islice(cycle(piece), 10 * most_bytes):
        text += char
        n_bytes += len(char.encode())
        if is_looping(text):
            break
    assert n_bytes <= most_bytes


@pytest.mark.parametrize(
    ("opening", "piece"),
    [
        ("```c\n", '    printf("the value is %d\\n", value);\n'),
        ("", "| Paris | capital of France | Europe |\n"),
    ],
)
def test_code_and_tables_that_never_end_are_found_later(opening: str, piece: str) -> None:
    assert not is_looping(opening + piece * (STRICT_BYTES // len(piece) - 1))
    assert is_looping(opening + piece * (STRICT_BYTES // len(piece) + 2))


def test_a_reply_that_leaves_its_loop_is_none_any_more() -> None:
    looped = SENTENCE * 20
    assert is_looping(looped)
    assert not is_looping(looped + "But then it stopped, and nobody ever heard of it again in that town.")


@given(st.text(min_size=1, max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_where_the_text_is_cut_does_not_matter(piece: str, n_cut_before: int, n_cut_after: int) -> None:
    """A loop that is long enough is one wherever it began and wherever the model is in it."""
    times = 4000 // len(piece.encode("utf-8", "replace")) + 3
    run = piece * times
    whole = is_looping("Well. " + run)
    assert is_looping("Well. " + run[n_cut_before:].rstrip()) == whole or not piece.strip()
    assert is_looping("Well. " + (run + piece[: n_cut_after % len(piece)])) == whole or not piece.strip()


def test_any_text_is_taken() -> None:
    chance = random.Random(5)
    for _ in range(300):
        letters = chance.choice(["ab ", "\ud800x", "```\n", "| a", "家 庭", "\0"])
        text = "".join(chance.choice(letters) for _ in range(chance.randrange(900)))
        assert is_looping(text) in (True, False)
