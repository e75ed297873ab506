"""What clients' own libraries send and read beyond the plain cases: references, formats, documents, old forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dflash_desktop.engine.template import MAX_PROMPT_CHARS
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.inspector import exact
from dflash_desktop.server.options import Limits
from dflash_desktop.server.stored import Stored
from support.api_server import Answer, Api, Start
from support.scripted_engine import ScriptedEngine

HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
CITY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


# ---- Responses: what a client may come back to ------------------------------------------------------------------


def test_a_response_is_kept_unless_the_client_says_no(api: Api) -> None:
    """As at the original service: its library's own example names no `store`."""
    first = api.post(RESPONSES, {"input": "My name is Ada."}).json
    assert first["store"] is True
    assert api.post(RESPONSES, {"input": "Who am I?", "previous_response_id": first["id"]}).status == 200
    assert "Ada" in api.engine.prompts[-1]
    private = api.post(RESPONSES, {"input": "A secret.", "store": False}).json
    assert private["store"] is False and api.get(f"{RESPONSES}/{private['id']}").status == 404


@pytest.mark.parametrize("stream", [False, True])
def test_items_that_are_only_referred_to_are_in_the_prompt(start: Start, stream: bool) -> None:
    """The AI SDK sends the ids of earlier items in place of the items: its history is lost where nobody knows them."""
    tool = {"type": "function", "name": "weather", "parameters": PARAMETERS}
    api = start(ScriptedEngine(script=f"I will look.\n{CALL}"))
    answer = api.post(RESPONSES, {"input": "Rain?", "tools": [tool], "stream": stream})
    output = (answer.data[-1]["response"] if stream else answer.json)["output"]
    items = [{"type": "item_reference", "id": output[0]["id"]}, {"id": output[1]["id"]}]
    result = {"type": "function_call_output", "call_id": output[1]["call_id"], "output": "It rains."}
    api.post(RESPONSES, {"input": [{"role": "user", "content": "Rain?"}, *items, result], "tools": [tool]})
    prompt = api.engine.prompts[-1]
    assert (
        prompt.index("I will look.") < prompt.index("weather", prompt.index("I will look.")) < prompt.index("It rains")
    )
    unknown = [{"role": "user", "content": "Rain?"}, {"type": "item_reference", "id": "msg_of_somebody"}]
    assert api.post(RESPONSES, {"input": unknown}).status == 200


@pytest.mark.parametrize(("member", "value"), [("conversation", "conv_1"), ("prompt", {"id": "pmpt_1"})])
def test_what_is_kept_elsewhere_is_not_answered_without_it(api: Api, member: str, value: object) -> None:
    refused = api.post(RESPONSES, {"input": "Go on.", member: value})
    assert refused.status == 400 and refused.json["error"]["param"] == member
    assert not api.engine.jobs


def test_a_finished_response_cannot_be_cancelled_and_says_why(api: Api) -> None:
    first = api.post(RESPONSES, {"input": "x"}).json
    assert api.post(f"{RESPONSES}/{first['id']}/cancel", {}).status == 400
    assert api.post(f"{RESPONSES}/resp_none/cancel", {}).status == 404


def test_what_is_kept_is_bounded_in_number_and_in_bytes() -> None:
    kept: Stored[str] = Stored(n_most=3, most_bytes=100)
    for name in "abcd":
        kept.keep(name, name.upper(), 10)
    assert kept.values() == ["D", "C", "B"]
    kept.keep("large", "L", 85)
    assert kept.values() == ["L", "D"]
    kept.drop("large")
    kept.keep("huge", "H", 101)
    assert kept.values() == []
    kept.keep("e", "E", 100)
    assert kept.find("e") == "E"
    with pytest.raises(ApiError):
        kept.find("huge")


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_was_cut_is_in_no_finished_response(start: Start, stream: bool) -> None:
    """The official library reads the arguments of what it finds there as JSON, and fails."""
    tool = {"type": "function", "name": "weather", "parameters": PARAMETERS}
    api = start(ScriptedEngine(script=CALL))
    body = {"input": "Rain?", "tools": [tool], "max_output_tokens": 12, "stream": stream}
    answer = api.post(RESPONSES, body)
    response = answer.data[-1]["response"] if stream else answer.json
    assert response["status"] == "incomplete" and response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in response["output"]] == ["message"]
    if stream:
        ended = [data["item"] for name, data in answer.events if name == "response.output_item.done"]
        assert [(item["type"], item["status"]) for item in ended] == [
            ("function_call", "incomplete"), ("message", "completed")
        ]  # fmt: skip


# ---- Chat Completions: old forms, loose forms -----------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_who_asks_with_functions_is_answered_with_a_function_call(start: Start, stream: bool) -> None:
    api = start(ScriptedEngine(script=f"{CALL}\n{CALL}"))
    body = {**HELLO, "functions": [{"name": "weather", "parameters": PARAMETERS}], "stream": stream}
    answer = api.post(CHAT, body)
    if stream:
        choices = [chunk["choices"][0] for chunk in answer.data[:-1] if chunk["choices"]]
        parts = [choice["delta"]["function_call"] for choice in choices if "function_call" in choice["delta"]]
        call = {"name": parts[0]["name"], "arguments": "".join(part["arguments"] for part in parts)}
        reason = choices[-1]["finish_reason"]
        assert not any("tool_calls" in choice["delta"] for choice in choices)
    else:
        message, reason = answer.json["choices"][0]["message"], answer.json["choices"][0]["finish_reason"]
        call = message["function_call"]
        assert "tool_calls" not in message
    assert (call["name"], json.loads(call["arguments"]), reason) == ("weather", {"city": "Paris"}, "function_call")


def test_a_flat_tool_is_a_tool_and_one_without_its_function_is_named(start: Start) -> None:
    api = start(ScriptedEngine(script=CALL))
    flat = {"type": "function", "name": "weather", "parameters": PARAMETERS}
    assert api.post(CHAT, {**HELLO, "tools": [flat]}).json["choices"][0]["finish_reason"] == "tool_calls"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"functions": [None]}, "functions[0]"),
        ({"functions": [{}]}, "functions[0].name"),
    ]
    for body, param in wrong:
        refused = api.post(CHAT, HELLO | body)
        assert (refused.status, refused.json["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {**HELLO, "max_tokens": 3.0, "seed": 7.0, "top_k": 40.0}),
        (RESPONSES, {"input": "Hi", "max_output_tokens": 3.0}),
        (MESSAGES, {**HELLO, "max_tokens": 3.0}),
        ("/api/chat", {**HELLO, "stream": False, "options": {"num_predict": 3.0, "seed": 7.0}}),
    ],
)
def test_whole_numbers_may_be_written_with_a_point(api: Api, path: str, body: Any) -> None:
    assert api.post(path, body).status == 200
    assert api.engine.jobs[0].max_tokens == 3


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("max_tokens", "5", "max_tokens: Expected a whole number or null, got a text."),
        ("stream", 1, "stream: Expected true or false or null, got a whole number."),
        ("stop", {"a": 1}, "stop: Expected a text or a list or null, got an object."),
    ],
)
def test_a_wrong_type_is_told_in_words(api: Api, member: str, value: object, said: str) -> None:
    assert api.post(CHAT, {**HELLO, member: value}).json["error"]["message"] == said


# ---- Anthropic Messages: formats and documents ----------------------------------------------------------------


@pytest.mark.parametrize("member", ["output_config", "output_format"])
def test_messages_answer_by_a_schema(start: Start, member: str) -> None:
    """What `messages.parse` of the official library sends, now and in its first form."""
    api = start(ScriptedEngine(script='"name": "Oslo"} and more'))
    wanted = {"type": "json_schema", "schema": CITY}
    answer = api.post(
        MESSAGES, {**HELLO, "max_tokens": 50, member: {"format": wanted} if "config" in member else wanted}
    )
    assert json.loads(answer.json["content"][0]["text"]) == {"name": "Oslo"}
    refused = api.post(MESSAGES, {**HELLO, "max_tokens": 50, "output_config": {"format": {"type": "yaml"}}})
    assert refused.status == 400 and "output_config.format" in refused.json["error"]["message"]


def test_an_effort_sets_how_long_the_thoughts_of_a_message_may_be(start: Start) -> None:
    api = start(ScriptedEngine(script="Hm.\n</think>\n\nYes."))
    body = {**HELLO, "max_tokens": 4000, "thinking": {"type": "adaptive"}}
    limits = []
    for effort in ("low", "high"):
        api.post(MESSAGES, {**body, "output_config": {"effort": effort}})
        limits.append(api.engine.jobs[-1].max_tokens)
    assert limits[0] < limits[1] < 4000


def test_the_text_of_documents_and_search_results_is_read(api: Api) -> None:
    blocks = [
        {"type": "document", "title": "Codes", "source": {"type": "text", "media_type": "text/plain", "data": "4711"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "blue door"}]}},
        {"type": "search_result", "source": "https://example.org", "title": "Keys",
         "content": [{"type": "text", "text": "under the mat"}]},
        {"type": "text", "text": "What is the code?"},
    ]  # fmt: skip
    assert api.post(MESSAGES, {"max_tokens": 5, "messages": [{"role": "user", "content": blocks}]}).status == 200
    for text in ("Codes\n4711", "blue door", "Keys", "https://example.org", "under the mat"):
        assert text in api.engine.prompts[0]


@pytest.mark.parametrize(
    ("path", "block"),
    [
        (MESSAGES, {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}}),
        (CHAT, {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}}),
    ],
)
def test_a_file_that_cannot_be_read_is_not_answered_as_if_it_had_been(api: Api, path: str, block: Any) -> None:
    question = {"type": "text", "text": "What does it say?"}
    refused = api.post(path, {"max_tokens": 5, "messages": [{"role": "user", "content": [block, question]}]})
    assert refused.status == 400 and "file" in refused.json["error"]["message"]
    turns = [{"role": "user", "content": [block, question]}, {"role": "assistant", "content": "A."}]
    assert api.post(path, {"max_tokens": 5, "messages": [*turns, {"role": "user", "content": "Why?"}]}).status == 200
    assert "[file omitted" in api.engine.prompts[0]


@pytest.mark.parametrize(
    ("path", "member", "said"),
    [(CHAT, "messages", "more than 4096 input tokens (context length exceeded)"),
     (MESSAGES, "messages", "prompt is too long: more than 4096 tokens > 4096 maximum"),
     (RESPONSES, "input", "more than 4096 input tokens (context length exceeded)")],
)  # fmt: skip
def test_a_prompt_that_no_template_takes_is_one_that_is_too_long(
    start: Start, path: str, member: str, said: str
) -> None:
    """Agents shorten their history where they are told this, and give up where they are told anything else."""
    api = start(limits=Limits())
    long = [{"role": "user", "content": "word " * (MAX_PROMPT_CHARS // 5 + 1)}]
    refused = api.post(path, {"max_tokens": 5, member: long})
    assert refused.status == 400 and said in refused.json["error"]["message"]
    assert path == MESSAGES or refused.json["error"]["code"] == "context_length_exceeded"


# ---- figures, in every dialect --------------------------------------------------------------------------------


def test_every_dialect_tells_times_and_acceptance(api: Api) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        (CHAT, HELLO), (RESPONSES, {"input": "Hi"}), (MESSAGES, {**HELLO, "max_tokens": 50}),
        ("/v1/completions", {"prompt": "Hi"}), ("/api/v1/chat", {"input": "Hi"}), ("/api/v0/chat/completions", HELLO),
        ("/api/chat", HELLO), ("/api/generate", {"prompt": "Hi"}),
    ]  # fmt: skip
    for path, body in asked:
        for stream in (False, True):
            told = _last_timings(api.post(path, {**body, "stream": stream}))
            assert {"predicted_n", "prompt_n", "acceptance_length", "drafted", "accepted"} <= set(told), path


def _last_timings(answer: Answer) -> dict[str, Any]:
    kind = answer.headers["content-type"]
    if kind == "application/json":
        told = [answer.json]
    elif kind == "application/x-ndjson":
        told = [json.loads(line) for line in answer.body.splitlines()]
    else:
        told = [each.get("response") or each.get("result") or each for each in answer.data if isinstance(each, dict)]
    return next(each["timings"] for each in reversed(told) if "timings" in each)


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_ollamas_log_probabilities(api: Api, path: str) -> None:
    body: dict[str, Any] = {**HELLO, "prompt": "Hi", "logprobs": True, "top_logprobs": 2}
    whole = api.post(path, {**body, "stream": False}).json["logprobs"]
    lines = [json.loads(line) for line in api.post(path, body).body.splitlines()]
    assert "".join(each["token"] for each in whole) == "Hello from the script."
    assert [each for line in lines for each in line.get("logprobs", ())] == whole
    assert len(whole[0]["top_logprobs"]) == 2
    assert api.post(path, {**body, "logprobs": False}).status == 400


def test_metrics_count_past_a_million() -> None:
    assert (exact(1_234_567), exact(0.25), exact(12_345_678.5)) == ("1234567", "0.250000", "12345678.500000")


def test_a_key_of_any_letters_works(start: Start) -> None:
    api = start(access_token="Schlüssel-钥匙")
    good = "Bearer Schlüssel-钥匙".encode().decode("latin-1")  # the bytes that curl sends
    assert api.post(CHAT, HELLO, {"Authorization": good}).status == 200
    assert api.post(CHAT, HELLO, {"Authorization": good[:-1]}).status == 401
