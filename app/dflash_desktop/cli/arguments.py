"""The command line's grammar, and the checks on single values."""

from __future__ import annotations

import argparse
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dflash_desktop import __version__
from dflash_desktop.base.errors import BadInput
from dflash_desktop.cli.console import PROGRAM, argument_text
from dflash_desktop.cli.prompts import KINDS
from dflash_desktop.engine.requests import FIT_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable

NO_DRAFT = "none"
DRAFT_MODES = ("auto", "tree", "chain", "off")
KV_TYPES = ("auto", "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
MOST_NODES = 63  # what one verify holds beside the root
LEAST_BLOCK = 2  # the root and one token
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(?:([KMG])(?:i?B)?)?", re.ASCII | re.IGNORECASE)
SWEEP_BUDGETS = (1, 2, 4, 8, 16, 22, 32, 48, 63)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, and leaves the exit to the caller."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None
    """Adds arguments when the command is really used, because knowing them costs an import."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, after filling; what nobody knows is refused here, where the command is still known."""
        if self.fill is not None:
            fill, self.fill = self.fill, None
            fill(self)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Raises BadInput; argparse itself would print its usage and exit."""
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


def threads(text: str) -> int:
    """As many as this computer computes with at most: with more, each pass waits for threads that wait for a core."""
    return _integer(text, low=1, high=os.cpu_count() or 1)


def context(text: str) -> int:
    """Tokens, or `auto` for as many as fit."""
    return FIT_CONTEXT if text == "auto" else positive(text)


def tree_budget(text: str) -> int:
    """Most nodes per step; 0 stands for `auto`."""
    return 0 if text == "auto" else _integer(text, low=1, high=MOST_NODES)


def block_size(text: str) -> int:
    """Positions of a draft's block, root included."""
    return _integer(text, low=LEAST_BLOCK, high=MOST_NODES + 1)


def memory_size(text: str) -> int | None:
    """Bytes, as a number or with MiB or GiB behind it; None stands for `auto`."""
    if text == "auto":
        return None
    found = _SIZE.fullmatch(text)
    n_bytes = float(found[1]) * _UNITS[(found[2] or "").lower()] if found is not None else -1.0
    if not 0 <= n_bytes < 1 << 50:  # compared as it is: what is too long for a number is infinite
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 512MiB, 4GiB, 0 or auto")
    return int(n_bytes)


def budgets(text: str) -> tuple[int, ...]:
    """Numbers of nodes, with commas between them."""
    return tuple(_integer(part, low=1, high=MOST_NODES) for part in text.split(","))


def kinds(text: str) -> tuple[str, ...]:
    """Kinds of prompts, with commas between them."""
    chosen = tuple(KINDS) if text == "all" else tuple(text.split(","))
    for kind in chosen:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"{kind!r} is no kind of prompts; there are {', '.join(KINDS)}, or all")
    return chosen


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
        usage=f"{PROGRAM} [FILE.gguf ...] | [-h] [--version] [--list-devices [--json]] | COMMAND ...",
        description="Chat with local models, decoded by a DFlash engine. "
        "Without a command: open the window, with the model files that are named.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("--list-devices", action="store_true", help="list what the engine can compute on, and exit")
    parser.add_argument("--json", dest="devices_json", action="store_true", help="with --list-devices: print JSON")
    menu = parser.add_mutually_exclusive_group()
    menu.add_argument(
        "--install-menu-entry", action="store_true", help="add the program to the desktop's menu (Linux), and exit"
    )
    menu.add_argument("--remove-menu-entry", action="store_true", help="take it out of the menu, and exit")
    commands = parser.add_subparsers(dest="command", prog=PROGRAM, metavar="COMMAND", parser_class=Parser)

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
    bench.add_argument(
        "--draft-mode",
        choices=DRAFT_MODES,
        default="chain",
        help="how to draft; off: plain decoding alone; default: chain",
    )
    _add_drafting(bench)
    instead = bench.add_mutually_exclusive_group()
    instead.add_argument("--sweep", action="store_true", help="a table over tree budgets, with the tuner's own choice")
    instead.add_argument("--profile", action="store_true", help="what a step takes, part by part and by rows verified")
    bench.add_argument(
        "--kinds",
        metavar="LIST",
        type=kinds,
        default=(),
        help=f"with --sweep: kinds of our own prompts, or all: {', '.join(KINDS)}",
    )
    bench.add_argument(
        "--budgets",
        metavar="LIST",
        type=budgets,
        default=SWEEP_BUDGETS,
        help=f"with --sweep: tree budgets to compare; default: {','.join(map(str, SWEEP_BUDGETS))}",
    )
    bench.add_argument("--rounds", metavar="N", type=positive, default=1, help="with --sweep: medians over N rounds")
    bench.add_argument("--prompts", metavar="FILE", type=Path, help="one prompt per line; default: ten of our own")
    bench.add_argument("--max-tokens", metavar="N", type=positive, default=128, help="per reply; default: 128")
    bench.add_argument("--json", action="store_true", help="print JSON")

    serve = commands.add_parser("serve", help="answer other programs over HTTP", allow_abbrev=False)
    _add_models(serve, context_default="up to 65536, as far as they fit")
    serve.fill = _add_server

    plan = commands.add_parser("plan", help="say what loading a pair would take, without loading", allow_abbrev=False)
    _add_models(plan)
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.fill = _add_scorer

    compress = commands.add_parser("compress", help="say what PFlash would keep of a prompt", allow_abbrev=False)
    compress.add_argument("--file", metavar="PROMPT", type=Path, required=True, help="the text; - for standard input")
    compress.add_argument(
        "--question", metavar="TEXT", type=argument_text, help="what is asked; default: how the text ends"
    )
    compress.add_argument("--keep", metavar="R", default="0.2", help="share, or TOKENS:R,TOKENS:R; default: 0.2")
    compress.add_argument("--target", metavar="FILE", type=Path, help="whose tokens count; default: the built-in one")
    compress.add_argument("--scorer", metavar="FILE", type=Path, help="a small model that rates; default: the built-in")
    compress.add_argument("--device", metavar="NAME", help="where the scorer computes, as --list-devices names it")
    compress.add_argument(
        "--threads", metavar="N", type=threads, default=0, help="CPU threads; default: physical cores"
    )
    compress.add_argument("--json", action="store_true", help="print JSON with every unit's score")

    inspect = commands.add_parser("inspect", help="say what a model file is and whether it can run", allow_abbrev=False)
    inspect.add_argument("file", metavar="FILE", type=Path)
    inspect.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    from dflash_desktop import serve_command  # brings the whole HTTP server
    from dflash_desktop.cli import pflash

    serve_command.add_arguments(parser)
    parser.add_argument(
        "--cache-ram",
        metavar="SIZE",
        type=memory_size,
        help="memory for the starts of other conversations: 512MiB, 4GiB, 0: none; default: auto",
    )
    pflash.add_arguments(parser)


def _add_scorer(parser: argparse.ArgumentParser) -> None:
    from dflash_desktop.cli import pflash

    pflash.add_scorer(parser, help_text=f"plan PFlash's scorer too: a small model, or {pflash.BUILT_IN}")


def _add_drafting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tree-budget", metavar="N", type=tree_budget, default=0, help="most nodes per step; default: auto"
    )
    parser.add_argument(
        "--block-size",
        metavar="N",
        type=block_size,
        help="positions that the draft fills, root included; default, and the most: as trained",
    )


def _add_models(parser: argparse.ArgumentParser, *, context_default: str = "as trained, at most 8192") -> None:
    parser.add_argument("--target", metavar="FILE", type=Path, help="the model; default: the built-in one")
    parser.add_argument("--draft", metavar="FILE", help="its draft, or 'none'; default: the one that fits, if any")
    parser.add_argument("--device", metavar="NAME", help="where to compute, as --list-devices names it")
    parser.add_argument("--draft-device", metavar="NAME", help="another GPU for the draft; default: beside the target")
    parser.add_argument("--threads", metavar="N", type=threads, help="CPU threads; default: physical cores")
    parser.add_argument(
        "--context",
        metavar="N",
        type=context,
        help=f"context in tokens, or auto: as many as fit; default: {context_default}",
    )
    parser.add_argument(
        "--window",
        metavar="N",
        type=positive,
        help="attention looks back over N tokens only: faster at long contexts, and other replies; default: over all",
    )
    for side, words in (("k", "keys"), ("v", "values")):
        parser.add_argument(
            f"--kv-{side}", choices=KV_TYPES, default="auto", help=f"type of the {words} in the KV cache"
        )
