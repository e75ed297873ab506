"""The command line's grammar, and the checks on single values."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dflash_desktop import __version__
from dflash_desktop.base.errors import BadInput
from dflash_desktop.cli.console import PROGRAM, argument_text

if TYPE_CHECKING:
    from collections.abc import Callable

NO_DRAFT = "none"
DRAFT_MODES = ("auto", "tree", "chain", "off")
KV_TYPES = ("auto", "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
MOST_NODES = 63  # what one verify holds beside the root


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, and leaves the exit to the caller."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None
    """Adds arguments when the command is really used, because knowing them costs an import."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, after filling."""
        if self.fill is not None:
            fill, self.fill = self.fill, None
            fill(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see: {self.prog} --help)")


def temperature(text: str) -> float:
    """0 or a positive number, with a point whatever the locale."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 0 or 0.7")
    return number


def seed(text: str) -> int:
    """What the engine's 64-bit seed holds."""
    return _integer(text, low=0, high=2**64 - 1)


def positive(text: str) -> int:
    """A count of at least 1."""
    return _integer(text, low=1, high=2**31 - 1)


def tree_budget(text: str) -> int:
    """Most nodes per step; 0 stands for `auto`."""
    return 0 if text == "auto" else _integer(text, low=1, high=MOST_NODES)


def _integer(text: str, *, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
    return number


def build_parser() -> argparse.ArgumentParser:
    """The grammar. Without a command the window opens."""
    parser = Parser(
        prog=PROGRAM,
        description="Chat with local models, decoded by a DFlash engine. Without a command: open the window.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("--list-devices", action="store_true", help="list what the engine can compute on, and exit")
    parser.add_argument("--json", dest="devices_json", action="store_true", help="with --list-devices: print JSON")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    chat = commands.add_parser("chat", help="answer a prompt, or chat in the terminal", allow_abbrev=False)
    chat.add_argument("--prompt", metavar="TEXT", type=argument_text, help="answer this and exit")
    _add_models(chat)
    chat.add_argument(
        "--draft-mode", choices=DRAFT_MODES, default="auto", help="how to draft; auto: only where it pays"
    )
    _add_drafting(chat)
    chat.add_argument("--system", metavar="TEXT", type=argument_text, help="the system message")
    chat.add_argument(
        "--temperature", metavar="X", type=temperature, default=0.0, help="0 (default): always the likeliest"
    )
    chat.add_argument("--seed", metavar="N", type=seed, default=0, help="for temperatures above 0; default 0")
    chat.add_argument("--max-tokens", metavar="N", type=positive, help="longest reply; default: what the context holds")
    chat.add_argument("--raw", action="store_true", help="continue the prompt as it is, without the chat template")
    chat.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    bench = commands.add_parser("bench", help="measure plain and speculative decoding", allow_abbrev=False)
    _add_models(bench)
    bench.add_argument("--draft-mode", choices=DRAFT_MODES[:-1], default="chain", help="how to draft; default: chain")
    _add_drafting(bench)
    bench.add_argument("--sweep", action="store_true", help="a table over tree budgets, with the tuner's own choice")
    bench.add_argument("--prompts", metavar="FILE", type=Path, help="one prompt per line; default: ten of our own")
    bench.add_argument("--max-tokens", metavar="N", type=positive, default=128, help="per reply; default: 128")
    bench.add_argument("--json", action="store_true", help="print JSON")

    serve = commands.add_parser("serve", help="answer other programs over HTTP", allow_abbrev=False)
    _add_models(serve)
    serve.fill = _add_server

    plan = commands.add_parser("plan", help="say what loading a pair would take, without loading", allow_abbrev=False)
    _add_models(plan)
    plan.add_argument("--json", action="store_true", help="print JSON")

    inspect = commands.add_parser("inspect", help="say what a model file is and whether it can run", allow_abbrev=False)
    inspect.add_argument("file", metavar="FILE", type=Path)
    inspect.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    from dflash_desktop import serve_command  # brings the whole HTTP server

    serve_command.add_arguments(parser)


def _add_drafting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tree-budget", metavar="N", type=tree_budget, default=0, help="most nodes per step; default: auto"
    )
    parser.add_argument("--block-size", metavar="N", type=positive, help="positions per block; default: as trained")


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", metavar="FILE", type=Path, help="the model; default: the built-in one")
    parser.add_argument("--draft", metavar="FILE", help="its draft, or 'none'; default: the one that fits, if any")
    parser.add_argument("--device", metavar="NAME", help="where to compute, as --list-devices names it")
    parser.add_argument("--threads", metavar="N", type=positive, help="CPU threads; default: physical cores")
    parser.add_argument(
        "--context", metavar="N", type=positive, help="context in tokens; default: chosen by the engine"
    )
    for side, words in (("k", "keys"), ("v", "values")):
        parser.add_argument(
            f"--kv-{side}", choices=KV_TYPES, default="auto", help=f"type of the {words} in the KV cache"
        )
