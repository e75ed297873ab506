"""Requests that name a model of this computer that is not loaded, and models that go when nobody uses them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.events import JobFailed, PairLoaded
from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.requests import LoadOptions, LoadPair
from dflash_desktop.server.shelf import Shelf
from support.api_server import Answer, Api, Start
from support.patience import LONG_S, until
from support.scripted_engine import Pace, ScriptedEngine, pair_info

HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
CHAT = "/v1/chat/completions"


def model_file(path: Path, name: str, *, role: Any = "target", quantization: str = "Q8_0") -> ModelFile:
    return ModelFile(
        path=path, role=role, can_run=True, reason="", architecture="llama", name=name, quantization=quantization,
        n_parameters=135_000_000, file_bytes=7, n_layers=1, n_embd=1, n_vocab=9, context_tokens=8192, block_size=0,
        mask_token=None, feature_layers=(),
    )  # fmt: skip


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """Two files of one name, one that is a draft, one that is no model."""
    for name in ("small-q8.gguf", "small-q4.gguf", "draft.gguf", "broken.gguf"):
        (tmp_path / name).write_bytes(b"content")

    def inspect(path: Path) -> ModelFile:
        if path.name == "broken.gguf":
            raise AppError("no model")
        if path.name == "draft.gguf":
            return model_file(path, "Small DFlash", role="draft")
        return model_file(path, "Small 135M", quantization="Q8_0" if "q8" in path.name else "Q4_0")

    drafts = [model_file(tmp_path / "draft.gguf", "Small DFlash", role="draft")]
    made = Shelf([tmp_path], inspect, lambda target: drafts)
    made.refresh()
    return made


def test_listings_of_every_dialect_name_what_can_be_loaded(start: Start, shelf: Shelf) -> None:
    api = start(shelf=shelf)
    ids = ["qwen3.5-27b", "small-135m-q4_0", "small-135m-q8_0"]
    assert [each["id"] for each in api.get("/v1/models").json["data"]] == ids
    states = [
        (each["id"], each["state"], "loaded_context_length" in each) for each in api.get("/api/v0/models").json["data"]
    ]
    assert states == [(ids[0], "loaded", True), (ids[1], "not-loaded", False), (ids[2], "not-loaded", False)]
    assert [len(each["loaded_instances"]) for each in api.get("/api/v1/models").json["models"]] == [1, 0, 0]
    assert [each["model"] for each in api.get("/api/tags").json["models"]] == [f"{each}:latest" for each in ids]
    assert len(api.get("/api/ps").json["models"]) == 1
    assert api.get("/v1/models/small-135m-q4_0").json["context_length"] == 8192
    assert api.get("/api/v0/models/small-135m-q4_0").json["state"] == "not-loaded"
    assert api.post("/api/show", {"model": "small-135m-q4_0"}).json["details"]["quantization_level"] == "Q4_0"
    told = api.get("/v1/models").body + api.get("/api/v1/models").body + api.get("/api/tags").body
    assert str(shelf.models()[0].target.parent).encode() not in told
    off = start(shelf=shelf, loads_on_demand=False)
    assert [each["id"] for each in off.get("/v1/models").json["data"]] == ids[:1]


def test_the_self_test_passes_beside_models_that_are_not_loaded(start: Start, shelf: Shelf) -> None:
    api = start(shelf=shelf)
    assert [line for line in api.server.self_test() if not line.passed] == []
    assert api.engine.loads == []


def test_a_request_that_names_another_model_loads_it_with_its_draft(start: Start, shelf: Shelf) -> None:
    engine = ScriptedEngine()
    engine.pair = pair_info(context_tokens=4096)
    api = start(engine, shelf=shelf)
    options = LoadOptions(device="CPU", kv_k="q8_0", kv_v="q4_0", n_threads=3, context_tokens=4096)
    assert api.server.models.last is not None
    object.__setattr__(api.server.models.last, "options", options)
    answer = api.post(CHAT, {**HELLO, "model": "small-135m-q8_0"})
    assert answer.status == 200 and answer.json["model"] == "small-q8"
    (load,) = engine.loads
    assert load.target.name == "small-q8.gguf" and load.draft is not None and load.draft.name == "draft.gguf"
    assert load.options == LoadOptions(device="CPU", kv_k="q8_0", kv_v="q4_0", n_threads=3, context_tokens=8192)
    assert api.post(CHAT, {**HELLO, "model": "small-135m-q8_0"}).status == 200 and engine.n_loads == 1
    assert api.post(CHAT, {**HELLO, "model": "claude-opus"}).json["model"] == "small-q8", (
        "any other name: what is loaded"
    )
    assert api.post("/v1/messages", {**HELLO, "model": "small-q4.gguf", "max_tokens": 5}).status == 200
    assert engine.n_loads == 2


def test_b097_eight_requests_at_once_are_one_load(start: Start, shelf: Shelf) -> None:
    api = start(ScriptedEngine(pace=Pace(load_s=0.3)), shelf=shelf)
    raw = json.dumps({**HELLO, "model": "small-135m-q8_0"}).encode()
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as first:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n"
        first.sendall(head.encode() + raw)
        until(lambda: api.engine.loads, "the load has begun")
    answers = at_once(api, 8, lambda: api.post(CHAT, {**HELLO, "model": "small-135m-q8_0"}))
    assert [answer.status for answer in answers] == [200] * 8 and api.engine.n_loads == 1


def test_requests_for_two_models_each_get_their_own(start: Start, shelf: Shelf) -> None:
    api = start(ScriptedEngine(pace=Pace(step_s=0.005)), shelf=shelf)
    names = ["small-135m-q8_0", "small-135m-q4_0"] * 3
    answers: dict[int, Answer] = {}

    def ask(i: int) -> None:
        answers[i] = api.post(CHAT, {**HELLO, "model": names[i]}, {"User-Agent": f"client-{i % 3}"})

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[i].status for i in range(6)] == [200] * 6
    assert [answers[i].json["model"] for i in range(6)] == ["small-q8", "small-q4"] * 3


def test_a_load_that_fails_says_why_and_brings_the_old_model_back(start: Start, shelf: Shelf) -> None:
    def fails(job: LoadPair) -> JobFailed | None:
        return JobFailed(0, "The file is damaged.", "bad_request") if "small" in job.target.name else None

    api = start(ScriptedEngine(load_failure=fails), shelf=shelf)
    answer = api.post(CHAT, {**HELLO, "model": "small-135m-q8_0"})
    assert answer.status == 503 and "The file is damaged." in answer.json["error"]["message"]
    assert api.post(CHAT, HELLO).json["model"] == "qwen3.5-27b"
    assert api.post("/v1/messages", {**HELLO, "model": "small-135m-q8_0", "max_tokens": 1}).status == 529


def test_a_context_that_does_not_fit_is_left_to_the_engine(start: Start, shelf: Shelf) -> None:
    def fails(job: LoadPair) -> JobFailed | None:
        return JobFailed(0, "No room.", "out_of_memory") if job.options.context_tokens == 8192 else None

    api = start(ScriptedEngine(load_failure=fails), shelf=shelf)
    assert api.post(CHAT, {**HELLO, "model": "small-135m-q8_0"}).status == 200
    assert [load.options.context_tokens for load in api.engine.loads] == [8192, 0]


def test_nobody_loads_where_the_person_forbids_it(start: Start, shelf: Shelf) -> None:
    for options in ({"can_clients_reload": False}, {"loads_on_demand": False}):
        api = start(shelf=shelf, has_any_model_name=False, **options)
        answer = api.post(CHAT, {**HELLO, "model": "small-135m-q8_0"})
        assert answer.status == 404 and answer.json["error"]["code"] == "model_not_found" and api.engine.n_loads == 0
    unknown = start(shelf=shelf, has_any_model_name=False).post(CHAT, {**HELLO, "model": "nothing-like-it"})
    assert unknown.status == 404 and "small-135m-q8_0" in unknown.json["error"]["message"]


def test_lm_studios_load_and_unload_are_real(start: Start, shelf: Shelf) -> None:
    api = start(shelf=shelf)
    loaded = api.post(
        "/api/v1/models/load", {"model": "small-135m-q4_0", "context_length": 2048, "echo_load_config": True}
    )
    assert loaded.json["load_config"]["context_length"] == 2048
    (load,) = api.engine.loads
    assert (load.target.name, load.options.context_tokens) == ("small-q4.gguf", 2048)
    name = api.get("/v1/models").json["data"][0]["id"]
    assert api.post("/api/v1/models/unload", {"instance_id": name}).json == {"instance_id": name}
    assert api.get("/status").json["status"] == "no_model"
    assert api.post(CHAT, HELLO).json["model"] == "small-q4", "the next request loads what was there"
    assert api.engine.loads[-1].options.context_tokens == 2048


def test_ollamas_empty_requests_load_and_unload(start: Start, shelf: Shelf) -> None:
    api = start(shelf=shelf)
    loaded = api.post("/api/chat", {"model": "small-135m-q8_0", "messages": []}).json
    assert loaded["done_reason"] == "load" and api.engine.n_loads == 1
    assert api.post("/api/generate", {"model": "small-q8", "keep_alive": 0}).json["done_reason"] == "unload"
    assert api.get("/api/ps").json == {"models": []}
    assert api.post("/api/chat", {"messages": [], "keep_alive": "soon"}).status == 400


@pytest.mark.parametrize("wish", [{"ttl": 0.2}, {}])
def test_an_idle_model_goes_and_comes_back(start: Start, shelf: Shelf, wish: dict[str, Any]) -> None:
    api = start(shelf=shelf, idle_unload_s=0.0 if wish else 0.2)
    assert api.post(CHAT, {**HELLO, **wish, "model": "small-135m-q8_0"}).status == 200
    until(lambda: api.get("/status").json["status"] == "no_model", "it is unloaded")
    assert api.post(CHAT, {**HELLO, "model": "anything", "ttl": 3600}).json["model"] == "small-q8"


def test_a_client_s_ttl_does_not_unload_what_the_person_loaded(start: Start) -> None:
    api = start()
    assert api.post(CHAT, {**HELLO, "ttl": 0.01}).status == 200
    time.sleep(0.1)  # the time in which a fault would show; nothing is waited for
    assert api.get("/status").json["status"] == "ready"


def test_a_client_that_leaves_while_its_model_waits_to_be_loaded_leaves_the_line(start: Start, shelf: Shelf) -> None:
    api = start(ScriptedEngine(script="x " * 2000, pace=Pace(step_s=0.2)), shelf=shelf)
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as running:
        running.sendall(request({**HELLO, "stream": True}))
        assert running.recv(100)
        with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as waiting:
            waiting.sendall(request({**HELLO, "model": "small-135m-q8_0"}))
            until(lambda: api.get("/status").json["waiting"] == 1, "it waits")
        until(lambda: api.get("/status").json["waiting"] == 0, "it left")
    assert api.engine.idle.wait(LONG_S) and api.engine.n_loads == 0


def test_a_prompt_is_read_anew_when_the_person_loads_another_model_meanwhile(start: Start) -> None:
    may_go_on = threading.Event()
    api = start(ScriptedEngine(script=lambda _: "x" if may_go_on.wait(LONG_S) else "never told to"))
    answers: list[Answer] = []
    running = threading.Thread(target=lambda: answers.append(api.post(CHAT, HELLO, {"User-Agent": "a"})))
    running.start()
    until(lambda: api.engine.prompts, "it runs")
    waiting = threading.Thread(target=lambda: answers.append(api.post(CHAT, HELLO, {"User-Agent": "b"})))
    waiting.start()
    until(lambda: api.get("/status").json["waiting"] == 1, "it waits")
    api.engine.submit(LoadPair(Path("other.gguf"), None, LoadOptions(), api.server.on_engine_event))
    may_go_on.set()
    running.join()
    waiting.join()
    assert [answer.json["model"] for answer in answers] == ["qwen3.5-27b", "other"]
    assert api.engine.jobs[-1].for_pair is api.engine.pair


def test_the_same_file_twice_is_one_model_and_new_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(b"x")
    (tmp_path / "link.gguf").symlink_to(tmp_path / "one.gguf")
    looked: list[Path] = []

    def inspect(path: Path) -> ModelFile:
        looked.append(path)
        return model_file(path, "One")

    shelf = Shelf([tmp_path], inspect, lambda target: [])
    assert [model.model_id for model in shelf.refresh()] == ["one"]
    (tmp_path / "two.gguf").write_bytes(b"y")
    assert [model.model_id for model in shelf.refresh()] == ["one-q8_0", "one-q8_0-2"]
    assert len(looked) == 2, "headers are read once"
    assert shelf.find("ONE-Q8_0-2:latest") is shelf.models()[1] and shelf.find("none") is None
    (tmp_path / "two.gguf").unlink()
    assert len(shelf.refresh()) == 1


def request(body: dict[str, Any]) -> bytes:
    raw = json.dumps(body).encode()
    return f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


def at_once(api: Api, n: int, call: Callable[[], Answer]) -> list[Answer]:
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(call())) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_the_first_load_event_of_a_pair_without_a_reader_is_no_crash(start: Start) -> None:
    api = start(is_loaded=False)
    api.server.on_engine_event(PairLoaded(1, api.engine.pair, 0.1))
    assert api.get("/v1/models").json["data"][0]["id"] == "qwen3.5-27b"
    assert api.post(CHAT, HELLO).status == 503
