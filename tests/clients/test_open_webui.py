"""Open WebUI itself, without its window: it verifies the connection, lists our model and chats, whole and streamed.

Marked `clients`. pip fetches it once per run, 2 GB without PyTorch, which it needs for its own models only;
DFLASH_TEST_OPEN_WEBUI names an environment that has it already.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.served import Served, serving

pytestmark = pytest.mark.clients

VERSION = "open-webui==0.12.4"
HEAVY = ("torch", "nvidia", "triton", "cuda")
PAIRS: dict[str, tuple[str | Path, ...]] = {
    "qwen35-mini": ("--target", QWEN35_MINI, "--draft", QWEN35_MINI_DRAFT, "--context", "4096"),
    "built-in": ("--context", "4096"),
}
ASK = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 12, "temperature": 0}


@dataclass(frozen=True)
class WebUi:
    base: str
    access_token: str

    def call(self, path: str, body: object = None, *, timeout_s: float = 120.0) -> bytes:
        raw = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.base}{path}", raw, {"Content-Type": "application/json"})
        if self.access_token:
            request.add_header("Authorization", f"Bearer {self.access_token}")
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return bytes(answer.read())


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory, real_environment: dict[str, str]) -> Path:
    """The program."""
    given = os.environ.get("DFLASH_TEST_OPEN_WEBUI")
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    if given:
        return Path(given) / scripts / "open-webui"
    if sys.version_info >= (3, 13):
        pytest.skip("Open WebUI does not run on this Python")
    folder = tmp_path_factory.mktemp("open-webui")
    venv.create(folder, with_pip=True)
    pip = [str(folder / scripts / "python"), "-m", "pip", "install", "-q", "--no-cache-dir"]
    try:
        plan = [*pip, "--dry-run", "--report", str(folder / "report.json"), VERSION]
        subprocess.run(plan, env=real_environment, capture_output=True, check=True, timeout=600)
        listed = [each["metadata"] for each in json.loads((folder / "report.json").read_text("utf-8"))["install"]]
        light = [f"{each['name']}=={each['version']}" for each in listed if not each["name"].lower().startswith(HEAVY)]
        subprocess.run([*pip, "--no-deps", *light], env=real_environment, capture_output=True, check=True, timeout=1800)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"pip could not install Open WebUI: {error}"[:300])
    return folder / scripts / "open-webui"


@contextlib.contextmanager
def web_ui(command: Path, folder: Path, served: Served) -> Iterator[WebUi]:
    """Open WebUI set up by environment variables, as our card says; it keeps what it writes in `folder`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "DATA_DIR": str(folder / "data"),
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "test",
        "OFFLINE_MODE": "True",
        "ENABLE_OLLAMA_API": "False",
        "OPENAI_API_BASE_URL": f"{served.base}/v1",
        "OPENAI_API_KEY": "local",
        "ENABLE_PERSISTENT_CONFIG": "False",
        "AIOHTTP_CLIENT_TIMEOUT": "",
        "RAG_EMBEDDING_ENGINE": "openai",  # else it wants to fetch a model of its own
        "BYPASS_EMBEDDING_AND_RETRIEVAL": "True",
    }
    (folder / "data").mkdir()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [command, "serve", "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        nobody = WebUi(f"http://127.0.0.1:{port}", "")
        deadline = time.monotonic() + 240
        while True:
            with contextlib.suppress(OSError):
                if nobody.call("/health"):
                    break
            said = (folder / "log").read_text("utf-8", "replace")
            assert process.poll() is None and time.monotonic() < deadline, said[-3000:]
            time.sleep(0.5)
        person = {"email": "admin@localhost", "password": "admin"}  # what it takes with WEBUI_AUTH off
        yield WebUi(nobody.base, json.loads(nobody.call("/api/v1/auths/signin", person))["token"])
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.parametrize("pair", PAIRS)
def test_open_webui_lists_our_model_and_chats_with_it(pair: str, command: Path, tmp_path: Path) -> None:
    with serving(*PAIRS[pair], "--threads", "1") as served, web_ui(command, tmp_path, served) as ui:
        verified = json.loads(ui.call("/openai/verify", {"url": f"{served.base}/v1", "key": "local"}))
        assert verified["data"][0]["id"] == served.model
        listed = [each["id"] for each in json.loads(ui.call("/api/models"))["data"]]
        assert served.model in listed
        whole: Any = json.loads(ui.call("/api/chat/completions", {**ASK, "model": served.model, "stream": False}))
        text = whole["choices"][0]["message"]["content"]
        assert text and whole["usage"]["completion_tokens"] <= 12
        raw = ui.call("/api/chat/completions", {**ASK, "model": served.model, "stream": True}).decode()
        chunks = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: {")]
        parts = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk.get("choices")]
        assert "".join(parts) == text and "data: [DONE]" in raw
        ended = [event for event in served.events if event["event"] == "RequestEnded"]
        assert len(ended) == 2 and {event["outcome"] for event in ended} <= {"stop", "length"}
        with pytest.raises(urllib.error.HTTPError):  # its own refusal, not ours: it knows our list
            ui.call("/api/chat/completions", {**ASK, "model": "no-such-model", "stream": False})
