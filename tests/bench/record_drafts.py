"""Record what drafts say of real replies: writes tests/support/references/recorded_drafts.npz.

    python -m bench.record_drafts

from the folder `tests`. For each place of a plain reply, the draft's candidates of a block of 8 and of one of 4: their
log-probabilities (in 32nds, which is as fine as a tuner can tell) and the rank of the token that really came, 255 where
it was no candidate. Tokens are numbered anew within each reply: only whether they recur matters.
tests/native/test_tuner_recorded.py plays these recordings to the tuner on machines of several kinds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dflash_desktop.cli.prompts import KINDS
from native.oracles.prompts import chat_ids, starter_pair
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

PLACE = Path(__file__).parents[1] / "support" / "references" / "recorded_drafts.npz"
BLOCKS = (8, 4)
N_PLACES = 120
K = 8
NO_RANK = 255


def record(rig: Rig, prompt: list[int]) -> dict[str, np.ndarray]:
    """One reply: by block `logprobs` and `ranks`; `prompt` and `tokens`."""
    tokens = rig.generate(prompt, max_tokens=N_PLACES + max(BLOCKS), draft_mode=3, no_reuse=1).tokens
    rig.reset()
    rig.append(prompt[:-1])
    logprobs: dict[int, list[np.ndarray]] = {block: [] for block in BLOCKS}
    ranks: dict[int, list[np.ndarray]] = {block: [] for block in BLOCKS}
    root = prompt[-1]
    for place in range(len(tokens) - max(BLOCKS)):
        for block in BLOCKS:
            ids, claimed, _ = rig.draft(root, K, block_size=block)
            hits = ids == np.array(tokens[place : place + block - 1])[:, None]
            logprobs[block].append(claimed)
            ranks[block].append(np.where(hits.any(1), hits.argmax(1), NO_RANK))
        rig.append([root])
        root = tokens[place]
    _, numbers = np.unique(np.array(prompt + tokens), return_inverse=True)
    out = {"prompt": numbers[: len(prompt)].astype(np.int16), "tokens": numbers[len(prompt) :].astype(np.int16)}
    for block in BLOCKS:
        out[f"logprobs{block}"] = np.clip(np.round(32 * np.array(logprobs[block])), -400, 0).astype(np.int16)
        out[f"ranks{block}"] = np.array(ranks[block], np.uint8)
    return out


def main() -> None:
    found: dict[str, np.ndarray] = {}
    for name, pair in (("dense", starter_pair()), ("hybrid", (QWEN35_MINI, QWEN35_MINI_DRAFT))):
        with Rig(*pair, context=1024, n_threads=1) as rig:
            for kind, prompts in KINDS.items():
                for number, prompt in enumerate(prompts):
                    for key, values in record(rig, chat_ids(prompt)).items():
                        found[f"{name}_{kind}_{number}_{key}"] = values
                    print(name, kind, number)
    np.savez_compressed(PLACE, **found)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
