"""Conversations: what is pinned stays, what was chosen once stays chosen, what a new question needs comes back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.binding.native import Progress
from dflash_desktop.engine.pflash.chat import SHORT_TOKENS, plan_chat
from dflash_desktop.engine.pflash.compress import MOST_VIEWS, RECALLED, Compression, Compressor, Views
from dflash_desktop.engine.pflash.rating import NEUTRAL, SMOOTHED_OVER, question_tokens, rate, smoothed
from dflash_desktop.engine.pflash.selection import MARK, Curve
from dflash_desktop.engine.prompt import content_text
from support.generators import finished

Chat = list[dict[str, Any]]


class WordTokenizer:
    """A token per word; the number of a word is where it was first seen."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        return [self.words.setdefault(word, len(self.words)) for word in text.split()]


class WordMatcher:
    """A scorer that looks at the words of the question: mass 1 where a word of the text is one of them."""

    def __init__(self, tokenizer: WordTokenizer, common: Sequence[str] = ()) -> None:
        self.common = set(tokenizer.encode(" ".join(common)))
        self.n_begun = 0

    def begin(self, text: Sequence[int], question: Sequence[int], weights: Sequence[float] | None = None) -> None:
        assert weights is not None
        assert len(weights) == len(question)
        best = dict.fromkeys(question, 0.0)
        for token, weight in zip(question, weights, strict=True):
            best[token] = max(best[token], weight)
        self.n_begun += 1
        self.found = [0.0 if token in self.common else best.get(token, 0.0) for token in text]

    def run(self) -> Progress:
        return Progress(1, 1, is_complete=True)

    def masses(self) -> list[float]:
        return self.found


def count(text: str) -> int:
    return len(text.split())


def filler(n: int, name: str = "fill") -> str:
    return "\n\n".join(" ".join(f"{name}{i}x{j}" for j in range(20)) + "." for i in range(n))


def compressor() -> Compressor:
    tokenizer = WordTokenizer()
    return Compressor(WordMatcher(tokenizer, ["is", "the", "of", "what", "where"]), tokenizer, "<go>", Views())  # type: ignore[arg-type]


def compress(own: Compressor, chat: Chat, keep: str = "0.1") -> Compression:
    return finished(own.compress(chat, plan_chat(chat, has_tools=False, count=count), Curve.parse(keep)))


NEEDLE = "The colour of the gate is violet."


def pasted(question: str = "what colour is the gate", n: int = 40) -> str:
    return f"{filler(n // 2)}\n\n{NEEDLE}\n\n{filler(n // 2, 'more')}\n\n{question}"


def test_the_needle_and_the_question_stay_and_the_rest_is_marked() -> None:
    result = compress(compressor(), [{"role": "user", "content": pasted()}])
    text = content_text(result.messages[0]["content"])
    assert NEEDLE in text
    assert text.endswith("what colour is the gate")
    assert MARK in text
    assert result.n_kept <= 0.1 * result.n_droppable
    assert result.n_rated == result.n_droppable


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["system", "developer", "user", "assistant"]),
            st.integers(1, 30),
            st.text("abc. \n", max_size=30),
        ),
        max_size=6,
    ),
    st.floats(0.01, 1),
)
@settings(max_examples=100, deadline=None)
def test_pins_hold(turns: list[tuple[str, int, str]], keep: float) -> None:
    chat: Chat = [{"role": role, "content": f"{filler(n, role)}\n\n{text}"} for role, n, text in turns]
    chat.append({"role": "user", "content": pasted("what is the colour of the gate, please")})
    plan = plan_chat(chat, has_tools=False, count=count)
    result = finished(compressor().compress(chat, plan, Curve(((0, keep),))))
    assert [message["role"] for message in result.messages] == [message["role"] for message in chat]
    for before, after in zip(chat, result.messages, strict=True):
        if before["role"] != "user" or count(before["content"]) <= SHORT_TOKENS:
            assert after["content"] == before["content"]
    assert result.messages[-1]["content"].endswith("what is the colour of the gate, please")
    assert result.n_kept <= keep * result.n_droppable
    for view in result.shortened:
        position = 0
        for unit in view.units:
            if unit.is_kept:
                position = view.kept_text.index(view.text[unit.segment.start : unit.segment.end], position)


@pytest.mark.parametrize(
    "chat",
    [
        [{"role": "user", "content": pasted()}, {"role": "tool", "content": "x", "tool_call_id": "1"}],
        [{"role": "user", "content": pasted()}, {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}],
    ],
)
def test_histories_with_tools_are_left_alone(chat: Chat) -> None:
    chat.append({"role": "user", "content": pasted()})
    plan = plan_chat(chat, has_tools=False, count=count)
    assert not plan.regions
    assert "tools" in plan.why_not
    assert not plan_chat(chat[:1], has_tools=True, count=count).regions


def test_attachments_are_droppable_and_the_words_beside_them_are_not() -> None:
    words = "what colour is the gate " + filler(20, "own")
    parts = [{"type": "text", "text": f"{filler(40)}\n\n{NEEDLE}"}, {"type": "text", "text": words}]
    plan = plan_chat([{"role": "user", "content": parts}], has_tools=False, count=count)
    assert plan.questions[-1][0].strip() == words
    assert plan.n_droppable == count(filler(40)) + count(NEEDLE)


def test_words_before_an_attachment_are_the_persons_own_too() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| {i} | x{i} |\n" for i in range(200))
    parts = [
        {"type": "text", "text": "what colour is the gate"},
        {"type": "text", "text": f"\n{filler(40)}\n\n{NEEDLE}\n\n{table}", "attached": True},
    ]
    plan = plan_chat([{"role": "user", "content": parts}], has_tools=False, count=count)
    (region,) = plan.regions
    assert region.text == content_text(parts)
    assert "".join(region.text[unit.start : unit.end] for unit in region.units) == region.text
    assert plan.questions[-1][0].strip() == "what colour is the gate"
    assert plan.n_droppable == count(region.text) - count("what colour is the gate")
    headed = [unit for unit in region.units if unit.header is not None]
    assert headed
    assert all(region.text[region.units[unit.header or 0].start :].startswith("| a | b |") for unit in headed)
    assert not plan_chat([{"role": "user", "content": parts}], has_tools=False, count=count, whole={0}).regions


def test_short_conversations_are_left_alone() -> None:
    plan = plan_chat([{"role": "user", "content": "What is two and two?"}], has_tools=False, count=count)
    assert not plan.regions
    assert plan.why_not


def test_a_conversation_is_shortened_once_and_then_only_appended_to() -> None:
    own = compressor()
    chat: Chat = [{"role": "user", "content": pasted()}]
    first = compress(own, chat)
    chat += [{"role": "assistant", "content": "Violet."}, {"role": "user", "content": "and fill3x1"}]
    second = compress(own, chat)
    assert second.messages[0] == first.messages[0]
    assert second.n_rated == 0
    chat += [
        {"role": "assistant", "content": "?"},
        {"role": "user", "content": f"{filler(30, 'new')}\n\nwhat of new7x3"},
    ]
    third = compress(own, chat)
    assert third.messages[:3] == second.messages[:3]
    assert third.n_rated == count(filler(30, "new"))
    assert "new7x3 " in third.messages[-1]["content"]
    again = compress(own, chat)
    assert again.messages == third.messages


def test_what_one_share_chose_is_no_answer_for_another() -> None:
    own = compressor()
    chat: Chat = [{"role": "user", "content": pasted("what colour is the gate and fill1x1 and more2x2 and more3x3")}]
    little = compress(own, chat, "0.05")
    more = compress(own, chat, "0.5")
    assert little.n_kept < more.n_kept
    assert more.n_rated == 0  # the scores are the same
    assert compress(own, chat, "0.05").messages == little.messages


def test_a_paste_without_a_question_leaves_what_was_shortened_before_as_it_is() -> None:
    own = compressor()
    chat: Chat = [{"role": "user", "content": pasted()}]
    first = compress(own, chat)
    code = "def f(x):\n    return x + 1\n\n\n" * 200
    chat += [{"role": "assistant", "content": "Violet."}, {"role": "user", "content": code}]
    second = compress(own, chat)
    assert second.messages == (first.messages[0], *chat[1:])
    assert second.n_rated == second.n_recalled == 0
    assert "no question" in plan_chat(chat[2:], has_tools=False, count=count).why_not


def test_what_was_left_out_comes_back_when_a_new_question_asks_for_it() -> None:
    own = compressor()
    chat: Chat = [{"role": "user", "content": pasted()}]
    assert "fill7x3" not in compress(own, chat).messages[0]["content"]
    chat += [{"role": "assistant", "content": "Violet."}, {"role": "user", "content": "where is fill7x3"}]
    second = compress(own, chat)
    assert second.messages[-1]["content"].startswith(RECALLED)
    assert "fill7x3" in second.messages[-1]["content"]
    assert second.messages[-1]["content"].endswith("where is fill7x3")
    assert 0 < second.n_recalled <= 0.05 * second.n_droppable
    chat += [{"role": "assistant", "content": "There."}, {"role": "user", "content": "thanks"}]
    assert compress(own, chat).messages[:3] == second.messages


def test_earlier_questions_weigh_half_as_much_each() -> None:
    tokenizer = WordTokenizer()
    ids, weights = question_tokens(tokenizer, [("a b", 0.5), ("c", 1.0)], "<go>")  # type: ignore[arg-type]
    assert len(ids) == 4
    assert weights == [0.5, 0.5, 1.0, 0.25]


def test_gains_are_smoothed_over_a_phrase() -> None:
    peak = smoothed([0.0] * 20 + [1.0] + [0.0] * 19)
    assert max(peak) == pytest.approx(1 / SMOOTHED_OVER)
    assert smoothed([1.0] * 40)[20] == pytest.approx(1.0)


class Looker(WordMatcher):
    """Looks at the first word whatever is asked, and at the second only for the second question."""

    def masses(self) -> list[float]:
        return [0.9, 0.2 if self.n_begun == 2 else 0.0, 0.0]


def test_what_is_looked_at_whatever_is_asked_scores_nothing() -> None:
    tokenizer = WordTokenizer()
    looker = Looker(tokenizer)
    asked = (tokenizer.encode("a b"), [1.0, 1.0])
    scores = finished(rate(looker, tokenizer.encode, ["heading", "answer", "rest"], asked, asked))
    assert looker.n_begun == 2
    assert scores[1] > 0
    alone = finished(rate(WordMatcher(tokenizer), tokenizer.encode, ["heading", "answer"], asked, asked))
    assert alone == [0.0, 0.0]


def test_units_without_tokens_score_nothing_or_little() -> None:
    tokenizer = WordTokenizer()
    asked = (tokenizer.encode("a"), [1.0])
    assert finished(rate(Looker(tokenizer), tokenizer.encode, ["", " "], asked, asked)) == [0.0, 0.0]


def test_a_conversation_that_was_forgotten_in_part_is_rated_again() -> None:
    """The first messages are chosen anew, which pushes out of the memory what is still known of the later ones."""
    own = compressor()
    chat: Chat = [{"role": "user", "content": pasted(f"where is fill{i}x3")} for i in range(4)]
    first = compress(own, chat)
    others = [{"role": "user", "content": f"{i} {pasted()}"} for i in range(MOST_VIEWS - 2)]
    for other in others:
        compress(own, [other])
    again = compress(own, chat)
    assert again.messages[2:] == first.messages[2:]


def test_a_conversation_that_goes_on_is_not_forgotten() -> None:
    own = compressor()
    chat: Chat = [{"role": "user", "content": pasted()}]
    first = compress(own, chat)
    for i in range(2 * MOST_VIEWS):
        compress(own, [{"role": "user", "content": f"{i} {pasted()}"}])
        assert compress(own, chat).n_rated == 0
    assert compress(own, chat).messages == first.messages


def test_a_question_about_the_whole_keeps_some_of_everything() -> None:
    """It looks at nothing more than the neutral question does, so that no unit scores."""
    chat: Chat = [{"role": "user", "content": f"{filler(100)}\n\n{NEUTRAL}"}]
    result = compress(compressor(), chat, "0.2")
    (view,) = result.shortened
    kept = [i for i, unit in enumerate(view.units) if unit.why == "score"]
    assert 0.15 * result.n_droppable < result.n_kept <= 0.2 * result.n_droppable
    assert max(b - a for a, b in itertools.pairwise([0, *kept, 99])) <= 8
    assert {view.units[i].score for i in kept} == {0.0}
