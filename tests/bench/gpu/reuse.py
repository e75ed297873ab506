"""The prefix cache and the scorer on a GPU: are replies those of a cold read, and ratings the processor's?

    PYTHONPATH=app:tests python -m bench.gpu.reuse LIBRARY [--pair TARGET DRAFT] [--big TARGET] [--device CUDA0]

Two agents ask in turn, each with the whole of what was said, so the KV cache is never the asker's own. Every reply is
compared with one read cold; where they part, the two best tokens have to be a near tie (see truth.py). --big: only the
waiting, on prompts of random tokens. Exit status 1 when anything failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.gpu import truth
from bench.gpu.rig import MODES, Rig, find_device
from bench.gpu.truth import MOST_GAP, N_VOCAB, gap_of, judge
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer

CACHE_BYTES = 8 << 30
N_TURNS = 4
N_NEW = 64  # tokens of a turn beside the reply
LEAST_LIKE = 0.98  # correlation of two devices' ratings


def first_token_ms(rig: Rig, prompt: Sequence[int], **generation: int) -> tuple[float, int]:
    """Milliseconds to the first token, and prompt tokens that the prefix cache brought back."""
    start = time.perf_counter()
    begun = rig.session.begin(prompt, sized(abi.Generation, draft_mode=MODES["plain"], max_tokens=1, **generation))
    while not rig.session.prefill().is_complete:
        pass
    rig.session.step()
    return 1e3 * (time.perf_counter() - start), begun.n_restored


def check_replies(library: Library, pair: Sequence[Path], device: str, prompts: list[list[int]]) -> None:
    """Agents in turn, in every draft mode."""
    agents = [list(np.concatenate([prompts[a], prompts[a + 2], prompts[a + 4]]).tolist()) for a in (0, 1)]
    name = pair[0].stem
    n_same, n_near, n_restored = 0, 0, 0
    with Rig(library, *pair, device=device, context_tokens=2048, prefix_bytes=CACHE_BYTES) as rig:
        for turn in range(N_TURNS):
            for prompt, mode in ((agent, mode) for agent in agents for mode in ("plain", "chain", "tree")):
                before = rig.session.prefixes().n_restored_tokens
                reply = rig.generate(prompt, mode, max_tokens=32).tokens
                n_restored += rig.session.prefixes().n_restored_tokens - before
                cold = rig.generate(prompt, mode, max_tokens=32, no_reuse=1).tokens
                if reply == cold:
                    n_same += 1
                    continue
                n_near += 1
                at = next(i for i, (a, b) in enumerate(zip(reply, cold, strict=False)) if a != b)
                text = prompt + cold[:at]
                rig.reset()
                rig.append(text[:-1])
                gap = gap_of(rig.append(text[-1:], N_VOCAB)[0])
                _, _, noise = truth.control(rig, prompt, cold)
                if gap > max(MOST_GAP, 2 * noise):
                    judge(False, f"{name}, turn {turn}, {mode}: not the cold reply; gap {gap:.4f}, control {noise:.4f}")
            for agent, prompt in enumerate(agents):
                prompt += rig.generate(prompt, "plain", max_tokens=32).tokens + prompts[6 + agent]
    judge(n_restored > 0, f"{name}: {n_same} replies are the cold ones, {n_near} part; {n_restored} tokens restored")


def measure_waiting(library: Library, target: Path, device: str, n_prompt: int) -> None:
    """Time to the first token of two agents in turn, with the prefix cache and without it."""
    source = np.random.default_rng(7)
    with Rig(library, target, device=device, context_tokens=n_prompt + 2048, prefix_bytes=CACHE_BYTES) as rig:
        agents = [source.integers(200, 30000, n_prompt).tolist() for _ in range(2)]
        cold, warm, restored = [], [], 0
        for turn in range(N_TURNS):
            for prompt in agents:
                if turn:
                    ms, n = first_token_ms(rig, prompt)
                    warm.append(ms)
                    restored += n
                    cold.append(first_token_ms(rig, prompt, no_reuse=1)[0])
                first_token_ms(rig, prompt)
                prompt += source.integers(200, 30000, N_NEW).tolist()
        cache = rig.session.prefixes()
        print(
            f"{target.stem}, two agents with {n_prompt} tokens: first token after {np.median(warm):.1f} ms instead of "
            f"{np.median(cold):.1f}; {restored} tokens restored, saving {cache.save_us / 1e3:.0f} ms in all, restoring "
            f"{cache.restore_us / 1e3:.0f} ms; {cache.used_bytes >> 20} MiB in the cache",
            flush=True,
        )


def masses_on(
    library: Library, path: Path, device: str, text: list[int], asked: list[int], together: int
) -> list[float]:
    with NativeTarget(library, path, device=find_device(library, device).index) as target:
        while not target.load_piece().is_complete:
            pass
        params = sized(abi.ScorerParams, text_tokens=len(text), window_tokens=192, windows_together=together)
        with NativeScorer(target, params) as scorer:
            scorer.begin(text, asked)
            while not scorer.run().is_complete:
                pass
            return scorer.masses()


def check_ratings(library: Library, path: Path, device: str, prompts: list[list[int]]) -> None:
    """What the scorer rates here and on the processor, window by window and several at once."""
    text = [token for prompt in prompts * 4 for token in prompt]
    here = [masses_on(library, path, device, text, prompts[0], together) for together in (1, 3)]
    there = masses_on(library, path, "CPU", text, prompts[0], 1)
    alike = [float(np.corrcoef(np.log(np.add(masses, 3e-3)), np.log(np.add(there, 3e-3)))[0, 1]) for masses in here]
    line = f"{path.stem} as scorer of {len(text)} tokens: ratings like the processor's"
    judge(min(alike) >= LEAST_LIKE, f"{line} {alike[0]:.4f}, {alike[1]:.4f} read in threes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--device", default="CUDA0")
    parser.add_argument("--pair", type=Path, nargs=2, action="append", default=[], help="target and draft")
    parser.add_argument("--big", type=Path, help="a target whose waiting is measured")
    parser.add_argument("--big-tokens", type=int, default=8192)
    options = parser.parse_args()
    library = Library(options.library)
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    prompts = [prompt["ids"] for prompt in stored["prompts"]]
    for pair in options.pair:
        check_replies(library, pair, options.device, prompts)
        check_ratings(library, pair[0], options.device, prompts)
        measure_waiting(library, pair[0], options.device, 1500)
    if options.big:
        measure_waiting(library, options.big, options.device, options.big_tokens)
    print(f"{len(truth.failures)} failures")
    return 1 if truth.failures else 0


if __name__ == "__main__":
    sys.exit(main())
