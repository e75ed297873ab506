"""What the prefix cache saves when agents take turns: time to the first token with it and without, in one run.

    python -m bench.prefix_agents [--pair smollm2|mini] [--prompt N] [--system N] [--agents N] [--turns N] [--threads N]

from the folder `tests`. Agents share a system text of --system tokens; their first prompts have --prompt tokens, and
each turn adds the reply and --new tokens. Both sessions are in one process, asked one after the other.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from typing import TYPE_CHECKING, Any

from bench.machine import describe
from native.oracles.prompts import starter_pair
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = {"draft_mode": 3, "ignore_stop": 1}
N_REPLY = 16


def ask(rig: Rig, prompt: Sequence[int]) -> tuple[float, int, list[int]]:
    """Milliseconds to the first token, tokens not read again, and the reply."""
    started = time.perf_counter()
    begun = rig.begin(prompt, max_tokens=N_REPLY, **PLAIN)
    step = rig.session.step()
    first_ms = 1000 * (time.perf_counter() - started)
    tokens = list(step.tokens[: step.n_committed])
    return first_ms, begun.n_reused, tokens + rig.finish().tokens


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", choices=("smollm2", "mini"), default="smollm2")
    parser.add_argument("--prompt", type=int, default=1200)
    parser.add_argument("--system", type=int, default=400)
    parser.add_argument("--new", type=int, default=60)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    target, draft = starter_pair() if arguments.pair == "smollm2" else (QWEN35_MINI, QWEN35_MINI_DRAFT)
    source = random.Random(1)

    def text(n: int) -> list[int]:
        return [source.randrange(200, 1000) for _ in range(n)]

    context = arguments.prompt + arguments.turns * (N_REPLY + arguments.new) + 64
    options = {"context": context, "n_threads": arguments.threads}
    with Rig(target, draft, prefix_bytes=-1, **options) as without, Rig(target, draft, **options) as cached:
        system = [*text(arguments.system - 1), cached.stop_tokens[0]]  # messages end with one
        prompts = [system + text(arguments.prompt - arguments.system) for _ in range(arguments.agents)]
        rows: list[dict[str, Any]] = []
        for turn in range(arguments.turns):
            for agent in range(arguments.agents):
                before_ms, n_before, reply = ask(without, prompts[agent])
                after_ms, n_after, same = ask(cached, prompts[agent])
                rows.append(
                    {
                        "turn": turn,
                        "agent": agent,
                        "n_prompt": len(prompts[agent]),
                        "n_reused": [n_before, n_after],
                        "ttft_ms": [round(before_ms, 1), round(after_ms, 1)],
                        "ratio": round(before_ms / after_ms, 2),
                        "is_same_reply": same == reply,
                    }
                )
                prompts[agent] = [*prompts[agent], *reply, *text(arguments.new)]
        figures = cached.session.prefixes()
    later = [row["ratio"] for row in rows if row["turn"]]
    print(
        json.dumps(
            {
                "machine": describe(),
                "pair": arguments.pair,
                "rows": rows,
                "ttft_ratio_median_after_the_first_turn": statistics.median(later),
                "used_mib": round(figures.used_bytes / 2**20, 1),
                "limit_mib": round(figures.most_bytes / 2**20, 1),
                "saved_tokens": figures.n_saved_tokens,
                "save_ms_per_1000_tokens": round(figures.save_us / max(1, figures.n_saved_tokens), 2),
                "restores": figures.n_restores,
                "restored_tokens": figures.n_restored_tokens,
                "restore_ms_per_1000_tokens": round(figures.restore_us / max(1, figures.n_restored_tokens), 2),
            },
            indent=1,
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
