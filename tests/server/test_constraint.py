"""Answers held to a format: the grammars, which tokens they let through, and whole replies of real models."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.base.errors import AppError
from dflash_desktop.engine.engine import Engine
from dflash_desktop.engine.events import PairLoaded
from dflash_desktop.engine.requests import ChatPrompt, DraftMode, DraftOptions, Generate, LoadOptions, Sampling
from dflash_desktop.server.chat import ChatRequest, ResponseFormat, ToolChoice
from dflash_desktop.server.constraint import Grammar, GrammarRefused, Grammars
from dflash_desktop.server.grammar import Thoughts, reply_grammar, with_thoughts
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.real_engine import running_engine, try_load
from support.scripted_session import Listener

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "size": {"type": "integer", "minimum": -9999, "maximum": 9999},
        "kinds": {"type": "array", "maxItems": 2, "items": {"enum": ["port", "hill"]}},
    },
    "required": ["city", "size", "kinds"],
    "additionalProperties": False,
}
WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"enum": ["append", "replace"]},
        "line": {"type": "integer"},
        "deep": {"type": "object", "properties": {"a": {"type": "boolean"}}},
    },
    "required": ["path", "line"],
}


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {}}}


TOOLS = [tool("write_file", WRITE), tool("stop")]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def loaded(engine: Engine) -> PairLoaded:
    """The hybrid pair, one thread."""
    event = try_load(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, LoadOptions(context_tokens=1024, n_threads=1))
    assert isinstance(event, PairLoaded), event
    return event


@pytest.fixture(scope="module")
def grammars(loaded: PairLoaded) -> Grammars:
    assert loaded.reader is not None and loaded.pair.can_constrain
    return Grammars(loaded.reader.tokenizer, loaded.pair.stop_tokens)


class Held:
    """One grammar on the real vocabulary, asked with texts."""

    def __init__(self, grammars: Grammars, loaded: PairLoaded, grammar: str) -> None:
        assert loaded.reader is not None
        self.grammar: Grammar = grammars.compile(grammar)
        self._tokenizer = loaded.reader.tokenizer
        self._stop = loaded.pair.stop_tokens[0]

    def takes(self, text: str, *, ends: bool = True) -> bool:
        """Whether the reply may be `text`, whole and with its end, or be its beginning."""
        follow = self.grammar.follow()
        assert follow is not None
        ids = [*self._tokenizer.encode(text, parse_special=True), *([self._stop] if ends else [])]
        return follow.n_allowed(ids) == len(ids)


@pytest.fixture
def held(grammars: Grammars, loaded: PairLoaded) -> Any:
    def made(*, blocks: bool = True, thoughts: Thoughts = "none", **members: Any) -> Held:
        text = reply_grammar(ChatRequest("", **members), writes_blocks=blocks)
        assert text is not None
        return Held(grammars, loaded, text if thoughts == "none" else with_thoughts(text, thoughts))

    return made


def test_a_schema_lets_through_what_fits_it_and_nothing_else(held: Any) -> None:
    json_only = held(response_format=ResponseFormat("json_schema", SCHEMA))
    for good in (
        '{"city": "Rome", "size": 3, "kinds": []}',
        '{"city":"Münster","size":-3,"kinds":["port","hill"]}',
        '{"city": "a",\n  "size": 0,\n  "kinds": ["hill"]}',
        '{"city": "x\\n\\t", "size": 12, "kinds": []}',
    ):
        assert json_only.takes(good), good
        jsonschema.validate(json.loads(good), SCHEMA)
    for bad in (
        '{"city": "Rome"}',
        '{"city": "Rome", "size": "3", "kinds": []}',
        '{"city": "Rome", "size": 3, "kinds": ["sea"]}',
        '{"city": "Rome", "size": 3, "kinds": [], "more": 1}',
        '```json\n{"city": "Rome", "size": 3, "kinds": []}\n```',
        "Sure! {",
        '{"city": "Rome", "size": 3, "kinds": []} and more',
    ):
        assert not json_only.takes(bad), bad
    assert json_only.takes('{"city": "Ro', ends=False) and not json_only.takes('{"city": "Ro')


def test_any_object_is_what_json_object_asks_for(held: Any) -> None:
    anything = held(response_format=ResponseFormat("json_object"))
    assert anything.takes('{"a": [1, {"b": null}], "c": "資料"}') and anything.takes("{}")
    assert not anything.takes("[1]") and not anything.takes('"text"')


def test_a_forced_call_fits_the_declaration_in_both_syntaxes(held: Any) -> None:
    required = ToolChoice("required")
    blocks = held(tools=TOOLS, tool_choice=required)
    path = "<parameter=path>\n資料/a b.txt\nx < y\n</parameter>\n"
    line = "<parameter=line>\n7\n</parameter>\n"
    mode = "<parameter=mode>\nappend\n</parameter>\n"

    def block(*parts: str, name: str = "write_file") -> str:
        return f"<tool_call>\n<function={name}>\n{''.join(parts)}</function>\n</tool_call>"

    assert (
        blocks.takes(block(path, line)) and blocks.takes(block(path, mode, line)) and blocks.takes(block(name="stop"))
    )
    assert blocks.takes(block(path, line) + "\n" + block(name="stop"))
    for bad in (block(path), block(path, line.replace("7", "seven")), block(path, mode.replace("append", "x"), line)):
        assert not blocks.takes(bad), bad
    assert not blocks.takes(block(name="other")) and not blocks.takes("I will.")
    one = held(tools=TOOLS, tool_choice=ToolChoice("required", "write_file"), is_parallel=False)
    assert not one.takes(block(name="stop")) and not one.takes(block(path, line) + "\n" + block(path, line))
    hermes = held(blocks=False, tools=TOOLS, tool_choice=required)
    good = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "mode": "append", "line": 3}}\n</tool_call>'
    assert hermes.takes(good) and not hermes.takes(good.replace("3", '"3"')) and not hermes.takes(block(path, line))


def test_thoughts_come_first_and_are_free(held: Any) -> None:
    wanted = ResponseFormat("json_object")
    opened = held(thoughts="opened", response_format=wanted)
    assert opened.takes('I may say {anything}.\n</think>\n\n{"a": 1}')
    assert not opened.takes("Never closed") and not opened.takes("x</think>\nNo JSON.")
    may_open = held(thoughts="may_open", response_format=wanted)
    assert may_open.takes('{"a": 1}') and may_open.takes('<think>\nHm.\n</think>\n\n{"a": 1}')


def test_who_may_call_tools_may_do_that_instead_of_answering(held: Any) -> None:
    either = held(tools=TOOLS, response_format=ResponseFormat("json_object"))
    assert either.takes('{"a": 1}') and either.takes("<tool_call>\n<function=stop>\n</function>\n</tool_call>")
    assert not either.takes("Some text.")
    assert reply_grammar(ChatRequest("", tools=TOOLS), writes_blocks=True) is None, "auto: the model's own way"


@pytest.mark.parametrize(
    ("schema", "is_usable"),
    [
        ({"type": "object", "properties": {"a": {"not": {"type": "string"}}}}, True),  # left to the check afterwards
        ({"type": "array", "uniqueItems": True}, True),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}}}}, True),
        ({"type": "object", "x-guidance": {"whitespace_pattern": ".*"}}, True),
        ({"type": "strange"}, False),
        ({"$ref": "http://example.invalid/schema"}, False),
        ({"type": "string", "pattern": "("}, False),
        ({"type": 5}, False),
        ({"properties": []}, False),
    ],
)
def test_odd_schemas_are_used_or_refused_with_a_reason(grammars: Grammars, schema: Any, is_usable: bool) -> None:
    text = reply_grammar(ChatRequest("", response_format=ResponseFormat("json_schema", schema)), writes_blocks=True)
    assert text is not None
    if is_usable:
        assert grammars.compile(text).follow() is not None
    else:
        with pytest.raises(GrammarRefused, match=r"\w"):
            grammars.compile(text)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner) | st.dictionaries(st.text(), inner)


@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), nested, max_leaves=8))
@settings(max_examples=60, deadline=None)
def test_no_value_as_a_schema_escapes(value: Any) -> None:
    """Whatever a client sends: a grammar, or a reason."""
    schema = value if isinstance(value, dict) else {"properties": {"a": value}}
    text = reply_grammar(ChatRequest("", response_format=ResponseFormat("json_schema", schema)), writes_blocks=True)
    assert text is not None
    with contextlib.suppress(GrammarRefused):
        assert BYTES.compile(text).follow() is not None


class ByteVocabulary:
    n_vocab = 257
    control_ids = frozenset({256})

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def token_bytes(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""

    def token_text(self, token: int) -> str:
        return "<end>" if token == 256 else chr(token)


BYTES = Grammars(ByteVocabulary(), [256])


def test_the_end_is_allowed_where_the_format_is_complete_and_nothing_else_then() -> None:
    text = reply_grammar(
        ChatRequest("", response_format=ResponseFormat("json_schema", {"const": 5})), writes_blocks=True
    )
    assert text is not None
    follow = BYTES.compile(text).follow()
    assert follow is not None
    assert follow.n_allowed([256]) == 0 and follow.n_allowed([53, 256]) == 2 and follow.n_allowed([53, 53, 256]) == 1
    mask = follow.allowed_after([53])
    assert [token for token in range(8 * len(mask)) if mask[token // 8] >> token % 8 & 1] == [256]
    follow.commit([53, 256])
    with pytest.raises(AppError, match="left the format"):
        follow.commit([54])
    with pytest.raises(GrammarRefused):
        Grammars(ByteVocabulary(), [])


# ---- whole replies -------------------------------------------------------------------------------------------------


def said(engine: Engine, grammar: Grammar, *, mode: DraftMode, temperature: float, n: int = 60) -> tuple[str, Listener]:
    listener = Listener()
    prompt = ChatPrompt([{"role": "user", "content": "Tell me of a town, as JSON."}])
    job = Generate(
        prompt,
        listener,
        sampling=Sampling(temperature=temperature, seed=11),
        draft=DraftOptions(mode=mode),
        max_tokens=n,
        constraint=grammar.follow(),
    )
    engine.submit(job)
    done = listener.wait_for_end()
    return getattr(done, "text", str(done)), listener


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_reply_keeps_to_its_schema_and_the_draft_changes_nothing(
    engine: Engine, grammars: Grammars, temperature: float
) -> None:
    request = ChatRequest("", response_format=ResponseFormat("json_schema", SCHEMA))
    text = reply_grammar(request, writes_blocks=True)
    assert text is not None
    grammar = grammars.compile(text)
    plain, _ = said(engine, grammar, mode="off", temperature=temperature)
    jsonschema.validate(json.loads(plain), SCHEMA)
    for mode in ("chain", "tree"):
        drafted, listener = said(engine, grammar, mode=mode, temperature=temperature)
        assert drafted == plain, mode
        assert any(getattr(event, "n_drafted", 0) for event in listener.events)
