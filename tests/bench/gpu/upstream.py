"""Upstream's own speed on the same files: llama-bench for the big shapes, llama-server with DFlash for the small pair.

    python -m bench.gpu.upstream BIN [--target big.gguf] [--models tests/support/models]

BIN is the folder of llama-bench and llama-server that build.sh makes; ggml's libraries must lie beside them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 18321


def ask(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        answer: dict[str, Any] = json.load(reply)
        return answer


@contextmanager
def server(program: Path, *arguments: str) -> Iterator[None]:
    """A llama-server that answers."""
    command = [str(program), "--port", str(PORT), "-ngl", "99", "-fa", "on", "-c", "2048", "-np", "1", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            try:
                ask("/health")
                break
            except (urllib.error.URLError, ConnectionError):
                if process.poll() is not None:
                    raise RuntimeError(f"{program.name} ended with {process.returncode}: {' '.join(command)}") from None
                time.sleep(0.25)
        yield
    finally:
        process.terminate()
        process.wait(30)


def measure_server(program: Path, models: Path, n_prompts: int, n_tokens: int) -> None:
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    target, draft = (str(models / f"{name}-q8_0.gguf") for name in ("qwen35-mini", "qwen35-mini-dflash"))
    kinds = {"plain": ["-m", target]}
    kinds["DFlash"] = [
        "-m",
        target,
        "-md",
        draft,
        "-ngld",
        "99",
        "--spec-type",
        "draft-dflash",
        "--spec-draft-n-max",
        "7",
    ]
    for label, arguments in kinds.items():
        with server(program, *arguments):
            n, milliseconds, n_drafted, n_accepted = 0, 0.0, 0, 0
            for turn in range(2):
                for prompt in stored["prompts"][:n_prompts]:
                    settings = {"temperature": 0, "ignore_eos": True, "cache_prompt": False}
                    answer = ask("/completion", {"prompt": prompt["ids"], "n_predict": n_tokens, **settings})
                    if turn > 0:
                        times = answer["timings"]
                        n, milliseconds = n + times["predicted_n"], milliseconds + times["predicted_ms"]
                        n_drafted += times.get("draft_n", 0)
                        n_accepted += times.get("draft_n_accepted", 0)
            accepted = f", {n_accepted} of {n_drafted} drafts accepted, AL {n / max(n - n_accepted, 1):.2f}"
            print(
                f"upstream server, {label}: {1e3 * n / milliseconds:.0f} tok/s{accepted if n_drafted else ''}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--target", type=Path, help="run llama-bench on this file")
    parser.add_argument("--models", type=Path, default=Path("tests/support/models"))
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=160)
    options = parser.parse_args()
    if options.target:
        command = [options.bin / "llama-bench", "-m", options.target, "-ngl", "99", "-fa", "1", "-r", "3"]
        subprocess.run([*map(str, command), "-p", "512,2048", "-n", "64", "-d", "0,1024"], check=True)
    measure_server(options.bin / "llama-server", options.models, options.prompts, options.tokens)


if __name__ == "__main__":
    main()
