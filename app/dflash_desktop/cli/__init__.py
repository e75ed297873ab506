"""The command line: arguments in, an exit code out. Only the window imports Qt, only a command the engine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from dflash_desktop.base.errors import AppError, BadInput
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


def _carry_out(arguments: argparse.Namespace) -> int:
    if arguments.list_devices and arguments.command is not None:
        raise BadInput(f"--list-devices cannot be combined with {arguments.command}.")
    if arguments.devices_json and not arguments.list_devices:
        raise BadInput("--json belongs to --list-devices, or after a command.")
    from dflash_desktop.cli import commands  # here, so that --version and mistakes cost no engine

    if arguments.list_devices:
        return commands.list_devices(arguments)
    if arguments.command is not None:
        return commands.COMMANDS[arguments.command](arguments)
    return commands.window()
