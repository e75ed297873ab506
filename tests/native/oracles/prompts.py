"""Sixty questions, and the models they are put to."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding.native import NativeFile
from dflash_desktop.cli.prompts import TEN
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.prompt import PromptReader
from dflash_desktop.engine.requests import ChatPrompt
from support.fixtures import QWEN35_MINI
from support.native_library import load_library

if TYPE_CHECKING:
    from pathlib import Path

MEASURED = TEN
"""The ten whose acceptance was measured with upstream when the drafts were made (support/models/README.md)."""

PROMPTS = (
    *MEASURED,
    "What is the capital of Australia, and why is it not Sydney?",
    "Summarise the water cycle in two sentences.",
    "Translate 'Good morning, how are you?' into French, German and Spanish.",
    "How do I boil an egg?",
    "Explain recursion to a ten-year-old.",
    "Name five inventions of the nineteenth century.",
    "What is the difference between a virus and a bacterium?",
    "Write a C function that reverses a string in place.",
    "Write a Bash script that renames all .jpeg files to .jpg.",
    "Write a regular expression for an ISO date and explain it.",
    "Write a Rust struct for a bank account with deposit and withdraw.",
    'Return a JSON object with the keys "name", "age" and "email" for a made-up person.',
    "Write an HTML page with a heading and a table of three rows.",
    "Compute 17 * 23 step by step.",
    "If a train leaves at 9:40 and arrives at 12:05, how long does it take?",
    "Solve x^2 - 5x + 6 = 0.",
    "What is the derivative of sin(x) * x?",
    "List the first ten prime numbers.",
    "Write a haiku about autumn.",
    "Write a limerick about a cat and a keyboard.",
    "Write a dialogue between the sun and the moon.",
    "Tell me a story that begins with 'The door was never locked'.",
    "Describe a rainy day in a small town.",
    "Continue: Once upon a time, in a kingdom by the sea,",
    "Write a product description for a solar lamp.",
    "Write a cover letter for a job as a librarian.",
    "Write a short news report about a flood.",
    "Give me a packing list for a week in the mountains.",
    "Plan a three-day trip to Rome.",
    "What should I cook with rice, eggs and spinach?",
    "How can I sleep better?",
    "What are the pros and cons of working from home?",
    "Explain how a bicycle stays upright.",
    "What causes the seasons?",
    "Who wrote Hamlet, and what is it about?",
    "What happened in 1789?",
    "Explain inflation with an example.",
    "What is a black hole?",
    "How does a refrigerator work?",
    "Give three arguments for public libraries.",
    "Correct this sentence: 'He don't has no time for to go.'",
    "Put these words in alphabetical order: pear, apple, fig, banana.",
    "Repeat the word 'echo' twenty times.",
    "Count from 1 to 50.",
    "Write the alphabet backwards.",
    "¿Cuál es la capital de España?",
    "Schreibe einen kurzen Brief an eine Freundin.",
    "请用一句话介绍一下北京。",
    "日本の首都はどこですか。",
    "asdkj qwe zxm 93 ?? lorem",
)

AGENT_SYSTEM = (
    "You are an agent that works on a code base. Answer with one JSON object per message. Tools:\n"
    '{"name": "read_file", "parameters": {"path": {"type": "string"}}}\n'
    '{"name": "write_file", "parameters": {"path": {"type": "string"}, "text": {"type": "string"}}}\n'
    '{"name": "run", "parameters": {"command": {"type": "string"}}}\n'
    "Never ask for permission. Never explain. Read a file before you change it. Run the tests after each change. "
    "When all is done, call no tool and write the word done."
)


@functools.cache
def _reader() -> PromptReader:
    # Both pairs share vocabulary and template.
    with NativeFile(load_library(), QWEN35_MINI) as file:
        return PromptReader(file, QWEN35_MINI.name)


def chat_ids(question: str, *, system: str | None = None) -> list[int]:
    """Token ids of a question in the models' chat template; their own system text unless another is given."""
    messages = [{"role": "system", "content": system}] if system is not None else []
    return list(_reader().render(ChatPrompt([*messages, {"role": "user", "content": question}])).token_ids)


def text_of(ids: list[int]) -> str:
    return _reader().tokenizer.decode(ids)


def starter_pair() -> tuple[Path, Path]:
    """SmolLM2 and its draft, as installed. Skips the asking test in a build without them."""
    for pair in built_in_pairs():
        if pair.draft:
            return pair.target, pair.draft
    pytest.skip("this build was installed without the starter model (DFLASH_STARTER=OFF)")
