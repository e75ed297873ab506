"""OpenAI Chat Completions against a running server."""

from __future__ import annotations

from typing import Any

import pytest

from support.api_server import Api, Start
from support.scripted_engine import Pace, ScriptedEngine, ScriptedReader, pair_info

HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
PATH = "/v1/chat/completions"
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "description": "Write.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
        },
    }
]
CALL = (
    "On it.\n<tool_call>\n<function=write_file>\n<parameter=path>\n资料/a 😀.txt\n</parameter>\n"
    "<parameter=text>\nx < y\n</parameter>\n</function>\n</tool_call>"
)


def joined(chunks: list[Any], key: str) -> str:
    return "".join(chunk["choices"][0]["delta"].get(key, "") for chunk in chunks if chunk["choices"])


def test_whole_answer(api: Api) -> None:
    answer = api.post(PATH, {**HELLO, "model": "any", "temperature": 0})
    assert answer.status == 200
    body = answer.json
    assert body["object"] == "chat.completion" and body["model"] == "qwen3.5-27b"
    choice = body["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "Hello from the script."}
    assert choice["finish_reason"] == "stop"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    timings = body["timings"]
    assert timings["acceptance_length"] >= 1 and timings["drafted"] == timings["draft_n"] > 0
    assert api.engine.prompts[0].startswith("<|im_start|>user\nHi<|im_end|>")


def test_stream_order_and_shape(api: Api) -> None:
    """Conformance 1, B087."""
    answer = api.post(PATH, {**HELLO, "stream": True, "stream_options": {"include_usage": True}})
    assert answer.headers["content-type"] == "text/event-stream"
    *chunks, done = answer.data
    assert done == "[DONE]"
    for chunk in chunks:
        assert {"id", "object", "created", "model", "choices"} <= set(chunk)
        assert chunk["object"] == "chat.completion.chunk" and isinstance(chunk["created"], int)
    assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all("role" not in chunk["choices"][0]["delta"] for chunk in chunks[1:-1])
    assert joined(chunks, "content") == "Hello from the script."
    assert chunks[-2]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] > 0
    assert all("usage" not in chunk for chunk in chunks[:-1])


def test_without_include_usage_the_finish_chunk_carries_it(api: Api) -> None:
    *chunks, _ = api.post(PATH, {**HELLO, "stream": True}).data
    assert all(chunk["choices"] for chunk in chunks)
    assert chunks[-1]["usage"]["completion_tokens"] > 0 and "timings" in chunks[-1]


def test_tool_call_stream_equals_the_whole_answer(start: Start) -> None:
    api = start(ScriptedEngine(script=CALL))
    body = {**HELLO, "tools": TOOLS}
    whole = api.post(PATH, body).json["choices"][0]
    assert whole["finish_reason"] == "tool_calls" and whole["message"]["content"] == "On it."
    (call,) = whole["message"]["tool_calls"]
    *chunks, _ = api.post(PATH, {**body, "stream": True}).data
    fragments = [each for chunk in chunks for each in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert all(fragment["index"] == 0 for fragment in fragments)
    assert fragments[0]["function"] == {"name": "write_file", "arguments": ""}
    assert fragments[0]["id"].startswith("call_") and fragments[0]["type"] == "function"
    assert all("id" not in fragment and "name" not in fragment["function"] for fragment in fragments[1:])
    assert "".join(fragment["function"]["arguments"] for fragment in fragments) == call["function"]["arguments"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert joined(chunks, "content") == "On it."


def test_parallel_calls_off_stops_after_the_first(start: Start) -> None:
    api = start(ScriptedEngine(script=CALL + "\n" + CALL + "x" * 4000))
    choice = api.post(PATH, {**HELLO, "tools": TOOLS, "parallel_tool_calls": False}).json["choices"][0]
    assert len(choice["message"]["tool_calls"]) == 1 and choice["finish_reason"] == "tool_calls"
    both = api.post(PATH, {**HELLO, "tools": TOOLS}).json["choices"][0]["message"]
    assert [call["function"]["name"] for call in both["tool_calls"]] == ["write_file"] * 2
    assert len({call["id"] for call in both["tool_calls"]}) == 2


def test_history_of_calls_and_results_reaches_the_template(api: Api) -> None:
    """B072, with calls."""
    call = {"id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": '{"path": "a"}'}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "done"}]},
    ]
    assert api.post(PATH, {"messages": messages, "tools": TOOLS}).status == 200
    prompt = api.engine.prompts[0]
    assert "one\ntwo" in prompt and "<parameter=path>\na\n</parameter>" in prompt and "tool\ndone" in prompt


@pytest.mark.parametrize(
    ("choice", "written"),
    [("required", "<tool_call>\n<function="), ({"function": {"name": "write_file"}}, "<function=write_file>\n")],
)
def test_a_forced_call_is_begun_for_the_model(start: Start, choice: Any, written: Any) -> None:
    rest = "<parameter=path>\nb\n</parameter>\n</function>\n</tool_call>"
    name = "" if isinstance(choice, dict) else "write_file>\n"
    api = start(ScriptedEngine(script=name + rest))
    message = api.post(PATH, {**HELLO, "tools": TOOLS, "tool_choice": choice}).json["choices"][0]["message"]
    assert api.engine.prompts[0].endswith(written)
    assert message["tool_calls"][0]["function"] == {"name": "write_file", "arguments": '{"path": "b"}'}


def test_tool_choice_none_offers_no_tools(start: Start) -> None:
    api = start(ScriptedEngine(script=CALL))
    message = api.post(PATH, {**HELLO, "tools": TOOLS, "tool_choice": "none"}).json["choices"][0]["message"]
    assert message["content"] == CALL and "<tools>" not in api.engine.prompts[0]


def test_a_broken_call_never_leaks_and_the_answer_is_not_empty(start: Start) -> None:
    api = start(ScriptedEngine(script='<tool_call>\n{"name": "write_file", "arguments": {"path": nope}}\n</tool_call>'))
    choice = api.post(PATH, {**HELLO, "tools": TOOLS}).json["choices"][0]
    assert choice["finish_reason"] == "stop" and "tool_calls" not in choice["message"]
    assert "cannot be read" in choice["message"]["content"] and "<tool_call>" not in choice["message"]["content"]


def test_reasoning_is_split_out_in_both_forms(start: Start) -> None:
    engine = ScriptedEngine(script="I think.\n</think>\n\nAnswer.", reader=ScriptedReader(is_thinking_default=True))
    api = start(engine)
    body = api.post(PATH, HELLO).json
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Answer.",
        "reasoning_content": "I think.",
    }
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    *chunks, _ = api.post(PATH, {**HELLO, "stream": True}).data
    assert (joined(chunks, "reasoning_content"), joined(chunks, "content")) == ("I think.", "Answer.")


def test_thoughts_go_into_content_where_the_person_wants_it(start: Start) -> None:
    engine = ScriptedEngine(script="I think.\n</think>\n\nAnswer.", reader=ScriptedReader(is_thinking_default=True))
    api = start(engine, puts_thoughts_in_content=True)
    expected = "<think>\nI think.\n</think>\n\nAnswer."
    assert api.post(PATH, HELLO).json["choices"][0]["message"]["content"] == expected
    *chunks, _ = api.post(PATH, {**HELLO, "stream": True}).data
    assert joined(chunks, "content") == expected


@pytest.mark.parametrize(
    "switch",
    [
        {"enable_thinking": False},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"reasoning_effort": "none"},
        {"reasoning_effort": "minimal"},
        {"reasoning": {"effort": "none"}},
        {"think": False},
        {"thinking": {"type": "disabled"}},
    ],
)
def test_every_spelling_switches_thinking_off(start: Start, switch: Any) -> None:
    """B103; the other dialects: test_faults_of_others.py."""
    api = start(ScriptedEngine(reader=ScriptedReader(is_thinking_default=True)))
    api.post(PATH, {**HELLO, **switch})
    assert api.engine.prompts[0].endswith("<think>\n\n</think>\n\n")


def test_a_thinking_budget_closes_the_thoughts(start: Start) -> None:
    def script(prompt: str) -> str:
        return "Answer." if "Time to answer." in prompt else "hmm " * 500

    api = start(ScriptedEngine(script=script))
    body = {**HELLO, "thinking": {"type": "enabled", "budget_tokens": 20}}
    answer = api.post(PATH, body).json
    message = answer["choices"][0]["message"]
    assert message["content"] == "Answer." and message["reasoning_content"].startswith("hmm hmm")
    assert len(api.engine.jobs) == 2 and api.engine.jobs[0].max_tokens == 20
    assert answer["usage"]["completion_tokens"] == 22


def test_stop_strings_end_the_answer_and_are_not_part_of_it(api: Api) -> None:
    body = {**HELLO, "stop": ["zzz", "the"]}
    choice = api.post(PATH, body).json["choices"][0]
    assert choice["message"]["content"] == "Hello from " and choice["finish_reason"] == "stop"


def test_stop_strings_do_not_look_into_thoughts(start: Start) -> None:
    engine = ScriptedEngine(script="END? no.\n</think>\nok END more", reader=ScriptedReader(is_thinking_default=True))
    api = start(engine)
    *chunks, _ = api.post(PATH, {**HELLO, "stop": "END", "stream": True}).data
    assert joined(chunks, "reasoning_content") == "END? no." and joined(chunks, "content") == "ok "
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("value", [1, 2, 3])
@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_the_token_limit_is_exact(api: Api, key: Any, value: Any) -> None:
    body = api.post(PATH, {**HELLO, key: value}).json
    assert body["usage"]["completion_tokens"] == value and body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("value", [0, -1, None, 10**9])
def test_no_limit_means_the_room_left(api: Api, value: Any) -> None:
    assert api.post(PATH, {**HELLO, "max_tokens": value}).json["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("value", ["5", 1.5, True, [1], {}])
def test_a_limit_of_the_wrong_type_is_refused(api: Api, value: Any) -> None:
    answer = api.post(PATH, {**HELLO, "max_tokens": value})
    assert answer.status == 400 and answer.json["error"]["param"] == "max_tokens"
    assert not api.engine.jobs


@pytest.mark.parametrize(
    "body",
    [
        {}, {"messages": None}, {"messages": "x"}, {"messages": []}, {"messages": [None]},
        {"messages": [{"role": "x"}]},
        {"messages": [{"role": "user", "content": 3}]}, {"messages": [{"role": "user", "content": [3]}]},
        {"messages": [{"role": "assistant", "tool_calls": "x"}]},
    ],
)  # fmt: skip
def test_wrong_messages_are_refused_by_name(api: Api, body: Any) -> None:
    """B073; the other routes: test_faults_of_others.py."""
    answer = api.post(PATH, body)
    assert answer.status == 400 and answer.json["error"]["param"].startswith("messages")
    assert not api.engine.jobs


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"a": NaN}', b"\xff\xfe", b"[" * 5000, b'{"a":' * 900])
def test_bodies_that_are_no_json_object_are_refused(api: Api, body: Any) -> None:
    answer = api.call("POST", PATH, body)
    assert answer.status == 400 and answer.json["error"]["message"]


def test_system_messages_anywhere(start: Start) -> None:
    api = start()
    messages = [
        {"role": "system", "content": "A"},
        {"role": "developer", "content": "B"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "system", "content": "C"},
        {"role": "user", "content": "r"},
    ]
    assert api.post(PATH, {"messages": messages}).status == 200
    assert "system\nA\n\nB<|im_end|>" in api.engine.prompts[0]
    assert "user\n<system>\nC\n</system>\n\nr<|im_end|>" in api.engine.prompts[0]
    assert api.post(PATH, {"messages": messages[:1]}).status == 200
    assert api.post(PATH, {"messages": messages[:5]}).status == 200


def test_a_last_assistant_message_is_continued(api: Api) -> None:
    api.post(PATH, {"messages": [*HELLO["messages"], {"role": "assistant", "content": "The answer is"}]})
    assert api.engine.prompts[0].endswith("<|im_start|>assistant\nThe answer is")


def test_images_are_refused_in_the_last_turn_only(api: Api) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,x"}}
    refused = api.post(PATH, {"messages": [{"role": "user", "content": [image]}]})
    assert refused.status == 400 and refused.json["error"]["code"] == "unsupported_content"
    messages = [{"role": "user", "content": [image]}, {"role": "user", "content": "and?"}]
    assert api.post(PATH, {"messages": messages}).status == 200
    assert "[image omitted" in api.engine.prompts[0]


def test_overflow_has_the_code_and_both_numbers(start: Start) -> None:
    api = start(ScriptedEngine(pair=pair_info(context_tokens=256)))
    for stream in (False, True):
        answer = api.post(PATH, {"messages": [{"role": "user", "content": "x" * 5000}], "stream": stream})
        error = answer.json["error"]
        assert answer.status == 400 and error["code"] == "context_length_exceeded"
        assert "256 tokens" in error["message"] and "12" in error["message"]
    assert not api.engine.jobs


def test_n_above_one_is_refused(api: Api) -> None:
    answer = api.post(PATH, {**HELLO, "n": 2})
    assert answer.status == 400 and answer.json["error"]["code"] == "unsupported_value"


def test_sampling_reaches_the_engine(api: Api) -> None:
    body = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": 7, "frequency_penalty": 9}
    api.post(PATH, {**HELLO, **body})
    sampling = api.engine.jobs[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p, sampling.seed) == (
        0.5,
        0.9,
        40,
        0.1,
        7,
    )
    assert sampling.frequency_penalty == 2.0  # clamped


def test_json_answers_are_begun_cut_and_checked(start: Start) -> None:
    api = start(ScriptedEngine(script='"a": 1}\n```\nThat is it.' + "x" * 4000))
    body = api.post(PATH, {**HELLO, "response_format": {"type": "json_object"}}).json
    assert body["choices"][0]["message"]["content"] == '{"a": 1}'
    assert api.engine.prompts[0].endswith("{") and "JSON object" in api.engine.prompts[0]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    wish = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    *chunks, _ = api.post(PATH, {**HELLO, "response_format": wish, "stream": True}).data
    assert joined(chunks, "content") == '{"a": 1}'
    ended = [event for event in api.events if type(event).__name__ == "RequestEnded"]
    assert any("does not fit the schema" in note for note in ended[-1].notes)


def test_logprobs_of_the_chosen_tokens(api: Api) -> None:
    content = api.post(PATH, {**HELLO, "logprobs": True}).json["choices"][0]["logprobs"]["content"]
    assert "".join(bytes(each["bytes"]).decode() for each in content) == "Hello from the script."
    assert all(each["logprob"] == -0.25 for each in content)


def test_progress_and_heartbeats_during_a_long_prefill(start: Start) -> None:
    """Conformance 8, B106."""
    api = start(ScriptedEngine(pace=Pace(prefill_s=0.4, n_prefill_chunks=2)))
    answer = api.post(PATH, {**HELLO, "stream": True})
    assert answer.comments >= 3 and joined(answer.data[:-1], "content") == "Hello from the script."
    answer = api.post(PATH, {**HELLO, "stream": True, "return_progress": True})
    progress = [chunk["prompt_progress"] for chunk in answer.data[:-1] if "prompt_progress" in chunk]
    assert progress and {"total", "cache", "processed", "time_ms"} == set(progress[0])


def test_legacy_completions(api: Api) -> None:
    answer = api.post("/v1/completions", {"prompt": "Once <think>", "max_tokens": 3}).json
    assert answer["object"] == "text_completion" and answer["choices"][0]["text"] == "Hello from t"
    assert api.engine.prompts[0] == "Once <think>"
    *chunks, done = api.post("/v1/completions", {"prompt": [1, 2], "stream": True}).data
    assert done == "[DONE]" and "".join(chunk["choices"][0]["text"] for chunk in chunks) == "Hello from the script."
    assert api.post("/v1/completions", {"prompt": "a", "suffix": "b"}).status == 400
    assert api.post("/v1/completions", {"prompt": "a", "echo": True}).status == 400
    assert api.post("/v1/completions", {"prompt": ["a"], "echo": False}).status == 200
    assert api.post("/v1/completions", {"prompt": ""}).status == 400


def test_nothing_loaded_is_503(start: Start) -> None:
    api = start(is_loaded=False)
    answer = api.post(PATH, HELLO)
    assert answer.status == 503 and answer.json["error"]["code"] == "model_not_loaded"
    health = api.get("/health")
    assert (health.status, health.json) == (200, {"status": "no model loaded"})


def test_streamed_logprobs_come_with_their_text(api: Api) -> None:
    *chunks, _ = api.post(PATH, {**HELLO, "logprobs": True, "stream": True}).data
    told = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0].get("logprobs")]
    spelled = "".join(bytes(each["bytes"]).decode() for choice in told for each in choice["logprobs"]["content"])
    assert spelled == joined(chunks, "content") == "Hello from the script."


ODD_CALL = (
    "Sure.\n<tool_call>\n<function=write_file>\n<parameter=text>\nb\n</parameter>\n\n<parameter=path>\na\n</parameter>\n"
    "</function>\n</tool_call>"
)


@pytest.mark.parametrize("is_edited", [False, True])
def test_b107_the_next_prompt_holds_the_call_as_the_model_wrote_it(start: Start, is_edited: bool) -> None:
    api = start(ScriptedEngine(script=ODD_CALL, reader=ScriptedReader(has_thinking=False)))
    message = api.post(PATH, {**HELLO, "tools": TOOLS}).json["choices"][0]["message"]
    if is_edited:
        message["tool_calls"][0]["function"]["arguments"] = '{"text": "c", "path": "a"}'
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "done"}
    api.post(PATH, {"messages": [*HELLO["messages"], message, result], "tools": TOOLS})
    prompt = api.engine.prompts[1]
    assert (ODD_CALL in prompt) is not is_edited
    assert "tool\ndone" in prompt and prompt.count("<function=write_file>") == 1


def test_b107_holds_across_dialects(start: Start) -> None:
    api = start(ScriptedEngine(script=ODD_CALL))
    tool = {"name": "write_file", "input_schema": TOOLS[0]["function"]["parameters"]}
    body = {**HELLO, "max_tokens": 500, "tools": [tool]}
    content = api.post("/v1/messages", body).json["content"]
    result = {"type": "tool_result", "tool_use_id": content[1]["id"], "content": "done"}
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    api.post("/v1/messages", {**body, "messages": [*HELLO["messages"], *turns]})
    assert ODD_CALL in api.engine.prompts[-1]
    item = {"type": "function", **TOOLS[0]["function"]}
    output = api.post("/v1/responses", {"input": "Hi", "tools": [item]}).json["output"]
    done = {"type": "function_call_output", "call_id": output[1]["call_id"], "output": "done"}
    items = [{"role": "user", "content": "Hi"}, *output, done]
    api.post("/v1/responses", {"input": items, "tools": [item]})
    assert ODD_CALL in api.engine.prompts[-1]
