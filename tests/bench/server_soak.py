"""Eight clients for some minutes, with cancels and disconnects: answers, memory, handles.

    python -m bench.server_soak [--minutes N] [--clients N] [--target F] [--draft F]

from the folder `tests`. The server is `dflash-desktop serve` in a process of its own. Each request is first asked
alone; every later answer must equal that one. `--draft none` decodes plainly.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from bench.machine import describe
from support.served import serving
from support.soak import is_idle, soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--draft")
    arguments = parser.parse_args()
    files = [word for name in ("target", "draft") if (path := getattr(arguments, name)) for word in (f"--{name}", path)]
    with serving(*files, "--threads", "1", "--context", "2048", "--queue", "16") as served:
        result = soak(
            served, seconds=60 * arguments.minutes, n_clients=arguments.clients, max_tokens=arguments.max_tokens
        )
        deadline = time.monotonic() + 10
        while not (is_idle_now := is_idle(served)) and time.monotonic() < deadline:
            time.sleep(0.1)
        model = served.model
    print(
        json.dumps(
            {
                "model": model,
                "minutes": arguments.minutes,
                "answers": result.n_answers,
                "left": result.n_left,
                "refused": result.n_refused,
                "wrong": len(result.wrong),
                "failures": result.failures[:5],
                "answers_with_reused_prefix": result.n_cached,
                "rss_mib": [round(size / 2**20, 1) for _, size in result.samples[:: max(1, len(result.samples) // 8)]],
                "rss_slope_mib_per_minute": round(result.slope_mib_per_minute(), 3),
                "handles": result.handles,
                "is_idle_at_the_end": is_idle_now,
                "machine": describe(),
            },
            indent=2,
        )
    )
    for asked, alone, here in result.wrong[:5]:
        print(f"{asked}\n  alone: {alone!r}\n  here:  {here!r}")
    return 1 if result.wrong or result.failures or not is_idle_now else 0


if __name__ == "__main__":
    raise SystemExit(main())
