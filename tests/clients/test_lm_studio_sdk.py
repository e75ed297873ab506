"""LM Studio's SDK for JavaScript against the running server, in the release that its guide names and in Roo Code's.

Marked `clients`: npm fetches it. The Python SDK is in tests/server/test_lmstudio_python.py, the packets one by one in
test_lmstudio_sdk.py beside it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_desktop.server.events import RequestEnded
from dflash_desktop.server.server import ApiServer
from support.api_server import served_script
from support.scripted_engine import Pace, ScriptedEngine

pytestmark = pytest.mark.clients

ARGUMENTS = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in (("a", 1), ("b", 2)))
PROGRAM = """
const { LMStudioClient, tool } = require("@lmstudio/sdk");
const { z } = require("zod");
(async () => {
  const said = {};
  const client = new LMStudioClient({ baseUrl: process.argv[2] });
  said.downloaded = await client.system.listDownloadedModels("llm");
  said.loaded = await Promise.all((await client.llm.listLoaded()).map((each) => each.getModelInfo()));
  said.embedding = await client.embedding.listLoaded();
  const model = await client.llm.model(said.downloaded[0].path, { verbose: false });
  said.context = await model.getContextLength();
  said.tokens = (await model.tokenize("hello there")).length;
  const answer = await model.respond([{ role: "user", content: "Hi" }], { maxTokens: 40, temperature: 0.2 });
  said.answer = [answer.content, answer.stats];
  said.completed = (await model.complete("Once", { maxTokens: 10 })).content;
  said.parsed = (await model.respond("json", { structured: z.object({ a: z.number() }) })).parsed;
  const long = model.respond("a long one");
  let n = 0;
  for await (const fragment of long) if (++n === 3) long.cancel();
  said.cancelled = (await long.result()).stats.stopReason;
  const add = tool({
    name: "add", description: "Adds", parameters: { a: z.number(), b: z.number() },
    implementation: ({ a, b }) => { said.called = [a, b]; return a + b; },
  });
  const roles = [];
  await model.act("1 and 2?", [add], { onMessage: (message) => roles.push(message.getRole()) });
  said.roles = roles;
  await model.unload();
  said.left = (await client.llm.listLoaded()).length;
  try { await client.repository.searchModels({ searchTerm: "any" }); } catch (error) { said.refused = error.message; }
  console.log("SAID " + JSON.stringify(said));
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
"""


def reply(prompt: str) -> str:
    if "long" in prompt:
        return "word " * 3000
    if "json" in prompt:
        return '{"a": 1}'
    if "<tools>" in prompt and "<|im_start|>tool" not in prompt:
        return f"Look.\n<tool_call>\n<function=add>\n{ARGUMENTS}</function>\n</tool_call>"
    return "Hello from the script."


@pytest.fixture
def served() -> Iterator[tuple[ScriptedEngine, ApiServer, list[Any]]]:
    with served_script(ScriptedEngine(script=reply, pace=Pace(step_s=0.005))) as served:
        yield served


@pytest.mark.parametrize("release", ["1.5.0", "1.1.1"])
def test_the_sdk_lists_predicts_acts_and_unloads(
    release: str,
    served: tuple[ScriptedEngine, ApiServer, list[Any]],
    tmp_path: Path,
    real_environment: dict[str, str],
) -> None:
    engine, server, events = served
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm is not installed")
    options = ("--prefix", tmp_path, "--no-audit", "--no-fund", "--loglevel=error")
    fetched = subprocess.run(
        [npm, "install", *options, f"@lmstudio/sdk@{release}"],
        env=real_environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if fetched.returncode != 0:
        pytest.skip(f"npm could not install the SDK: {fetched.stderr[-300:]}")
    program = tmp_path / "program.cjs"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [node, program, f"ws://127.0.0.1:{server.port}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = json.loads(ran.stdout.partition("SAID ")[2])
    assert [each["modelKey"] for each in said["downloaded"]] == ["qwen3.5-27b"] and said["embedding"] == []
    assert said["loaded"][0]["contextLength"] == said["context"] == 4096 and said["tokens"] == 3
    content, stats = said["answer"]
    assert content == said["completed"] == "Hello from the script." and stats["stopReason"] == "eosFound"
    assert stats["predictedTokensCount"] == 6 and said["parsed"] == {"a": 1}
    assert said["cancelled"] == "userStopped" and said["called"] == [1, 2]
    assert said["roles"] == ["assistant", "tool", "assistant"]
    assert said["left"] == 0 and not engine.is_loaded and "in the app only" in said["refused"].replace("\n", " ")
    if release == "1.5.0":  # the older one does not know all packets about tool calls, and says so
        assert "communication warning" not in ran.stdout + ran.stderr
    outcomes = [event.outcome for event in events if isinstance(event, RequestEnded)]
    assert outcomes.count("cancelled") == 1 and "failed" not in outcomes
