"""LM Studio's REST API and Ollama's, against a running server."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from support.api_server import Answer, Api, Start
from support.scripted_engine import Pace, ScriptedEngine, ScriptedReader, pair_info

HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}}
CALL = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"


def lines(answer: Answer) -> list[Any]:
    return [json.loads(line) for line in answer.body.decode().splitlines()]


def test_v0_listing_satisfies_zeds_strict_parser(api: Api) -> None:
    """Conformance 1; its stream chunks: test_stream_order_and_shape."""
    (entry,) = api.get("/api/v0/models").json["data"]
    assert entry["object"] == "model" and entry["type"] in {"llm", "vlm", "embeddings"} and entry["publisher"]
    assert entry["compatibility_type"] in {"gguf", "mlx"} and entry["state"] in {"loaded", "loading", "not-loaded"}
    assert entry["capabilities"] == ["tool_use"]
    assert (entry["loaded_context_length"], entry["max_context_length"]) == (4096, 262144)
    assert api.get(f"/api/v0/models/{entry['id']}").json == entry
    assert api.get("/v1/api/v0/models").json["data"] == [entry]
    assert api.get("/api/v0/models/x").status == 404


def test_v0_chat_adds_stats(api: Api) -> None:
    body = api.post("/api/v0/chat/completions", {**HELLO, "max_tokens": -1}).json
    assert body["stats"]["stop_reason"] == "eosFound" and body["stats"]["total_draft_tokens_count"] > 0
    assert body["model_info"]["context_length"] == 4096 and body["runtime"]["name"] == "dflash"
    *chunks, _ = api.post("/api/v0/chat/completions", {**HELLO, "stream": True, "max_tokens": 1}).data
    assert chunks[-1]["stats"]["stop_reason"] == "maxPredictedTokensReached"
    assert api.post("/api/v0/completions", {"prompt": "x"}).json["stats"]


def test_v1_listing_has_the_loaded_context(api: Api) -> None:
    (entry,) = api.get("/api/v1/models").json["models"]
    assert entry["key"] == "qwen3.5-27b" and entry["loaded_instances"][0]["config"]["context_length"] == 4096
    assert entry["params_string"] == "27B" and entry["quantization"] == {"name": "Q4_K_M", "bits_per_weight": 4.85}


def test_every_listing_tells_the_same_context_before_and_after_a_reload(start: Start) -> None:
    """B104."""
    api = start()

    def contexts() -> set[int]:
        show = api.post("/api/show", {"model": "qwen3.5-27b:latest"}).json
        return {
            api.get("/api/v0/models").json["data"][0]["loaded_context_length"],
            api.get("/api/v1/models").json["models"][0]["loaded_instances"][0]["config"]["context_length"],
            api.get("/v1/models").json["data"][0]["context_length"],
            api.get("/props").json["default_generation_settings"]["n_ctx"],
            show["model_info"]["qwen35.context_length"],
        }

    assert contexts() == {4096}
    answer = api.post("/api/v1/models/load", {"model": "x", "context_length": 64000, "echo_load_config": True})
    assert answer.json["status"] == "loaded" and answer.json["load_config"]["context_length"] == 64000
    assert contexts() == {64000} and api.engine.n_loads == 1


def test_a_load_that_is_already_there_is_instant(start: Start) -> None:
    """Conformance 7."""
    api = start(ScriptedEngine(pair=pair_info(context_tokens=65536)))
    for body in ({"model": "m"}, {"model": "m", "context_length": 64000, "flash_attention": True, "odd": 1}):
        assert api.post("/api/v1/models/load", body).json["instance_id"] == "qwen3.5-27b"
    assert api.engine.n_loads == 0


def test_eight_loads_at_once_are_one(start: Start) -> None:
    api = start(ScriptedEngine(pace=Pace(load_s=0.2)))
    answers: list[Any] = []

    def load() -> None:
        answers.append(api.post("/api/v1/models/load", {"context_length": 8192}).json)

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["status"] for answer in answers] == ["loaded"] * 8 and api.engine.n_loads == 1


def test_reloads_can_be_forbidden(start: Start) -> None:
    """Conformance 7: a number in the refusal."""
    api = start(can_clients_reload=False)
    answer = api.post("/api/v1/models/load", {"context_length": 9000})
    assert answer.status == 400 and "4096" in answer.json["error"]["message"]
    assert api.post("/api/v1/models/unload", {"instance_id": "qwen3.5-27b"}).status == 403
    assert api.post("/api/v1/models/load", {"context_length": "x"}).status == 400


def test_greeting_only_as_lm_studio(start: Start) -> None:
    assert start().get("/lmstudio-greeting").json == {"lmstudio": True}
    assert start(is_lm_studio=False).get("/lmstudio-greeting").status == 404


def test_v1_chat_whole_and_continued(api: Api) -> None:
    first = api.post("/api/v1/chat", {"model": "m", "input": "I am Ada.", "system_prompt": "Brief."}).json
    assert first["output"] == [{"type": "message", "content": "Hello from the script."}]
    assert first["stats"]["total_output_tokens"] > 0
    body = {"input": [{"type": "text", "content": "Who am I?"}], "previous_response_id": first["response_id"]}
    assert "response_id" not in api.post("/api/v1/chat", {**body, "store": False}).json
    prompt = api.engine.prompts[1]
    assert prompt.index("Brief.") < prompt.index("Ada") < prompt.index("Hello from") < prompt.index("Who am I?")
    assert api.post("/api/v1/chat", {"input": "x", "previous_response_id": "resp_no"}).status == 404
    assert api.post("/api/v1/chat", {"input": "x", "integrations": ["mcp/x"]}).status == 400
    assert api.post("/api/v1/chat", {"input": 5}).status == 400


def test_v1_chat_stream_order(start: Start) -> None:
    api = start(ScriptedEngine(script="Hm.\n</think>\n\nYes.", pace=Pace(prefill_s=0.2)))
    events = api.post("/api/v1/chat", {"input": "x", "stream": True, "reasoning": "on"}).events
    assert all(name == data["type"] for name, data in events)
    kinds = list(dict.fromkeys(name for name, _ in events))
    assert kinds == [
        "chat.start", "prompt_processing.start", "prompt_processing.progress", "prompt_processing.end",
        "reasoning.start", "reasoning.delta", "reasoning.end", "message.start", "message.delta", "message.end",
        "chat.end",
    ]  # fmt: skip
    assert events[-1][1]["result"]["output"] == [
        {"type": "reasoning", "content": "Hm."}, {"type": "message", "content": "Yes."}
    ]  # fmt: skip


def test_ollama_listings(api: Api) -> None:
    assert api.get("/api/version").json == {"version": "0.12.0"}
    (entry,) = api.get("/api/tags").json["models"]
    assert entry["name"] == "qwen3.5-27b:latest" and len(entry["digest"]) == 64
    assert api.get("/api/ps").json["models"][0]["context_length"] == 4096
    show = api.post("/api/show", {"name": entry["name"]}).json
    assert show["capabilities"] == ["completion", "tools", "thinking"]
    assert api.post("/api/show", {"model": "x"}).status == 404
    assert api.post("/api/pull", {}).status == 501 and "managed" in api.post("/api/pull", {}).json["error"]


def test_ollama_chat_streams_by_default(start: Start) -> None:
    api = start(
        ScriptedEngine(script=f"Hm.\n</think>\n\nOn it.\n{CALL}", reader=ScriptedReader(is_thinking_default=True))
    )
    answer = api.post("/api/chat", {"model": "m", **HELLO, "tools": [TOOL]})
    assert answer.headers["content-type"] == "application/x-ndjson"
    *parts, last = lines(answer)
    assert "".join(part["message"].get("thinking", "") for part in parts) == "Hm."
    assert "".join(part["message"]["content"] for part in parts) == "On it."
    (call,) = [call for part in parts for call in part["message"].get("tool_calls", [])]
    assert call["function"] == {"index": 0, "name": "f", "arguments": {"a": 1}} and call["id"].startswith("call_")
    assert last["done"] is True and last["done_reason"] == "stop" and last["eval_count"] > 0
    whole = api.post("/api/chat", {"model": "m", **HELLO, "tools": [TOOL], "stream": False}).json
    (again,) = whole["message"].pop("tool_calls")
    assert again["function"] == call["function"] and again["id"] != call["id"]
    assert whole["message"] == {"role": "assistant", "content": "On it.", "thinking": "Hm."}
    api.post("/api/chat", {"model": "m", **HELLO, "think": False})
    assert api.engine.prompts[-1].endswith("</think>\n\n")


def test_ollama_history_options_and_generate(api: Api) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "tool", "tool_name": "f", "content": "one"},
    ]
    options = {"num_predict": 2, "temperature": 0.3, "num_ctx": 99999, "stop": ["zz"], "mirostat": 1}
    answer = api.post("/api/chat", {"messages": messages, "options": options, "stream": False}).json
    assert answer["done_reason"] == "length" and answer["eval_count"] == 2
    assert "<function=f>" in api.engine.prompts[0] and "tool\none" in api.engine.prompts[0]
    assert api.engine.jobs[0].sampling.temperature == 0.3
    assert (
        api.post("/api/generate", {"prompt": "x", "system": "S", "stream": False}).json["response"].startswith("Hello")
    )
    api.post("/api/generate", {"prompt": "raw text", "raw": True, "stream": False})
    assert api.engine.prompts[-1] == "raw text"
    assert api.post("/api/chat", {"messages": []}).json["done_reason"] == "load"
    answer = api.post("/api/chat", {"messages": None})
    assert answer.status == 400 and isinstance(answer.json["error"], str)


def test_ollama_heartbeats_are_json_lines(start: Start) -> None:
    """Conformance 8, B106."""
    api = start(ScriptedEngine(pace=Pace(prefill_s=0.4, n_prefill_chunks=1)))
    parts = lines(api.post("/api/chat", HELLO))
    assert sum(1 for part in parts if part["message"]["content"] == "" and not part["done"]) >= 3


@pytest.mark.parametrize("path", ["/api/v0/chat/completions", "/api/v1/chat", "/api/chat", "/api/generate"])
def test_overflow_in_every_dialect(start: Start, path: Any) -> None:
    api = start(ScriptedEngine(pair=pair_info(context_tokens=256)))
    text = "x" * 5000
    answer = api.post(path, {"messages": [{"role": "user", "content": text}], "input": text, "prompt": text})
    assert answer.status == 400 and "context length exceeded" in answer.body.decode()
