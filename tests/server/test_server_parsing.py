"""Thoughts and tool calls: goldens for each form, and the same result for every way of cutting the text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.server.parsing.json_scan import JsonScanner
from dflash_desktop.server.parsing.reasoning import opens_thinking
from dflash_desktop.server.parsing.reply import ReplyParser
from dflash_desktop.server.parsing.schemas import ToolSchemas, value_json
from dflash_desktop.server.pieces import Reply


def tool(name: str, **properties: object) -> dict[str, object]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = ToolSchemas(
    [
        tool("write_file", path={"type": "string"}, text={"type": "string"}),
        tool("add", a={"type": "integer"}, b={"type": ["null", "number"]}, exact={"type": "boolean"}),
        tool("edit", edits={"type": "array"}, options={"anyOf": [{"type": "null"}, {"type": "object"}]}, any={}),
        {"type": "function", "function": {"name": "now"}},
    ]
)

WRITE = (
    "I will write.\n<tool_call>\n<function=write_file>\n<parameter=path>\n资料/résumé 😀.txt\n</parameter>\n"
    '<parameter=text>\nif a < b && c > "d": <b>\n</parameter>\n</function>\n</tool_call>'
)
HERMES = (
    'Two.\n<tool_call>\n{"name": "write_file", "arguments": {"path": "C:\\\\new\\\\table \\"x\\" \\u00e9", '
    '"text": "Münster"}}\n</tool_call>\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
)
HTML = (
    "<tool_call>\n<function=write_file>\n<parameter=path>\na.xml\n</parameter>\n<parameter=text>\n"
    "<parameter=x>\n1\n</parameter> and\n</function> stay\n\n</parameter>\n</function>\n</tool_call>"
)
SCRIPTS = {
    "plain text": "Hello, world.\n\nBye. ",
    "thoughts": "<think>\nhm\n</think>\n\nanswer",
    "block": WRITE,
    "json": HERMES,
    "tags inside a value": HTML,
    "bare block": "I do.\n<function=now>\n</function>\nDone",
    "prose": "Say use <function=a> to, or <tool_call> or `<tool_call>{`, but\n<function=now> is a name.",
    "code": '```xml\n<tool_call>\n{"name": "now"}\n</tool_call>\n```\nThat was code.',
    "bare json": '{"name": "now", "arguments": {}}',
    "fenced json": '```json\n{"name": "add", "arguments": {"a": 1}}\n```',
    "json list": '[{"name": "now", "arguments": {}}, {"name": "add", "arguments": {"a": 2}}]',
    "not a call": '{"name": "Ada", "arguments": "none"}',
    "cut call": "On it.\n<tool_call>\n<function=write_file>\n<parameter=path>\na",
    "broken json": 'x <tool_call>{"name": "now", "arguments": {"a": nope}}</tool_call> y',
    "no name": '<tool_call>{"arguments": {}}</tool_call>',
    "several in one": '<tool_call>\n{"name": "now", "arguments": {}}\n{"name": "now"}\n</tool_call>',
    "late name": '<tool_call>{"arguments": {"a": 1}, "name": "add"}</tool_call>',
    "text arguments": '<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>',
    "brace too many": '<tool_call>\n{"name": "now", "arguments": {}}}\n</tool_call>',
    "forgotten end": "<tool_call>\n<function=now>\n</tool_call>",
    "forgotten parameter end": "<tool_call>\n<function=write_file>\n<parameter=path>\nx\n</function>\n</tool_call>",
    "types": (
        "<tool_call>\n<function=add>\n<parameter=a>\n5.0\n</parameter>\n<parameter=b>\nNone\n</parameter>\n"
        "<parameter=exact>\nTrue\n</parameter>\n<parameter=a>\n7\n</parameter>\n</function>\n</tool_call>"
    ),
    "cut end": 'Go.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_c',
    "cut end of a block": "<tool_call>\n<function=now>\n</function>\n</",
    "two ends": "<tool_call>\n<function=now>\n</function>\n</tool_call>\n</tool_call>\nDone",
    "cut beginning": "Go.\n<tool_ca",
    "half tags": "a < b </ c <to <tool_cal <function <think> </think> <func",
}


def parse(parts: Sequence[str], *, starts_in_thoughts: bool = False, tools: ToolSchemas = TOOLS) -> Reply:
    numbers = itertools.count()
    parser = ReplyParser(tools, starts_in_thoughts=starts_in_thoughts, new_id=lambda: f"id{next(numbers)}")
    reply = Reply()
    for part in parts:
        for fragment in parser.feed(part):
            reply.add(fragment)
    for fragment in parser.finish():
        reply.add(fragment)
    return reply


def calls_of(reply: Reply) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.calls if call.is_complete]


def test_function_block_with_text_before_it() -> None:
    reply = parse([WRITE])
    assert reply.text == "I will write."
    expected = {"path": "资料/résumé 😀.txt", "text": 'if a < b && c > "d": <b>'}
    assert calls_of(reply) == [("write_file", expected)]
    assert "资料" in reply.calls[0].arguments  # not escaped


def test_hermes_json_with_two_calls() -> None:
    reply = parse([HERMES])
    assert reply.text == "Two."
    assert calls_of(reply) == [("write_file", {"path": 'C:\\new\\table "x" é', "text": "Münster"}), ("now", {})]


def test_a_value_may_hold_the_closing_tags_itself() -> None:
    text = "<parameter=x>\n1\n</parameter> and\n</function> stay\n"
    assert calls_of(parse([HTML])) == [("write_file", {"path": "a.xml", "text": text})]


def test_bare_block_at_line_start_is_a_call_and_prose_is_text() -> None:
    """B061."""
    reply = parse([SCRIPTS["bare block"]])
    assert calls_of(reply) == [("now", {})]
    assert reply.text == "I do.\nDone"
    reply = parse([SCRIPTS["prose"]])
    assert reply.text == SCRIPTS["prose"] and not reply.calls and not reply.broken


@pytest.mark.parametrize(
    ("name", "text", "n_calls"),
    [("cut end", "Go.", 1), ("cut end of a block", "", 1), ("two ends", "Done", 1), ("cut beginning", "Go.", 0)],
)
def test_a_piece_of_a_tag_is_no_text(name: str, text: str, n_calls: int) -> None:
    """A reply that reaches its token limit ends anywhere, in the tag around a call too."""
    reply = parse([SCRIPTS[name]])
    assert (reply.text.strip(), len(calls_of(reply)), len(reply.broken)) == (text, n_calls, 1 - n_calls)


def test_code_blocks_stay_text() -> None:
    assert parse([SCRIPTS["code"]]).text == SCRIPTS["code"]


@pytest.mark.parametrize("name", ["bare json", "fenced json", "json list"])
def test_an_answer_of_bare_json_is_a_call(name: str) -> None:
    reply = parse([SCRIPTS[name]])
    assert reply.text == ""
    assert [call.is_complete for call in reply.calls] == [True] * (2 if name == "json list" else 1)


def test_json_that_names_no_tool_is_text() -> None:
    assert parse([SCRIPTS["not a call"]]).text == SCRIPTS["not a call"]


@pytest.mark.parametrize("name", ["cut call", "broken json", "no name"])
def test_a_broken_call_is_reported_and_never_text(name: str) -> None:
    reply = parse([SCRIPTS[name]])
    assert len(reply.broken) == 1 and reply.broken[0].raw
    assert not any(call.is_complete for call in reply.calls)
    assert "tool_call" not in reply.text and "function" not in reply.text and "name" not in reply.text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("several in one", [("now", {}), ("now", {})]),
        ("late name", [("add", {"a": 1})]),
        ("text arguments", [("add", {"a": 1})]),
        ("brace too many", [("now", {})]),
        ("forgotten end", [("now", {})]),
        ("forgotten parameter end", [("write_file", {"path": "x"})]),
        ("types", [("add", {"a": 5, "b": None, "exact": True})]),
    ],
)
def test_slips_that_can_be_read(name: str, expected: list[tuple[str, object]]) -> None:
    reply = parse([SCRIPTS[name]])
    assert calls_of(reply) == expected and reply.text == "" and not reply.broken


def test_without_tools_everything_is_text() -> None:
    assert parse([WRITE], tools=ToolSchemas([])).text == WRITE


def test_thoughts_are_split_and_nothing_in_them_is_a_call() -> None:
    reply = parse([f"\nlet me see {HERMES}\n</think>\n\nanswer"], starts_in_thoughts=True)
    assert reply.reasoning == f"let me see {HERMES}" and reply.text == "answer" and not reply.calls


def test_a_redundant_opening_tag_is_swallowed_and_open_thoughts_end_with_the_reply() -> None:
    assert parse(["<think>\nhm\n</think>\nyes"], starts_in_thoughts=True).reasoning == "hm"
    reply = parse(["still thinking\n"], starts_in_thoughts=True)
    assert (reply.reasoning, reply.text) == ("still thinking", "")


def test_start_state_follows_the_rendered_prompt() -> None:
    assert opens_thinking("<|im_start|>assistant\n<think>\n")
    assert not opens_thinking("<|im_start|>assistant\n<think>\n\n</think>\n\n")


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.parametrize("starts_in_thoughts", [False, True])
def test_every_piece_size_gives_the_same_reply(script: str, starts_in_thoughts: bool) -> None:
    """Conformance 12, B061."""
    whole = parse([script], starts_in_thoughts=starts_in_thoughts)
    for size in range(1, 8):
        parts = [script[at : at + size] for at in range(0, len(script), size)]
        assert parse(parts, starts_in_thoughts=starts_in_thoughts) == whole, size


@pytest.mark.parametrize("script", [WRITE, HERMES, HTML], ids=["block", "json", "html"])
def test_every_single_cut_gives_the_same_reply(script: str) -> None:
    whole = parse([script])
    for at in range(len(script)):
        assert parse([script[:at], script[at:]]) == whole, script[:at]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_reply_cut_short_anywhere_leaks_no_call(script: str) -> None:
    for at in range(len(script)):
        reply = parse([script[:at]])
        for call in reply.calls:
            if call.is_complete:
                assert isinstance(json.loads(call.arguments), dict)
        assert not reply.broken or '"name"' not in reply.text or "code" in script


SHARDS = st.sampled_from(
    [
        *"<>{}[]\"\\`\n ,:=a1é😀",
        "<tool_call>", "</tool_call>", "<function=now>", "<function=add>", "</function>", "<parameter=a>",
        "<parameter=text>", "</parameter>", '{"name": "now", "arguments": ', '{"name": "add"', '"arguments": {',
        "}}", "```", "<think>", "</think>", "true", "None", "-1.5e3", "\\u00", "\n\n",
    ]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(SHARDS, max_size=24), st.booleans(), st.data())
def test_any_text_cut_anywhere_gives_the_same_reply(shards: list[str], inside: bool, data: st.DataObject) -> None:
    """Conformance 12."""
    text = "".join(shards)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    parts = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
    whole = parse([text], starts_in_thoughts=inside)
    assert parse(parts, starts_in_thoughts=inside) == whole
    for call in whole.calls:
        if call.is_complete:
            assert isinstance(json.loads(call.arguments), dict)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSON, st.booleans(), st.integers(1, 5))
def test_the_scanner_passes_valid_json_unchanged(value: object, is_ascii: bool, size: int) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    scanner = JsonScanner()
    out = ""
    for at in range(0, len(text), size):
        n_used, passed = scanner.push(text[at : at + size])
        assert n_used == len(text[at : at + size])
        out += passed
    out += "" if scanner.is_done else scanner.finish()
    assert scanner.is_done and not scanner.broken and out == text


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["path", "text"]), st.text(), min_size=1))
def test_block_values_survive_as_written(arguments: dict[str, str]) -> None:
    body = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    reply = parse([f"<tool_call>\n<function=write_file>\n{body}</function>\n</tool_call>"])
    assert calls_of(reply) == [("write_file", arguments)]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer"),
        ({"type": ["null", "boolean"]}, "boolean"),
        ({"anyOf": [{"type": "null"}, {"type": "array"}]}, "array"),
        ({"enum": ["a", "b"]}, "string"),
        ({"enum": [1, 2]}, "any"),
        ({"$ref": "#/$defs/x"}, "object"),
        ({"$ref": "#/$defs/loop"}, "any"),
        ({}, "any"),
        (None, "any"),
        ({"type": 3}, "any"),
    ],
)
def test_parameter_types_are_the_first_that_is_not_null(schema: object, kind: str) -> None:
    """B065."""
    definition = {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "properties": {"key": schema},
                "$defs": {"x": {"type": "object"}, "loop": {"$ref": "#/$defs/loop"}},
            },
        },
    }
    assert ToolSchemas([definition]).kind("f", "key") == kind


@pytest.mark.parametrize(
    ("raw", "kind", "expected"),
    [
        ("5", "integer", 5), ("5.0", "integer", 5), ("-2.5e3", "number", -2500.0), ("five", "integer", "five"),
        ("True", "boolean", True), ("false", "boolean", False), ("None", "null", None), ("null", "object", None),
        ('{"a": [1, True]}', "object", {"a": [1, True]}), ("{'a': 1}", "object", {"a": 1}),
        ("{oops", "object", "{oops"),
        ("[1]", "any", [1]), ("12", "any", 12), ("x", "any", "x"), ("True", "any", "True"), ("5", "string", "5"),
        ("", "integer", ""), ("NaN", "number", "NaN"), ("01", "integer", "01"),
    ],
)  # fmt: skip
def test_written_values_become_json_by_their_type(raw: str, kind: str, expected: object) -> None:
    assert json.loads(value_json(raw, kind)) == expected
