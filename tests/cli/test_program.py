"""The installed program from the outside: every command on a real model, streams, signals, exit codes."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF
from support.program import LIMIT_S, PROGRAM, run_for_json, run_program

MINI = ("--target", QWEN35_MINI, "--threads", "1")  # one thread: a tiny model waits for nobody on a busy machine
READ_LIMIT_S = LIMIT_S
SAY_AGAIN = ("--prompt", "Sag es noch einmal: für 家庭 😀", "--max-tokens", "12", "--temperature", "0")
CHAT_FIELDS = [
    *("text", "token_ids", "prompt_tokens", "steps", "drafted", "accepted", "committed", "acceptance_length", "ttft_s"),
    *("prefill_tps", "decode_tps", "finish_reason"),
]


def test_the_version() -> None:
    assert run_program("--version").stdout == "dflash-desktop 0.1.0\n"


def test_devices() -> None:
    (cpu, *_) = run_for_json("--list-devices")
    assert cpu["kind"] == "cpu"
    assert cpu["total_bytes"] > 10**8
    assert "CPU" in run_program("--list-devices").stdout


def test_the_built_in_pair_answers_without_any_flag_but_the_prompt() -> None:
    done = run_program("chat", "--prompt", "Why is the sky blue?", "--max-tokens", "6")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.split()) > 2
    assert done.stdout.endswith("\n")


def test_chat_json_has_the_agreed_fields_and_the_figures_agree() -> None:
    told = run_for_json(
        "chat", *MINI, "--prompt", "Why is the sky blue?", "--max-tokens", "24", "--draft-mode", "chain"
    )
    assert list(told) == CHAT_FIELDS
    assert told["committed"] == len(told["token_ids"]) == 24
    assert told["finish_reason"] == "length"
    assert 0 < told["steps"] < 24
    assert told["accepted"] <= told["drafted"]
    assert told["acceptance_length"] == pytest.approx(told["committed"] / told["steps"])
    assert told["ttft_s"] > 0


def test_the_draft_changes_speed_and_not_text() -> None:
    prompt = ("--prompt", "List three fruits.", "--max-tokens", "24")
    told = [run_for_json("chat", *MINI, *prompt, "--draft-mode", mode) for mode in ("off", "chain", "tree", "auto")]
    told.append(run_for_json("chat", *MINI, *prompt, "--draft", "none"))
    assert len({tuple(reply["token_ids"]) for reply in told}) == 1
    assert told[0]["drafted"] == told[4]["drafted"] == 0
    assert told[1]["drafted"] > 0


def test_the_same_seed_gives_the_same_text() -> None:
    asked = ("chat", *MINI, "--prompt", "Tell me a story.", "--max-tokens", "24", "--temperature", "0.9", "--seed")
    first, again, other = (run_for_json(*asked, seed)["text"] for seed in ("1", "1", "2"))
    assert first == again != other


def test_raw_continues_a_text_without_the_template() -> None:
    raw = run_for_json("chat", *MINI, "--prompt", "Once upon a time", "--raw", "--max-tokens", "8")
    templated = run_for_json("chat", *MINI, "--prompt", "Once upon a time", "--max-tokens", "8")
    assert raw["prompt_tokens"] < 6 < templated["prompt_tokens"]


def test_a_system_message_is_part_of_the_prompt() -> None:
    with_system, without = (
        run_for_json("chat", *MINI, "--prompt", "Hi", "--max-tokens", "1", *system)["prompt_tokens"]
        for system in (
            ("--system", "You are a very old and very patient lighthouse keeper. Answer in rhymes. " * 3),
            (),
        )
    )
    assert with_system > without


def test_bench_compares_both_ways(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts 家庭.txt"
    prompts.write_text("\ufeffWhy is the sky blue?\n\nListe les fruits d'été.\n", encoding="utf-8")
    told = run_for_json("bench", *MINI, "--draft", QWEN35_MINI_DRAFT, "--prompts", prompts, "--max-tokens", "32")
    assert [row["prompt"] for row in told["prompts"]] == ["Why is the sky blue?", "Liste les fruits d'été."]
    assert told["is_identical"]
    assert told["n_identical"] == 2
    assert told["acceptance_length"] > 1
    assert min(told["speed_up"], told["draft_tps"], told["plain_tps"]) > 0
    for_people = run_program("bench", *MINI, "--draft", "none", "--prompts", prompts, "--max-tokens", "8")
    assert for_people.returncode == 0
    assert "No draft was loaded" in for_people.stdout


def test_bench_without_drafting_times_plain_decoding_alone(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("Why is the sky blue?\n", encoding="utf-8")
    told = run_for_json("bench", *MINI, "--draft-mode", "off", "--prompts", prompts, "--max-tokens", "8")
    assert (told["draft"], told["draft_tps"], told["speed_up"], told["is_identical"]) == (None, None, None, None)
    assert told["plain_tps"] > 0


def test_inspect_names_the_drafts_that_fit() -> None:
    told = run_for_json("inspect", QWEN35_MINI)
    assert told["can_run"]
    # as GGUF, and as it was published
    published = QWEN35_MINI_DRAFT_HF / "model.safetensors"
    assert [Path(draft["path"]) for draft in told["drafts"]] == [QWEN35_MINI_DRAFT, published]
    assert "can run:          yes" in run_program("inspect", QWEN35_MINI).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["inspect", "no such file.gguf"], 2, "no such file.gguf"),
        (["inspect", __file__], 2, "not a GGUF model file"),
        (["chat", "--prompt", "x", "--target", "no such file.gguf"], 2, "no model file no such file.gguf"),
        (["chat", "--prompt", "x", "--target", __file__], 2, "not a GGUF model file"),
        (["chat", "--prompt", "x", "--draft", "no such file.gguf"], 2, "no draft no such file.gguf"),
        (["chat", "--prompt", "x", "--draft", str(QWEN35_MINI_DRAFT)], 2, "qwen35-mini-dflash"),
        (["chat", "--prompt", "x", "--target", str(QWEN35_MINI_DRAFT)], 2, "DFlash draft"),
        (["chat", "--prompt", "x", "--device", "CUDA7"], 2, "CUDA7"),
        (["chat", "--prompt", "x " * 3000, *map(str, MINI)], 2, "context"),
        (["chat", "--prompt", "x", "--block-size", "9", *map(str, MINI)], 2, "blocks of 8 positions at most"),
        (["bench", "--prompts", "no such file.txt"], 2, "no such file.txt"),
        # Exit code 1 would say that a sound model does not fit.
        (["plan", "--target", __file__], 2, "not a GGUF model file"),
        (["plan", "--draft", str(QWEN35_MINI_DRAFT)], 2, "qwen35-mini-dflash"),
        (["plan", "--scorer", str(QWEN35_MINI_DRAFT)], 2, "scorer cannot be used"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments: list[str], code: int, said: str) -> None:
    done = run_program(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.startswith("dflash-desktop: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", [["--list-devices"], ["chat", *MINI, "--prompt", "Hi", "--max-tokens", "1"], ["inspect", QWEN35_MINI]]
)
def test_no_terminal_command_imports_qt(command: list[str | Path]) -> None:
    check = (
        "import sys; from dflash_desktop.cli import main; code = main(sys.argv[1:]);"
        "tops = {name.split('.')[0] for name in sys.modules};"
        "assert not tops & {'PySide6', 'shiboken6', 'pyqtgraph'}; sys.exit(code)"
    )
    subprocess.run(
        [sys.executable, "-c", check, *map(str, command)], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S
    )


@cache
def said_again() -> list[int]:
    """What comes under this run's own locale."""
    found: list[int] = run_for_json("chat", *MINI, *SAY_AGAIN)["token_ids"]
    return found


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "LANG": "C"},
        {"LC_ALL": "nonsense"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=lambda environment: next(iter(environment.values())),
)
def test_text_is_utf8_under_any_locale(environment: dict[str, str]) -> None:
    told = run_for_json("chat", *MINI, *SAY_AGAIN, environment=environment)
    assert told["token_ids"] == said_again()


@pytest.mark.skipif(not shutil.which("localedef"), reason="needs localedef (Debian: locales)")
def test_a_decimal_comma_changes_no_number(tmp_path: Path) -> None:
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True, check=False
    )
    assert (tmp_path / "de_DE.UTF-8").is_dir(), made.stderr
    german = {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    sampled = (
        "chat",
        *MINI,
        "--prompt",
        "Tell me a story.",
        "--max-tokens",
        "24",
        "--temperature",
        "0.7",
        "--seed",
        "3",
    )
    here, there = run_for_json(*sampled), run_for_json(*sampled, environment=german)
    assert there["token_ids"] == here["token_ids"]
    assert isinstance(there["acceptance_length"], float)
    refused = run_program("chat", "--prompt", "x", "--temperature", "0,7", environment=german)
    assert refused.returncode == 2
    assert "0.7" in refused.stderr


def test_a_home_of_any_name_works(tmp_path: Path) -> None:
    home = tmp_path / '田中　太郎 \'s "#1" 100%'
    model = home / "-models" / "模型 & 'q' #1 😀.gguf"
    model.parent.mkdir(parents=True)
    model.symlink_to(QWEN35_MINI)
    names = ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    environment = {name: str(home / name.lower()) for name in names}
    told = run_for_json("chat", "--target", model, "--prompt", "Hi", "--max-tokens", "2", environment=environment)
    assert told["committed"] == 2
    told = run_for_json("inspect", model, environment=environment)
    assert told["path"] == str(model)
    assert list(home.rglob("dflash-desktop.log"))


def test_a_reader_that_leaves_early_is_no_error_message() -> None:
    program = subprocess.Popen(
        [*PROGRAM, "chat", *map(str, MINI), "--prompt", "Tell me a long story.", "--max-tokens", "400"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert program.stdout
    assert program.stderr
    program.stdout.read(1)
    program.stdout.close()
    assert program.wait(LIMIT_S) == 1
    assert program.stderr.read() == b""
    program.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a disk that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "inspect", str(QWEN35_MINI)], stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False
        )
    assert done.returncode == 1
    assert done.stderr == "dflash-desktop: The output cannot be written: No space left on device.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_ctrl_c_ends_a_reply_and_keeps_what_was_said(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = subprocess.Popen(
        [*PROGRAM, "chat", *map(str, MINI), "--prompt", "Tell me a long story.", "--max-tokens", "1500", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert program.stdout
    begun = ""
    if flags:  # nothing is printed before the end; what a load learns is written when it is over
        deadline = time.monotonic() + READ_LIMIT_S
        while not list(tmp_path.rglob("tuning/*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
    else:
        begun = program.stdout.read(1)
    program.send_signal(signal.SIGINT)
    rest, said = program.communicate(timeout=LIMIT_S)
    assert program.returncode == 130
    assert said == ""
    text = begun + rest
    if flags and text:
        assert json.loads(text)["finish_reason"] == "cancelled"
    else:
        assert text.endswith("\n") or flags


def test_lines_from_a_pipe_are_answered_one_by_one() -> None:
    done = run_program("chat", *MINI, "--max-tokens", "6", typed="Hello\n\nWhat is that?\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") >= 2


def test_without_a_display_the_window_names_the_terminal_twin() -> None:
    done = run_program(environment={"DISPLAY": "", "WAYLAND_DISPLAY": "", "QT_QPA_PLATFORM": ""})
    if sys.platform.startswith("linux"):
        assert done.returncode == 1
        assert "dflash-desktop chat" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_conversation_in_a_terminal() -> None:
    ours, theirs = os.openpty()
    program = subprocess.Popen(
        [*PROGRAM, "chat", *map(str, MINI), "--max-tokens", "400"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb"},
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    seen = ""

    def read_until(wanted: str, *, after: int = 0, n_more: int = 0) -> None:
        nonlocal seen
        deadline = time.monotonic() + READ_LIMIT_S
        while wanted not in seen[after:] or len(seen) < after + n_more:
            assert select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0], (
                f"{wanted!r} not in {seen!r}"
            )
            seen += os.read(ours, 4096).decode("utf-8", "replace")

    try:
        read_until("> ")
        os.write(ours, b"Tell me a long story.\n")
        read_until("story.\r\n")
        at = len(seen)
        read_until("", after=at, n_more=20)
        os.write(ours, b"\x03")
        read_until("stopped by you", after=at)
        read_until("> ", after=seen.index("stopped by you"))
        at = len(seen)
        for _ in range(20):  # at the prompt it explains itself; a key that came before it was read is pressed again
            os.write(ours, b"\x03")
            if select.select([ours], [], [], 3)[0]:
                seen += os.read(ours, 4096).decode("utf-8", "replace")
            if "Ctrl-D or /exit leaves" in seen[at:]:
                break
        read_until("Ctrl-D or /exit leaves", after=at)
        at = len(seen)
        os.write(ours, b"/clear\n")
        read_until("forgotten", after=at)
        os.write(ours, b"/exit\n")
        assert program.wait(READ_LIMIT_S) == 0
    finally:
        program.kill()
        program.wait()
        os.close(ours)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_context_beyond_what_was_trained_is_said_by_plan_and_load_alike() -> None:
    said = "A context of 4096 tokens is more than the 2048 that the model was trained for"
    planned = run_program("plan", *MINI, "--draft", "none", "--context", "4096")
    assert planned.returncode == 0
    assert said in planned.stdout
    assert "Largest context that fits: 2048, all that the model was trained for." in planned.stdout
    loaded = run_program("chat", *MINI, "--draft", "none", "--context", "4096", "--prompt", "x", "--max-tokens", "1")
    assert loaded.returncode == 0
    assert said in loaded.stderr


@pytest.mark.parametrize("command", ["plan", "chat", "serve"])
def test_a_context_that_makes_no_sense_is_bad_input(command: str) -> None:
    more = ("--port", "0") if command == "serve" else ()
    done = run_program(command, *MINI, "--draft", "none", "--context", "90000000", *more, typed="x")
    assert done.returncode == 2
    assert "out of range" in done.stderr
