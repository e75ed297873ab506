"""PFlash's options on the command line, and what `plan` says of a scorer."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.base.errors import BadInput
from dflash_desktop.cli import pflash
from dflash_desktop.cli.arguments import build_parser
from dflash_desktop.engine.pflash.options import DEFAULT_CURVE, PflashOptions
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.patience import LONG_S, until
from support.program import run_for_json, run_program
from support.served import serving
from support.standin_upstream import standing_in

if TYPE_CHECKING:
    from pathlib import Path

MODELS = ("--target", QWEN35_MINI, "--draft", "none", "--device", "CPU")


def chosen(*words: str, is_proxy: bool = False) -> PflashOptions:
    return pflash.options(build_parser().parse_args(["serve", *words]), is_proxy=is_proxy)


def test_it_is_off_unless_asked_for_and_a_proxy_shortens() -> None:
    assert chosen("--scorer", str(QWEN35_MINI)) == PflashOptions("off", QWEN35_MINI)
    assert chosen("--scorer", str(QWEN35_MINI), is_proxy=True).mode == "auto"
    assert chosen("--scorer", str(QWEN35_MINI), "--pflash", "off", is_proxy=True).mode == "off"


def test_every_word_arrives_at_the_engine() -> None:
    words = ["--pflash", "always", "--pflash-keep", "0.1", "--pflash-threshold", "9", "--scorer", str(QWEN35_MINI)]
    more = ["--scorer-device", "CUDA1", "--pflash-residency", "keep"]
    expected = PflashOptions("always", QWEN35_MINI, "0.1", 9, "CUDA1", keep_loaded=True)
    assert chosen(*words, *more) == expected
    assert chosen(*words[:2], "--pflash-curve", "9:0.5,99:0.1", *words[-2:]).curve == "9:0.5,99:0.1"
    assert chosen(*words[:2], *words[-2:]).curve == DEFAULT_CURVE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pflash-keep", "2"], "--pflash-keep"),
        (["--pflash-keep", "9:0.5"], "--pflash-curve"),
        (["--pflash-curve", "9:0.5,3:0.2"], "ascend"),
        (["--pflash-keep", "0.2", "--pflash-curve", "9:0.5"], "not allowed with"),
        (["--pflash-threshold", "-1"], "--pflash-threshold"),
        (["--pflash", "sometimes"], "invalid choice"),
        (["--scorer", "nothing.gguf"], "nothing.gguf"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(words: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        chosen(*words)


def test_a_plan_with_a_scorer_tells_its_parts() -> None:
    plan = ("plan", *MODELS, "--context", "1024", "--scorer", QWEN35_MINI, "--pflash-residency", "keep")
    told = run_for_json(*plan)
    scorer = told["scorer"]
    assert scorer["device_name"] == "CPU" and scorer["residency"] == "kept" and scorer["shortfall_bytes"] == 0
    parts = ("weights_bytes", "kv_cache_bytes", "recurrent_bytes", "compute_bytes")
    assert scorer["total_bytes"] == sum(scorer[part] for part in parts) > 0
    done = run_program(*plan)
    assert done.returncode == 0
    assert "scorer weights" in done.stdout and "kept loaded" in done.stdout and "altogether" in done.stdout


def test_with_an_upstream_no_model_is_named(tmp_path: Path) -> None:
    done = run_program("serve", "--upstream", "http://127.0.0.1:9/v1", "--target", QWEN35_MINI)
    assert done.returncode == 2 and "--target" in done.stderr
    key = tmp_path / "key"
    key.write_text("sk-1", "utf-8")
    done = run_program("serve", "--upstream-key-file", key)
    assert done.returncode == 2 and "--upstream" in done.stderr


def test_a_scorer_that_is_none_is_refused_before_anything_is_served() -> None:
    scorer = ("--pflash", "auto", "--scorer", QWEN35_MINI_DRAFT)
    for start in (("--upstream", "http://127.0.0.1:9/v1"), MODELS):
        done = run_program("serve", "--port", "0", *start, *scorer)
        assert done.returncode == 2 and "scorer cannot be used" in done.stderr


def test_a_proxy_in_a_process_of_its_own_shortens_and_keeps_its_key_to_itself(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-s3cret\n", "utf-8")
    town = "\n\n".join(f"In {1900 + i} the council met {i} times and spoke about roads and bread." for i in range(40))
    messages = [{"role": "user", "content": f"{town}\n\nHow often did the council meet in 1912?"}]
    words = ("--upstream-key-file", key, "--pflash", "always", "--pflash-keep", "0.2", "--scorer", QWEN35_MINI)
    with standing_in() as upstream, serving("--upstream", upstream.base, *words) as served:
        body = json.dumps({"messages": messages}).encode()
        request = urllib.request.Request(f"{served.base}/v1/chat/completions", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=LONG_S) as answer:
            assert answer.headers["x-pflash"] == "shortened"
        (asked,) = upstream.asked
        assert asked.headers["authorization"] == "Bearer sk-s3cret"
        assert len(asked.json["messages"][0]["content"]) < 0.5 * len(town)
        # The line is written when the answer has begun.
        until(lambda: any(event["event"] == "RequestForwarded" for event in served.events), "its line in the log")
        log = served.log.read_text("utf-8")
        assert "sk-s3cret" not in log and "the council met" not in log
