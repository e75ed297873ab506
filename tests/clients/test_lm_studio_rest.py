"""Programs that speak LM Studio's REST interface: the command `llm` with its LM Studio plug-in, whole and streamed.

Marked `clients`. LM Studio's own SDK is in test_lm_studio_sdk.py. Cline with its LM Studio provider is
tried in test_real_clients.py, LM Studio's routes one by one in tests/server/test_lmstudio_ollama.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.served import serving

pytestmark = pytest.mark.clients

PACKAGES = ("llm==0.36", "llm-lmstudio==0.3.1")
PAIRS: dict[str, tuple[str | Path, ...]] = {
    "qwen35-mini": ("--target", QWEN35_MINI, "--draft", QWEN35_MINI_DRAFT, "--context", "2048"),
    "built-in": ("--context", "2048"),
}


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory, real_environment: dict[str, str]) -> Path:
    """The program, in an environment of its own."""
    folder = tmp_path_factory.mktemp("llm")
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    venv.create(folder, with_pip=True)
    pip = [str(scripts / "python"), "-m", "pip", "install", "-q", "--no-cache-dir", *PACKAGES]
    try:
        subprocess.run(pip, env=real_environment, capture_output=True, check=True, timeout=600)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"pip could not install llm: {error}"[:300])
    return scripts / "llm"


@pytest.mark.parametrize("pair", PAIRS)
def test_llm_lists_our_model_through_lm_studios_interface_and_chats(pair: str, command: Path, tmp_path: Path) -> None:
    with serving(*PAIRS[pair], "--threads", "1", "--max-tokens", "12") as served:
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LMSTUDIO_API_BASE": served.base}

        def llm(*words: str) -> str:
            done = subprocess.run(
                [command, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-2000:]
            return done.stdout

        name = next(word for word in llm("models").split() if word.startswith("lmstudio/") and served.model in word)
        whole = llm("-m", name, "--no-stream", "-o", "temperature", "0", "Say hello.")
        assert whole.strip() == llm("-m", name, "-o", "temperature", "0", "Say hello.").strip() != ""
        ended = [event for event in served.events if event["event"] == "RequestEnded"]
        assert len(ended) == 2 and {event["outcome"] for event in ended} <= {"stop", "length"}
