"""Whether a finished answer fits a client's JSON schema: within bounds, and without fetching anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import referencing

_MOST_STEPS = 10_000  # keywords applied: references can double the work at each level
# Python's regular expressions can take for ever on a short text, and nothing can stop them. Where patterns can be held
# to at all they are held to token by token, by an engine that takes linear time.
_UNCHECKED = frozenset({"pattern", "patternProperties"})
_BY_PATTERN = frozenset({"additionalProperties", "unevaluatedProperties"})  # mean nothing without patternProperties

Keyword = Callable[..., Any]


class _TooMuch(Exception):
    """The schema asks for more than it may."""


def misfit(schema: Mapping[str, Any], text: str) -> str:
    """Why the JSON in `text` does not fit, in a sentence; empty if it does or if that cannot be said."""
    try:
        value = json.loads(text)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        n_left = _MOST_STEPS

        def bounded(name: str, apply: Keyword) -> Keyword:
            def applied(validator: Any, wanted: Any, instance: Any, part: Mapping[str, Any]) -> Iterator[Any]:
                nonlocal n_left
                n_left -= 1
                if n_left < 0:
                    raise _TooMuch
                if name in _UNCHECKED or (name in _BY_PATTERN and "patternProperties" in part):
                    return
                yield from apply(validator, wanted, instance, part) or ()

            return applied

        keywords = {name: bounded(name, apply) for name, apply in kind.VALIDATORS.items()}
        bound = jsonschema.validators.extend(kind, keywords)  # type: ignore[no-untyped-call]
        # An empty registry: the default one would fetch what a schema refers to, from any address.
        error = next(iter(bound(schema, registry=referencing.Registry()).iter_errors(value)), None)
    except _TooMuch:
        return "the schema is too involved to check the answer against it"
    except Exception as failure:  # noqa: BLE001 - a client's schema may be broken in any way
        return f"the schema itself cannot be used: {failure}"[:300]
    return f"the answer does not fit the schema: {error.message}"[:300] if error is not None else ""
