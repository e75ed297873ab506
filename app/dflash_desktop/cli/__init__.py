"""The command line: arguments in, an exit code out. Only the window imports Qt, only a command the engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.presence import has_file, why_no_file
from dflash_desktop.base.processor import require_processor
from dflash_desktop.cli import console
from dflash_desktop.cli.arguments import build_parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def run() -> NoReturn:
    """The entry point of the installed program."""
    console.open_streams()
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit code. What went wrong is one sentence on stderr."""
    try:
        require_processor()
        files = _model_files(argv)
        if files:
            from dflash_desktop.cli import commands  # here, so that --version and mistakes cost no engine

            return commands.window(files)
        return _carry_out(build_parser().parse_args(argv))
    except BadInput as error:
        console.complain(str(error))
        return console.BAD_INPUT
    except AppError as error:
        console.complain(str(error))
        return console.FAILED
    except KeyboardInterrupt:
        return console.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        console.silence_output()
        return console.FAILED


def _model_files(argv: Sequence[str]) -> list[Path]:
    """The files of `dflash-desktop FILE...`, as a double click starts it; none when `argv` is anything else.

    A name after `--` is always a file, another first word only when it looks like one, so that a misspelled command is
    called that.
    """
    is_explicit = argv[:1] == ["--"]
    names = argv[1:] if is_explicit else argv
    if not names or (not is_explicit and not _looks_like_file(names[0])):
        return []
    files = [Path(name) for name in names]
    for file in files:
        if not has_file(file):
            raise BadInput(why_no_file(file))
    return files


def _looks_like_file(word: str) -> bool:
    if word.startswith("-"):
        return False
    return word.lower().endswith(".gguf") or "/" in word or os.sep in word


def _carry_out(arguments: argparse.Namespace) -> int:
    if arguments.list_devices and arguments.command is not None:
        raise BadInput(f"--list-devices cannot be combined with {arguments.command}.")
    if arguments.devices_json and not arguments.list_devices:
        raise BadInput("--json belongs to --list-devices, or after a command.")
    from dflash_desktop.cli import commands  # here, so that --version and mistakes cost no engine

    if arguments.install_menu_entry or arguments.remove_menu_entry:
        return commands.menu_entry(is_wanted=arguments.install_menu_entry)
    if arguments.list_devices:
        return commands.list_devices(arguments)
    if arguments.command is not None:
        return commands.COMMANDS[arguments.command](arguments)
    return commands.window()
