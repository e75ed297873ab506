"""What the server costs: the same replies over HTTP and from the engine directly, in turn, in one run.

    python -m bench.server_overhead [--target F] [--draft F] [--threads N] [--runs N] [--tokens N]

from the folder `tests`. One process holds the engine and the server; the client is another one, as real clients are.
`decode` is tokens after the first over the time they took where they arrive; `first` is request to first token.
"""

from __future__ import annotations

import argparse
import http.client
import json
import queue
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.machine import describe
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

PROMPT = "Write a Python function that returns the n-th Fibonacci number, and explain it."


def _work(target: Path, draft: Path | None, n_threads: int) -> None:
    """The process with the engine: answers `direct` requests on its standard input, serves the others."""
    from dflash_desktop.engine.engine import Engine
    from dflash_desktop.engine.events import GenerationDone, PairLoaded, StepDone
    from dflash_desktop.engine.loaded import PairLoader
    from dflash_desktop.engine.requests import Generate, LoadOptions, LoadPair, TokenPrompt
    from dflash_desktop.server.options import ServerOptions
    from dflash_desktop.server.server import ApiServer

    engine = Engine(PairLoader())
    engine.start()
    server = ApiServer(engine, lambda event: None)
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    options = LoadOptions(context_tokens=2048, n_threads=n_threads)

    def hear(event: Any) -> None:
        server.on_engine_event(event)
        events.put(event)

    engine.submit(LoadPair(target, draft, options, hear))
    while not isinstance(events.get(), PairLoaded):
        pass
    server.start(ServerOptions(port=0))
    _say({"port": server.port})
    for line in sys.stdin:
        asked = json.loads(line)
        prompt = TokenPrompt(tuple(server.models.require_reader().tokenize(asked["text"], has_control_tokens=True)))
        times: list[tuple[float, int]] = []

        def note(event: Any, times: list[tuple[float, int]] = times) -> None:
            if isinstance(event, StepDone):
                times.append((time.perf_counter(), event.n_committed))
            elif isinstance(event, GenerationDone):
                events.put(event)

        started = time.perf_counter()
        engine.submit(Generate(prompt, note, max_tokens=asked["n"], ignore_stop=True, reuse_prefix=True))
        events.get()
        n_tokens = sum(n for _, n in times)
        _say(_figures(started, times[0][0], times[-1][0], n_tokens, times[0][1]))
    server.stop()
    engine.close()


def _say(value: Any) -> None:
    print(json.dumps(value), flush=True)


def _figures(started: float, first: float, last: float, n_tokens: int, n_first: int) -> dict[str, float]:
    return {"first_ms": 1000 * (first - started), "decode_tps": (n_tokens - n_first) / (last - first), "n": n_tokens}


def _served(port: int, path: str, body: dict[str, Any]) -> dict[str, float]:
    """One streamed reply, timed where its events arrive."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    raw = json.dumps({**body, "stream": True}).encode()
    connection.connect()
    started = time.perf_counter()
    connection.request("POST", path, raw, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    first = last = 0.0
    events: list[dict[str, Any]] = []
    while line := answer.readline():
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            if event["choices"] and event["choices"][0].get("text"):
                last = time.perf_counter()
                first = first or last
            events.append(event)
    connection.close()
    timings = events[-1]["timings"]
    n_tokens = timings["predicted_n"]
    return {
        **_figures(started, first, last, n_tokens, 1),
        "engine_tps": timings["predicted_per_second"],
        "n_events": len(events),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=QWEN35_MINI)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    draft = arguments.draft or (QWEN35_MINI_DRAFT if arguments.target == QWEN35_MINI else None)
    if arguments.work:
        _work(arguments.target, draft, arguments.threads)
        return 0
    worker = subprocess.Popen(
        [sys.executable, "-m", "bench.server_overhead", "--work", *sys.argv[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None and worker.stdout is not None
    port = json.loads(worker.stdout.readline())["port"]
    text = f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n"
    body = {"prompt": text, "max_tokens": arguments.tokens, "temperature": 0}
    direct: list[dict[str, float]] = []
    served: list[dict[str, float]] = []
    for run in range(arguments.runs + 1):
        worker.stdin.write(json.dumps({"text": text, "n": arguments.tokens}) + "\n")
        worker.stdin.flush()
        one = json.loads(worker.stdout.readline())
        other = _served(port, "/v1/completions", body)
        if run:  # the first pair warms both up
            direct.append(one)
            served.append(other)
    worker.stdin.close()
    worker.wait(30)
    worker.stdout.close()

    def median(rows: list[dict[str, float]], name: str) -> float:
        return statistics.median(row[name] for row in rows)

    ratios = [b["decode_tps"] / a["decode_tps"] for a, b in zip(direct, served, strict=True)]
    added = [b["first_ms"] - a["first_ms"] for a, b in zip(direct, served, strict=True)]
    print(
        json.dumps(
            {
                "direct_tps": round(median(direct, "decode_tps"), 1),
                "served_tps": round(median(served, "decode_tps"), 1),
                "ratio": round(statistics.median(ratios), 4),
                "ratios": [round(each, 3) for each in sorted(ratios)],
                "engine_tps_while_serving": round(median(served, "engine_tps"), 1),
                "first_ms_direct": round(median(direct, "first_ms"), 2),
                "first_ms_served": round(median(served, "first_ms"), 2),
                "first_ms_added": round(statistics.median(added), 2),
                "tokens": median(served, "n"),
                "events": median(served, "n_events"),
                "threads": arguments.threads,
                "machine": describe(),
            },
            indent=2,
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
