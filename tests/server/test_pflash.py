"""PFlash behind the server: every dialect, the real engine, a real small scorer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.binding.failures import OutOfMemory
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.pflash.scorer import ScorerSlot
from dflash_desktop.engine.requests import ChatPrompt, CompressPrompt, Generate, Job, LoadOptions, TokenPrompt
from dflash_desktop.server.errors import ApiError
from dflash_desktop.server.events import RequestEnded, RequestRendered
from dflash_desktop.server.options import Limits, ServerOptions
from dflash_desktop.server.pflash import PflashAsk, pflash_ask
from dflash_desktop.server.server import ApiServer
from support.api_server import Answer, Api
from support.fixtures import QWEN35_MINI
from support.patience import received, until
from support.real_engine import running_engine, try_load
from support.scripted_engine import ScriptedEngine

NEEDLE = "The secret code for the blue vault is 7391."
QUESTION = "What is the secret code for the blue vault?"
PARAGRAPHS = [
    f"In {1900 + i} the town council met {i % 7 + 1} times and spoke about roads and bread." for i in range(40)
]
PASTE = "\n\n".join([*PARAGRAPHS[:23], NEEDLE, *PARAGRAPHS[23:]])
ASKED = f"{PASTE}\n\n{QUESTION}"
TURNS: list[dict[str, Any]] = [{"role": "user", "content": ASKED}]
CHAT = "/v1/chat/completions"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}

DIALECTS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": TURNS, "max_tokens": 2},
    "/api/v0/chat/completions": {"messages": TURNS, "max_tokens": 2},
    "/v1/messages": {"messages": TURNS, "max_tokens": 2},
    "/v1/responses": {"input": ASKED, "max_output_tokens": 2},
    "/api/v1/chat": {"input": ASKED, "max_output_tokens": 2},
    "/api/chat": {"messages": TURNS, "stream": False, "options": {"num_predict": 2}},
    "/api/generate": {"prompt": ASKED, "stream": False, "options": {"num_predict": 2}},
}
PLAIN_TEXT: dict[str, dict[str, Any]] = {"/v1/completions": {"prompt": ASKED, "max_tokens": 2}}


class Lane:
    """The real lane, with what it was asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.jobs: list[Job] = []

    def submit(self, job: Job) -> int:
        self.jobs.append(job)
        return self._engine.submit(job)

    def cancel(self, job_id: int) -> None:
        self._engine.cancel(job_id)

    @property
    def prompts(self) -> list[tuple[int, ...]]:
        """Token ids of the replies that were asked for."""
        found = [job.prompt for job in self.jobs if isinstance(job, Generate)]
        return [prompt.token_ids for prompt in found if isinstance(prompt, TokenPrompt)]


class PflashApi(Api):
    """A server on the real engine."""

    lane: Lane


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def loaded(engine: Engine) -> PairLoaded:
    event = try_load(engine, QWEN35_MINI, None, LoadOptions(context_tokens=2048, n_threads=1))
    assert isinstance(event, PairLoaded), event
    return event


def always(**changes: Any) -> PflashOptions:
    return PflashOptions(**{"mode": "always", "scorer": QWEN35_MINI, "curve": "0.2", "keep_loaded": True, **changes})


@pytest.fixture
def start(engine: Engine, loaded: PairLoaded) -> Iterator[Any]:
    running: list[PflashApi] = []

    def started(pflash: PflashOptions | None = None, limits: Limits | None = None) -> PflashApi:
        events: list[Any] = []
        lane = Lane(engine)
        server = ApiServer(lane, events.append)
        server.on_engine_event(loaded)
        api = PflashApi(ScriptedEngine(), server, events)
        api.lane = lane
        running.append(api)
        assert server.start(ServerOptions(port=0, pflash=pflash or PflashOptions(), limits=limits or Limits()))
        return api

    yield started
    for api in running:
        api.server.stop()


def pflash_of(path: str, body: Any) -> Any:
    """The member `pflash` where the dialect has it; None when it is not there."""
    if path == "/api/v1/chat":
        return body["stats"].get("pflash")
    if path.startswith("/api/") and "v0" not in path:
        return body.get("pflash")
    return body["usage"].get("pflash")


def asked_tokens(path: str, body: Any) -> int:
    """How long the prompt was, in the words of the dialect."""
    if path == "/api/v1/chat":
        usage = body["stats"]
    else:
        usage = body if path.startswith("/api/") and "v0" not in path else body["usage"]
    names = ("prompt_tokens", "prompt_eval_count", "input_tokens", "cache_read_input_tokens")
    return sum(int(usage.get(name, 0)) for name in names)


def post(api: PflashApi, path: str, body: dict[str, Any], **more: Any) -> Answer:
    answer = api.post(path, {**body, **more})
    assert answer.status == 200, answer.body
    return answer


def ended(api: PflashApi) -> RequestEnded:
    return next(event for event in reversed(api.events) if isinstance(event, RequestEnded))


def test_switched_off_every_dialect_gives_the_engine_the_same_tokens_as_without_it(start: Any) -> None:
    without, switchable = start(), start(always())
    for path, body in {**DIALECTS, **PLAIN_TEXT}.items():
        whole = post(without, path, body).json
        for word in ("off", False, {"mode": "off"}):
            assert pflash_of(path, post(switchable, path, body, pflash=word).json) is None
        assert pflash_of(path, whole) is None
    assert not any(isinstance(job, CompressPrompt) for job in [*without.lane.jobs, *switchable.lane.jobs])
    assert without.lane.prompts == switchable.lane.prompts[::3] == switchable.lane.prompts[2::3]
    jobs = [job for job in without.lane.jobs if isinstance(job, Generate)]
    assert all(job.pflash == PflashOptions() for job in jobs)
    reader = without.server.models.require_reader()
    assert without.lane.prompts[0] == reader.render(ChatPrompt(TURNS)).token_ids
    rendered = [reader.detokenize(ids).decode() for ids in without.lane.prompts]
    assert len(rendered) == 8 and all(ASKED in text for text in rendered)


def test_every_dialect_shortens_and_says_what_it_did(start: Any) -> None:
    api = start(always())
    for path, body in DIALECTS.items():
        answer = post(api, path, body).json
        told = pflash_of(path, answer)
        assert told["applied"] and told["tokens_after"] < 0.4 * told["tokens_before"], (path, told)
        assert told["kept_ratio"] == pytest.approx(told["tokens_after"] / told["tokens_before"], abs=1e-3)
        assert told["kept_tokens"] <= 0.2 * told["droppable_tokens"]
        assert told["scorer"] == QWEN35_MINI.stem
        read = api.server.models.require_reader().detokenize(api.lane.prompts[-1]).decode()
        assert NEEDLE in read and QUESTION in read and PARAGRAPHS[2] not in read
        assert len(api.lane.prompts[-1]) == told["tokens_after"] == ended(api).n_prompt_tokens
        assert asked_tokens(path, answer) == told["tokens_before"], path  # clients watch their context by it
    schemas = api.get("/openapi.json").json["components"]["schemas"]
    for name in ("ChatBody", "MessagesBody", "ResponsesBody", "CompletionBody", "LmStudioChatBody", "OllamaBody"):
        assert {"enum": ["off", "auto", "always"]} in schemas[name]["properties"]["pflash"]["anyOf"]
    text = api.get("/metrics").body.decode()
    assert 'dflash_pflash_prompts_total{outcome="shortened"} 7' in text
    assert "dflash_pflash_tokens_before_total" in text and "dflash_pflash_seconds_total" in text


def test_streams_say_it_in_their_last_words(start: Any) -> None:
    api = start(always())
    chunk = post(api, CHAT, DIALECTS[CHAT], stream=True).data[-2]
    assert chunk["usage"]["pflash"]["applied"]
    delta = next(
        data
        for name, data in post(api, "/v1/messages", DIALECTS["/v1/messages"], stream=True).events
        if name == "message_delta"
    )
    assert delta["usage"]["pflash"]["applied"]
    done = next(
        data
        for name, data in post(api, "/v1/responses", DIALECTS["/v1/responses"], stream=True).events
        if name == "response.completed"
    )
    assert done["response"]["usage"]["pflash"]["applied"]
    last = post(api, "/api/chat", {**DIALECTS["/api/chat"], "stream": True}).body.decode().strip().split("\n")[-1]
    assert json.loads(last)["pflash"]["applied"]


def test_a_request_may_ask_for_it_by_share_or_by_options(start: Any) -> None:
    api = start(PflashOptions(scorer=QWEN35_MINI, keep_loaded=True))
    assert pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT]).json) is None
    small = pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT], pflash=0.1).json)
    assert small["applied"] and small["kept_tokens"] <= 0.1 * small["droppable_tokens"]
    wanted = {"mode": "auto", "threshold": 100_000}
    raw = pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT], pflash=wanted).json)
    assert not raw["applied"] and "from 100000 on" in raw["reason"]
    assert raw["tokens_before"] == raw["tokens_after"] and raw["kept_ratio"] == 1


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ("sometimes", "pflash"),
        (True, "pflash"),
        (0, "pflash"),
        (1.5, "pflash"),
        ([], "pflash"),
        ({"keep": "much"}, "pflash.keep"),
        ({"keep": []}, "pflash.keep"),
        ({"keep": ",".join(f"{i}:0.5" for i in range(1000))}, "pflash.keep"),
        ({"mode": 3}, "pflash.mode"),
        ({"threshold": -1}, "pflash.threshold"),
        ({"threshold": True}, "pflash.threshold"),
        ({"scorer": "/etc/passwd"}, "pflash"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name_in_every_dialect(start: Any, value: object, param: str) -> None:
    api = start(always())
    for path, body in {**DIALECTS, **PLAIN_TEXT}.items():
        answer = api.post(path, {**body, "pflash": value})
        assert answer.status == 400, (path, answer.body)
        if path.startswith("/v1/chat"):
            assert answer.json["error"]["param"] == param
    assert api.lane.jobs == []


def test_what_a_request_says_goes_over_what_the_server_does() -> None:
    default = PflashOptions("auto", QWEN35_MINI, "0.3", 500)
    assert PflashAsk(curve="0.1").over(default) == PflashOptions("auto", QWEN35_MINI, "0.1", 500)
    assert PflashAsk("off").over(default).mode == "off"
    assert PflashAsk(threshold_tokens=0).over(PflashOptions()).mode == "always"
    assert pflash_ask({"keep": "100:0.5,900:0.2", "threshold": 7}) == PflashAsk(None, "100:0.5,900:0.2", 7)
    with pytest.raises(ApiError, match="ascend"):
        pflash_ask({"keep": "900:0.5,100:0.2"})


def test_tools_and_their_results_always_go_in_whole_and_the_answer_says_why(start: Any) -> None:
    api = start(always())
    history = [
        *TURNS,
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
        {"role": "user", "content": "And?"},
    ]
    for more in ({"tools": [TOOL]}, {"tools": [TOOL], "tool_choice": "none"}, {"messages": history}):
        told = pflash_of(CHAT, post(api, CHAT, {**DIALECTS[CHAT], **more}).json)
        assert not told["applied"] and "tools" in told["reason"]
        assert ASKED in api.server.models.require_reader().detokenize(api.lane.prompts[-1]).decode()
    told = pflash_of("/v1/completions", post(api, "/v1/completions", PLAIN_TEXT["/v1/completions"]).json)
    assert "Only conversations" in told["reason"]
    assert 'outcome="whole"} 4' in api.get("/metrics").body.decode()


@pytest.mark.parametrize("keeps", [True, False])
def test_the_second_turn_of_a_shortened_chat_finds_the_first_in_the_cache(start: Any, keeps: bool) -> None:
    api = start(always(keep_loaded=keeps))
    first = post(api, CHAT, DIALECTS[CHAT]).json
    said = first["choices"][0]["message"]["content"]
    n_first = len(api.lane.prompts[-1])
    turns = [
        *TURNS,
        {"role": "assistant", "content": said},
        {"role": "user", "content": "Thank you. And the year 1905?"},
    ]
    second = post(api, CHAT, {"messages": turns, "max_tokens": 2}).json
    assert second["usage"]["pflash"]["applied"]
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] >= 0.9 * n_first > 0
    assert api.lane.prompts[-1][: n_first - 8] == api.lane.prompts[-2][: n_first - 8]
    timings, n_before = second["timings"], second["usage"]["pflash"]["tokens_before"]
    assert timings["cache_n"] + timings["prompt_n"] < 0.5 * n_before == 0.5 * second["usage"]["prompt_tokens"]


def test_a_prompt_that_is_too_long_may_fit_when_it_is_shortened(start: Any) -> None:
    api = start(always())
    long: dict[str, Any] = {
        "messages": [{"role": "user", "content": f"{PASTE}\n\n{PASTE.replace('19', '18')}\n\n{PASTE}\n\n{QUESTION}"}],
        "max_tokens": 2,
    }
    refused = api.post(CHAT, {**long, "pflash": "off"})
    assert refused.status == 400 and refused.json["error"]["code"] == "context_length_exceeded"
    assert api.post(CHAT, {**long, "tools": [TOOL]}).json["error"]["code"] == "context_length_exceeded"
    for ask in ({}, {"pflash": {"mode": "auto", "threshold": 10**6}}):
        told = pflash_of(CHAT, post(api, CHAT, {**long, **ask}).json)
        assert told["tokens_before"] > 2048 > told["tokens_after"]
    rules = {"role": "system", "content": "\n\n".join([PASTE] * 3)}
    still = api.post(CHAT, {**DIALECTS[CHAT], "messages": [rules, *TURNS]})
    assert still.status == 400 and still.json["error"]["code"] == "context_length_exceeded"
    asked = {"input": long["messages"][0]["content"], "instructions": rules["content"], "stream": True}
    assert api.post("/v1/responses", asked).events[-1][1]["response"]["error"]["code"] == "context_length_exceeded"


def test_a_scorer_that_cannot_work_costs_no_answer(start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(QWEN35_MINI.read_bytes()[:5000])
    api = start(always(scorer=broken))
    told = pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT]).json)
    assert not told["applied"] and "goes in whole" in told["reason"] and "broken.gguf" in told["reason"]
    facts = ended(api).pflash
    assert facts is not None and facts.has_failed and ended(api).outcome == "length"
    no_scorer = start(always(scorer=None))
    assert pflash_of(CHAT, post(no_scorer, CHAT, DIALECTS[CHAT]).json)["reason"] == "No scorer is chosen."

    def full(*_: object) -> Any:
        raise OutOfMemory("the scorer needs 9.0 GiB, 1.0 GiB are free")

    monkeypatch.setattr(ScorerSlot, "_load", full)
    api = start(always(scorer=broken, keep_loaded=False))
    reason = pflash_of("/v1/messages", post(api, "/v1/messages", DIALECTS["/v1/messages"]).json)["reason"]
    assert "9.0 GiB" in reason
    assert 'outcome="failed"} 1' in api.get("/metrics").body.decode()

    def wrong(*_: object) -> Any:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(ScorerSlot, "_load", wrong)
    answer = post(api, CHAT, DIALECTS[CHAT]).json
    assert 'outcome="failed"} 2' in api.get("/metrics").body.decode()
    assert "a bug of ours" in answer["usage"]["pflash"]["reason"] and answer["usage"]["completion_tokens"] == 2


def test_the_inspector_shows_what_the_model_read_and_what_was_left_out(start: Any) -> None:
    api = start(always())
    post(api, CHAT, DIALECTS[CHAT])
    whole, short = [event for event in api.events if isinstance(event, RequestRendered)]
    assert PARAGRAPHS[2] in whole.prompt_text and PARAGRAPHS[2] not in short.prompt_text
    facts = ended(api).pflash
    assert facts is not None and facts.is_shortened
    assert (facts.n_before_tokens, facts.n_after_tokens) == (whole.n_prompt_tokens, short.n_prompt_tokens)
    props = api.get("/props").json["pflash"]
    assert props == {
        "mode": "always",
        "keep": "0.2",
        "threshold": 16384,
        "scorer": QWEN35_MINI.stem,
        "device": None,
        "residency": "keep",
    }


def test_the_switch_counts_at_once(start: Any) -> None:
    api = start()
    assert pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT]).json) is None
    api.server.use_pflash(always())
    assert pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT]).json)["applied"]
    assert api.get("/props").json["pflash"]["mode"] == "always"
    api.server.use_pflash(PflashOptions())
    assert pflash_of(CHAT, post(api, CHAT, DIALECTS[CHAT]).json) is None


def test_a_system_message_in_the_middle_stays_whole(start: Any) -> None:
    api = start(always())
    rules = "\n\n".join(f"Rule {i}: never speak about the bread of year {i}." for i in range(60))
    turns = [*TURNS, {"role": "assistant", "content": "7391."}, {"role": "system", "content": rules}]
    told = pflash_of(
        CHAT, post(api, CHAT, {"messages": [*turns, {"role": "user", "content": "Say why."}], "max_tokens": 2}).json
    )
    assert told["applied"]
    assert rules in api.server.models.require_reader().detokenize(api.lane.prompts[-1]).decode()


def test_a_client_hears_that_the_scorer_works_and_may_leave(start: Any) -> None:
    beating = Limits(first_beat_s=0.01, beat_s=0.01)
    api = start(always(keep_loaded=False), beating)
    answer = post(api, CHAT, DIALECTS[CHAT], stream=True)
    assert answer.comments > 0
    body = json.dumps(
        {**DIALECTS[CHAT], "stream": True, "messages": [{"role": "user", "content": f"Now: {ASKED * 6}"}]}
    )
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    n_before = len(api.lane.prompts)
    with socket.create_connection(("127.0.0.1", api.server.port)) as sock:
        sock.sendall((head + body).encode())
        heard = b""
        while b": keep-alive" not in heard:
            heard += received(sock)
    until(lambda: isinstance(api.events[-1], RequestEnded), "the request is over")
    assert ended(api).outcome == "cancelled" and len(api.lane.prompts) == n_before
    assert post(api, CHAT, DIALECTS[CHAT]).json["usage"]["pflash"]["applied"]
