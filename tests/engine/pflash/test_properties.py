"""Whatever is pasted and however it is rated: pins stay, order stays, nothing is cut inside, the ratio is a ceiling."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.binding.native import Progress
from dflash_desktop.engine.pflash.chat import plan_chat
from dflash_desktop.engine.pflash.compress import Compression, Compressor, Views
from dflash_desktop.engine.pflash.selection import MARK, Curve
from dflash_desktop.engine.prompt import content_text
from support.generators import finished

if TYPE_CHECKING:
    from collections.abc import Sequence

Chat = list[dict[str, Any]]

PIECES = (
    "The harbour was quiet and nobody asked after the boats that had left. ",
    "Ein Satz mit Umläuten: Größe, Übermut, Straße! ",
    "第二章は長いので、ここで切ってはいけない。",
    "👩‍👩‍👧‍👦 and 🇫🇷 and e\u0301 are one sign each, ﷽ too. ",
    "שלום עולם. ",
    "word" * 40 + " ",
    "\r\n",
    "\n\n",
    "[…] ",
)
CODE = "def area(r):\n    if r < 0:\n        raise ValueError(r)\n    return 3 * r\n\n\n"
ROWS = "| fruit | price |\n|---|---|\n" + "".join(f"| pear{i} | {i} |\n" for i in range(12)) + "\n"
RECORDS = "".join(json.dumps({"n": i, "text": "a, {b} ] “c”"}, ensure_ascii=i % 2 == 0) + "\n" for i in range(12))
LIST = "- one\n  more of one\n- two\n\n1. first\n2. second\n"
FENCE = "```python\n" + CODE + "x = '''\n\n'''\n```\n"

blocks = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=30).map("".join),
    st.sampled_from([CODE * 4, ROWS, RECORDS, LIST, FENCE, "# Heading\n", json.dumps({"a": [RECORDS] * 3}, indent=1)]),
    st.text(max_size=200),
)
pastes = st.lists(blocks, min_size=1, max_size=8).map("\n\n".join)
turns = st.tuples(st.sampled_from(["system", "developer", "user", "assistant"]), pastes, st.integers(1, 6))
questions = st.sampled_from([
    "What does it cost?",
    "Where is “pear3”, what of area(r), and who left the harbour?",
    "第二章は何？",
])  # fmt: skip


class CharacterTokenizer:
    """A token per character, so that nothing hides behind the borders of tokens."""

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        return [ord(character) for character in text]


class RandomRater:
    """Looks anywhere."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def begin(self, text: Sequence[int], question: Sequence[int], weights: Sequence[float] | None = None) -> None:
        self.n = len(text)

    def run(self) -> Progress:
        return Progress(1, 1, is_complete=True)

    def masses(self) -> list[float]:
        return [self.random.random() ** 8 for _ in range(self.n)]


def count(text: str) -> int:
    return len(text)


def compress(own: Compressor, chat: Chat, keep: float) -> tuple[Compression, Any]:
    plan = plan_chat(chat, has_tools=False, count=count)
    return finished(own.compress(chat, plan, Curve(((0, keep),)))), plan


def compressor(seed: int) -> Compressor:
    return Compressor(RandomRater(seed), CharacterTokenizer(), "<go>", Views())  # type: ignore[arg-type]


def chat_of(found: list[tuple[str, str, int]], paste: str, question: str) -> Chat:
    chat: Chat = [{"role": role, "content": text * n} for role, text, n in found]
    return [*chat, {"role": "user", "content": f"{paste * 3}\n\n{question}"}]


@given(st.lists(turns, max_size=4), pastes, questions, st.floats(0.01, 1), st.integers(0, 9))
@settings(max_examples=80, deadline=None)
def test_pins_order_and_the_ceiling_hold(
    found: list[tuple[str, str, int]], paste: str, question: str, keep: float, seed: int
) -> None:
    chat = chat_of(found, paste, question)
    result, plan = compress(compressor(seed), chat, keep)
    shortened = {view.message: view for view in result.shortened}
    for i, (before, after) in enumerate(zip(chat, result.messages, strict=True)):
        assert after["role"] == before["role"]
        if i not in shortened:
            assert after["content"] == before["content"]
    assert content_text(result.messages[-1]["content"]).endswith(question)
    for region in plan.regions:
        view = shortened[region.message]
        # The units are the text, so whatever is kept is a run of its characters, whole ones.
        assert "".join(view.text[u.segment.start : u.segment.end] for u in view.units) == region.text
        for unit, is_pinned in zip(view.units, region.is_pinned, strict=True):
            assert (unit.why == "pinned") == is_pinned
        dropped_and_kept = [u.n_tokens for u in view.units if u.why not in ("dropped", "pinned")]
        assert sum(dropped_and_kept) <= keep * region.n_droppable
        assert written(view.text, view.units) == view.kept_text == result.messages[region.message]["content"]
        view.kept_text.encode("utf-8", "strict" if is_text(region.text) else "surrogatepass")
    assert result.n_kept <= keep * result.n_droppable


def is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def written(text: str, units: Sequence[Any]) -> str:
    """The definition, said another way: kept units as they are, each run of others a mark, lines staying lines."""
    out = ""
    for i, unit in enumerate(units):
        if unit.is_kept:
            out += text[unit.segment.start : unit.segment.end]
        elif i == 0 or units[i - 1].is_kept:
            is_last = not any(after.is_kept for after in units[i:])
            if not out or out.endswith("\n"):
                out += MARK if is_last else f"{MARK}\n"
            else:
                out += f" {MARK} "
    return out


@given(pastes, pastes, questions, st.floats(0.05, 0.6), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_what_was_sent_once_is_sent_again_letter_by_letter(
    paste: str, second: str, question: str, keep: float, seed: int
) -> None:
    own = compressor(seed)
    chat = chat_of([], paste, question)
    first, _ = compress(own, chat, keep)
    chat += [{"role": "assistant", "content": "Three."}, {"role": "user", "content": f"{second * 4}\n\nAnd {question}"}]
    longer, _ = compress(own, chat, keep)
    assert longer.messages[0] == first.messages[0]
    assert content_text(longer.messages[-1]["content"]).endswith(f"And {question}")
    again, _ = compress(own, chat, keep)
    assert again.messages == longer.messages


@given(pastes, st.floats(0.01, 0.99))
@settings(max_examples=60, deadline=None)
def test_what_scores_best_is_kept_whenever_it_fits(paste: str, keep: float) -> None:
    chat = chat_of([], paste, "What does it cost?")
    result, _ = compress(compressor(1), chat, keep)
    for view in result.shortened:
        droppable = [unit for unit in view.units if unit.why != "pinned"]
        budget = int(keep * sum(unit.n_tokens for unit in droppable))
        headers = [0 if u.segment.header is None else view.units[u.segment.header].n_tokens for u in droppable]
        best = max(range(len(droppable)), key=lambda i: (droppable[i].score, -i))
        if droppable[best].score > 0 and droppable[best].n_tokens + headers[best] <= budget:
            assert droppable[best].is_kept
