"""Real coding agents against the running server, set up by our own writers: one tool round trip each.

Marked `clients`: npm fetches the programs once per run (DFLASH_TEST_NPM names a folder that has them already). The tool
round trip needs a model that knows what to do, so that one is scripted; then each agent asks the small real models,
whose words mean nothing: what is tested is the protocol, not the wit.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.clients.catalogue import all_cards
from dflash_desktop.clients.endpoint import Endpoint, Machine
from dflash_desktop.clients.writer import SettingsWriter
from dflash_desktop.server.events import RequestArrived, RequestEnded
from dflash_desktop.server.server import ApiServer
from support.api_server import served_script
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.scripted_engine import ScriptedEngine, pair_info
from support.served import Served, serving

pytestmark = pytest.mark.clients

PACKAGES = (
    "@openai/codex@0.171.0",
    "@anthropic-ai/claude-code@2.1.197",
    "opencode-ai@1.18.33",
    "cline@3.0.65",
    "@qwen-code/qwen-code@0.15.10",
)
CONTEXT = 131072
SECRET = "pong-from-the-file"  # only a tool call can find it
TASK = "Read hello.txt and tell me what it says"
COMMAND = "cat hello.txt"
SHELLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("exec_command", {"cmd": COMMAND}),
    ("shell_command", {"command": COMMAND}),
    ("Bash", {"command": COMMAND, "description": "read"}),
    ("bash", {"command": COMMAND, "description": "read"}),
    ("run_commands", {"commands": [COMMAND]}),
    ("run_shell_command", {"command": COMMAND, "is_background": False}),
)


def call(name: str, arguments: dict[str, Any]) -> str:
    written = "".join(
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>\n<function={name}>\n{written}</function>\n</tool_call>"


def agent(prompt: str) -> str:
    """A model that reads the file with whatever shell tool it is offered, then says what it holds."""
    thought = "Hm.\n</think>\n\n" if prompt.endswith("<think>\n") else ""
    if SECRET in prompt:
        answer = f"It says {SECRET}. FINISHED"
        if '"name": "submit_and_exit"' in prompt:  # Cline goes on until it is told so
            return thought + call("submit_and_exit", {"summary": answer, "verified": True})
        return thought + answer
    for name, arguments in SHELLS:
        if f'"name": "{name}"' in prompt:
            return f"{thought}I will look.\n{call(name, arguments)}"
    return f"{thought}A title"


@dataclass(frozen=True)
class Client:
    client_id: str
    command: tuple[str, ...]
    folder: str = ""  # that must exist before our writer will write


CLIENTS = (
    Client(
        "codex", ("codex", "exec", "--profile", "dflash", "--skip-git-repo-check", "-s", "danger-full-access", TASK)
    ),
    Client("claude_code", ("claude", "-p", "--allowedTools", "Bash", "--", f"{TASK}. Use Bash.")),
    Client("opencode", ("opencode", "run", TASK)),
    Client("cline", ("cline", "--yolo", TASK), ".cline/data"),
    Client("qwen_code", ("qwen", "--yolo", "-p", TASK)),
)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, real_environment: dict[str, str]) -> Path:
    """The folder with the commands."""
    given = os.environ.get("DFLASH_TEST_NPM")
    if given:
        return Path(given) / "node_modules" / ".bin"
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    done = subprocess.run(
        [npm, "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES],
        env=real_environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"npm could not install the clients: {done.stderr[-300:]}")
    return folder / "node_modules" / ".bin"


@pytest.fixture
def served() -> Iterator[tuple[ScriptedEngine, ApiServer, list[Any]]]:
    # Not on 1234: then each client must have taken the address from what we wrote.
    with served_script(ScriptedEngine(script=agent, pair=pair_info(context_tokens=CONTEXT))) as served:
        yield served


@dataclass(frozen=True)
class Ran:
    """What a client said, and how it ended; None: it was told to stop, having asked often enough."""

    said: str
    returncode: int | None


def run_client(
    client: Client,
    programs: Path,
    tmp_path: Path,
    endpoint: Endpoint,
    has_enough: Callable[[], bool] = lambda: False,
) -> Ran:
    """Set it up as its card does, in a home of its own, and give it the task; end it early once `has_enough`."""
    home, work = tmp_path / "home", tmp_path / "home" / "work"
    work.mkdir(parents=True)
    (work / "hello.txt").write_text(f"{SECRET}\n")
    if client.folder:
        (home / client.folder).mkdir(parents=True)
    environment = {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "DISABLE_TELEMETRY": "1",
        "CLINE_TELEMETRY_DISABLED": "1",
    }
    cards = {card.client_id: card for card in all_cards(endpoint, Machine(home, environment, "linux"))}
    SettingsWriter(tmp_path / "backups").write(client.client_id, cards[client.client_id].edits)
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            client.command,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it has children
        )
    is_told = False
    deadline = time.monotonic() + 600  # a busy machine reads an agent's prompt for minutes
    try:
        while process.poll() is None and not (is_told := has_enough()):
            assert time.monotonic() < deadline, (tmp_path / "said").read_text("utf-8", "replace")[-2000:]
            time.sleep(0.2)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Ran((tmp_path / "said").read_text("utf-8", "replace"), None if is_told else process.returncode)


@pytest.mark.parametrize("client", CLIENTS, ids=[client.client_id for client in CLIENTS])
def test_an_agent_reads_a_file_with_its_own_tool(
    client: Client, programs: Path, served: tuple[ScriptedEngine, ApiServer, list[Any]], tmp_path: Path
) -> None:
    if not (programs / client.command[0]).exists():
        pytest.skip(f"{client.command[0]} was not installed")
    engine, server, events = served
    done = run_client(client, programs, tmp_path, Endpoint(server.port, "qwen3.5-27b", CONTEXT))
    said = done.said
    assert done.returncode == 0, said[-2000:]
    assert f"It says {SECRET}. FINISHED" in said, said[-2000:]
    arrived = [event for event in events if isinstance(event, RequestArrived)]
    assert client.client_id in {event.client for event in arrived} and all(event.is_stream for event in arrived)
    ended = [event for event in events if isinstance(event, RequestEnded)]
    assert {event.outcome for event in ended} <= {"stop", "tool_calls"}
    # The round trip keeps the prefix: the last request found nearly all of the one before it in the cache.
    assert ended[-1].n_reused_tokens > 0.95 * ended[-2].n_prompt_tokens
    assert engine.idle.wait(5)


FITTING = {"codex", "opencode", "cline"}
ENOUGH = 6  # requests; OpenCode summarises a conversation that does not fit again and again
SMALL = {
    "qwen35-mini": ("--target", QWEN35_MINI, "--draft", QWEN35_MINI_DRAFT, "--context", "32768"),
    "built-in": (),  # 8192 tokens: the prompts of the other two do not fit
}
REAL_RUNS = [
    (pair, client) for pair in SMALL for client in CLIENTS if pair != "built-in" or client.client_id in FITTING
]


@pytest.fixture(scope="module")
def small_servers() -> Iterator[Callable[[str], Served]]:
    """`dflash-desktop serve` with one of the small pairs, started when it is first asked for."""
    with contextlib.ExitStack() as stack:
        started: dict[str, Served] = {}

        def start(pair: str) -> Served:
            if pair not in started:
                started[pair] = stack.enter_context(serving(*SMALL[pair], "--threads", "1", "--max-tokens", "32"))
            return started[pair]

        yield start


@pytest.mark.parametrize(
    ("pair", "client"), REAL_RUNS, ids=[f"{pair}-{client.client_id}" for pair, client in REAL_RUNS]
)
def test_an_agent_talks_with_a_small_real_model(
    pair: str, client: Client, programs: Path, small_servers: Callable[[str], Served], tmp_path: Path
) -> None:
    if not (programs / client.command[0]).exists():
        pytest.skip(f"{client.command[0]} was not installed")
    served = small_servers(pair)
    n_before = len(served.events)

    def ended_requests() -> list[dict[str, Any]]:
        return [event for event in served.events[n_before:] if event["event"] == "RequestEnded"]

    endpoint = Endpoint(served.port, served.model, served.context_tokens)
    done = run_client(client, programs, tmp_path, endpoint, lambda: len(ended_requests()) >= ENOUGH)
    served.wait_until_idle()
    ended = [event for event in ended_requests() if event["outcome"] != "cancelled" or done.returncode is not None]
    assert ended, done.said[-2000:]
    # A reply cut by the limit makes some of them ask again, without end, or complain in their own words; nothing is
    # refused.
    assert {event["outcome"] for event in ended} <= {"stop", "length", "tool_calls"}, ended
    assert all(event["n_reply_tokens"] > 0 for event in ended)
    if done.returncode:
        assert ended[-1]["outcome"] == "length" and "token" in done.said, done.said[-2000:]
    same = [(a, b) for a, b in pairwise(ended) if 0 < b["n_prompt_tokens"] - a["n_prompt_tokens"] < 300]
    assert not same or any(b["n_reused_tokens"] > 0.9 * a["n_prompt_tokens"] for a, b in same), ended
