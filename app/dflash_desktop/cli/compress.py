"""`dflash-desktop compress`: what PFlash would keep of a prompt, without a reply."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.cli import console
from dflash_desktop.engine.devices import choose_device
from dflash_desktop.engine.loaded import open_reader
from dflash_desktop.engine.pflash.options import PflashOptions, PromptCompressed
from dflash_desktop.engine.pflash.scorer import ScorerSlot
from dflash_desktop.engine.pflash.selection import Curve
from dflash_desktop.engine.pflash.shortening import shorten
from dflash_desktop.engine.prompt import content_text
from dflash_desktop.engine.requests import ChatPrompt

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from dflash_desktop.startup import Workbench


def read_prompt(path: Path) -> str:
    """The prompt's text. `-` is standard input. Raises BadInput, naming the file."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except FileNotFoundError as error:
        raise BadInput(f"There is no file {path}.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeError as error:
        raise BadInput(f"{path} is no text in UTF-8.") from error
    if not text.strip():
        raise BadInput(f"{path} is empty.")
    return text


def check_keep(keep: str) -> None:
    """Raises BadInput for shares that mean nothing."""
    try:
        Curve.parse(keep)
    except ValueError as error:
        raise BadInput(f"--keep: {error}.") from error


def compress(workbench: Workbench, target: Path, scorer: Path, text: str, arguments: argparse.Namespace) -> int:
    """Print what is kept (or JSON with every unit, its score and why); the figures go to stderr."""
    question = arguments.question
    content = text if question is None else [{"type": "text", "text": text}, {"type": "text", "text": question}]
    prompt = ChatPrompt([{"role": "user", "content": content}])
    options = PflashOptions("always", scorer, arguments.keep, device=arguments.device, keep_loaded=False)
    device = choose_device(workbench.devices(), arguments.device).name
    slot = ScorerSlot(workbench.library, arguments.threads)
    found: PromptCompressed | None = None
    reader = open_reader(workbench.library, target)
    for event in shorten(0, prompt, options, reader, slot, device, lambda: False):
        if isinstance(event, PromptCompressed):
            found = event
    if found is None or found.compression is None:
        raise AppError(found.why_not if found else "Nothing was compressed.")
    compression = found.compression
    kept = content_text(compression.messages[0]["content"])
    n_before = len(reader.tokenize(content_text(content), has_control_tokens=False))
    n_after = len(reader.tokenize(kept, has_control_tokens=False))
    if arguments.json:
        view = compression.shortened[0]
        units = [
            {
                "start": unit.segment.start,
                "end": unit.segment.end,
                "kind": unit.segment.kind,
                "tokens": unit.n_tokens,
                "score": unit.score,
                "why": unit.why,
            }
            for unit in view.units
        ]
        figures = {"tokens_before": n_before, "tokens_after": n_after, "droppable_tokens": compression.n_droppable}
        seconds = {"load_s": found.load_s, "score_s": found.score_s}
        console.write_json({"scorer": found.scorer_name, **figures, **seconds, "units": units, "text": kept})
        return 0
    console.write(kept + "\n")
    console.note(f"{n_before} tokens became {n_after}; {found.scorer_name} read them in {found.score_s:.1f} s.")
    return 0
