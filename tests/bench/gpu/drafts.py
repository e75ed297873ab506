"""Every kind of draft on a GPU against the same on the CPU: candidates, greedy path and tree.

    PYTHONPATH=app:tests python -m bench.gpu.drafts make FOLDER       where the package gguf is; the files can travel
    PYTHONPATH=app:tests python -m bench.gpu.drafts LIBRARY FOLDER [--device CUDA0] [--models tests/support/models]

The drafts are random ones for qwen35-mini, whose vocabulary is large enough for candidates to be picked in chunks.
Exit status 1 when anything failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.gpu.rig import Rig
from dflash_desktop.binding import abi
from dflash_desktop.binding.native import Library, sized

MOST_ERROR = 0.1  # of a log-probability: F16 caches and TF32 operands on one side, F32 on the other
N_CONTEXT = 40
NODES = 24


def make(folder: Path) -> None:
    from support.drafts import DraftSpec, random_weights, write_upstream

    folder.mkdir(parents=True, exist_ok=True)
    common = DraftSpec(
        n_embd=256,
        head_dim=64,
        n_ff=256,
        n_vocab=49152,
        feature_layers=(1, 3, 5),
        mask_token=16,
        block_size=8,
        top_k=16,
    )
    for name, spec in {
        "dflash": common,
        "dflash2": replace(common, kind="dflash2", conv_taps=2),
        "dspark": replace(common, kind="dspark"),
        "dspark-reduced": replace(common, kind="dspark", n_vocab_draft=9000, gate="head", has_sandwich_norms=True),
        "dflash2-reduced": replace(common, kind="dflash2", n_vocab_draft=9000, sliding=(True, False), window=16),
        "gelu": replace(common, is_gelu=True, has_feature_norms=True, logit_softcap=20.0),
    }.items():
        weights = random_weights(spec).items()
        halves = {key: data.astype(np.float16) if data.ndim == 2 else data for key, data in weights}
        write_upstream(folder / f"{name}.gguf", spec, halves)


def run(
    library: Library, target: Path, draft: Path, device: str, ids: list[int]
) -> tuple[list[list[int]], list[list[float]], dict[tuple[int, ...], float], float]:
    """Candidates and their log-probabilities after N_CONTEXT tokens, a tree's paths with theirs, draft microseconds."""
    with Rig(library, target, draft, device=device, context_tokens=512, max_nodes=NODES) as rig:
        n_depths = 7 + ("dspark" in draft.name)
        rig.append(ids[:N_CONTEXT])
        block = rig.draft_block(ids[N_CONTEXT], 4, n_depths)
        rig.reset()
        generation = sized(abi.Generation, draft_mode=abi.DraftModeCode.TREE, tree_budget=NODES, max_tokens=NODES + 1)
        rig.session.begin(ids[: N_CONTEXT + 1], generation)
        while not rig.session.prefill().is_complete:
            pass
        step = rig.session.step()
        paths: list[tuple[int, ...]] = [()]
        for row in range(1, step.n_drafted + 1):
            paths.append((*paths[step.node_parents[row]], step.node_tokens[row]))
        weights = {path: step.node_logprobs[row] for row, path in enumerate(paths) if row}
        times = []
        while step.finish == abi.Finish.NONE:
            step = rig.session.step()
            times.append(step.draft_us)
        return block[0].tolist(), block[1].tolist(), weights, float(np.median(times))


def check(library: Library, target: Path, draft: Path, device: str, ids: list[int]) -> bool:
    here = run(library, target, draft, "CPU", ids)
    there = run(library, target, draft, device, ids)
    error = 0.0
    for mine, theirs, a, b in zip(here[0], there[0], here[1], there[1], strict=True):
        # By token: the last candidates of a head that goes on with them may change at a near tie.
        mine_of, theirs_of = dict(zip(mine, a, strict=True)), dict(zip(theirs, b, strict=True))
        both = mine_of.keys() & theirs_of.keys()
        error = max([error, *(abs(mine_of[token] - theirs_of[token]) for token in both)])
        if mine[0] != theirs[0]:
            break  # a near tie: what follows hangs on it
        if len(both) < len(mine) - 1:
            error = float("inf")
    shared = here[2].keys() & there[2].keys()
    tree_error = max((abs(here[2][path] - there[2][path]) for path in shared), default=0.0)
    is_good = error < MOST_ERROR and tree_error < 3 * MOST_ERROR and len(shared) >= 0.8 * len(here[2])
    path = "the same" if [row[0] for row in there[0]] == [row[0] for row in here[0]] else "turns at a tie"
    print(
        f"{'ok   ' if is_good else 'FAIL '} {draft.stem}: candidates {error:.4f}, "
        f"tree {tree_error:.4f} over {len(shared)} of {len(here[2])} nodes, greedy path {path}; "
        f"draft {there[3]:.0f} us (CPU {here[3]:.0f})",
        flush=True,
    )
    return is_good


def main() -> int:
    if sys.argv[1:2] == ["make"]:
        make(Path(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="libdflash, with ggml's libraries beside it")
    parser.add_argument("folder", type=Path, help="what `make` wrote")
    parser.add_argument("--device", default="CUDA0")
    parser.add_argument("--models", type=Path, default=Path("tests/support/models"))
    options = parser.parse_args()
    library = Library(options.library)
    stored = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    ids = (stored["prompts"][0]["ids"] * 4)[: N_CONTEXT + 1]
    target = options.models / "qwen35-mini-q8_0.gguf"
    drafts = sorted(options.folder.glob("*.gguf"))
    results = [check(library, target, draft, options.device, ids) for draft in drafts]
    print(f"{results.count(False)} failures of {len(results)}")
    return 0 if drafts and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
