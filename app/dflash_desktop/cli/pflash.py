"""PFlash on the command line: its options for `serve` and `plan`, and what they mean to the engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import BadInput
from dflash_desktop.base.presence import has_file, why_no_file
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.pflash.options import DEFAULT_CURVE, DEFAULT_THRESHOLD, PflashMode, PflashOptions
from dflash_desktop.engine.pflash.selection import Curve

if TYPE_CHECKING:
    import argparse

BUILT_IN = "built-in"
MODES: tuple[PflashMode, ...] = ("off", "auto", "always")
RESIDENCIES = ("on-demand", "keep")


def add_scorer(parser: argparse.ArgumentParser, *, help_text: str) -> None:
    """Which scorer, where it computes, and how long it stays: for every command that plans or uses one."""
    parser.add_argument("--scorer", metavar="FILE", help=help_text)
    parser.add_argument(
        "--scorer-device", metavar="NAME", help="where the scorer computes; default: the target's device"
    )
    parser.add_argument(
        "--pflash-residency",
        choices=RESIDENCIES,
        default="on-demand",
        help="on-demand (default): the scorer is loaded for a prompt and freed after it; keep: it stays",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All options of PFlash."""
    parser.add_argument(
        "--pflash",
        choices=MODES,
        help="shorten long prompts: off (default; with --upstream: auto), auto (from the threshold on), always. "
        "Lossy; never with tools",
    )
    keep = parser.add_mutually_exclusive_group()
    keep.add_argument("--pflash-keep", metavar="R", help="the share that is kept, above 0 to 1")
    keep.add_argument(
        "--pflash-curve", metavar="T:R,T:R", help=f"the share by length in tokens; default: {DEFAULT_CURVE}"
    )
    parser.add_argument(
        "--pflash-threshold",
        metavar="N",
        type=int,
        default=DEFAULT_THRESHOLD,
        help=f"with auto: from N tokens on that may be left out; default: {DEFAULT_THRESHOLD}",
    )
    add_scorer(parser, help_text=f"the small model that rates; default: {BUILT_IN}")


def scorer_file(name: str | None) -> Path | None:
    """The file that --scorer names, or the built-in model's. Raises BadInput when it is not there."""
    if name is None:
        return None
    if name == BUILT_IN:
        pairs = built_in_pairs()
        if not pairs:
            raise BadInput("This build has no built-in model. Name a scorer with --scorer FILE.")
        return pairs[0].target
    path = Path(name)
    if not has_file(path):
        raise BadInput(why_no_file(path, "scorer"))
    return path


def scorer_options(arguments: argparse.Namespace) -> PflashOptions:
    """What add_scorer's arguments say. Mode "off"."""
    return PflashOptions(
        scorer=scorer_file(arguments.scorer),
        device=arguments.scorer_device,
        keep_loaded=arguments.pflash_residency == "keep",
    )


def options(arguments: argparse.Namespace, *, is_proxy: bool = False) -> PflashOptions:
    """What add_arguments' arguments say; without --scorer the built-in model rates. Proxies shorten unless told not to.

    Raises BadInput for shares and thresholds that mean nothing, and for a scorer that is not there.
    """
    curve = arguments.pflash_keep or arguments.pflash_curve or DEFAULT_CURVE
    try:
        Curve.parse(curve)
    except ValueError as error:
        name = "--pflash-keep" if arguments.pflash_keep else "--pflash-curve"
        raise BadInput(f"{name}: {error}.") from error
    if arguments.pflash_keep and ":" in arguments.pflash_keep:
        raise BadInput("--pflash-keep is one share such as 0.2; points are given with --pflash-curve.")
    if not 0 <= arguments.pflash_threshold < 1 << 31:
        raise BadInput("--pflash-threshold is a number of tokens.")
    mode: PflashMode = arguments.pflash or ("auto" if is_proxy else "off")
    name = arguments.scorer
    if name is None and (mode != "off" or built_in_pairs()):  # off: for requests that ask for it themselves
        name = BUILT_IN
    return PflashOptions(
        mode=mode,
        scorer=scorer_file(name),
        curve=curve,
        threshold_tokens=arguments.pflash_threshold,
        device=arguments.scorer_device or (arguments.device if is_proxy else None),
        keep_loaded=arguments.pflash_residency == "keep",
    )
