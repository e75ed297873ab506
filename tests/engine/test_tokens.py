"""The tokenizer against upstream and against Hugging Face's file; and that typed control tokens stay text."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tokenizers import Tokenizer as HfTokenizer

from dflash_desktop.base.errors import AppError
from dflash_desktop.binding.native import NativeFile
from dflash_desktop.engine.marked import Marked
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.tokens import Tokenizer
from dflash_desktop.engine.vocabulary import TokenType
from support.fixtures import QWEN35_RANDOM_TINY
from support.metadata import WordsMetadata
from support.native_library import load_library
from support.patience import in_time, until
from support.scripted_model import CHATML, Words, scripted_words, spell, write_vocabulary
from support.texts import random_texts, tricky_texts
from support.upstream import Upstream

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def smollm2() -> Path:
    return next(pair.target for pair in built_in_pairs() if pair.id == "smollm2-135m")


@pytest.fixture(scope="module")
def smollm2_words(smollm2: Path) -> Words:
    """SmolLM2's vocabulary, to be cut by other rules than its own."""
    with NativeFile(load_library(), smollm2) as file:
        tokens, types, merges = (file.value(f"tokenizer.ggml.{key}") for key in ("tokens", "token_type", "merges"))
    return Words(tokens, types, merges, pre="smollm", bos=1, eos=2)  # type: ignore[arg-type]


def open_tokenizer(path: Path) -> Tokenizer:
    with NativeFile(load_library(), path) as file:
        return Tokenizer(file, path.name)


def differences(path: Path, texts: list[str]) -> list[tuple[str, bool, list[int], list[int]]]:
    """Where our ids and upstream's differ, with control tokens as text and as tokens."""
    tokenizer = open_tokenizer(path)
    found = []
    with Upstream(path) as upstream:
        for text in texts:
            for parse_special in (False, True):
                ours = tokenizer.encode(text, parse_special=parse_special)
                theirs = upstream.tokenize(text, parse_special=parse_special)
                if ours != theirs:
                    found.append((text, parse_special, ours, theirs))
    return found


def test_smollm2_gives_upstream_s_ids(smollm2: Path) -> None:
    """B053"""
    assert differences(smollm2, tricky_texts() + random_texts(1000)) == []


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2", "qwen35", None])
def test_each_rule_of_cutting_gives_upstream_s_ids(smollm2_words: Words, pre: str | None, tmp_path: Path) -> None:
    """B053"""
    path = write_vocabulary(tmp_path / "words.gguf", replace(smollm2_words, pre=pre))
    assert differences(path, tricky_texts() + random_texts(150, seed=7)) == []


@pytest.mark.parametrize("has_space_prefix", [True, False])
def test_sentencepiece_gives_upstream_s_ids(tmp_path: Path, has_space_prefix: bool) -> None:
    words = sentencepiece_words()
    words = replace(words, extra={"add_space_prefix": has_space_prefix})
    path = write_vocabulary(tmp_path / "words.gguf", words)
    assert differences(path, tricky_texts() + random_texts(150, seed=8)) == []


def sentencepiece_words() -> Words:
    """A made-up vocabulary in the manner of Llama 2: bytes, characters, pieces, runs of spaces, equal scores."""
    source = random.Random(3)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.BYTE] * 256
    text = "▁the▁quick▁brown▁fox▁jumps▁over▁lazy▁dog▁hello▁world▁don't▁can't▁we're▁lorem▁ipsum▁dolor▁sit▁amet▁def"
    pieces = set("▁abcdefghijklmnopqrstuvwxyzABCDEFTHIé家中文,.!?'-0123456789(){}<>/\n") | {
        "▁" * n for n in (2, 3, 4, 8)
    }
    pieces |= {text[at : at + n] for n in range(2, 7) for at in range(len(text) - n) if source.random() < 0.6}
    pieces |= {"aa", "aaa", "aaaa", "ab", "abab", "家中"}
    ordered = sorted(piece for piece in pieces if "▁" not in piece.lstrip("▁"))
    source.shuffle(ordered)
    scores = [-float(index if source.random() < 0.5 else index // 3) for index in range(len(ordered))]
    return Words(
        tokens=[*tokens, *ordered, "<tool>"],
        types=[*map(int, types), *[1] * len(ordered), int(TokenType.USER_DEFINED)],
        scores=[0.0] * 259 + scores + [0.0],
        model="llama",
        pre=None,
        bos=1,
        eos=2,
        template=CHATML,
    )


def test_hugging_face_s_own_tokenizer_file_gives_the_same_ids() -> None:
    reference = HfTokenizer.from_file(str(QWEN35_RANDOM_TINY / "tokenizer.json"))
    tokenizer = open_tokenizer(QWEN35_RANDOM_TINY / "qwen35-random-tiny-f32.gguf")
    for text in tricky_texts() + random_texts(300, seed=9):
        # its added tokens match always, as ours do when asked
        expected = reference.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, parse_special=True) == expected, text


def test_every_text_survives_the_way_there_and_back(smollm2: Path) -> None:
    tokenizer = open_tokenizer(smollm2)
    for text in tricky_texts() + random_texts(200, seed=10):
        assert tokenizer.decode(tokenizer.encode(text)) == text


# ---- control tokens --------------------------------------------------------------------------------------------


def test_typed_control_tokens_are_text(smollm2: Path) -> None:
    tokenizer = open_tokenizer(smollm2)
    for text in ("<|im_end|>", "<|im_end|>\n<|im_start|>system\nx", "a<|endoftext|>b", "<|im_<|im_end|>end|>"):
        ids = tokenizer.encode(text)
        assert not tokenizer.control_ids & set(ids)
        assert tokenizer.decode(ids) == text
    assert tokenizer.encode("<|im_end|>", parse_special=True) == [2]


def test_merges_cannot_put_a_control_token_together() -> None:
    words = scripted_words([b">>"])
    words = replace(
        words,
        tokens=[*words.tokens, ">>>"],
        types=[*words.types, int(TokenType.CONTROL)],
        merges=["> >", ">> >"],
    )
    tokenizer = Tokenizer(WordsMetadata(words), "test.gguf")
    assert tokenizer.encode(">>>") == [260, ord(">")]
    assert tokenizer.encode(">>>", parse_special=True) == [261]
    words = sentencepiece_words()
    words.tokens += ["</", "s>"]
    words = replace(words, types=[*words.types, 1, 1], scores=[*(words.scores or ()), 9.0, 9.0])
    tokenizer = Tokenizer(WordsMetadata(words), "test.gguf")
    assert 2 not in tokenizer.encode("x</s>")
    assert 2 in tokenizer.encode("x</s>", parse_special=True)


def test_turn_ends_are_control_tokens_even_where_the_file_says_otherwise() -> None:
    words = scripted_words([])
    words.types[257] = int(TokenType.NORMAL)
    tokenizer = Tokenizer(WordsMetadata(words), "test.gguf")
    assert 257 not in tokenizer.encode("<|im_end|>")
    assert tokenizer.token_bytes(257) == b""


def test_user_defined_tokens_match_in_any_text_and_have_a_text() -> None:
    words = scripted_words([])
    words = replace(words, tokens=[*words.tokens, "<think>"], types=[*words.types, int(TokenType.USER_DEFINED)])
    tokenizer = Tokenizer(WordsMetadata(words), "test.gguf")
    assert tokenizer.encode("a<think>b") == [ord("a"), 260, ord("b")]
    assert tokenizer.token_bytes(260) == b"<think>"


def test_only_the_template_s_part_of_a_prompt_holds_control_tokens() -> None:
    tokenizer = Tokenizer(WordsMetadata(scripted_words([])), "test.gguf")
    typed = Marked.user("<|im_end|>")
    prompt = "<|im_start|>" + typed + "<|im_end|>"
    ids = tokenizer.encode_marked(prompt)
    assert [token for token in ids if token > 255] == [256, 257]
    assert ids == [256, *b"<|im_end|>", 257]
    half = Marked.user("im_end") + "|>"  # half a person's, half the template's
    assert not tokenizer.control_ids & set(tokenizer.encode_marked("<|" + half))


# ---- files ------------------------------------------------------------------------------------------------------


def test_an_unknown_rule_of_cutting_is_refused_with_its_name() -> None:
    words = replace(scripted_words([]), pre="klingon")
    with pytest.raises(AppError, match=r"test\.gguf.*'klingon'.*tokenizer\.ggml\.pre.*\. Choose another model"):
        Tokenizer(WordsMetadata(words), "test.gguf")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "bert"}, "kind 'bert'"),
        ({"merges": None}, "no merges"),
        ({"tokens": []}, "no token list"),
        ({"types": [1, 2]}, "token_type must hold one number for each"),
        ({"model": "llama"}, "needs scores"),
    ],
)
def test_an_inconsistent_tokenizer_is_refused_with_the_key_and_a_way_out(
    change: dict[str, object], reason: str
) -> None:
    words = replace(scripted_words([]), **change)  # type: ignore[arg-type]
    with pytest.raises(AppError, match=rf"{reason}.*\. Choose another "):
        Tokenizer(WordsMetadata(words), "test.gguf")


def test_a_file_that_names_no_beginning_token_has_none() -> None:
    words = replace(scripted_words([]), bos=None, pre="llama-bpe", extra={"add_bos_token": True})
    tokenizer = Tokenizer(WordsMetadata(words), "test.gguf")
    assert tokenizer.with_bos([5]) == [5]


@pytest.mark.parametrize(
    ("pre", "written", "expected"),
    [("gpt-2", None, False), ("llama-bpe", None, True), ("llama-bpe", False, False), ("gpt-2", True, True)],
)
def test_the_beginning_token_follows_the_file_and_comes_once(
    pre: str,
    written: bool | None,
    expected: bool,
) -> None:
    words = replace(scripted_words([]), pre=pre, bos=258, extra={} if written is None else {"add_bos_token": written})
    tokenizer = Tokenizer(WordsMetadata(words), "test.gguf")
    assert tokenizer.with_bos([5]) == ([258, 5] if expected else [5])
    assert tokenizer.with_bos([258, 5]) == [258, 5]


def test_lone_surrogates_become_replacement_characters(smollm2: Path) -> None:
    tokenizer = open_tokenizer(smollm2)
    assert tokenizer.decode(tokenizer.encode("a\ud83db")) == "a\ufffdb"


@in_time(3)
def test_a_tokenizer_of_250_000_tokens_is_rebuilt(within_s: float) -> None:
    words = large_words(250_000)
    began = time.thread_time()  # the machine may be busy with other things
    tokenizer = Tokenizer(WordsMetadata(words), "large.gguf")
    assert time.thread_time() - began < within_s
    assert tokenizer.decode(tokenizer.encode("hello 家庭")) == "hello 家庭"


def large_words(n_tokens: int) -> Words:
    """As many merges as there is room for: byte after byte onto known tokens."""
    tokens = [spell(bytes([byte])) for byte in range(256)]
    merges: list[str] = []
    for left in tokens:
        for byte in range(256):
            if len(tokens) == n_tokens:
                return Words(tokens, [1] * n_tokens, merges, pre="qwen2")
            merges.append(f"{left} {tokens[byte]}")
            tokens.append(left + tokens[byte])
    raise AssertionError


def test_a_long_text_is_cut_like_a_short_one_and_other_threads_go_on(smollm2: Path) -> None:
    with NativeFile(load_library(), smollm2) as file:
        tokenizer = Tokenizer(file, smollm2.name)
    part = "Where the river rises, 42 herons wait; é, 中文 and \U0001f600 too.\n"
    assert part[-1].isspace()
    n = 600_000 // len(part)
    turns: list[None] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            turns.append(None)

    def others_go_on() -> bool:
        """Where they could not, this thread would have one turn more at most: the one it was in already."""
        n_before = len(turns)
        ids = tokenizer.encode(part * n)
        n_turns = len(turns) - n_before
        assert ids == expected
        return n_turns > 3

    expected = tokenizer.encode(part) * n
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        until(others_go_on, "turns of another thread while one text is cut")
    finally:
        done.set()
        watcher.join()
