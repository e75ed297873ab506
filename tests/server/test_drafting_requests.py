"""Requests through the server with the draft at work, on the real engine: counts, thoughts, tools, the same words.

The shared pair's template knows no thoughts, so it gets one that does. The server lets the tuner choose how to draft,
which on a CPU is not at all: a lane in between asks for a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import Event, GenerationDone, PairLoaded
from dflash_desktop.engine.pflash.options import PflashOptions
from dflash_desktop.engine.requests import DraftMode, DraftOptions, Generate, Job, LoadOptions
from dflash_desktop.server.cards import CLOSING_THOUGHT
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.server import ApiServer
from native.oracles import model_files
from support.api_server import Api
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.real_engine import running_engine, try_load
from support.scripted_engine import ScriptedEngine

THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n"
    "{% if enable_thinking is defined and not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}"
)
CHAT = "/v1/chat/completions"
QUESTIONS = ("Explain photosynthesis in simple terms.", "Write a short story about a frog.", "List healthy meals.")


@dataclass
class DraftingLane:
    """The engine, with every reply drafted in one way; keeps the last word of each job."""

    engine: Engine
    mode: DraftMode = "tree"
    done: list[GenerationDone] = field(default_factory=list)

    def submit(self, job: Job) -> int:
        if not isinstance(job, Generate):
            return self.engine.submit(job)

        def hear(event: Event) -> None:
            if isinstance(event, GenerationDone):
                self.done.append(event)
            job.subscriber(event)

        return self.engine.submit(replace(job, draft=DraftOptions(mode=self.mode), subscriber=hear))

    def cancel(self, job_id: int) -> None:
        self.engine.cancel(job_id)


class DraftingApi(Api):
    lane: DraftingLane

    def ask(self, mode: DraftMode, **body: Any) -> tuple[Any, list[GenerationDone]]:
        """The answer, and the engine's word on each job that it took."""
        self.lane.mode = mode
        self.lane.done.clear()
        answer = self.post(CHAT, {"temperature": 0, **body})
        assert answer.status == 200, answer.body
        return (answer.data if body.get("stream") else answer.json), list(self.lane.done)


def with_template(folder: Path, template: str) -> Path:
    """A copy of the shared target with another template, filled up to the length of its own.

    In F32: products of quantised weights round differently for one row and for several, and near ties fall either way.
    """
    raw = model_files.copy(QWEN35_MINI, folder / "f32.gguf", dequantised=True).read_bytes()
    begin = raw.index(b"{% for message in messages %}")
    end = raw.index(b"{% endif %}", raw.index(b"add_generation_prompt", begin)) + len(b"{% endif %}")
    new = template.encode()
    new += b"{#" + b" " * (end - begin - len(new) - len(b"{##}")) + b"#}"
    copy = folder / "thinking.gguf"
    copy.write_bytes(raw[:begin] + new + raw[end:])
    assert copy.stat().st_size == len(raw)
    return copy


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, PairLoaded]]:
    target = with_template(tmp_path_factory.mktemp("thinking"), THINKING)
    with running_engine() as engine:
        loaded = try_load(engine, target, QWEN35_MINI_DRAFT, LoadOptions(context_tokens=4096, n_threads=1))
        assert isinstance(loaded, PairLoaded) and loaded.pair.has_thinking, loaded
        yield engine, loaded


@pytest.fixture
def api(pair: tuple[Engine, PairLoaded]) -> Iterator[DraftingApi]:
    engine, loaded = pair
    lane = DraftingLane(engine)
    events: list[Any] = []
    server = ApiServer(lane, events.append)
    assert server.start(ServerOptions(port=0, pflash=PflashOptions(scorer=QWEN35_MINI)))
    server.on_engine_event(loaded)
    api = DraftingApi(ScriptedEngine(), server, events)
    api.lane = lane
    yield api
    server.stop()


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def length_of(jobs: list[GenerationDone]) -> float:
    return sum(job.n_committed for job in jobs) / sum(job.n_steps for job in jobs)


@pytest.mark.parametrize("stream", [False, True])
def test_b026_usage_counts_the_tokens_that_were_delivered(api: DraftingApi, stream: bool) -> None:
    """Twenty replies with thoughts; limits and budgets end them, and the thoughts, anywhere inside a block."""
    for n in range(10):
        body: dict[str, Any] = {"messages": user(QUESTIONS[n % 3]), "max_tokens": 5 + 3 * n, "enable_thinking": True}
        if n % 2:
            body["thinking"] = {"type": "enabled", "budget_tokens": 3 + n}
        answer, jobs = api.ask("tree", **body, stream=stream)
        usage = answer[-2]["usage"] if stream else answer["usage"]
        assert usage["completion_tokens"] == sum(len(job.token_ids) for job in jobs) <= body["max_tokens"]
        assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] <= usage["completion_tokens"]
        assert sum(job.n_drafted for job in jobs) > 0


def test_b045_drafting_goes_on_after_a_closed_budget_and_changes_no_word(api: DraftingApi) -> None:
    body: dict[str, Any] = {"messages": user(QUESTIONS[1]), "max_tokens": 146}
    body["thinking"] = {"type": "enabled", "budget_tokens": 50}
    drafted, (thoughts, rest) = api.ask("tree", **body)
    plain, _ = api.ask("off", **body)
    assert drafted["choices"] == plain["choices"]
    message = drafted["choices"][0]["message"]
    assert message["reasoning_content"].endswith(CLOSING_THOUGHT.strip()) and message["content"]
    assert len(thoughts.token_ids) == 50
    # What the thoughts were closed with is in the cache of the second job, and most of the first one's is still there.
    assert rest.n_reused_tokens >= thoughts.n_prompt_tokens
    assert rest.n_drafted > 0 and length_of([rest]) > 0.6 * length_of([thoughts])


TOOLS = [
    {"type": "function", "function": {"name": f"tool_{i}", "description": "Does it.", "parameters": {
        "type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}}}
    for i in range(4)
]  # fmt: skip
SYSTEM = {"role": "system", "content": "You answer briefly and call tools where they help. " * 60}


@pytest.mark.parametrize("n_tools", [1, 2, 4])
def test_b043_tools_and_a_long_system_text_give_one_answer_however_it_is_made(api: DraftingApi, n_tools: int) -> None:
    """Streamed or whole, drafted or not. test_b063_b064 has the model that calls; test_compress.py that none is cut."""
    body: dict[str, Any] = {"messages": [SYSTEM, *user(QUESTIONS[0])], "max_tokens": 24, "tools": TOOLS[:n_tools]}
    body["enable_thinking"] = False
    said = []
    for mode in ("tree", "off"):
        whole, jobs = api.ask(mode, **body)
        assert (jobs[0].n_drafted > 0) is (mode == "tree")
        chunks, _ = api.ask(mode, **body, stream=True)
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
        said.append(whole["choices"][0]["message"].get("content"))
        said.append("".join(delta.get("content") or "" for delta in deltas))
    assert len(set(said)) == 1 and said[0]


def test_b043_a_forced_call_is_the_same_drafted_or_not(api: DraftingApi) -> None:
    body: dict[str, Any] = {"messages": user("Read a.txt"), "max_tokens": 80, "tools": TOOLS, "tool_choice": "required"}
    calls = []
    for mode in ("tree", "off"):
        whole, _ = api.ask(mode, **body)
        calls.append([call["function"] for call in whole["choices"][0]["message"].get("tool_calls", [])])
    assert calls[0] == calls[1]


# After these the small model, which never learned the tags, does not write one by itself.
CALM = (
    QUESTIONS[1],
    "Tell me a fairy tale about a frog who wanted to fly.",
    "Write a function for the n-th Fibonacci.",
)


def test_b070_without_thoughts_the_draft_agrees_as_well_as_with_them(api: DraftingApi) -> None:
    """A template that left the thinking part open would leave target and draft in different places."""
    lengths = {}
    for thinks in (True, False):
        jobs: list[GenerationDone] = []
        for question in CALM:
            body = {"messages": user(question), "max_tokens": 120, "enable_thinking": thinks}
            answer, done = api.ask("tree", **body)
            jobs += done
            message = answer["choices"][0]["message"]
            assert ("reasoning_content" in message) is thinks
            assert "<think>" not in message["content"] and "</think>" not in message["content"]
        lengths[thinks] = length_of(jobs)
    assert 0.7 * lengths[True] < lengths[False] < lengths[True] / 0.7, lengths
    assert lengths[False] > 1.3


def test_b046_a_shortened_prompt_is_drafted_for_like_any_other(api: DraftingApi) -> None:
    notes = "\n\n".join(f"Note {i}. The keeper of lighthouse {i} counted {7 * i} ships that night." for i in range(40))
    body: dict[str, Any] = {"messages": user(f"{notes}\n\nHow many ships at lighthouse 7?"), "max_tokens": 24}
    body["enable_thinking"] = False
    whole, (read_whole,) = api.ask("tree", **body)
    short, (read_short,) = api.ask("tree", **body, pflash={"mode": "always", "keep": 0.3, "threshold": 0})
    assert read_short.n_prompt_tokens < 0.6 * read_whole.n_prompt_tokens
    assert short["usage"]["pflash"] and "pflash" not in whole["usage"]
    assert read_short.n_drafted > 0 and read_whole.n_drafted > 0
