"""Search finds parts of words, Chinese and identifiers, in every branch, and says where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chats.conftest import OpenStore, chat_of, message_of
from dflash_desktop.chats.events import ChatsFound
from dflash_desktop.chats.search import Hit, snippet, words_of

TEXTS = {
    "sky": "Why is the sky **blue**? Rayleigh scattering.",
    "code": "def parse_json_line(text): return json.loads(text)  # 100% sure_thing",
    "chinese": "天空为什么是蓝色的？因为瑞利散射。",
    "french": "À l'École, l'ÉTÉ",
    "percent": "It was 100 of 100.",
}


@pytest.fixture
def find(open_store: Callable[..., OpenStore]) -> Callable[[str], tuple[Hit, ...]]:
    one = open_store()
    for number, (title, text) in enumerate(TEXTS.items()):
        chat = chat_of(title, changed_s=float(number))
        asked = message_of("user", text)
        one.store.add_messages(chat, [asked, message_of("assistant", "A quiet branch", asked)])

    def find(query: str) -> tuple[Hit, ...]:
        one.store.find(query)
        found = one.wait(ChatsFound)
        assert found.query == query
        file = one.store._opened.file  # type: ignore[union-attr]
        titles = dict(file.connection.execute("SELECT id, title FROM chats").fetchall())
        find.titles = [titles[hit.chat_id] for hit in found.hits]  # type: ignore[attr-defined]
        return found.hits

    return find


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("RAYLEIGH", ["sky"]),
        ("catter", ["sky"]),
        ("son_li", ["code"]),
        ("散射", ["chinese"]),
        ("瑞利散", ["chinese"]),
        ("école été", ["french"]),
        ("sky scattering", ["sky"]),
        ('"blue sky"', []),
        ('"the sky"', ["sky"]),
        ("quiet", ["percent", "french", "chinese", "code", "sky"]),
        ("100%", ["code"]),
        ("0%", ["code"]),
        ("e_t", ["code"]),
        ("_", ["code"]),
        ("chinese", ["chinese"]),
        ("nothing-like-it", []),
        ("   ", []),
        ('"', []),
        ('a"b*(NEAR', []),
        ("AND OR NOT", []),
    ],
)
def test_what_is_found(find: Callable[[str], tuple[Hit, ...]], query: str, titles: list[str]) -> None:
    find(query)
    assert find.titles == titles  # type: ignore[attr-defined]


def test_the_hit_shows_the_words_where_they_stand(find: Callable[[str], tuple[Hit, ...]]) -> None:
    (hit,) = find("json text")
    lit = [hit.snippet[start:end] for start, end in hit.ranges]
    assert lit == ["json", "text", "json", "text"]
    assert hit.n_messages == 1


def test_a_snippet_is_short_and_on_one_line() -> None:
    text = "word " * 4000 + "\n\nneedle\nand more\n" + "word " * 4000
    piece, ranges = snippet(text, ["needle"])
    assert len(piece) < 200
    assert "\n" not in piece
    assert [piece[start:end] for start, end in ranges] == ["needle"]


def test_ranges_do_not_overlap() -> None:
    piece, ranges = snippet("aaaa", ["aaa", "aa"])
    assert (piece, ranges) == ("aaaa", ((0, 4),))


def test_an_answer_is_found_as_soon_as_it_is_finished(open_store: Callable[..., OpenStore]) -> None:
    from dataclasses import replace

    one = open_store()
    chat, reply = chat_of("x"), message_of("assistant", "", state="writing")
    one.store.add_messages(chat, [reply])
    one.store.extend_reply(reply.message_id, "a needle")
    one.store.add_messages(chat, [replace(reply, text="a needle", state="done")])
    one.store.find("needle")
    assert len(one.wait(ChatsFound).hits) == 1
    one.store.add_messages(chat, [replace(reply, text="something else", state="done")])
    one.store.find("needle")
    assert one.wait(ChatsFound).hits == ()
    one.store.delete_messages([reply.message_id])
    one.store.find("something")
    assert one.wait(ChatsFound).hits == ()


def test_a_deleted_chat_is_not_found(open_store: Callable[..., OpenStore]) -> None:
    one = open_store()
    chat = chat_of("needles")
    one.store.add_messages(chat, [message_of("user", "needle")])
    one.store.delete_chat(chat.chat_id)
    for query in ("needle", "ne"):
        one.store.find(query)
        assert one.wait(ChatsFound).hits == ()


def test_words_of_a_query() -> None:
    assert words_of(' two  "of them" x "') == ["of them", "two", "x"]
