"""Is what a GPU computes true? Parity with the reference, speculative against plain greedy text, and refusals.

    PYTHONPATH=app:tests python -m bench.gpu.truth LIBRARY [--device CUDA0] [--models tests/support/models]

A divergence of greedy text is a failure unless plain decoding's own two best logits lie close together there: closer
than `MOST_GAP`, or than twice what plain decoding's logits move by themselves when the same text is computed in rows
of 4, 16 and 64 instead of one by one (the control). Sums in another order may turn such a choice. Exit status 1 when
anything failed.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.gpu.rig import KV_TYPES, Logits, Rig, find_device, plan, used_bytes
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import NativeError
from dflash_desktop.binding.native import Library, NativeSession, sized

MOST_GAP = 1e-2
# Of the largest logit. Matrix units round F32 operands to TF32: weights of this model rounded so, and nothing else,
# move its logits by 1.2e-2 at most and 9e-4 on average (of squares) on a CPU. Single rows are computed in F32.
MOST_ERROR = {"tf32": 5e-2, "f32": 2e-3}
MOST_AVERAGE = {"tf32": 4e-3, "f32": 2e-4}
N_VOCAB = 49152
N_TINY = 512
MODES: list[tuple[str, dict[str, int]]] = [
    ("chain", {}),
    *(("tree", {"tree_budget": budget}) for budget in (1, 3, 7, 8, 15, 22, 31, 47, 63)),
    ("auto", {}),
]

failures: list[str] = []


def judge(is_good: bool, line: str) -> None:
    print(("ok    " if is_good else "FAIL  ") + line, flush=True)
    if not is_good:
        failures.append(line)


# ---- parity


def random_tree(rng: np.random.Generator, ids: list[int], position: int) -> tuple[list[int], list[int], list[int]]:
    """Tokens and parents of a tree that holds the true continuation among decoys; the rows of the true path."""
    tokens, parents, truth = [ids[position]], [-1], [0]
    for row in range(1, int(rng.integers(2, 40))):
        if rng.random() < 0.4 and position + len(truth) < len(ids):
            tokens.append(ids[position + len(truth)])
            parents.append(truth[-1])
            truth.append(row)
        else:
            tokens.append(int(rng.integers(0, N_TINY)))
            parents.append(int(rng.integers(0, row)))
    return tokens, parents, truth


def check_parity(library: Library, device: str, models: Path) -> None:
    folder = models / "qwen35-random-tiny"
    with np.load(folder / "reference.npz") as stored:
        ids = [int(i) for i in stored["ids"].ravel()]
        truth = stored["logits"].reshape(len(ids), -1)
    largest = float(np.abs(truth).max())

    def report(name: str, kind: str, errors: list[Logits]) -> None:
        flat = np.concatenate([error.ravel() for error in errors])
        worst, average = float(np.abs(flat).max()) / largest, float(np.sqrt(np.mean(flat * flat))) / largest
        is_good = worst <= MOST_ERROR[kind] and average <= MOST_AVERAGE[kind]
        judge(is_good, f"parity, {name}: {worst:.1e} of the largest logit at most, {average:.1e} on average")

    def error(logits: Logits, first: int) -> Logits:
        difference: Logits = logits - truth[first : first + len(logits)]
        return difference

    with Rig(library, folder / "qwen35-random-tiny-f32.gguf", device=device, context_tokens=256, max_nodes=63) as rig:
        report("one pass", "tf32", [error(rig.append(ids, N_TINY), 0)])
        rig.reset()
        report("row by row", "f32", [error(rig.append([token], N_TINY), i) for i, token in enumerate(ids)])
        rig.reset()
        rig.append(ids[:7])
        n = 20
        chain = [-1, *range(n - 1)]
        report("chain", "tf32", [error(rig.verify(ids[7 : 7 + n], chain, N_TINY), 7)])
        rig.commit(range(5))
        report("chain after a commit", "tf32", [error(rig.verify(ids[12 : 12 + n], chain, N_TINY), 12)])
        rng = np.random.default_rng(0)
        errors = []
        for _ in range(30):
            rig.reset()
            position = int(rng.integers(1, 6))
            rig.append(ids[:position])
            while position < len(ids) - 8:
                tokens, parents, rows = random_tree(rng, ids, position)
                errors.append(error(rig.verify(tokens, parents, N_TINY)[rows], position))
                kept = rows[: int(rng.integers(1, len(rows) + 1))]
                rig.commit(kept)
                position += len(kept)
        report("30 random trees with commits", "tf32", errors)


# ---- greedy text


def gap_of(logits: Logits) -> float:
    best = np.partition(logits, -2)[-2:]
    return float(best[1] - best[0])


def control(rig: Rig, prompt: list[int], reply: list[int]) -> tuple[int, float, float]:
    """Choices that plain decoding turns at other row counts; the widest gap among them; how far logits move."""
    text = prompt + reply[:-1]
    rig.reset()
    rig.append(text[: len(prompt) - 1])
    alone = np.concatenate([rig.append([token], N_VOCAB) for token in text[len(prompt) - 1 :]])
    n_turned, widest, noise = 0, 0.0, 0.0
    for rows in (4, 16, 64):
        rig.reset()
        rig.append(text[: len(prompt) - 1])
        rest = text[len(prompt) - 1 :]
        together = np.concatenate([rig.append(rest[i : i + rows], N_VOCAB) for i in range(0, len(rest), rows)])
        turned = np.flatnonzero(together.argmax(1) != alone.argmax(1))
        n_turned += len(turned)
        widest = max([widest, *(gap_of(alone[i]) for i in turned)])
        noise = max(noise, float(np.abs(together - alone).max()))
    return n_turned, widest, noise


@dataclass
class Tally:
    """How the texts of one mode compare with plain ones."""

    n_same: int = 0
    n_near: int = 0
    widest: float = 0
    accepted: list[float] = field(default_factory=list)


def check_greedy(rig: Rig, name: str, prompts: list[list[int]], n_tokens: int) -> None:
    tallies = {mode + "".join(map(str, settings.values())): Tally() for mode, settings in MODES}
    n_turned, gap_turned, most_noise = 0, 0.0, 0.0
    for prompt in prompts:
        plain = rig.generate(prompt, "plain", max_tokens=n_tokens, no_reuse=1).tokens
        if rig.generate(prompt, "plain", max_tokens=n_tokens, no_reuse=1).tokens != plain:
            judge(False, f"{name}: plain text is not the same twice")
        turned, gap, noise = control(rig, prompt, plain)
        n_turned, gap_turned, most_noise = n_turned + turned, max(gap_turned, gap), max(most_noise, noise)
        for (mode, settings), (label, tally) in zip(MODES, tallies.items(), strict=True):
            reply = rig.generate(prompt, mode, max_tokens=n_tokens, **settings)
            tally.accepted.append(reply.mean_accepted)
            if reply.tokens == plain:
                tally.n_same += 1
                continue
            at = next(i for i, (a, b) in enumerate(zip(reply.tokens, plain, strict=False)) if a != b)
            rig.reset()
            rig.append((prompt + plain[:at])[:-1])
            gap = gap_of(rig.append([(prompt + plain[:at])[-1]], N_VOCAB)[0])
            tally.widest = max(tally.widest, gap)
            tally.n_near += 1
            if gap > max(MOST_GAP, 2 * noise):  # both logits may have moved
                judge(False, f"{name}, {label}: another text from token {at} on; gap {gap:.4f}, control {noise:.4f}")
    for label, tally in tallies.items():
        near = f", {tally.n_near} part where the gap is at most {tally.widest:.4f}" if tally.n_near else ""
        accepted = np.mean(tally.accepted)
        print(f"      {name}, {label}: {tally.n_same} of {len(prompts)} texts equal{near}; AL {accepted:.2f}")
    print(
        f"      {name}, control: plain turns {n_turned} of its own choices at 4, 16 and 64 rows "
        f"(gaps up to {gap_turned:.4f}); its logits move by up to {most_noise:.1e}",
        flush=True,
    )


# ---- refusals


def check_plan(library: Library, device: str, models: Path) -> None:
    """What was planned is what loading takes; more than there is is refused with numbers."""
    pair = [models / f"{name}-q8_0.gguf" for name in ("qwen35-mini", "qwen35-mini-dflash")]
    planned = plan(library, pair[0], pair[1], device, context_tokens=2048)
    with Rig(library, pair[0], pair[1], device=device, context_tokens=2048) as rig:
        taken = used_bytes(rig.session.memory())
    is_near = abs(planned.total_bytes - taken) <= 0.05 * taken
    judge(is_near and planned.fits == 1, f"plan: {planned.total_bytes >> 20} MiB planned, {taken >> 20} MiB taken")
    f32 = {"kv_k": KV_TYPES["f32"], "kv_v": KV_TYPES["f32"]}
    huge = plan(library, pair[0], pair[1], device, context_tokens=1 << 24, **f32)
    numbers = f"{huge.total_bytes >> 20} MiB needed, {huge.free_bytes >> 20} free, {huge.reserve_bytes >> 20} reserved"
    judge(huge.fits == 0, f"plan: 16,777,216 tokens do not fit: {numbers}; {huge.max_context_tokens} tokens would")


def check_chunks(library: Library, device: str, models: Path, n_tokens: int = 1100) -> None:
    """A prompt in one go says the same as in small pieces: long chunks may compute products another way."""
    ids = [(7 * i) % 30000 for i in range(n_tokens)]
    found = []
    for chunk in (2048, 128):
        target = models / "qwen35-mini-q8_0.gguf"
        with Rig(library, target, device=device, context_tokens=2048, max_nodes=1, prefill_chunk=chunk) as rig:
            rig.append(ids)
            found.append(rig.append([5], N_VOCAB)[0])
    error = float(np.abs(found[0] - found[1]).max() / np.abs(found[1]).max())
    judge(error <= MOST_ERROR["tf32"], f"chunks of 2048 and of 128 agree: {error:.1e} of the largest logit")


def check_refusals(library: Library, device: str, models: Path) -> None:
    target = models / "qwen35-mini-q8_0.gguf"
    with Rig(library, target, device=device, context_tokens=512, max_nodes=63) as rig:
        free = find_device(library, device).free_bytes
        largest = sized(abi.SessionParams, context_tokens=1 << 24, kv_k=KV_TYPES["f32"], kv_v=KV_TYPES["f32"])
        opened: list[NativeSession] = []
        try:
            while len(opened) < 8:
                opened.append(NativeSession(rig.target, None, largest))
            judge(False, "more memory than there is is refused")
        except NativeError as error:
            judge(True, f"more memory than there is is refused: {error}")
        for session in opened:
            session.close()
        lost = (free - find_device(library, device).free_bytes) >> 20
        judge(lost < 64, f"the memory comes back ({lost} MiB less free)")
        for name, number in KV_TYPES.items():
            try:
                rig.reopen(context_tokens=512, max_nodes=63, kv_k=number, kv_v=number)
                rig.append([1, 2, 3])
                logits = rig.append([4], N_VOCAB)
                judge(bool(np.isfinite(logits).all()), f"KV cache of {name} computes")
            except NativeError as error:
                judge(True, f"KV cache of {name} is refused: {error}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="libdflash, with ggml's libraries beside it")
    parser.add_argument("--device", default="CUDA0")
    parser.add_argument("--models", type=Path, default=Path("tests/support/models"))
    parser.add_argument("--pair", type=Path, nargs=2, action="append", default=[], help="another target and draft")
    parser.add_argument("--prompts", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--kv", nargs="*", default=["f16", "q8_0", "q4_0"])
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    library = Library(options.library)
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    prompts = [prompt["ids"] for prompt in stored["prompts"]][: options.prompts]

    check_parity(library, options.device, options.models)
    check_plan(library, options.device, options.models)
    check_chunks(library, options.device, options.models)
    check_refusals(library, options.device, options.models)
    own = [options.models / f"{name}-q8_0.gguf" for name in ("qwen35-mini", "qwen35-mini-dflash")]
    for target, draft in [own, *options.pair]:
        with Rig(library, target, draft, device=options.device, context_tokens=1024) as rig:
            for kv in options.kv:
                rig.reopen(context_tokens=1024, kv_k=KV_TYPES[kv], kv_v=KV_TYPES[kv])
                check_greedy(rig, f"{target.stem}, KV {kv}", prompts, options.tokens)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
