"""The vendors' own Python libraries as clients, with their default settings: conformance 4."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dflash_desktop.engine.events import GenerationDone
from support.api_server import Api, Start
from support.patience import LONG_S
from support.scripted_engine import Pace, ScriptedEngine

openai = pytest.importorskip("openai", reason="the openai library is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic library is not installed")
ollama = pytest.importorskip("ollama", reason="the ollama library is not installed")

CALL = "Look.\n<tool_call>\n<function=read>\n<parameter=path>\n资料/a 😀.txt\n</parameter>\n</function>\n</tool_call>"
ARGUMENTS = {"path": "资料/a 😀.txt"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def api(start: Start) -> Api:
    return start(ScriptedEngine(script=CALL))


@pytest.fixture
def gpt(api: Api) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{api.base}/v1", api_key="local", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(api: Api) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=api.base, api_key="local", max_retries=0) as client:
        yield client


TOOL = {"type": "function", "function": {"name": "read", "description": "", "parameters": SCHEMA}}


def test_openai_lists_models(gpt: Any) -> None:
    (model,) = gpt.models.list().data
    assert gpt.models.retrieve(model.id).id == model.id


def test_openai_chat(gpt: Any) -> None:
    reply = gpt.chat.completions.with_raw_response.create(model="m", messages=MESSAGES, tools=[TOOL]).parse()
    (call,) = reply.choices[0].message.tool_calls
    assert reply.choices[0].finish_reason == "tool_calls" and reply.choices[0].message.content == "Look."
    assert json.loads(call.function.arguments) == ARGUMENTS and reply.usage.total_tokens > 0


def test_openai_chat_stream(gpt: Any) -> None:
    with gpt.chat.completions.stream(
        model="m", messages=MESSAGES, tools=[TOOL], stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == ARGUMENTS and final.usage.completion_tokens > 0


def test_openai_chat_round_trip_of_a_tool(api: Api, gpt: Any) -> None:
    reply = gpt.chat.completions.create(model="m", messages=MESSAGES, tools=[TOOL]).choices[0].message
    result = {"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "contents"}
    gpt.chat.completions.create(model="m", messages=[*MESSAGES, reply, result], tools=[TOOL])
    assert CALL.partition("\n")[2] in api.engine.prompts[1] and "tool\ncontents" in api.engine.prompts[1]


def test_openai_responses(gpt: Any) -> None:
    tool = {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}
    reply = gpt.responses.create(model="m", input="Hi", tools=[tool])
    assert reply.output_text == "Look." and json.loads(reply.output[1].arguments) == ARGUMENTS
    with gpt.responses.stream(model="m", input="Hi", tools=[tool]) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert final.output_text == "Look." and json.loads(final.output[1].arguments) == ARGUMENTS


def test_openai_completions_and_errors(gpt: Any) -> None:
    assert gpt.completions.create(model="m", prompt="x", max_tokens=2).choices[0].text == CALL[:8]
    with pytest.raises(openai.BadRequestError) as failed:
        gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "x" * 50_000}])
    assert failed.value.code == "context_length_exceeded"


def test_openai_cancel_in_mid_stream(start: Start) -> None:
    api = start(ScriptedEngine(script="word " * 3000, pace=Pace(step_s=0.1)))
    with openai.OpenAI(base_url=f"{api.base}/v1", api_key="x", max_retries=0) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        next(iter(stream))
        stream.close()
    assert api.engine.idle.wait(LONG_S)
    (done,) = api.engine.finished
    assert isinstance(done, GenerationDone) and done.finish_reason == "cancelled"


def test_anthropic_lists_models_with_what_they_take(claude: Any) -> None:
    (model,) = claude.models.list().data
    known = claude.models.retrieve(model.id)
    assert known.max_input_tokens == known.context_length > known.max_tokens > 0


def test_anthropic_messages(claude: Any) -> None:
    tool = {"name": "read", "input_schema": SCHEMA}
    reply = claude.messages.create(model="m", max_tokens=99, messages=MESSAGES, tools=[tool])
    assert [block.type for block in reply.content] == ["text", "tool_use"] and reply.stop_reason == "tool_use"
    assert reply.content[1].input == ARGUMENTS
    count = claude.messages.count_tokens(model="m", messages=MESSAGES, tools=[tool])
    assert count.input_tokens == reply.usage.input_tokens + reply.usage.cache_read_input_tokens
    with claude.messages.stream(model="m", max_tokens=99, messages=MESSAGES, tools=[tool]) as stream:
        for _ in stream:
            pass
        final = stream.get_final_message()
    assert final.content[1].input == ARGUMENTS and final.stop_reason == "tool_use"


def test_anthropic_round_trip_with_thinking(start: Start) -> None:
    api = start(ScriptedEngine(script=f"Hm.\n</think>\n\n{CALL}"))
    tool = {"name": "read", "input_schema": SCHEMA}
    with anthropic.Anthropic(base_url=api.base, api_key="x", max_retries=0) as client:
        asked: dict[str, Any] = {
            "model": "m",
            "max_tokens": 2000,
            "tools": [tool],
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        }
        reply = client.messages.create(messages=MESSAGES, **asked)
        assert [block.type for block in reply.content] == ["thinking", "text", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": reply.content[2].id, "content": "contents"}
        turns = [*MESSAGES, {"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
        client.messages.create(messages=turns, **asked)
    assert "Hm." in api.engine.prompts[1] and "contents" in api.engine.prompts[1]


def test_anthropic_errors(claude: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x" * 50_000}])
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": 5}])


@pytest.fixture
def llama(api: Api) -> Iterator[Any]:
    with ollama.Client(host=api.base) as client:
        yield client


def test_ollama_lists_shows_and_chats(api: Api, llama: Any) -> None:
    (model,) = llama.list().models
    assert model.model == "qwen3.5-27b:latest" and model.details.quantization_level == "Q4_K_M"
    assert [each.model for each in llama.ps().models] == [model.model]
    shown = llama.show(model.model)
    assert "tools" in shown.capabilities and shown.modelinfo["qwen35.context_length"] == 4096
    reply = llama.chat(model=model.model, messages=MESSAGES, tools=[TOOL])
    (call,) = reply.message.tool_calls
    assert reply.message.content == "Look." and call.function.arguments == ARGUMENTS and reply.done_reason == "stop"
    parts = list(llama.chat(model=model.model, messages=MESSAGES, tools=[TOOL], stream=True))
    assert "".join(part.message.content or "" for part in parts) == "Look." and parts[-1].eval_count > 0
    calls = [each for part in parts for each in part.message.tool_calls or ()]
    assert [each.function.arguments for each in calls] == [ARGUMENTS]
    result = {"role": "tool", "tool_name": "read", "content": "contents"}
    llama.chat(model=model.model, messages=[*MESSAGES, reply.message, result], tools=[TOOL])
    assert "<function=read>" in api.engine.prompts[-1] and "contents" in api.engine.prompts[-1]


def test_ollama_generates_thinks_and_is_refused(start: Start) -> None:
    api = start(ScriptedEngine(script="Hm.\n</think>\n\nYes."))
    with ollama.Client(host=api.base) as client:
        reply = client.generate(model="m", prompt="x", think=True)
        assert (reply.thinking, reply.response) == ("Hm.", "Yes.")
        with pytest.raises(ollama.ResponseError, match="context length exceeded") as failed:
            client.chat(model="m", messages=[{"role": "user", "content": "x" * 50_000}])
        assert failed.value.status_code == 400
        with pytest.raises(ollama.ResponseError, match="managed in the app"):
            client.pull("m")
