"""What an hour of odd requests found: half characters, packed bodies, hostile schemas, models that are named twice."""

from __future__ import annotations

import gc
import gzip
import json
import socket
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.engine.inspect import ModelFile
from dflash_desktop.engine.marked import mark
from dflash_desktop.server.messages import arguments_mapping
from dflash_desktop.server.options import ServerOptions
from dflash_desktop.server.schema_check import misfit
from dflash_desktop.server.shelf import Shelf
from support.api_server import Api, Start
from support.patience import LONG_S, in_time
from support.scripted_engine import ScriptedEngine, pair_info

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"cut \ud83d here", "cut \ufffd here"),
        (rb"\ude00 first", "\ufffd first"),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"\uD83D\uDE00 whole", "😀 whole"),
        (rb"C:\\ud83d and \\\ud83d.", "C:\\ud83d and \\\ufffd."),
        (rb"\u00e9\n\u4e2d\"", 'é\n中"'),
        (rb"\ud83d\u0041", "\ufffdA"),
    ],
)
def test_half_an_emoji_in_a_text_does_not_refuse_the_conversation(api: Api, written: bytes, read: str) -> None:
    """JavaScript's JSON.stringify writes them when a tool's output was cut at a fixed length."""
    body = b'{"messages": [{"role": "user", "content": "' + written + b'"}]}'
    for path in (CHAT, "/v1/messages", "/api/chat"):
        answer = api.call("POST", path, body)
        assert answer.status == 200, answer.body
        assert f"user\n{read}<|im_end|>" in api.engine.prompts[-1]


@pytest.mark.parametrize("n_levels", [50, 490, 700, 900, 5000])
def test_arguments_nested_in_a_string_are_text_where_the_template_could_not_follow(n_levels: int) -> None:
    arguments = '{"a":' + "[" * n_levels + "]" * n_levels + "}"
    read = arguments_mapping(arguments)
    assert (read == {"_raw": arguments}) is (n_levels > 100)
    mark(read)  # what the engine does with it first


@pytest.mark.parametrize("broken", [rb"\ud83", rb"\u12", rb"\x", b"\\"])
def test_escapes_that_are_none_are_still_refused(api: Api, broken: bytes) -> None:
    answer = api.call("POST", CHAT, b'{"messages": [{"role": "user", "content": "' + broken + b'"}]}')
    assert answer.status == 400 and answer.json["error"]["code"] == "invalid_json"


def test_a_byte_order_mark_is_no_mistake(api: Api) -> None:
    assert api.call("POST", CHAT, b"\xef\xbb\xbf" + json.dumps(HELLO).encode()).status == 200


def test_a_packed_body_is_refused_in_words_that_help(api: Api) -> None:
    packed = gzip.compress(json.dumps(HELLO).encode())
    answer = api.call("POST", CHAT, packed, {"Content-Encoding": "gzip"})
    assert answer.status == 415 and "Content-Encoding" in answer.json["error"]["message"]
    assert api.post(CHAT, HELLO, {"Content-Encoding": "identity"}).status == 200
    assert len(api.engine.jobs) == 1


def schema_body(schema: Any) -> dict[str, Any]:
    return {**HELLO, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def test_a_schema_fetches_nothing(start: Start) -> None:
    """The checker's own way to follow a reference would call any address that a request names."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        api = start(ScriptedEngine(script='"a": 1}'))
        assert api.post(CHAT, schema_body({"type": "object", "properties": {"a": {"$ref": address}}})).status == 200
        assert "cannot be used" in misfit({"$ref": address}, "{}")
        with pytest.raises(TimeoutError):
            listener.accept()


DOUBLING = {
    "$defs": {"a0": {"type": "object"}, **{
        f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i - 1}"}, {"$ref": f"#/$defs/a{i - 1}"}]} for i in range(1, 40)}},
    "type": "object", "$ref": "#/$defs/a39",
}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (DOUBLING, "{}"),
        ({"$ref": "#"}, "{}"),
        ({"type": "string", "pattern": "^(a+)+$"}, json.dumps("a" * 60 + "b")),
        ({"type": "object", "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
         json.dumps({"a" * 60 + "b": 1})),
        ({"type": "object"}, '{"a": ' + "1" * 9000 + "}"),
        ({"type": 3}, "{}"),
        ({"$schema": "x", "type": "integer"}, "{}"),
    ],
)  # fmt: skip
@in_time(10)
def test_a_hostile_schema_holds_nothing_up(start: Start, schema: Any, text: str, within_s: float) -> None:
    started_s = time.monotonic()
    assert isinstance(misfit(schema, text), str)
    api = start(ScriptedEngine(script=text[1:]))
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(api.post(CHAT, schema_body(schema)).status))
    asking.start()
    while asking.is_alive():
        assert api.get("/health").status == 200
    asking.join()
    assert answers == [200] and time.monotonic() - started_s < within_s


def test_what_does_not_fit_is_still_told() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert misfit(schema, '{"a": "b"}') == ""
    assert "is not of type 'string'" in misfit(schema, '{"a": 1}')
    assert "required" in misfit(schema, "{}") and "Additional" in misfit(schema, '{"a": "b", "c": 1}')
    assert "'x' is not of type" in misfit({"$schema": "http://json-schema.org/draft-07/schema#", "type": "null"}, '"x"')


def shelf_of(folder: Path) -> Shelf:
    def inspect(path: Path) -> ModelFile:
        return ModelFile(
            path=path, role="target", can_run=True, reason="", architecture="llama", name=path.stem, quantization="Q8",
            n_parameters=1, file_bytes=7, n_layers=1, n_embd=1, n_vocab=9, context_tokens=8192, block_size=0,
            mask_token=None, feature_layers=(),
        )  # fmt: skip

    shelf = Shelf([folder], inspect, lambda target: [])
    shelf.refresh()
    return shelf


def test_the_loaded_model_is_listed_once_however_its_file_was_named(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first.gguf", "second.gguf"):
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / "models" / name).write_bytes(b"content")
    (tmp_path / "link.gguf").symlink_to(tmp_path / "models" / "first.gguf")
    monkeypatch.chdir(tmp_path)
    for target in (
        Path("models/first.gguf"),
        tmp_path / "link.gguf",
        tmp_path / "models" / ".." / "models" / "first.gguf",
    ):
        engine = ScriptedEngine(pair=pair_info())
        object.__setattr__(engine.pair, "target", target)
        object.__setattr__(engine.pair, "target_name", "The first")
        api = start(engine, shelf=shelf_of(tmp_path / "models"))
        assert [each["id"] for each in api.get("/v1/models").json["data"]] == ["the-first", "second"]
        assert [each["id"] for each in api.get("/api/v0/models").json["data"]] == ["the-first", "second"]


def test_only_the_named_model_is_unloaded(start: Start, tmp_path: Path) -> None:
    (tmp_path / "second.gguf").write_bytes(b"content")
    api = start(shelf=shelf_of(tmp_path))
    assert api.post("/api/generate", {"model": "second", "keep_alive": 0}).json["done_reason"] == "unload"
    refused = api.post("/api/v1/models/unload", {"instance_id": "second"})
    assert refused.status == 404 and refused.json["error"]["code"] == "model_not_found"
    assert api.get("/status").json["status"] == "ready"
    assert api.post("/api/generate", {"model": "qwen3.5-27b:latest", "keep_alive": 0}).json["done_reason"] == "unload"
    assert api.get("/status").json["status"] == "no_model"
    assert api.post("/api/generate", {"model": "qwen3.5-27b", "keep_alive": 0}).json["done_reason"] == "unload"
    assert api.post("/api/v1/models/unload", {"instance_id": "qwen3.5-27b"}).status == 404
    assert api.engine.n_loads == 0


def test_a_stop_closes_the_connections_that_came_at_the_last_moment(start: Start) -> None:
    """Those that were accepted but not yet given to a closed listener were left to the garbage collector."""
    api = start(ScriptedEngine(script="ok"))
    raw = json.dumps({**HELLO, "stream": True}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for turn in range(8):
            for _ in range(3):
                with socket.create_connection(("127.0.0.1", api.server.port), timeout=LONG_S) as sock:
                    sock.sendall(head + raw)
            time.sleep(0.0005 * (turn % 5))
            api.server.stop()
            gc.collect()
            assert api.server.start(ServerOptions(port=0))
    assert [str(each.message) for each in told if "unclosed" in str(each.message)] == []
