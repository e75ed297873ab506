"""The real engine on scripted models (F1): text byte by byte, limits, end tokens, contexts, files cut short."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.engine.events import GenerationDone, JobFailed, PairLoaded, StepDone
from dflash_desktop.engine.requests import LoadOptions, RawPrompt, TokenPrompt
from support.real_engine import ask_for, load_files, running_engine, try_ask, try_load
from support.scripted_model import change_value, cut, scripted_words, write_scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dflash_desktop.engine.engine import Engine

EMOJI = "Hi 😀 家庭 👨‍👩‍👧!"
TOOL = (
    "I will write.\n<tool_call>\n<function=write_file>\n<parameter=path>\n资料/résumé 😀.txt\n</parameter>\n"
    '<parameter=text>\nif a < b && c > "d": <b>\n</parameter>\n</function>\n</tool_call>'
)
COUNTING = [b"one ", b"two ", b"three ", b"four ", b"five ", b"six ", b"seven ", b"eight "]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def emoji(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scripted(tmp_path_factory.mktemp("f1") / "emoji.gguf", cut(EMOJI.encode()))


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scripted(tmp_path_factory.mktemp("f1") / "counting.gguf", COUNTING, context=64)


# ---- B047, B048, B063: text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("text", [EMOJI, TOOL])
def test_a_reply_comes_byte_by_byte_as_scripted(engine: Engine, tmp_path: Path, text: str, size: int) -> None:
    load_files(engine, write_scripted(tmp_path / "model.gguf", cut(text.encode(), size)))
    done, listener = try_ask(engine, "x")
    assert isinstance(done, GenerationDone)
    assert (done.text, done.finish_reason) == (text, "stop")
    parts = [step.text for step in listener.of(StepDone)]
    assert "".join(parts) == text
    assert not any("\ufffd" in part for part in parts)


def test_a_token_limit_anywhere_gives_exactly_so_many_tokens_and_whole_characters(engine: Engine, emoji: Path) -> None:
    load_files(engine, emoji)
    for limit in range(1, 15):
        done = ask_for(engine, "x", max_tokens=limit)
        assert done.n_committed == len(done.token_ids) == limit
        assert done.finish_reason == "length"
        assert EMOJI.startswith(done.text)
        assert "\ufffd" not in done.text
    assert ask_for(engine, "x", max_tokens=10**12).text == EMOJI


def test_bytes_that_are_no_text_become_replacement_characters(engine: Engine, tmp_path: Path) -> None:
    data = b"ok \xff\xfe caf\xe9 \xf0\x9f\x98"
    load_files(engine, write_scripted(tmp_path / "model.gguf", cut(data)))
    assert ask_for(engine, "x").text == data.decode("utf-8", "replace")


def test_a_stop_string_over_several_tokens_ends_the_reply_in_front_of_it(engine: Engine, emoji: Path) -> None:
    load_files(engine, emoji)
    done = ask_for(engine, "x", stop=("庭 👨",))
    assert (done.text, done.finish_reason, done.stop_string) == ("Hi 😀 家", "stop", "庭 👨")


# ---- B024, B027: end tokens ------------------------------------------------------------------------------------


def test_every_token_can_be_the_end_token_of_a_file(engine: Engine, counting: Path, tmp_path: Path) -> None:
    load_files(engine, counting)
    full = ask_for(engine, "x")
    for index, token in enumerate(full.token_ids[:-1]):
        copy = change_value(counting, tmp_path / "f2.gguf", "tokenizer.ggml.eos_token_id", token)
        load_files(engine, copy)
        done = ask_for(engine, "x")
        assert done.token_ids == full.token_ids[: index + 1]
        assert done.finish_reason == "stop"
        assert done.text == b"".join(COUNTING[:index]).decode()


@pytest.mark.parametrize(
    ("eos", "extra", "text"),
    [
        (None, {"eot_token_id": 262}, "one two "),
        (263, {"eot_token_id": 262}, "one two "),
        (261, {"eot_token_id": 262}, "one "),
        (None, {}, b"".join(COUNTING).decode()),  # no key at all: <|im_end|> is known by its text
    ],
)
def test_end_tokens_come_from_whichever_keys_the_file_has(
    engine: Engine, tmp_path: Path, eos: int | None, extra: dict[str, int], text: str
) -> None:
    words = replace(scripted_words(COUNTING), eos=eos, extra=extra)
    load_files(engine, write_scripted(tmp_path / "model.gguf", COUNTING, words=words))
    done = ask_for(engine, "x")
    assert (done.text, done.finish_reason) == (text, "stop")


# ---- B006, B008, B009, B010, B028: lengths ---------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 3, 127, 128, 129, 130, 255, 256, 257, 389, 1000])
def test_a_prompt_of_any_length_gives_the_same_reply(engine: Engine, tmp_path: Path, length: int) -> None:
    path = write_scripted(tmp_path / "model.gguf", COUNTING, context=1024)
    load_files(engine, path, context=1024)
    prompt = RawPrompt("a" * (length - 1) + "\n")
    for reuse in (False, True, True):
        done = ask_for(engine, prompt, reuse_prefix=reuse)
        assert done.text == b"".join(COUNTING).decode()
        assert done.n_prompt_tokens == length
    assert done.n_reused_tokens >= length - 1  # B005: the third time nearly all of it was there


@pytest.mark.parametrize("context", [0, 32, 64, 100, 256, 1000])
def test_the_reply_does_not_depend_on_the_size_of_the_context(engine: Engine, tmp_path: Path, context: int) -> None:
    load_files(engine, write_scripted(tmp_path / "model.gguf", COUNTING, context=1024), context=context)
    assert ask_for(engine, RawPrompt("hello\n")).text == b"".join(COUNTING).decode()


def test_a_reply_fills_the_context_exactly(engine: Engine, tmp_path: Path) -> None:
    load_files(engine, write_scripted(tmp_path / "model.gguf", COUNTING, context=64, is_endless=True), context=64)
    for length in range(40, 64):
        done = ask_for(engine, TokenPrompt((65,) * (length - 1) + (10,)))
        assert done.finish_reason in ("context", "length")
        assert done.n_committed >= 1
        assert 63 <= length + done.n_committed <= 65
    failed, _ = try_ask(engine, TokenPrompt((10,) * 64))
    assert isinstance(failed, JobFailed)
    assert failed.kind == "context_exceeded"


def test_a_token_limit_gives_the_beginning_of_the_long_reply(engine: Engine, tmp_path: Path) -> None:
    load_files(engine, write_scripted(tmp_path / "model.gguf", COUNTING, is_endless=True))
    long = ask_for(engine, "x", max_tokens=48)
    for limit in range(1, 48):
        assert ask_for(engine, "x", max_tokens=limit).token_ids == long.token_ids[:limit]


# ---- B012, B158: files -----------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused_with_its_name_and_the_engine_lives(
    engine: Engine, counting: Path, tmp_path: Path
) -> None:
    data = counting.read_bytes()
    load_files(engine, counting)
    broken = tmp_path / "broken 😀.gguf"
    for end in [0, 1, 4, 20, 100, *(len(data) * part // 20 for part in range(1, 20)), len(data) - 1]:
        broken.write_bytes(data[:end])
        failed = try_load(engine, broken)
        assert isinstance(failed, JobFailed), end
        assert failed.kind == "bad_request"
        assert "broken 😀.gguf" in failed.message
        assert ask_for(engine, "x").text  # the old pair is still there


@pytest.mark.parametrize("place", ["missing.gguf", "a folder"])
def test_what_is_no_file_is_refused(engine: Engine, tmp_path: Path, place: str) -> None:
    (tmp_path / "a folder").mkdir()
    failed = try_load(engine, tmp_path / place)
    assert isinstance(failed, JobFailed)
    assert failed.kind == "bad_request"
    assert place in failed.message


@pytest.mark.parametrize(
    "name",
    ["模型 & 'q' #1 😀.gguf", "-leading dash.gguf", "ü%20 100%.gguf", "田中　太郎/modell.gguf", "x" * 200 + ".gguf"],
)
def test_files_of_any_name_load(engine: Engine, counting: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(counting.read_bytes())
    assert load_files(engine, path).target == path
    assert ask_for(engine, "x").text == b"".join(COUNTING).decode()


def test_a_device_that_is_not_there_is_named_and_nothing_else_is_taken(engine: Engine, counting: Path) -> None:
    failed = try_load(engine, counting, options=LoadOptions(device="CUDA7"))
    assert isinstance(failed, JobFailed)
    assert "'CUDA7'" in failed.message
    assert "CPU" in failed.message
    assert isinstance(try_load(engine, counting, options=LoadOptions(device="cpu")), PairLoaded)


def test_a_cache_type_that_is_not_known_is_named(engine: Engine, counting: Path) -> None:
    failed = try_load(engine, counting, options=LoadOptions(kv_k="f7"))  # type: ignore[arg-type]
    assert isinstance(failed, JobFailed)
    assert failed.kind == "bad_request"
    assert "'f7'" in failed.message


def test_a_context_too_large_for_the_memory_is_refused_and_a_small_one_loads(engine: Engine, counting: Path) -> None:
    failed = try_load(engine, counting, options=LoadOptions(context_tokens=2**31 - 1))
    assert isinstance(failed, JobFailed)
    assert failed.kind in ("out_of_memory", "bad_request")
    load_files(engine, counting)
    assert ask_for(engine, "x").text
