"""Chats as files: readable ones, and one that comes back whole."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.conftest import chat_of, message_of
from dflash_desktop.base.errors import AppError
from dflash_desktop.chats.export_text import to_html, to_markdown
from dflash_desktop.chats.json_format import from_json, to_json
from dflash_desktop.chats.records import Attachment, Conversation, MessageRecord, Role
from dflash_desktop.chats.sections import ExportWords, branch_of, sections_of

WORDS = ExportWords(
    roles={"user": "You", "assistant": "Answer", "system": "System", "tool": "Tool result"},
    thoughts="Thoughts",
    attached="Attached:",
    version="version {0} of {1}",
    when=lambda _seconds: "29 Nov 2026",
    facts=lambda facts: f"{facts['tps']} tok/s" if facts else "",
)


def branched() -> Conversation:
    asked = replace(message_of("user", "Why?\n<b>&"), shown_order=1)
    first = replace(message_of("assistant", "**Because** one.", asked), shown_order=2)
    second = replace(
        message_of("assistant", "Two.", asked, reasoning="Hm\nhm", facts={"tps": 80.5}, reasoning_s=1.0), shown_order=3
    )
    more = replace(message_of("user", "More of one", first), shown_order=4)
    edited = replace(
        message_of("user", "Why not?", attachments=(Attachment("a.txt", "text", "```\ncode", 8),)), shown_order=0
    )
    return Conversation(chat_of("A *title*"), (asked, first, second, more, edited))


def texts(messages: tuple[MessageRecord, ...]) -> list[str]:
    return [message.text for message in messages]


def test_the_branch_that_shows_comes_first_then_every_other_version_once() -> None:
    sections = sections_of(branched(), all_branches=True)
    assert [texts(section.messages) for section in sections] == [
        ["Why?\n<b>&", "Two."],
        ["Why not?"],
        ["**Because** one.", "More of one"],
    ]
    assert [section.version for section in sections] == [None, (2, 2), (1, 2)]
    assert texts(branch_of(branched())) == ["Why?\n<b>&", "Two."]


def test_markdown_keeps_what_the_model_wrote() -> None:
    text = to_markdown(branched(), WORDS, all_branches=True)
    assert text.startswith("# A *title*\n\n*29 Nov 2026*\n\n## You\n\nWhy?\n<b>&\n\n## Answer\n")
    assert "> **Thoughts**\n>\n> Hm\n> hm\n\nTwo.\n\n*80.5 tok/s*" in text
    assert "## Answer · version 1 of 2\n\n**Because** one." in text
    assert "**Attached:** a.txt\n\n````\n```\ncode\n````" in text
    assert "version" not in to_markdown(branched(), WORDS, all_branches=False)


def test_html_is_safe_and_needs_nothing() -> None:
    chat = branched()
    evil = message_of("assistant", "<script>alert(1)</script> [x](javascript:alert) ![p](http://x/y.png) | a |")
    page = to_html(Conversation(chat.chat, (*chat.messages, replace(evil, shown_order=9))), WORDS, all_branches=True)
    assert "<script" not in page
    assert 'href="javascript' not in page
    assert "<img" not in page
    assert "http://x/y.png" in page
    assert "<p>Why?<br>&lt;b&gt;&amp;</p>" in page
    assert "<strong>Because</strong>" in page
    assert "<details><summary>Thoughts</summary>" in page
    assert "<details" not in to_html(chat, WORDS, all_branches=True, is_plain=True)


ROLES: list[Role] = ["user", "assistant", "system", "tool"]


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    text = st.text(max_size=30).map(lambda value: value.encode("utf-8", "replace").decode())
    messages: list[MessageRecord] = []
    for number in range(draw(st.integers(1, 8))):
        parent = messages[draw(st.integers(0, number - 1))] if number and draw(st.booleans()) else None
        made = message_of(draw(st.sampled_from(ROLES)), draw(text), parent)
        messages.append(
            replace(
                made,
                shown_order=draw(st.integers(0, 99)),
                reasoning=draw(text),
                error=draw(text),
                state=draw(st.sampled_from(["done", "stopped", "failed", "interrupted"])),
                facts=draw(st.dictionaries(text, st.integers() | text, max_size=2)),
                accepted_runs=tuple(draw(st.lists(st.integers(0, 9), max_size=3))),
                attachments=tuple(Attachment(name, "text", name, 1) for name in draw(st.lists(text, max_size=2))),
            )
        )
    return Conversation(chat_of(draw(text.filter(str.strip))), tuple(messages))


def shape(conversation: Conversation) -> object:
    """All but the ids, which are new after an import."""
    numbers = {one.message_id: number for number, one in enumerate(conversation.messages)}
    return (
        replace(conversation.chat, chat_id=0, composer_text=""),
        [
            replace(
                one,
                message_id=numbers[one.message_id],
                parent_id=numbers[one.parent_id] if one.parent_id is not None else None,
                reasoning_s=None,
            )
            for one in conversation.messages
        ],
    )


@given(st.lists(conversations(), min_size=1, max_size=3))
def test_json_comes_back_whole(written: list[Conversation]) -> None:
    read = from_json(to_json(written, all_branches=True), "x.json")
    assert [shape(one) for one in read] == [shape(one) for one in written]
    ids = {one.chat.chat_id for one in (*read, *written)}
    assert len(ids) == 2 * len(written)


def test_json_of_one_branch_is_a_chat_of_its_own() -> None:
    (read,) = from_json(to_json([branched()], all_branches=False), "x.json")
    assert texts(read.messages) == ["Why?\n<b>&", "Two."]
    assert read.messages[1].parent_id == read.messages[0].message_id


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no json", "no JSON file"),
        ("[1]", "not exported by this program"),
        ('{"format": "other"}', "not exported by this program"),
        ('{"format": "dflash-desktop-chats", "version": 9}', "newer version"),
        ('{"format": "dflash-desktop-chats", "version": 1}', "no list of chats"),
        ("[" * 100_000, "no JSON file"),
    ],
)
def test_other_files_are_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(AppError, match=why):
        from_json(text, "x.json")


def test_nonsense_inside_the_file_is_left_out() -> None:
    chat = {
        "title": 5,
        "created": "yesterday",
        "messages": [
            7,
            {"role": "pirate", "text": "no"},
            {"role": "user", "text": "kept", "number": 1, "parent": 99, "state": "odd", "facts": [], "attachments": 3},
            {"role": "assistant", "text": None, "number": 2, "parent": 1, "shown_order": "x", "accepted_runs": ["y"]},
        ],
    }
    data = {"format": "dflash-desktop-chats", "version": 1, "chats": [chat, "x"]}
    (read,) = from_json(json.dumps(data), "x.json")
    assert [(message.role, message.text, message.state) for message in read.messages] == [
        ("user", "kept", "done"),
        ("assistant", "", "done"),
    ]
    assert read.chat.title == "kept"
