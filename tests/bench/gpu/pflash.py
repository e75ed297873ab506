"""Time to the end of the prefill with PFlash and without, on the shapes of a 27B target and a 0.6B scorer.

    PYTHONPATH=app:tests python -m bench.gpu.pflash LIBRARY FOLDER [--tokens 32768 131072] [--keep 0.1] [--seconds 150]

FOLDER takes the synthetic model files (17 GB, written when they are missing). What is cheap comes first, and every
figure is printed as soon as it is there; when --seconds are over, the whole prefill stops where it is and the table
says how far it came. The prompt is random tokens: how long anything takes does not depend on what they say. What the
scorer would keep is measured elsewhere (bench.pflash_needles).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench.gpu.rig import MODES, Rig, find_device, used_bytes
from bench.gpu.synthetic import (
    ScorerShape,
    Shape,
    scorer_keys,
    scorer_tensors,
    target_keys,
    target_tensors,
    write_file,
)
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer
from dflash_desktop.engine.pflash.rating import rate

UNIT_TOKENS = 64
QUESTION_TOKENS = 32
PINNED_TOKENS = 256  # beside what is kept: the question's turn, roles, the system prompt
SEED = 1
TINY = Shape(
    n_layers=8, n_embd=256, n_ff=512, n_head=4, n_head_kv=2, head_dim=128, n_vocab=4096, n_head_k=2, n_head_v=4
)
TINY_SCORER = ScorerShape(n_layers=5, n_embd=256, n_ff=512, n_head=4, n_head_kv=2, n_vocab=4096)


@dataclass
class Row:
    """One length of prompt; seconds are None where the time was over before."""

    tokens: int
    kept: int
    score_s: float | None = None
    short_s: float | None = None
    whole_s: float | None = None
    scorer_bytes: int = 0  # beside its weights

    def cells(self) -> list[str]:
        def seconds(value: float | None) -> str:
            return "-" if value is None else f"{value:.2f}"

        both = None if self.score_s is None or self.short_s is None else self.score_s + self.short_s
        share = "-" if both is None or self.whole_s is None else f"{both / self.whole_s:.3f}"
        gain = "-" if both is None or self.whole_s is None else f"{self.whole_s / both:.1f}"
        memory = f"{self.scorer_bytes / 2**20:.0f}"
        own = [seconds(self.whole_s), seconds(self.score_s), seconds(self.short_s), seconds(both)]
        return [str(self.tokens), str(self.kept), *own, share, gain, memory]


@dataclass
class Clock:
    """The time bound of the whole run."""

    seconds: float
    began: float = field(default_factory=time.perf_counter)

    @property
    def gone(self) -> float:
        return time.perf_counter() - self.began

    @property
    def is_over(self) -> bool:
        return self.gone > self.seconds

    def say(self, text: str) -> None:
        print(f"[{self.gone:6.1f} s] {text}", flush=True)


def write_models(folder: Path, *, is_tiny: bool, clock: Clock) -> tuple[Path, Path]:
    """Target and scorer."""
    folder.mkdir(parents=True, exist_ok=True)
    shape, scorer = (TINY, TINY_SCORER) if is_tiny else (Shape(), ScorerShape())
    jobs = [
        (folder / "scorer.gguf", scorer_keys(scorer), scorer_tensors(scorer)),
        (folder / "target.gguf", target_keys(shape), target_tensors(shape)),
    ]
    for path, keys, tensors in jobs:
        if not path.exists():
            part = path.with_suffix(".part")  # so that a run that was cut off leaves no half file behind
            size = write_file(part, keys, tensors, SEED)
            part.rename(path)
            clock.say(f"{path.name} written, {size / 1e9:.2f} GB")
    return jobs[1][0], jobs[0][0]


def random_tokens(n: int, n_vocab: int, seed: int) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(0, n_vocab - 300, n)]


def score_all(
    library: Library, path: Path, rows: Sequence[Row], *, device: str, n_vocab: int, window: int, clock: Clock
) -> None:
    """Rate every length with the product's own rule, reading and host time included."""
    with NativeTarget(library, path, device=find_device(library, device).index) as target:
        while not target.load_piece().is_complete:
            pass
        clock.say("scorer loaded")
        asked = tuple((random_tokens(QUESTION_TOKENS, n_vocab, seed), [1.0] * QUESTION_TOKENS) for seed in (2, 3))
        for is_warming in (True, False):
            for row in rows[:1] if is_warming else rows:
                n = min(4096, row.tokens) if is_warming else row.tokens
                text = random_tokens(n, n_vocab, n + is_warming)
                units = {str(start): text[start : start + UNIT_TOKENS] for start in range(0, n, UNIT_TOKENS)}
                opened = time.perf_counter()
                params = sized(abi.ScorerParams, text_tokens=n, window_tokens=window)
                with NativeScorer(target, params) as scorer:
                    start = time.perf_counter()
                    running = rate(scorer, units.__getitem__, list(units), asked[0], asked[1])
                    for _ in running:
                        pass
                    took = time.perf_counter() - start
                    memory = scorer.memory()
                if is_warming:
                    continue
                row.score_s = took
                row.scorer_bytes = used_bytes(memory) - memory.target_weights_bytes
                clock.say(
                    f"scored {n} tokens in {took:.2f} s, {n / took:.0f} tok/s; opened in {start - opened:.2f} s, "
                    f"{row.scorer_bytes / 2**20:.0f} MiB beside the weights"
                )
                if clock.is_over:
                    return


def prefill(rig: Rig, prompt: Sequence[int], marks: dict[int, float], clock: Clock) -> int:
    """Tokens prefilled before the time was over; `marks` takes the seconds at each length it holds and names."""
    rig.session.begin(prompt, sized(abi.Generation, draft_mode=MODES["plain"], max_tokens=1, ignore_stop=1))
    start = time.perf_counter()
    open_marks = sorted(n for n in marks if marks[n] == 0)
    said = 0
    while True:
        progress = rig.session.prefill()
        gone = time.perf_counter() - start
        while open_marks and (progress.n_done >= open_marks[0] or progress.is_complete):
            marks[open_marks.pop(0)] = gone
        if progress.n_done - said >= 16384 and not progress.is_complete:
            said = progress.n_done
            clock.say(f"  whole prompt: {said} tokens in {gone:.2f} s")
        if progress.is_complete:
            return len(prompt)
        if clock.is_over:
            return int(progress.n_done)


def measure_target(
    library: Library, path: Path, rows: Sequence[Row], *, device: str, n_vocab: int, clock: Clock
) -> str:
    """Fill in the prefills; what is to be said when the last one was cut off."""
    longest = max(row.tokens for row in rows)
    with Rig(library, path, device=device, context_tokens=longest + 512) as rig:
        clock.say(f"target loaded and opened, {used_bytes(rig.session.memory()) >> 20} MiB")
        prefill(rig, random_tokens(min(4096, longest // 2), n_vocab, 4), {}, clock)  # kernels are loaded, graphs built
        for row in rows:
            prompt = random_tokens(row.kept, n_vocab, 5 + row.tokens)  # nothing in common with any other
            marks = {row.kept: 0.0}
            if prefill(rig, prompt, marks, clock) < row.kept:
                return "The time was over before the whole prompt's turn."
            row.short_s = marks[row.kept]
            clock.say(f"shortened prompt of {row.tokens}: {row.kept} tokens in {row.short_s:.2f} s")
        marks = {row.tokens: 0.0 for row in rows}
        n_done = prefill(rig, random_tokens(longest, n_vocab, 6), marks, clock)
        for row in rows:
            if marks[row.tokens]:
                row.whole_s = marks[row.tokens]
                clock.say(f"whole prompt: {row.tokens} tokens in {row.whole_s:.2f} s")
    return "" if n_done == longest else f"The time was over when {n_done} tokens of the whole prompt were there."


def main() -> None:
    clock = Clock(0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[32768, 131072])
    parser.add_argument("--keep", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=150, help="after them nothing new begins")
    parser.add_argument("--window", type=int, default=0, help="tokens that the scorer reads together")
    parser.add_argument("--device", default="CUDA0")
    parser.add_argument("--tiny", action="store_true", help="models of a few MB, to try this script")
    parser.add_argument("--json", type=Path, help="keep the numbers here")
    options = parser.parse_args()
    clock.seconds = options.seconds
    library = Library(options.library)
    device = find_device(library, options.device)
    clock.say(f"device {device.name.decode()} ({device.description.decode()})")
    target, scorer = write_models(options.folder, is_tiny=options.tiny, clock=clock)
    n_target, n_scorer = (TINY.n_vocab, TINY_SCORER.n_vocab) if options.tiny else (Shape.n_vocab, ScorerShape.n_vocab)
    rows = [Row(n, round(options.keep * n) + PINNED_TOKENS) for n in sorted(options.tokens)]
    cut_off = "The time was over before the target's turn."
    try:
        score_all(library, scorer, rows, device=options.device, n_vocab=n_scorer, window=options.window, clock=clock)
        if not clock.is_over:
            cut_off = measure_target(library, target, rows, device=options.device, n_vocab=n_target, clock=clock)
    finally:
        print(f"\nkeep {options.keep}, {device.description.decode()}; the scorer stays loaded")
        print(
            "| prompt | shortened | whole, s | score, s | shortened, s | together, s | ratio | times shorter "
            "| scorer, MiB beside weights |\n" + "|---" * 9 + "|"
        )
        for row in rows:
            print("| " + " | ".join(row.cells()) + " |")
        print(cut_off, flush=True)
        if options.json:
            found = {"device": device.description.decode(), "keep": options.keep, "rows": [asdict(row) for row in rows]}
            options.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
