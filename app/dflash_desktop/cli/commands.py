"""One function per command: build what it needs, run it, close it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_desktop import startup
from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.presence import has_file, is_there, why_no_file
from dflash_desktop.base.sizes import memory_text
from dflash_desktop.cli import bench as bench_command
from dflash_desktop.cli import chat as chat_command
from dflash_desktop.cli import compress as compress_command
from dflash_desktop.cli import console
from dflash_desktop.cli import pflash as pflash_arguments
from dflash_desktop.cli.arguments import NO_DRAFT, SWEEP_BUDGETS
from dflash_desktop.cli.display import require_display
from dflash_desktop.cli.inspect import describe_file, require_target
from dflash_desktop.cli.lane import load_pair
from dflash_desktop.cli.plan import print_plan
from dflash_desktop.cli.prompts import read_prompts
from dflash_desktop.engine.device_users import driver_problems
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.planning import plan_load, plan_scorer_alone
from dflash_desktop.engine.requests import LoadOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from dflash_desktop.engine.devices import DeviceUser
    from dflash_desktop.engine.planning import ScorerEstimate

PROXY_TEXT_TOKENS = 65536
"""As long as the texts are for which a proxy's scorer is planned: what agents and long chats reach."""


def list_devices(arguments: argparse.Namespace) -> int:
    """What the engine can compute on, as it is now."""
    devices = startup.open_workbench().devices()
    for problem in driver_problems(devices):
        console.note(str(problem))
    if arguments.devices_json:
        console.write_json([asdict(device) for device in devices])
        return 0
    rows = [("name", "backend", "memory", "free", "used by", "description", "id")]
    rows += [
        (
            device.name,
            device.backend,
            memory_text(device.total_bytes),
            memory_text(device.free_bytes),
            ", ".join(_user_text(user) for user in device.users),
            f"{device.description}{f' (the same card as {device.same_card_as})' if device.same_card_as else ''}",
            device.id,
        )
        for device in devices
    ]
    shown: list[tuple[str, ...]] = list(rows)
    if not any(device.users for device in devices):
        shown = [row[:4] + row[5:] for row in rows]
    console.write(console.table(shown) + "\n")
    return 0


def _user_text(user: DeviceUser) -> str:
    name = user.name or f"process {user.process_id}"
    return f"{name} {memory_text(user.n_bytes)}" if user.n_bytes else name


def chat(arguments: argparse.Namespace) -> int:
    """Answer one prompt, or hold a conversation."""
    chat_command.check(arguments)
    return _with_pair(arguments, chat_command.chat)


def bench(arguments: argparse.Namespace) -> int:
    """Compare plain and speculative decoding."""
    for flag, default in (("kinds", ()), ("budgets", SWEEP_BUDGETS), ("rounds", 1)):
        if not arguments.sweep and getattr(arguments, flag) != default:
            raise BadInput(f"--{flag} belongs to --sweep.")
    read_prompts(arguments.prompts)  # a file that cannot be read is said before a model is loaded
    if arguments.draft_mode == "off":
        arguments.draft = NO_DRAFT
    return _with_pair(arguments, bench_command.bench)


def inspect(arguments: argparse.Namespace) -> int:
    """Say what a model file is."""
    return describe_file(startup.open_workbench(), arguments.file, has_json=arguments.json)


def plan(arguments: argparse.Namespace) -> int:
    """Say what a load would take."""
    workbench = startup.open_workbench()
    target, draft = _chosen_files(arguments, workbench)
    pflash = pflash_arguments.scorer_options(arguments)
    return print_plan(workbench, target, draft, _load_options(arguments), pflash, has_json=arguments.json)


def compress(arguments: argparse.Namespace) -> int:
    """Say what PFlash would keep of a prompt."""
    compress_command.check_keep(arguments.keep)
    text = compress_command.read_prompt(arguments.file)
    workbench = startup.open_workbench()
    files = []
    for chosen in (arguments.target, arguments.scorer):
        pairs = built_in_pairs()
        if chosen is None and not pairs:
            raise BadInput("This build has no built-in model. Name models with --target FILE and --scorer FILE.")
        if chosen is not None and not has_file(chosen):
            raise BadInput(why_no_file(chosen))
        files.append(chosen or pairs[0].target)
        require_target(workbench, files[-1])  # here, so that a broken file is not told as a scorer that failed
    return compress_command.compress(workbench, files[0], files[1], text, arguments)


def serve(arguments: argparse.Namespace) -> int:
    """Answer other programs over HTTP until somebody ends it."""
    from dflash_desktop import serve_command  # brings the whole HTTP server

    address = serve_command.upstream(arguments)
    pflash = pflash_arguments.options(arguments, is_proxy=address is not None)
    options = replace(serve_command.check(arguments), pflash=pflash)
    workbench = startup.open_workbench()
    if address is not None:
        _check_scorer(plan_scorer_alone(pflash, workbench.library, text_tokens=PROXY_TEXT_TOKENS))
        with workbench.engine() as engine:
            return serve_command.serve_upstream(engine, address, options, arguments, _say)
    target, draft = _chosen_files(arguments, workbench)
    load = serve_command.serving_options(
        _load_options(arguments), lambda load: plan_load(target, draft, load, workbench.library)
    )
    if pflash.mode != "off":
        _check_scorer(plan_load(target, draft, load, workbench.library, pflash).scorer)
    shelf = serve_command.make_shelf(arguments, workbench.paths.models, workbench.inspect, workbench.drafts_for)
    with workbench.engine() as engine:
        return serve_command.serve(engine, target, draft, load, options, arguments, _say, shelf)


def _check_scorer(estimate: ScorerEstimate | None) -> None:
    """Say at the start what would otherwise show with the first long prompt."""
    if estimate is not None and estimate.why_not:
        console.note(estimate.why_not)


def _say(line: str) -> None:
    console.write(line + "\n")


def menu_entry(*, is_wanted: bool) -> int:
    """Add the program to the desktop's menu, or take it out."""
    from dflash_desktop.base.menu_entry import install_menu_entry, remove_menu_entry

    files = install_menu_entry() if is_wanted else remove_menu_entry()
    console.write("".join(f"{'written' if is_wanted else 'removed'}: {file}\n" for file in files))
    return 0


def window(files: Sequence[Path] = ()) -> int:
    """Open the window, with these model files loaded, and stay until it is closed."""
    require_display()
    try:
        import dflash_desktop.ui.app  # noqa: F401  here, because it brings Qt
    except ImportError as error:  # a system library that Qt needs, such as libEGL
        raise AppError(f"Qt cannot start: {error}. For a chat in this terminal run: dflash-desktop chat") from error
    return startup.open_window(files)


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "chat": chat,
    "bench": bench,
    "serve": serve,
    "inspect": inspect,
    "plan": plan,
    "compress": compress,
}


def _with_pair(arguments: argparse.Namespace, use: Callable[..., int]) -> int:
    workbench = startup.open_workbench()
    target, draft = _chosen_files(arguments, workbench)
    with workbench.engine() as engine:
        pair = load_pair(engine, target, draft=draft, options=_load_options(arguments), watch=chat_command.watch_load)
        if pair.draft is not None and (arguments.block_size or 0) > pair.block_size:
            raise BadInput(f"--block-size: {pair.draft_name} fills blocks of {pair.block_size} positions at most.")
        for notice in pair.notices:
            console.note(notice)
        return use(engine, pair, arguments)


def _load_options(arguments: argparse.Namespace) -> LoadOptions:
    return LoadOptions(
        device=arguments.device,
        draft_device=arguments.draft_device,
        context_tokens=arguments.context or 0,
        window_tokens=arguments.window or 0,
        kv_k=arguments.kv_k,
        kv_v=arguments.kv_v,
        n_threads=arguments.threads or 0,
        prefix_cache_bytes=getattr(arguments, "cache_ram", None),  # an option of serve alone
    )


def _chosen_files(arguments: argparse.Namespace, workbench: startup.Workbench) -> tuple[Path, Path | None]:
    """Target and draft as asked for; what was left open is the built-in pair, or a draft that fits."""
    target, draft = arguments.target, None
    if target is None:
        pairs = built_in_pairs()
        if not pairs:
            raise BadInput("This build has no built-in model. Name one with --target FILE.")
        target, draft = pairs[0].target, pairs[0].draft
    elif not has_file(target):
        raise BadInput(why_no_file(target))
    elif arguments.draft is None:
        fitting = workbench.drafts_for(target)
        draft = fitting[0].path if fitting else None
    if arguments.draft == NO_DRAFT:
        return target, None
    if arguments.draft is not None:
        draft = Path(arguments.draft)
        if not is_there(draft):  # a folder in Hugging Face's layout is a draft too
            raise BadInput(f"There is no draft {draft}.")
    return target, draft
