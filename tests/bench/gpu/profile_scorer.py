"""Where the time of scoring goes on a CUDA device: passes, reading out, and what Python does; kernels by name.

    PYTHONPATH=app:tests python -m bench.gpu.profile_scorer LIBRARY SCORER [--tokens 131072] [--device CUDA0]

SCORER is a model file as bench.gpu.pflash writes it. The text is random tokens.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from bench.gpu.pflash import QUESTION_TOKENS, UNIT_TOKENS, random_tokens
from bench.gpu.profile import kernels_of, summarise
from bench.gpu.rig import find_device, used_bytes
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.pflash.rating import rate

N_VOCAB = 1000  # tokens drawn: every vocabulary has so many
PROFILED = 8192  # tokens: a trace of a long text would be gigabytes


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("scorer", type=Path)
    parser.add_argument("--tokens", type=int, default=131072)
    parser.add_argument("--window", type=int, default=0, help="tokens that the scorer reads together")
    parser.add_argument("--device", default="CUDA0")
    parser.add_argument("--kernels", action="store_true", help="needs PyTorch")
    options = parser.parse_args()
    library = Library(options.library)
    with NativeTarget(library, options.scorer, device=find_device(library, options.device).index) as target:
        while not target.load_piece().is_complete:
            pass
        params = sized(abi.ScorerParams, text_tokens=options.tokens, window_tokens=options.window)
        opened = time.perf_counter()
        with NativeScorer(target, params) as scorer:
            print(
                f"opened in {time.perf_counter() - opened:.2f} s, {used_bytes(scorer.memory()) >> 20} MiB", flush=True
            )
            asked = [(random_tokens(QUESTION_TOKENS, N_VOCAB, seed), [1.0] * QUESTION_TOKENS) for seed in (2, 3)]
            text = random_tokens(options.tokens, N_VOCAB, 4)

            def read(tokens: list[int], question: int) -> list[float]:
                """Seconds of each piece."""
                scorer.begin(tokens, *asked[question])
                pieces = []
                while True:
                    start = time.perf_counter()
                    is_complete = scorer.run().is_complete
                    pieces.append(time.perf_counter() - start)
                    if is_complete:
                        return pieces

            read(random_tokens(min(4096, options.tokens), N_VOCAB, 9), 0)
            for question in (0, 1):
                begun = time.perf_counter()
                pieces = read(text, question)
                whole = time.perf_counter() - begun
                print(
                    f"question {question}: {whole:.3f} s; {len(pieces) - 1} pieces {sum(pieces[:-1]):.3f} s, "
                    f"median {1e3 * sorted(pieces)[len(pieces) // 2]:.2f} ms; "
                    f"question and reading out {pieces[-1]:.3f} s"
                )
            print(f"masses to a list {seconds_of(scorer.masses):.3f} s", flush=True)
            text = random_tokens(options.tokens, N_VOCAB, 5)
            units = {str(start): text[start : start + UNIT_TOKENS] for start in range(0, len(text), UNIT_TOKENS)}
            took = seconds_of(lambda: list(rate(scorer, units.__getitem__, list(units), asked[0], asked[1])))
            print(f"rated by the product's rule in {took:.3f} s, {len(text) / took:.0f} tok/s", flush=True)
            if options.kernels:
                text = random_tokens(PROFILED, N_VOCAB, 6)
                summarise(f"reading {PROFILED} tokens and one question", kernels_of(lambda: read(text, 0)), 1)
                summarise("a second question", kernels_of(lambda: read(text, 1)), 1)


if __name__ == "__main__":
    main()
