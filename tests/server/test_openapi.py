"""The OpenAPI document, and requests that schemathesis makes up from it: no answer is a server error, none hangs."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from support.api_server import Api, Start
from support.patience import LONG_S
from support.scripted_engine import Pace, ScriptedEngine

DIALECTS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/v1/chat", "/api/chat", "/v1/completions")


@pytest.fixture
def quick(start: Start) -> Api:
    return start(ScriptedEngine(script="ok then", pace=Pace(n_prefill_chunks=0)), can_clients_reload=False)


def try_operations(api: Api, n_cases: int) -> Counter[int]:
    """`n_cases` per operation, good and bad ones; the statuses that came."""
    schema = schemathesis.openapi.from_dict(api.get("/openapi.json").json)
    statuses: Counter[int] = Counter()
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        for strategy in _strategies(operation):

            @settings(
                max_examples=n_cases,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=strategy)
            def ask(case: Any) -> None:
                answer = case.call(base_url=api.base, timeout=LONG_S)
                statuses[answer.status_code] += 1
                assert answer.status_code < 500, (case.method, case.path, case.body, answer.text)
                kinds = answer.headers.get("content-type", [])
                assert answer.status_code == 200 or kinds == ["application/json"], (case.path, kinds)

            ask()
    assert api.engine.idle.wait(LONG_S)
    return statuses


def _strategies(operation: Any) -> list[Any]:
    """Good cases, and bad ones where there is a body: any text is a good path."""
    modes = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if operation.body else [])]
    return [operation.as_strategy(generation_mode=mode) for mode in modes]


def test_the_document_lists_every_route_and_what_it_reads(quick: Api) -> None:
    document = quick.get("/openapi.json").json
    assert document["openapi"].startswith("3.1") and re.fullmatch(r"\d+\.\d+.*", document["info"]["version"])
    for path in DIALECTS:
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        name = body["$ref"].rpartition("/")[2]
        assert document["components"]["schemas"][name]["properties"]["model"], path
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids)) > 30
    missing = [path for path in document["paths"] if "{" not in path and _is_missing(quick, path, document)]
    assert missing == []


def _is_missing(api: Api, path: str, document: Any) -> bool:
    (method,) = document["paths"][path]
    answer = api.call(method.upper(), path, {} if method == "post" else None)
    return (
        answer.status == 404 and answer.json["error"].get("code") == "unknown_endpoint" and path != "/lmstudio-greeting"
    )


def test_made_up_requests_are_answered_or_refused(quick: Api) -> None:
    statuses = try_operations(quick, 2)
    assert statuses[200] > 20 and statuses[400] > 5, statuses


@pytest.mark.slow
def test_two_thousand_made_up_requests_are_answered_or_refused(quick: Api) -> None:
    statuses = try_operations(quick, 60)
    assert sum(statuses.values()) >= 2000, statuses
    assert statuses[200] > 200 and statuses[400] > 200, statuses
