"""`dflash-desktop compress` from the outside, with a small model as scorer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.program import run_for_json, run_program

if TYPE_CHECKING:
    from pathlib import Path

NEEDLE = "The password of the archive is sunflower."
PARAGRAPHS = [
    f"Chapter {i} tells how the river rose in spring and how the bridge was mended in {1700 + i}." for i in range(40)
]
QUESTION = "What is the password of the archive?"
MODELS = ("--target", QWEN35_MINI, "--scorer", QWEN35_MINI, "--threads", "1")


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "prompt.txt"
    path.write_text("\n\n".join([*PARAGRAPHS[:23], NEEDLE, *PARAGRAPHS[23:]]), "utf-8")
    return path


def test_what_is_kept_is_printed_and_the_figures_go_beside_it(prompt: Path) -> None:
    done = run_program("compress", *MODELS, "--file", prompt, "--question", QUESTION, "--keep", "0.2")
    assert done.returncode == 0
    assert NEEDLE in done.stdout
    assert done.stdout.rstrip().endswith(QUESTION)
    assert len(done.stdout) < 0.35 * prompt.stat().st_size
    assert "tokens became" in done.stderr


def test_json_tells_every_unit(prompt: Path) -> None:
    told = run_for_json("compress", *MODELS, "--file", prompt, "--question", QUESTION, "--keep", "0.2")
    text = prompt.read_text("utf-8")
    assert NEEDLE in told["text"]
    assert "".join(text[unit["start"] : unit["end"]] for unit in told["units"] if unit["why"] != "pinned") == text
    kept = sum(unit["tokens"] for unit in told["units"] if unit["why"] not in ("dropped", "pinned"))
    assert kept <= 0.2 * told["droppable_tokens"]
    assert told["tokens_after"] < told["tokens_before"]


def test_a_prompt_from_a_pipe_that_asks_at_its_end(prompt: Path) -> None:
    typed = f"{prompt.read_text('utf-8')}\n\n{QUESTION}\n"
    done = run_program("compress", *MODELS, "--file", "-", typed=typed)
    assert done.returncode == 0
    assert NEEDLE in done.stdout
    assert QUESTION in done.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--keep", "3"), "--keep: "),
        (("--scorer", "nothing.gguf"), "nothing.gguf"),
        (("--file", "nothing.txt"), "There is no file nothing.txt."),
        (("--target", __file__), "not a GGUF model file"),
        (("--scorer", __file__), "not a GGUF model file"),
        (("--target", str(QWEN35_MINI_DRAFT)), "is a DFlash draft, not a model to chat with"),
        (("--scorer", str(QWEN35_MINI_DRAFT)), "is a DFlash draft, not a model to chat with"),
    ],
)
def test_bad_input_is_one_sentence(prompt: Path, change: tuple[str, str], said: str) -> None:
    done = run_program("compress", *MODELS, "--file", prompt, *change)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_text_that_is_short_is_not_shortened(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    path.write_text("What is two and two?", "utf-8")
    done = run_program("compress", *MODELS, "--file", path)
    assert done.returncode == 1
    assert "long enough" in done.stderr
