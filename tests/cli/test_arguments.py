"""The grammar: what is accepted, and one sentence for what is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from dflash_desktop.base.errors import BadInput
from dflash_desktop.cli import main
from dflash_desktop.cli.arguments import build_parser

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["chat", "--temperature", "0,7", "--prompt", "x"], "'0,7' is not a number such as 0 or 0.7"),
        (["chat", "--temperature", "nan", "--prompt", "x"], "'nan' is not a number"),
        (["chat", "--temperature", "-1", "--prompt", "x"], "--temperature"),
        (["chat", "--seed", "-1", "--prompt", "x"], "'-1' is not a whole number from 0"),
        (["chat", "--seed", str(2**64), "--prompt", "x"], "is not a whole number"),
        (["chat", "--max-tokens", "0", "--prompt", "x"], "'0' is not a whole number from 1"),
        (["chat", "--threads", "100000", "--prompt", "x"], "'100000' is not a whole number from 1 to"),
        (["chat", "--draft-mode", "fast", "--prompt", "x"], "invalid choice: 'fast'"),
        (["chat", "--block-size", "1", "--prompt", "x"], "'1' is not a whole number from 2 to 64"),
        (["chat", "--json"], "--json needs a --prompt"),
        (["chat", "--raw"], "--raw needs a --prompt"),
        (["chat", "--raw", "--prompt", "x", "--system", "y"], "no place for a --system message"),
        (["bench", "--budgets", "1,2"], "--budgets belongs to --sweep"),
        (["bench", "--kinds", "code"], "--kinds belongs to --sweep"),
        (["dance"], "invalid choice: 'dance'"),
        (["inspect"], "FILE"),
        (["--frobnicate"], "--frobnicate"),
        (["--json"], "--json belongs to"),
        (["--list-devices", "chat"], "cannot be combined with chat"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("dflash-desktop: ")
    assert said in captured.err


def test_every_flag_of_chat_is_understood() -> None:
    line = (
        "chat --prompt Hi --target a.gguf --draft none --draft-mode chain --system S --temperature 0.7"
        " --seed 18446744073709551615 --max-tokens 5 --raw --json"
    )
    arguments = build_parser().parse_args(line.split())
    assert arguments.target == Path("a.gguf")
    assert (arguments.draft, arguments.draft_mode, arguments.temperature) == ("none", "chain", 0.7)
    assert arguments.seed == 2**64 - 1
    assert arguments.max_tokens == 5


def test_sizes_of_memory_are_read_with_their_units() -> None:
    sizes = {"auto": None, "0": 0, "1000": 1000, "512MiB": 512 << 20, "1.5G": 3 << 29, "4gb": 4 << 30, "2k": 2048}
    for text, n_bytes in sizes.items():
        assert build_parser().parse_args(["serve", "--cache-ram", text]).cache_ram == n_bytes
    assert build_parser().parse_args(["serve"]).cache_ram is None
    for text in ("-1", "many", "4 apples", "1e9", "9999999GiB", "9" * 400, ""):
        with pytest.raises(BadInput, match="is not a size such as"):
            build_parser().parse_args(["serve", f"--cache-ram={text}"])


def test_a_prompt_may_begin_with_a_dash() -> None:
    assert build_parser().parse_args(["chat", "--prompt=-x -y"]).prompt == "-x -y"


def test_an_unknown_flag_is_not_taken_for_a_short_form() -> None:
    with pytest.raises(BadInput, match=r"--pro x \(see: dflash-desktop chat --help\)"):
        build_parser().parse_args(["chat", "--pro", "x"])


def test_every_flag_that_the_readme_names_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    for command in ([], ["chat"], ["bench"], ["serve"], ["plan"], ["compress"], ["inspect"]):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
    known = set(FLAG.findall(capsys.readouterr().out))
    named = set(FLAG.findall(readme))
    assert len(named) > 40
    assert named - known == set()


def test_a_commands_help_names_the_command_and_its_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    for command, default in {"chat": "as trained, at most 8192", "serve": "up to 65536"}.items():
        with pytest.raises(SystemExit):
            build_parser().parse_args([command, "--help"])
        said = " ".join(capsys.readouterr().out.split())
        assert said.startswith(f"usage: dflash-desktop {command} [-h]")
        assert f"as many as fit; default: {default}" in said


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[list[Path]]:
    """What the window was asked to show, instead of a window."""
    calls: list[list[Path]] = []
    from dflash_desktop.cli import commands

    def window(files: Sequence[Path] = ()) -> int:
        calls.append(list(files))
        return 0

    monkeypatch.setattr(commands, "window", window)
    return calls


@pytest.mark.parametrize("name", ["模型 & 'q' #1 😀.gguf", "UPPER.GGUF", "in folder/x.gguf", "-dash.gguf"])
def test_model_files_open_the_window(name: str, tmp_path: Path, opened: list[list[Path]]) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert main([str(file)]) == 0
    assert opened == [[file]]


def test_a_name_after_two_dashes_is_a_file_whatever_it_looks_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[list[Path]]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("-x", "chat"):
        Path(name).touch()
    assert main(["--", "-x", "chat"]) == 0
    assert opened == [[Path("-x"), Path("chat")]]


@pytest.mark.parametrize(
    "argv",
    [
        [f"{'a' * 300}.gguf"],
        ["plan", "--target", "a" * 300],
        ["serve", "--models", "a" * 300],
        ["plan", "--draft", "a" * 300],
    ],
)
def test_a_path_that_cannot_be_looked_at_is_bad_input_and_no_bug(
    argv: list[str], opened: list[list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert "a" * 300 in capsys.readouterr().err
    assert opened == []


def test_a_file_that_is_not_there_is_said_before_a_window_opens(
    opened: list[list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["/nowhere/a.gguf"]) == 2
    assert capsys.readouterr().err == "dflash-desktop: There is no model file /nowhere/a.gguf.\n"
    assert opened == []
