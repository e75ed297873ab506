"""Faults that other programs had when they decoded speculatively, tried on ours.

The numbers B... are those of the collected fault reports of other programs.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from native.oracles import checkpoints, model_files
from native.oracles.checkpoints import Checkpoint
from native.oracles.prompts import PROMPTS, chat_ids, starter_pair
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TREE, CHAIN, OFF = 1, 2, 3
MODES: list[dict[str, float]] = [
    {"draft_mode": OFF},
    {"draft_mode": CHAIN},
    {"draft_mode": TREE, "tree_budget": 22},
    {"draft_mode": 0},
]
MASK = 3
"""The mask token of the random drafts."""


@pytest.fixture(scope="module")
def exact_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = model_files.copy(QWEN35_MINI, tmp_path_factory.mktemp("f32") / "target.gguf", dequantised=True)
    yield path
    path.unlink()


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Rig]:
    spec = Checkpoint(kind="qwen35", seed=41, n_vocab=40, n_rot=8, is_tied=False, logit_scale=0.6)
    target = checkpoints.write_target(spec, tmp_path / "target.gguf")
    with Rig(target, checkpoints.write_draft(spec, tmp_path / "draft.gguf"), context=160, n_threads=1) as rig:
        yield rig


def accepted_counts(rig: Rig, prompt: list[int], n_tokens: int, *, has_branch: bool) -> list[int]:
    """Draft the likeliest chain and verify it, step by step; with a branch, beside a sibling that is never right."""
    rig.reset()
    rig.append(prompt[:-1])
    root, n_done, counts = prompt[-1], 0, []
    while n_done < n_tokens:
        chain = [int(token) for token in rig.draft(root)[0][:, 0]]
        tokens, parents = [root, *chain], [-1, *range(len(chain))]
        if has_branch:
            unlikely = next(token for token in itertools.count(5) if token != chain[0])
            tokens, parents = [*tokens, unlikely], [*parents, 0]
        chosen = rig.verify(tokens, parents).argmax(axis=1)
        path = [0]
        while path[-1] < len(chain) and chosen[path[-1]] == chain[path[-1]]:
            path.append(path[-1] + 1)
        rig.commit(path)
        root = int(chosen[path[-1]])
        counts.append(len(path) - 1)
        n_done += len(path)
    return counts


def check_spines(exact_target: Path, n_tokens: int) -> None:
    prompt = chat_ids(PROMPTS[1])
    with Rig(exact_target, QWEN35_MINI_DRAFT, context=1024, n_threads=1) as rig:
        chain = accepted_counts(rig, prompt, n_tokens, has_branch=False)
        spine = accepted_counts(rig, prompt, n_tokens, has_branch=True)
    assert spine == chain
    assert sum(chain) > 0.5 * len(chain), "hardly anything was accepted: this test shows nothing"


def test_a_tree_that_is_a_chain_accepts_exactly_what_the_chain_accepts(exact_target: Path) -> None:
    """B030: the tree's form of the recurrent layers adds no error that would cost acceptance over time."""
    check_spines(exact_target, 150)


@pytest.mark.slow
def test_over_500_tokens_a_tree_that_is_a_chain_accepts_what_the_chain_accepts(exact_target: Path) -> None:
    check_spines(exact_target, 500)


@pytest.mark.parametrize(
    "mode", [{"draft_mode": CHAIN}, {"draft_mode": TREE, "tree_budget": 22}], ids=["chain", "tree"]
)
def test_the_mask_token_is_a_token_like_any_other(mode: dict[str, float], tiny: Rig) -> None:
    """B037."""
    n_masks = 0
    for seed in range(8):
        sampling: dict[str, float] = {"temperature": 1.0, "seed": seed, "max_tokens": 60, "no_reuse": 1}
        plain = tiny.generate([1, 2, MASK], **sampling, draft_mode=OFF).tokens
        assert tiny.generate([1, 2, MASK], **sampling, **mode).tokens == plain
        n_masks += plain.count(MASK)
    assert n_masks > 0, "the mask token never came: this test shows nothing"


def test_every_way_to_decode_honours_seed_and_temperature(tiny: Rig) -> None:
    """B039: with and without a draft, with the prompt in the cache and without, seeds differ and repeat."""
    prompt = [1, 2, 3, 4, 5]
    texts: dict[int, set[tuple[int, ...]]] = {}
    for draft in (
        {"draft_mode": OFF},
        {"draft_mode": CHAIN},
        {"draft_mode": TREE, "tree_budget": 16},
        {"draft_mode": 0},
    ):
        for no_reuse in (1, 0, 0):
            of_seeds = []
            for seed in range(1, 6):
                sampling = {"temperature": 1.2, "seed": seed, "max_tokens": 16, "no_reuse": no_reuse}
                of_seeds.append(tuple(tiny.generate(prompt, **sampling, **draft).tokens))
                texts.setdefault(seed, set()).add(of_seeds[-1])
            assert len(set(of_seeds)) == 5, (draft, no_reuse)
    assert all(len(said) == 1 for said in texts.values())  # and every way says the same


LIMITED = """
import resource, sys
from dflash_desktop.binding.failures import OutOfMemory
from native.oracles.rig import Rig
from pathlib import Path

target, draft = Path(sys.argv[1]), Path(sys.argv[2])
with Rig(target, draft, context=256, n_threads=1) as rig:
    expected = rig.generate([1, 2, 3], max_tokens=4).tokens
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), resource.RLIM_INFINITY))
try:
    Rig(target, draft, context=65536, n_threads=1)
except OutOfMemory as refused:
    print("refused:", refused)
with Rig(target, draft, context=256, n_threads=1) as rig:
    assert rig.generate([1, 2, 3], max_tokens=4).tokens == expected
print("still alive")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")
def test_memory_that_runs_out_is_an_error_and_the_next_load_works() -> None:
    """B018: it runs out when a session is opened, never in the middle of a reply."""
    assert resource.getpagesize() > 0
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, starter_pair())],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        cwd=QWEN35_MINI.parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert "refused: Not enough memory" in done.stdout
    assert done.stdout.endswith("still alive\n")
