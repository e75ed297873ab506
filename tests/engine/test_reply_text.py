"""Bytes become text: whole characters, no half stop strings, whatever the cuts (B047, B048)."""

from __future__ import annotations

import random

import pytest

from dflash_desktop.engine.reply_text import ReplyText

EMOJI = "Hi 😀 家庭 👨‍👩‍👧!"


def feed(pieces: list[bytes], stop: tuple[str, ...] = (), *, is_cut: bool = False) -> tuple[list[str], ReplyText]:
    reply = ReplyText(lambda token: pieces[token], stop)
    given = []
    for token in range(len(pieces)):
        given.append(reply.add(token))
        if reply.stop_string is not None:
            return given, reply
    given.append(reply.finish(is_cut=is_cut))
    return given, reply


def random_cuts(data: bytes, source: random.Random) -> list[bytes]:
    pieces = []
    while data:
        n = source.randint(1, 5)
        pieces.append(data[:n])
        data = data[n:]
    return pieces


@pytest.mark.parametrize("size", range(1, 8))
def test_characters_cut_anywhere_come_out_whole(size: int) -> None:
    data = EMOJI.encode()
    given, reply = feed([data[at : at + size] for at in range(0, len(data), size)])
    assert "".join(given) == reply.text == EMOJI
    assert not any("\ufffd" in part for part in given)


def test_random_bytes_come_out_as_a_whole_decode_would_say() -> None:
    source = random.Random(5)
    for _ in range(300):
        data = bytes(source.choice((0x41, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0xE5, 0xFF)) for _ in range(20))
        given, _ = feed(random_cuts(data, source))
        assert "".join(given) == data.decode("utf-8", "replace")


def test_a_limit_in_the_middle_of_a_character_drops_the_half() -> None:
    data = EMOJI.encode()
    for end in range(len(data) + 1):
        given, _ = feed([data[:end]], is_cut=True)
        assert "\ufffd" not in "".join(given)
        assert EMOJI.startswith("".join(given))


def test_a_reply_that_ends_by_itself_in_half_a_character_says_so() -> None:
    given, _ = feed([b"ok \xf0\x9f"])
    assert "".join(given) == "ok \ufffd"


def test_stop_strings_are_found_at_every_cut_and_nothing_after_them_is_given() -> None:
    source = random.Random(6)
    text = "word 家庭 <end> more <end>"
    for stop in ("<end>", "庭 <", "\n\n", "d>", " more <e", "word 家庭 <end> more <end>!"):
        at = text.find(stop)
        for _ in range(40):
            given, reply = feed(random_cuts(text.encode(), source), ("unlikely", stop))
            assert "".join(given) == reply.text == (text if at < 0 else text[:at])
            assert reply.stop_string == (None if at < 0 else stop)


def test_no_part_of_a_stop_string_is_ever_shown() -> None:
    reply = ReplyText(lambda token: b"a STOP b ST o p STO"[token : token + 1], ("STOP!",))
    shown = "".join(reply.add(token) for token in range(19))
    assert shown == "a STOP b ST o p "
    assert reply.finish(is_cut=True) == "STO"


def test_the_earliest_stop_string_wins() -> None:
    given, reply = feed([b"one two three"], ("three", "two"))
    assert ("".join(given), reply.stop_string) == ("one ", "two")


def test_empty_stop_strings_mean_nothing() -> None:
    given, reply = feed([b"text"], ("",))
    assert ("".join(given), reply.stop_string) == ("text", None)


def test_text_is_given_as_soon_as_it_is_certain() -> None:
    given, _ = feed([b"Hello", b" wor", b"ld"], ("\nUser:",))
    assert given == ["Hello", " wor", "ld", ""]
