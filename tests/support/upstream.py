"""Upstream llama.cpp (package xllamacpp) as an oracle, in a child process: its ggml must not meet ours.

Run as a program it serves one model: JSON lines in ({"path": ..., "body": ...}), JSON lines out.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self


class Upstream:
    """A llama.cpp server with one model. Skips the asking test where xllamacpp is not installed."""

    def __init__(self, model: Path, *, n_ctx: int = 512) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            pytest.skip("needs the package xllamacpp (the extra `test`)")
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(model), str(n_ctx)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"path": path, "body": body}) + "\n")
        self._process.stdin.flush()
        while True:  # the library prints a line of its own now and then
            line = self._process.stdout.readline()
            assert line, f"upstream ended with {self._process.wait()}"
            if line.startswith("answer: "):
                return json.loads(line.removeprefix("answer: "))

    def tokenize(self, text: str, *, parse_special: bool = False, add_special: bool = False) -> list[int]:
        body = {"content": text, "add_special": add_special, "parse_special": parse_special}
        tokens: list[int] = self.ask("/tokenize", body)["tokens"]
        return tokens

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(model: str, n_ctx: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = n_ctx
    params.n_parallel = 1
    params.warmup = False
    params.port = 0
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    address = urlsplit(server.listening_address)
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    for line in sys.stdin:
        question = json.loads(line)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", question["path"], json.dumps(question["body"]), headers)
        print("answer: " + json.dumps(json.loads(connection.getresponse().read())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
