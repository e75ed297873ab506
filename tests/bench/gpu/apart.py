"""A draft on another device than its target: the same replies, and what the way through the host costs.

    PYTHONPATH=app:tests python -m bench.gpu.apart LIBRARY [--target CUDA0] [--draft CUDA1] [--models FOLDER]

Compares the pair on one device, the draft apart on the same device, and the draft on the other one. Exit status 1 when
a text differs where the target's two best tokens were no near tie (see truth.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from bench.gpu.rig import Rig, find_device
from bench.gpu.truth import MOST_GAP, N_VOCAB, gap_of
from dflash_desktop.binding.native import Library


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--target", default="CUDA0", help="device of the target")
    parser.add_argument("--draft", default="CUDA1", help="another device, for the draft")
    parser.add_argument("--models", type=Path, default=Path("tests/support/models"))
    parser.add_argument("--prompts", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=96)
    options = parser.parse_args()
    library = Library(options.library)
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    prompts = [prompt["ids"] for prompt in stored["prompts"]][: options.prompts]
    pair = [options.models / f"{name}-q8_0.gguf" for name in ("qwen35-mini", "qwen35-mini-dflash")]
    n_failed = 0
    beside: dict[str, float] = {}
    for place, draft_device, is_apart in (
        ("beside the target", options.target, False),
        ("apart, same device", options.target, True),
        (f"on {options.draft}", options.draft, True),
    ):
        index = find_device(library, draft_device).index
        with Rig(
            library, *pair, device=options.target, draft_device=index, is_apart=is_apart, context_tokens=1024
        ) as rig:
            for mode, settings in (("chain", {}), ("tree", {"tree_budget": 22})):
                speeds, lengths, context_us, n_same = [], [], [], 0
                for prompt in prompts:
                    plain = rig.generate(prompt, "plain", max_tokens=options.tokens).tokens
                    reply = rig.generate(prompt, mode, max_tokens=options.tokens, no_reuse=1, **settings)
                    speeds.append(reply.tokens_per_second)
                    lengths.append(reply.mean_accepted)
                    context_us.append(float(np.median(reply.draft_us)))
                    if reply.tokens == plain:
                        n_same += 1
                        continue
                    at = next(i for i, (a, b) in enumerate(zip(reply.tokens, plain, strict=False)) if a != b)
                    rig.reset()
                    rig.append((prompt + plain[:at])[:-1])
                    gap = gap_of(rig.append([(prompt + plain[:at])[-1]], N_VOCAB)[0])
                    if gap > 20 * MOST_GAP:  # far beyond what truth.py sees plain decoding move by itself
                        n_failed += 1
                        print(f"FAIL  {place}, {mode}: another text from token {at} on, gap {gap:.3f}")
                speed = float(np.median(speeds))
                beside.setdefault(mode, speed)
                print(
                    f"draft {place}, {mode}: {n_same} of {len(prompts)} texts are plain decoding's; "
                    f"AL {np.mean(lengths):.2f}; {speed:.0f} tok/s, {speed / beside[mode]:.2f} of beside; "
                    f"draft {np.median(context_us):.0f} us a step",
                    flush=True,
                )
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
