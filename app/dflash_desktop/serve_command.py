"""`dflash-desktop serve`: the server without a window, until Ctrl-C or SIGTERM.

The command line adds `add_arguments` to its parser, calls `check` before anything is loaded and `serve` with a started
engine. The server listens before the model is loaded, so that /health can tell how far the load is.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.base.presence import has_folder
from dflash_desktop.base.sizes import memory_text
from dflash_desktop.engine.events import JobCancelled, JobFailed, LoadProgress, PairLoaded, PairUnloaded
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.requests import LoadOptions, LoadPair, UnloadPair
from dflash_desktop.server.events import RequestEnded, RequestForwarded, ServerFailed
from dflash_desktop.server.lan_addresses import lan_addresses
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.proxy import ProxyServer
from dflash_desktop.server.redact import public_members
from dflash_desktop.server.server import ApiServer
from dflash_desktop.server.shelf import SERVING_CONTEXT, Shelf
from dflash_desktop.server.upstream import Upstream, parse_upstream, read_key

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from dflash_desktop.engine.events import Event
    from dflash_desktop.engine.inspect import ModelFile
    from dflash_desktop.engine.planning import LoadEstimate
    from dflash_desktop.server.events import ServerEvent
    from dflash_desktop.server.ports import EngineLane

KEY_VARIABLE = "DFLASH_API_KEY"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LAN = ("0.0.0.0", "::", "lan")
_POLL_S = 0.2  # on Windows Ctrl-C cannot end a wait without a time limit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the server itself; those of models and devices are the command line's own."""
    parser.add_argument("--host", metavar="HOST", default="127.0.0.1", help="127.0.0.1 (default), or lan: needs a key")
    parser.add_argument("--port", metavar="N", type=int, default=1234, help="default: 1234; 0: any free one")
    parser.add_argument(
        "--api-key", metavar="KEY", help=f"ask clients for this key; better: the variable {KEY_VARIABLE}"
    )
    parser.add_argument(
        "--cors", metavar="ORIGIN", action="append", default=[], help="a web page that may call; *: all"
    )
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[], help="a further name of this server"
    )
    parser.add_argument("--only-this-model", action="store_true", help="refuse other model names than the loaded one's")
    parser.add_argument("--no-reload", action="store_true", help="clients may not load, reload or unload models")
    parser.add_argument("--no-load-on-demand", action="store_true", help="a model's name in a request loads nothing")
    parser.add_argument("--lan-may-load", action="store_true", help="programs of the network may load models too")
    parser.add_argument(
        "--models", metavar="FOLDER", type=Path, action="append", default=[], help="a further folder of models to offer"
    )
    parser.add_argument(
        "--ttl", metavar="S", type=float, default=0.0, help="unload after S idle seconds; default: never"
    )
    parser.add_argument("--think-tags", action="store_true", help="put thoughts into the answer, in <think> tags")
    parser.add_argument("--max-tokens", metavar="N", type=int, default=0, help="longest reply, whatever is asked")
    parser.add_argument("--queue", metavar="N", type=int, default=8, help="requests that may wait; default: 8")
    parser.add_argument(
        "--upstream",
        metavar="URL",
        help="load no model: shorten long chats and pass everything on to this OpenAI- or Anthropic-compatible server",
    )
    parser.add_argument("--upstream-key-file", metavar="FILE", type=Path, help="its key, on one line of a file")
    parser.add_argument(
        "--upstream-timeout", metavar="S", type=float, default=600.0, help="longest silence of it; default: 600"
    )
    parser.add_argument("--no-self-test", action="store_true", help="do not try out each dialect at the start")
    parser.add_argument("--json-log", action="store_true", help="one JSON object per event; no prompts, no answers")


def check(arguments: argparse.Namespace) -> ServerOptions:
    """The options as the server takes them. Raises BadInput before anything is loaded."""
    if not 0 <= arguments.port <= 65535:
        raise BadInput(f"{arguments.port} is no port: 0 to 65535.")
    if not 0 <= arguments.queue <= 1000:
        raise BadInput("--queue must be 0 to 1000.")
    if not 0 <= arguments.max_tokens < 1 << 31:
        raise BadInput("--max-tokens is a number of tokens; 0: what the context holds.")
    if not 0 <= arguments.ttl < 1e9:
        raise BadInput("--ttl is a number of seconds.")
    missing = [str(folder) for folder in arguments.models if not has_folder(folder)]
    if missing:
        raise BadInput(f"There is no folder {missing[0]}.")
    if arguments.host not in (*_LOOPBACK, *_LAN):
        raise BadInput("--host is 127.0.0.1 (this computer only) or lan (every network address).")
    is_lan = arguments.host in _LAN
    key = (arguments.api_key if arguments.api_key is not None else os.environ.get(KEY_VARIABLE, "")).strip()
    if not key.isascii() or any(char.isspace() for char in key):
        raise BadInput("The key must be plain letters, digits and signs, without spaces.")
    if is_lan and not key:
        key = f"sk-{secrets.token_urlsafe(24)}"
    limits = ServerOptions().limits
    return ServerOptions(
        port=arguments.port,
        is_lan=is_lan,
        access_token=key,
        allowed_origins=tuple(origin for origin in arguments.cors if origin != "*"),
        has_any_origin="*" in arguments.cors,
        allowed_hosts=tuple(arguments.allow_host),
        has_any_model_name=not arguments.only_this_model,
        can_clients_reload=not arguments.no_reload,
        can_lan_clients_load=arguments.lan_may_load,
        loads_on_demand=not arguments.no_load_on_demand,
        idle_unload_s=arguments.ttl,
        max_reply_tokens=arguments.max_tokens,
        puts_thoughts_in_content=arguments.think_tags,
        limits=type(limits)(n_waiting=arguments.queue),
    )


def upstream(arguments: argparse.Namespace) -> Upstream | None:
    """The server that requests are passed on to; None without --upstream. Raises BadInput."""
    if arguments.upstream is None:
        if arguments.upstream_key_file is not None:
            raise BadInput("--upstream-key-file belongs to --upstream.")
        return None
    if arguments.target is not None or arguments.draft is not None:
        raise BadInput("With --upstream no model is loaded: leave --target and --draft out.")
    if not 0 < arguments.upstream_timeout < 1e6:
        raise BadInput("--upstream-timeout is a number of seconds.")
    key = read_key(arguments.upstream_key_file) if arguments.upstream_key_file is not None else ""
    return parse_upstream(arguments.upstream, access_token=key, silence_s=arguments.upstream_timeout)


def make_shelf(
    arguments: argparse.Namespace,
    own_folder: Path,
    inspect: Callable[[Path], ModelFile],
    drafts_for: Callable[[Path], Iterable[ModelFile]],
) -> Shelf:
    """The built-in models, the person's own, those of --models, and those beside the target."""
    beside = [arguments.target.absolute().parent] if arguments.target is not None else []
    return Shelf([own_folder, *arguments.models, *beside], inspect, drafts_for, built_in_pairs())


def serving_options(load: LoadOptions, plan: Callable[[LoadOptions], LoadEstimate]) -> LoadOptions:
    """With no context asked for: what agents want, or the largest that fits."""
    if load.context_tokens:
        return load
    try:
        estimate = plan(load)
    except AppError:
        return load  # the load itself will say what is wrong
    return replace(load, context_tokens=min(SERVING_CONTEXT, estimate.max_context_tokens))


def serve(
    engine: EngineLane,
    target: Path,
    draft: Path | None,
    load: LoadOptions,
    options: ServerOptions,
    arguments: argparse.Namespace,
    say: Callable[[str], None],
    shelf: Shelf | None = None,
) -> int:
    """Serve until the person or the system ends it; return the exit code. `say` prints a line.

    `shelf`: the models that requests may name besides the one that is loaded.

    Raises AppError when the port is taken or the model cannot be loaded.
    """
    events: queue.SimpleQueue[Event | ServerEvent | None] = queue.SimpleQueue()

    def submit_load(job: LoadPair | UnloadPair) -> int:
        def hear_too(event: Event) -> None:
            job.subscriber(event)
            events.put(event)

        return engine.submit(replace(job, subscriber=hear_too))

    server = ApiServer(engine, events.put, submit_load=submit_load, shelf=shelf)

    def hear(event: Event) -> None:
        server.on_engine_event(event)
        events.put(event)

    log = _JsonLog(say) if arguments.json_log else _TextLog(say)
    with _ends_on_signal(events):
        server.expect_load()
        if not server.start(options):
            raise AppError(_failure(events))
        job_id = engine.submit(LoadPair(target, draft, load, hear))
        tester: threading.Thread | None = None
        try:
            while (event := _next(events)) is not None:
                if isinstance(event, JobFailed) and event.job_id == job_id:
                    raise (BadInput if event.kind == "bad_request" else AppError)(event.message)
                if isinstance(event, JobCancelled) and event.job_id == job_id:
                    raise AppError("The load was cancelled.")
                log.write(event)
                if isinstance(event, PairLoaded) and tester is None:
                    log.ready(server, options)
                    if not arguments.no_self_test:
                        tester = threading.Thread(target=_self_test, args=(server, log), name="self-test", daemon=True)
                        tester.start()
        finally:
            engine.cancel(job_id)
            server.stop()
            if tester is not None:
                tester.join()
    return 0


def serve_upstream(
    engine: EngineLane,
    address: Upstream,
    options: ServerOptions,
    arguments: argparse.Namespace,
    say: Callable[[str], None],
) -> int:
    """Serve as a compression proxy until the person or the system ends it; return the exit code.

    Raises AppError when the port is taken, BadInput when the upstream is this server.
    """
    events: queue.SimpleQueue[Event | ServerEvent | None] = queue.SimpleQueue()
    server = ProxyServer(engine, address, events.put)
    log = _JsonLog(say) if arguments.json_log else _TextLog(say)
    with _ends_on_signal(events):
        if not server.start(options):
            raise AppError(_failure(events))
        try:
            log.proxying(server, address, options)
            while (event := _next(events)) is not None:
                log.write(event)
        finally:
            server.stop()
    return 0


def _reached_at(server: ApiServer | ProxyServer, options: ServerOptions) -> list[str]:
    """Where programs reach it: in a network the addresses of this computer, since nobody can call 0.0.0.0."""
    if not options.is_lan:
        return list(server.addresses)
    return [f"http://{host}:{server.port}" for host in ("127.0.0.1", *lan_addresses())]


def _self_test(server: ApiServer, log: _TextLog) -> None:
    for line in server.self_test():
        log.tested(line.name, line.reason)


def _next(events: queue.SimpleQueue[Event | ServerEvent | None]) -> Event | ServerEvent | None:
    while True:
        try:
            return events.get(timeout=_POLL_S)
        except queue.Empty:
            continue


def _failure(events: queue.SimpleQueue[Event | ServerEvent | None]) -> str:
    while not events.empty():
        event = events.get()
        if isinstance(event, ServerFailed):
            return event.message
    return "The server could not be started."


@contextmanager
def _ends_on_signal(events: queue.SimpleQueue[Event | ServerEvent | None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the loop in good order; outside the main thread nothing is installed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        events.put(None)

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _TextLog:
    """Lines for a person."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._share = -1

    def write(self, event: Event | ServerEvent) -> None:
        match event:
            case LoadProgress() if event.part == "target":
                share = 10 * event.n_done_bytes // max(1, event.n_total_bytes)
                if share != self._share:
                    self._share = share
                    self._say(f"Loading: {share * 10} %")
            case PairLoaded():
                self._say(f"Loaded {event.pair.target_name}, {event.pair.context_tokens} tokens, {event.load_s:.1f} s")
                for notice in event.pair.notices:
                    self._say(notice)
                if event.pair.most_prefix_bytes:
                    self._say(f"Prefix cache: up to {memory_text(event.pair.most_prefix_bytes)} of memory")
            case PairUnloaded():
                self._say("Unloaded.")
            case JobFailed():
                self._say(f"Failed: {event.message}")
            case RequestEnded():
                speed = event.n_reply_tokens / event.decode_s if event.decode_s > 0 else 0.0
                self._say(
                    f"{event.request_id} {event.outcome}: {event.n_prompt_tokens} prompt tokens "
                    f"({event.n_reused_tokens} cached), {event.n_reply_tokens} reply tokens, {speed:.1f} tok/s, "
                    f"AL {event.acceptance_length:.2f}, {event.total_s:.1f} s"
                    + (f": {event.message}" if event.message else "")
                    + (f"; {event.pflash.words()}" if event.pflash is not None else "")
                )
            case RequestForwarded():
                self._say(
                    f"{event.request_id} {event.path}: {event.status}, {event.upstream_s:.1f} s"
                    + (f": {event.message}" if event.message else "")
                    + (f"; {event.pflash.words()}" if event.pflash is not None else "")
                )
            case _:
                pass

    def ready(self, server: ApiServer, options: ServerOptions) -> None:
        served = server.models.served
        name = served.model_id if served is not None else "?"
        n_tokens = served.context_tokens if served is not None else 0
        self._say(f"Serving {name} with {n_tokens} tokens of context at {' and '.join(_reached_at(server, options))}")
        if options.access_token and options.is_lan:
            self._say(f"Key for clients: {options.access_token}")

    def proxying(self, server: ProxyServer, address: Upstream, options: ServerOptions) -> None:
        where = " and ".join(_reached_at(server, options))
        self._say(f"Passing on to {address.base} at {where}; prompts are shortened: {options.pflash.mode}")
        if options.access_token and options.is_lan:
            self._say(f"Key for clients: {options.access_token}")

    def tested(self, name: str, reason: str) -> None:
        self._say(f"{name}: {reason or 'works'}")


class _JsonLog(_TextLog):
    """One JSON object per line, without what people wrote."""

    def write(self, event: Event | ServerEvent) -> None:
        if isinstance(event, PairLoaded):
            members = {"target": event.pair.target_name, "load_s": event.load_s, "notices": event.pair.notices}
            self._line("PairLoaded", members)
            return
        self._line(type(event).__name__, public_members(event))

    def ready(self, server: ApiServer, options: ServerOptions) -> None:
        served = server.models.served
        if served is not None:
            members = {"model": served.model_id, "context_tokens": served.context_tokens}
            self._line("Ready", {**members, "addresses": _reached_at(server, options)})

    def proxying(self, server: ProxyServer, address: Upstream, options: ServerOptions) -> None:
        members = {"upstream": address.base, "pflash": options.pflash.mode}
        self._line("Proxying", {**members, "addresses": _reached_at(server, options)})

    def tested(self, name: str, reason: str) -> None:
        self._line("SelfTest", {"name": name, "passed": not reason, "reason": reason})

    def _line(self, kind: str, members: dict[str, object]) -> None:
        line = {"at_s": round(time.time(), 3), "event": kind, **members}
        self._say(json.dumps(line, ensure_ascii=False, default=str))
