"""Upstream's own speed on the same files: llama-bench for the big shapes, llama-server with DFlash for the small pair.

    python -m bench.gpu.upstream BIN [--target big.gguf] [--pair TARGET DRAFT]

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
    from collections.abc import Iterator, Sequence

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


def measure_bench(program: Path, target: Path) -> dict[str, float]:
    """Tokens per second of llama-bench, best micro-batch of two: "pp2048", "tg64", "tg64 @ 1024"."""
    found: dict[str, float] = {}
    for micro_batch in (512, 2048):
        command = [program, "-m", target, "-ngl", "99", "-fa", "1", "-r", "3", "-ub", micro_batch, "-o", "json"]
        command += ["-p", "2048", "-n", "64", "-d", "0,1024"]
        done = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
        for test in json.loads(done.stdout):
            name = f"pp{test['n_prompt']}" if test["n_prompt"] else f"tg{test['n_gen']}"
            name += f" @ {test['n_depth']}" if test["n_depth"] else ""
            found[name] = max(found.get(name, 0.0), test["avg_ts"])
    for name, speed in found.items():
        print(f"upstream llama-bench, {name}: {speed:.1f} tok/s", flush=True)
    return found


def measure_server(program: Path, pair: Sequence[Path], n_prompts: int, n_tokens: int) -> dict[str, Any]:
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    target, draft = map(str, pair)
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
    result: dict[str, Any] = {}
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
            speed, length = 1e3 * n / milliseconds, n / max(n - n_accepted, 1)
            result[label] = {"tokens_per_second": speed, "accepted": length}
            print(f"upstream server, {label}: {speed:.0f} tok/s, {n_drafted} drafted, AL {length:.2f}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--target", type=Path, help="run llama-bench on this file")
    parser.add_argument("--pair", type=Path, nargs=2, action="append", help="another small target and its draft")
    parser.add_argument("--json", type=Path, help="keep the numbers here")
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=160)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.target:
        result["bench"] = measure_bench(options.bin / "llama-bench", options.target)
    models = Path(__file__).parents[2] / "support" / "models"
    mini = [models / f"{name}-q8_0.gguf" for name in ("qwen35-mini", "qwen35-mini-dflash")]
    for pair in [mini, *(options.pair or [])]:
        print(pair[0].stem)
        result[pair[0].stem] = measure_server(options.bin / "llama-server", pair, options.prompts, options.tokens)
    if options.json:
        options.json.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
