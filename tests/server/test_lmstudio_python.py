"""LM Studio's own Python SDK as a client, with its default settings; warnings of it are failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.requests import LoadOptions
from dflash_desktop.server.events import RequestEnded
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.server import ApiServer
from support.api_server import Api, Start
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.patience import LONG_S
from support.real_engine import running_engine, try_load
from support.scripted_engine import Pace, ScriptedEngine

lmstudio = pytest.importorskip("lmstudio", reason="the lmstudio library is not installed")

ARGUMENTS = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in (("a", 1), ("b", 2)))
CALL = f"Look.\n<tool_call>\n<function=add>\n{ARGUMENTS}</function>\n</tool_call>"


def reply(prompt: str) -> str:
    if "long" in prompt:
        return "word " * 3000
    if "<tools>" in prompt and "<|im_start|>tool" not in prompt:
        return CALL
    return "It is 3." if "<tools>" in prompt else "Hello from the script."


@pytest.fixture
def api(start: Start) -> Api:
    return start(ScriptedEngine(script=reply, pace=Pace(step_s=0.002)))


@pytest.fixture
def client(api: Api) -> Iterator[Any]:
    with lmstudio.Client(f"127.0.0.1:{api.server.port}") as client:
        yield client


def test_it_finds_the_server_by_its_greeting(api: Api) -> None:
    assert lmstudio.Client.is_valid_api_host(f"127.0.0.1:{api.server.port}")


def test_it_lists_models_and_gets_the_loaded_one(client: Any) -> None:
    (downloaded,) = client.llm.list_downloaded()
    assert downloaded.model_key == "qwen3.5-27b" and downloaded.info.max_context_length == 262144
    (loaded,) = client.llm.list_loaded()
    assert client.embedding.list_loaded() == [] and loaded == client.llm.model() == client.llm.model("qwen3.5-27b")
    assert loaded.get_context_length() == 4096 and loaded.get_load_config().context_length == 4096
    assert loaded.get_info().trained_for_tool_use and loaded.get_info().params_string == "27B"
    assert loaded.count_tokens("hello there") == len(loaded.tokenize("hello there")) == 3
    with pytest.raises(lmstudio.LMStudioModelNotFoundError, match="nope"):
        client.llm.get_model_info("nope")


def test_it_chats_with_figures_and_progress(client: Any) -> None:
    chat = lmstudio.Chat("Be kind.")
    chat.add_user_message("Hi")
    model = client.llm.model()
    shares: list[float] = []
    firsts: list[bool] = []
    assert model.apply_prompt_template(chat).startswith("<|im_start|>system\nBe kind.")
    result = model.respond(
        chat,
        config={"temperature": 0.2, "maxTokens": 50, "topPSampling": 0.9, "stopStrings": ["###"]},
        on_message=chat.append,
        on_first_token=lambda: firsts.append(True),
        on_prompt_processing_progress=shares.append,
    )
    assert result.content == "Hello from the script." and firsts == [True] and shares[-1] == 1.0
    assert result.stats.stop_reason == "eosFound" and result.stats.predicted_tokens_count == 6
    assert result.stats.tokens_per_second > 0 and result.stats.time_to_first_token_sec > 0
    assert result.model_info.model_key == "qwen3.5-27b" and result.load_config.context_length == 4096
    assert "Hello from the script." in str(chat)
    assert model.complete("Once upon").content == "Hello from the script."


def test_it_cancels_and_the_engine_stops(api: Api, client: Any) -> None:
    stream = client.llm.model().respond_stream("a long one")
    for i, _ in enumerate(stream):
        if i == 3:
            stream.cancel()
    assert stream.result().stats.stop_reason == "userStopped"
    assert api.engine.idle.wait(LONG_S)
    (ended,) = [event for event in api.events if isinstance(event, RequestEnded)]
    assert ended.outcome == "cancelled"


def test_it_acts_with_tools_over_several_rounds(client: Any) -> None:
    asked: list[tuple[int, int]] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        asked.append((a, b))
        return a + b

    said: list[Any] = []
    result = client.llm.model().act("1 and 2?", [add], on_message=said.append)
    assert result.rounds == 2 and asked == [(1, 2)]
    assert [message.role for message in said] == ["assistant", "tool", "assistant"] and "It is 3." in str(said[-1])


def test_it_loads_with_another_context_and_unloads(api: Api, client: Any) -> None:
    shares: list[float] = []
    model = client.llm.load_new_instance("qwen3.5-27b", config={"contextLength": 8192}, on_load_progress=shares.append)
    assert model.get_context_length() == 8192 and shares[-1] == 1.0 and len(api.engine.loads) == 1
    model.unload()
    assert client.llm.list_loaded() == [] and not api.engine.is_loaded
    assert model.respond("Hi").content == "Hello from the script.", "it is loaded again when it is needed"


def test_what_is_not_served_raises_its_own_error_with_our_words(client: Any) -> None:
    with pytest.raises(lmstudio.LMStudioServerError, match="There is no embedding model here"):
        client.embedding.model("any")
    with pytest.raises(lmstudio.LMStudioServerError, match="downloaded in the app only"):
        client.repository.search_models("any")
    with pytest.raises(lmstudio.LMStudioServerError, match="context length exceeded"):
        client.llm.model().respond("x" * 40_000)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


def test_a_real_model_answers_and_holds_to_a_schema(engine: Engine) -> None:
    loaded = try_load(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, LoadOptions(context_tokens=512, n_threads=1))
    server = ApiServer(engine, lambda event: None)
    server.on_engine_event(loaded)
    assert server.start(ServerOptions(port=0))
    try:
        with lmstudio.Client(f"127.0.0.1:{server.port}") as client:
            model = client.llm.model()
            result = model.respond("Hi", config={"maxTokens": 12, "temperature": 0.0})
            assert result.stats.stop_reason == "maxPredictedTokensReached"
            assert result.stats.predicted_tokens_count == 12
            schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
                      "additionalProperties": False}  # fmt: skip
            held = model.respond("Hi", response_format=schema, config={"maxTokens": 60, "temperature": 0.0})
            assert held.parsed in ({"a": 1}, {"a": 2})
    finally:
        server.stop()
