"""JSON with comments, changed in place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_desktop.clients import jsonc

KEYS = st.sampled_from(["a", "b", "ü", 'q"', ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


def plain(text: str) -> Any:
    return jsonc.value_of(text, jsonc.parse(text))


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.lists(KEYS, min_size=1, max_size=3),
    VALUES,
    st.sampled_from([None, 2, "\t"]),
)
def test_setting_and_removing_change_one_member_only(
    root: dict[str, Any], path: list[str], value: object, indent: Any
) -> None:
    text = json.dumps(root, indent=indent, ensure_ascii=False)
    node: Any = root
    for key in path[:-1]:
        node = node.get(key, {})
        if not isinstance(node, dict):
            with pytest.raises(jsonc.BadJson):
                jsonc.set_value(text, path, value)
            return
    changed = jsonc.set_value(text, path, value)
    expected = json.loads(json.dumps(root))
    inner = expected
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    assert json.loads(changed) == expected == plain(changed)
    del inner[path[-1]]
    assert json.loads(jsonc.remove(changed, path)) == expected


@settings(max_examples=150, deadline=None)
@given(st.lists(VALUES, max_size=4), VALUES, st.sampled_from([None, 2]), st.integers(0, 4))
def test_items_are_added_and_removed(items: list[Any], value: object, indent: Any, index: int) -> None:
    text = json.dumps({"list": items}, indent=indent)
    added = jsonc.append_item(text, ["list"], value)
    assert json.loads(added)["list"] == [*items, value]
    removed = jsonc.remove_item(added, ["list"], index)
    left = [*items, value]
    if index < len(left):
        del left[index]
    assert json.loads(removed)["list"] == left


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '{\n  "k": 1\n}\n'),
        ("{}", '{\n  "k": 1\n}'),
        ('{"a": 2}', '{"a": 2, "k": 1}'),
        ('{\n\t"a": 2 // two\n}\n', '{\n\t"a": 2,\n\t"k": 1 // two\n}\n'),
        ('{\n  "a": 2, // two\n  /* end */\n}\n', '{\n  "a": 2, // two\n  "k": 1\n  /* end */\n}\n'),
        ('{\r\n  "a": 2\r\n}\r\n', '{\r\n  "a": 2,\r\n  "k": 1\r\n}\r\n'),
        ("{\n  // only a comment\n}", '{\n  // only a comment\n  "k": 1\n}'),
        ('{"k": 0, /* c */ "z": []}', '{"k": 1, /* c */ "z": []}'),
    ],
)
def test_comments_commas_and_line_ends_stay(text: str, changed: str) -> None:
    assert jsonc.set_value(text, ["k"], 1) == changed
    assert plain(changed)["k"] == 1


@pytest.mark.parametrize(
    "text",
    ["{", "[1", '{"a"}', '{"a": }', "{a: 1}", '{"a": 1} 2', "'x'", "// only", '{"a": 01}', '{"a": tru}', "[" * 500],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(jsonc.BadJson):
        jsonc.parse(text)
