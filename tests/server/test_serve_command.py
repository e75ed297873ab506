"""`serve` without a window: options, log, end; and the self-test of a running server."""

from __future__ import annotations

import argparse
import json
import socket
import threading
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dflash_desktop import serve_command
from dflash_desktop.base.errors import AppError, BadInput
from dflash_desktop.engine.requests import LoadOptions
from support.api_server import Api, Start
from support.patience import LONG_S, until
from support.scripted_engine import ScriptedEngine


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    serve_command.add_arguments(parser)
    return parser.parse_args(words)


def test_defaults_are_loopback_1234_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(serve_command.KEY_VARIABLE, raising=False)
    options = serve_command.check(parsed())
    assert (options.port, options.is_lan, options.access_token) == (1234, False, "")
    monkeypatch.setenv(serve_command.KEY_VARIABLE, "from-the-environment")
    assert serve_command.check(parsed()).access_token == "from-the-environment"
    assert serve_command.check(parsed("--api-key", "k")).access_token == "k"


def test_the_network_gets_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(serve_command.KEY_VARIABLE, raising=False)
    options = serve_command.check(parsed("--host", "lan", "--cors", "https://a.example", "--cors", "*"))
    assert options.is_lan and len(options.access_token) > 20
    assert options.allowed_origins == ("https://a.example",) and options.has_any_origin


@pytest.mark.parametrize("words", [["--port", "70000"], ["--host", "evil"], ["--queue", "-1"], ["--api-key", "a b"]])
def test_what_makes_no_sense_is_refused_before_a_load(words: list[str]) -> None:
    with pytest.raises(BadInput):
        serve_command.check(parsed(*words))


def run(engine: ScriptedEngine, *words: str) -> list[str]:
    """Serve until the self-test is through, then end it as a signal would."""
    arguments = parsed("--port", "0", *words)
    said: list[str] = []
    ended: list[int] = []
    queues: list[Any] = []
    real = serve_command._next

    def spied(events: Any) -> Any:
        if not queues:
            queues.append(events)
        return real(events)

    serve_command._next = spied
    try:
        thread = threading.Thread(
            target=lambda: ended.append(
                serve_command.serve(
                    engine,
                    engine.pair.target,
                    None,
                    LoadOptions(),
                    serve_command.check(arguments),
                    arguments,
                    said.append,
                )
            )
        )
        thread.start()
        last = "Ready" if "--no-self-test" in words else "Web page rules"
        until(lambda: any(last in line for line in said), last)
        if "--no-self-test" in words:
            address = next(json.loads(line)["addresses"][0] for line in said if '"Ready"' in line)
            body = json.dumps({"messages": [{"role": "user", "content": "s3cret words"}]}).encode()
            request = urllib.request.Request(f"{address}/v1/chat/completions", body)
            request.add_header("Content-Type", "application/json")
            urllib.request.urlopen(request, timeout=LONG_S).read()
        queues[0].put(None)
        thread.join()
    finally:
        serve_command._next = real
    assert ended == [0]
    return said


def test_serving_says_where_and_tests_itself() -> None:
    engine = ScriptedEngine()
    engine.start()
    said = run(engine)
    engine.close()
    assert any(line.startswith("Serving qwen3.5-27b with 4096 tokens of context at http://127.0.0.1:") for line in said)
    assert sum(line.endswith(": works") for line in said) == 10, said


def test_in_a_network_it_says_addresses_that_others_can_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_command, "lan_addresses", lambda: ["192.168.7.9"])
    engine = ScriptedEngine()
    engine.start()
    said = run(engine, "--host", "lan")
    engine.close()
    (line,) = [line for line in said if line.startswith("Serving")]
    assert " and http://192.168.7.9:" in line
    assert "0.0.0.0" not in line


def test_the_json_log_holds_no_words_of_people() -> None:
    engine = ScriptedEngine()
    engine.start()
    said = run(engine, "--json-log", "--no-self-test")
    engine.close()
    kinds = [json.loads(line)["event"] for line in said]
    assert kinds[0] == "ServerStarted" and "Ready" in kinds and "RequestEnded" in kinds
    assert not any("s3cret words" in line or "Hello from" in line for line in said)


def test_a_taken_port_is_an_error_with_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        arguments = parsed("--port", str(other.getsockname()[1]))
        options = serve_command.check(arguments)
        with pytest.raises(AppError, match="is in use by"):
            serve_command.serve(ScriptedEngine(), Path("t"), None, LoadOptions(), options, arguments, print)


def test_the_self_test_names_what_does_not_work(start: Start) -> None:
    api: Api = start(is_loaded=False)
    lines = {line.name: line for line in api.server.self_test()}
    assert lines["Health"].passed and not lines["OpenAI model list"].passed
    assert "No model is loaded" in lines["Anthropic message"].reason
    api.load()
    assert all(line.passed for line in api.server.self_test())
    keyed = start(access_token="k", needs_key_here=True)
    assert all(line.passed for line in keyed.server.self_test())


def test_without_a_context_the_largest_sensible_one_is_served() -> None:
    def plan(largest: int) -> Any:
        return lambda load: SimpleNamespace(max_context_tokens=largest)

    def refused(load: LoadOptions) -> Any:
        raise AppError("no such file")

    auto = LoadOptions(kv_k="q8_0")
    assert serve_command.serving_options(auto, plan(262144)) == LoadOptions(kv_k="q8_0", context_tokens=65536)
    assert serve_command.serving_options(auto, plan(8192)).context_tokens == 8192
    assert serve_command.serving_options(LoadOptions(context_tokens=512), plan(8192)).context_tokens == 512
    assert serve_command.serving_options(auto, refused) == auto


def test_what_is_offered_for_loading_can_be_chosen(tmp_path: Path) -> None:
    options = serve_command.check(parsed("--no-load-on-demand", "--lan-may-load", "--ttl", "90"))
    assert not options.loads_on_demand and options.can_lan_clients_load and options.idle_unload_s == 90
    with pytest.raises(BadInput, match="There is no folder"):
        serve_command.check(parsed("--models", str(tmp_path / "none")))
