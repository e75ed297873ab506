"""`dflash-desktop serve` in a process of its own, as clients meet it, and how much memory it takes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from support.patience import LONG_S
from support.program import PROGRAM

_READY_S = LONG_S


@dataclass
class Served:
    """A running server and its JSON log."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0
    model: str = ""
    context_tokens: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The complete lines of the log."""
        lines = self.log.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def wait_until_idle(self, *, within_s: float = LONG_S) -> None:
        """Until no request runs or waits."""
        deadline = time.monotonic() + within_s
        while True:
            with urllib.request.urlopen(f"{self.base}/status", timeout=LONG_S) as answer:
                state = json.loads(answer.read())
            if not state["running"] and not state["waiting"]:
                return
            assert time.monotonic() < deadline, state
            time.sleep(0.05)

    def rss_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def handles(self) -> int:
        """Open files and sockets, where the system tells."""
        process = psutil.Process(self.process.pid)
        return int(process.num_fds()) if hasattr(process, "num_fds") else 0


@contextlib.contextmanager
def serving(*arguments: str | Path, environment: dict[str, str] | None = None) -> Iterator[Served]:
    """Serve on a free port until the block ends; the model is loaded when it begins, or the proxy listens."""
    command = [*PROGRAM, "serve", "--port", "0", "--json-log", "--no-self-test", *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        log, errors = Path(folder) / "log", Path(folder) / "errors"
        with log.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            )
        served = Served(process, log)
        try:
            _wait_until_ready(served, errors)
            yield served
        finally:
            process.terminate() if sys.platform == "win32" else process.send_signal(signal.SIGINT)
            try:
                process.wait(LONG_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(served: Served, errors: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline and served.process.poll() is None:
        ready = next((event for event in served.events if event["event"] in ("Ready", "Proxying")), None)
        if ready is not None:
            served.port = int(ready["addresses"][0].rpartition(":")[2])
            served.model, served.context_tokens = ready.get("model", ""), ready.get("context_tokens", 0)
            return
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start: {errors.read_text('utf-8')[-2000:]}")
