"""What clients and monitors are told of prompts that need not be read again, in every dialect, on the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.server import ApiServer
from support.api_server import Api
from support.fixtures import QWEN35_MINI
from support.real_engine import running_engine, try_load
from support.scripted_engine import ScriptedEngine

LONG = "Answer with the name of the folder and nothing else, whatever is asked. " * 12


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def loaded(engine: Engine) -> PairLoaded:
    event = try_load(engine, QWEN35_MINI, None, LoadOptions(context_tokens=1024, n_threads=1))
    assert isinstance(event, PairLoaded)
    return event


@pytest.fixture
def api(engine: Engine, loaded: PairLoaded) -> Iterator[Api]:
    server = ApiServer(engine, lambda event: None)
    server.on_engine_event(loaded)
    assert server.start(ServerOptions(port=0))
    yield Api(ScriptedEngine(), server, [])
    server.stop()


def messages(name: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": f"{name}. {LONG}"}, {"role": "user", "content": f"Where is {name}?"}]


def chat(api: Api, name: str) -> int:
    body = {"messages": messages(name), "max_tokens": 4, "temperature": 0}
    usage = api.post("/v1/chat/completions", body).json["usage"]
    return int(usage["prompt_tokens_details"]["cached_tokens"])


def responses(api: Api, name: str) -> int:
    system, user = messages(name)
    body = {"instructions": system["content"], "input": user["content"], "max_output_tokens": 4, "temperature": 0}
    return int(api.post("/v1/responses", body).json["usage"]["input_tokens_details"]["cached_tokens"])


def anthropic(api: Api, name: str) -> int:
    system, user = messages(name)
    body = {"system": system["content"], "messages": [user], "max_tokens": 4, "temperature": 0, "model": "claude"}
    return int(api.post("/v1/messages", body).json["usage"]["cache_read_input_tokens"])


def completion(api: Api, name: str) -> int:
    body = {"prompt": f"{name}. {LONG}", "max_tokens": 4, "temperature": 0}
    return int(api.post("/v1/completions", body).json["usage"]["prompt_tokens_details"]["cached_tokens"])


@pytest.mark.parametrize("ask", [chat, responses, anthropic, completion])
def test_every_dialect_says_what_was_cached_when_two_agents_take_turns(ask: Any, api: Api) -> None:
    red, blue = f"red {ask.__name__}", f"blue {ask.__name__}"
    ask(api, red)
    ask(api, blue)
    n_read = 128  # a block at least comes back
    assert ask(api, red) >= n_read
    assert ask(api, blue) >= n_read


def test_metrics_and_status_count_hits_and_bytes(api: Api) -> None:
    assert figures(api) == dict.fromkeys(figures(api), 0)
    for name in ("green", "yellow", "green"):
        chat(api, name)
    after = figures(api)
    assert after["prefix_cache_hits_total"] == 1
    assert after["prefix_cache_restored_tokens_total"] >= 128
    assert 0 < after["prefix_cache_bytes"] <= after["prefix_cache_limit_bytes"]
    told = api.get("/status").json["prefix_cache"]
    assert told["hits"] == after["prefix_cache_hits_total"]
    assert told["bytes"] == after["prefix_cache_bytes"]


def figures(api: Api) -> dict[str, int]:
    lines = api.get("/metrics").body.decode().splitlines()
    rows = [line.removeprefix("dflash_").split() for line in lines if line.startswith("dflash_prefix_cache")]
    return {name: int(value) for name, value in rows}
