"""The draft's hidden rows and tokens against a numpy computation of target and draft from the same files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from native.oracles import checkpoints, model_files, numpy_models
from native.oracles.checkpoints import Checkpoint
from native.oracles.compare import cosine, log_softmax
from native.oracles.prompts import PROMPTS, chat_ids, starter_pair
from native.oracles.rig import Rig
from native.oracles.trees import random_path, random_rows
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

K = 8
MASK = 16  # of both shipped drafts


@dataclass(frozen=True)
class Pair:
    name: str
    target: Path
    draft: Path
    contexts: tuple[tuple[int, ...], ...]  # the last token is the root


def contexts_of(name: str) -> tuple[tuple[int, ...], ...]:
    chat = chat_ids(PROMPTS[3])
    if name == "SmolLM2":
        return (tuple(chat[:31]),)
    # From one row of context to more than a prefill chunk; and the mask token as an ordinary one, in context and root.
    long = chat + chat_ids(PROMPTS[40]) + chat_ids(PROMPTS[58])
    return tuple(chat[:2]), tuple(chat), tuple(long), (*chat[:9], MASK, *chat[9:20], MASK)


@pytest.fixture(scope="module", params=["SmolLM2", "qwen35-mini"])
def shipped(request: pytest.FixtureRequest) -> Pair:
    target, draft = starter_pair() if request.param == "SmolLM2" else (QWEN35_MINI, QWEN35_MINI_DRAFT)
    return Pair(request.param, target, draft, contexts_of(request.param))


@pytest.fixture(scope="module")
def expected(shipped: Pair) -> list[tuple[numpy_models.Array, numpy_models.Array]]:
    """Hidden rows and logits for each context."""
    target, draft = (numpy_models.load(path) for path in (shipped.target, shipped.draft))
    found = []
    for *past, root in shipped.contexts:
        found.append(numpy_models.draft_block(draft, target, numpy_models.target(target, past), root))
    return found


@pytest.fixture(scope="module")
def dequantised(shipped: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("f32")
    target, draft = (
        model_files.copy(path, folder / f"{path.stem}.gguf", dequantised=True)
        for path in (shipped.target, shipped.draft)
    )
    yield Pair(shipped.name, target, draft, shipped.contexts)
    target.unlink()  # half a gigabyte
    draft.unlink()


def drafted(rig: Rig, context: Sequence[int]) -> tuple[numpy_models.Array, ...]:
    rig.reset()
    rig.append(context[:-1])
    return rig.draft(context[-1], K)


def test_the_drafts_hidden_rows_and_tokens_are_numpys(
    dequantised: Pair, expected: list[tuple[numpy_models.Array, numpy_models.Array]]
) -> None:
    with Rig(dequantised.target, dequantised.draft, n_threads=1) as rig:
        for context, (hidden, logits) in zip(dequantised.contexts, expected, strict=True):
            ids, logprobs, rows = drafted(rig, context)
            print(f"{dequantised.name}, {len(context)} tokens: 1 - cosine {1 - cosine(rows, hidden):.1e}")
            assert cosine(rows, hidden) >= 0.99999
            wanted = log_softmax(logits)
            np.testing.assert_allclose(logprobs, np.take_along_axis(wanted, ids, 1), atol=1e-3)
            np.testing.assert_allclose(logprobs, -np.sort(-wanted, axis=1)[:, :K], atol=1e-3)


def test_the_shipped_drafts_tokens_are_numpys(
    shipped: Pair, expected: list[tuple[numpy_models.Array, numpy_models.Array]]
) -> None:
    """Quantised products round their inputs, which numpy does not: hidden rows agree to 1e-3, clear winners exactly."""
    with Rig(shipped.target, shipped.draft, n_threads=1) as rig:
        for context, (hidden, logits) in zip(shipped.contexts, expected, strict=True):
            ids, _, rows = drafted(rig, context)
            print(f"{shipped.name}, {len(context)} tokens: 1 - cosine {1 - cosine(rows, hidden):.1e}")
            assert cosine(rows, hidden) >= 0.998
            two = -np.sort(-logits, axis=1)[:, :2]
            is_clear = two[:, 0] - two[:, 1] > 0.5
            assert (ids[:, 0] == logits.argmax(axis=1))[is_clear].all()


@pytest.mark.parametrize("kind", ["qwen35", "llama"])
def test_a_context_committed_from_trees_drafts_as_one_fed_plainly(kind: checkpoints.Kind, tmp_path: Path) -> None:
    spec = Checkpoint(kind=kind, seed=21, n_rot=8 if kind == "qwen35" else 32)
    target, draft = (
        checkpoints.write_target(spec, tmp_path / "target.gguf"),
        checkpoints.write_draft(spec, tmp_path / "draft.gguf"),
    )
    random = np.random.RandomState(5)
    committed = [1, 2, 3]
    with Rig(target, draft, n_threads=1) as rig, Rig(target, draft, n_threads=1) as plain:
        rig.append(committed)
        for step in range(60):
            rows = random_rows("random", int(random.randint(1, 40)), rig.n_vocab, random)
            rig.verify(rows.tokens, rows.parents)
            path = random_path(rows, random)
            rig.commit(path)
            committed += [rows.tokens[row] for row in path]
            if step % 10 == 9:
                ids, logprobs, hidden = rig.draft(7, K)
                wanted_ids, wanted_logprobs, wanted = drafted(plain, [*committed, 7])
                np.testing.assert_allclose(hidden, wanted, atol=1e-4 * float(np.abs(wanted).max()))
                np.testing.assert_allclose(logprobs, wanted_logprobs, atol=1e-3)
                assert (ids[:, 0] == wanted_ids[:, 0]).all()


def test_drafting_leaves_no_trace(tmp_path: Path) -> None:
    spec = Checkpoint(kind="qwen35", seed=22, n_rot=8)
    target, draft = (
        checkpoints.write_target(spec, tmp_path / "target.gguf"),
        checkpoints.write_draft(spec, tmp_path / "draft.gguf"),
    )
    with Rig(target, draft, n_threads=1) as rig, Rig(target, None, n_threads=1) as alone:
        rig.append([5, 6, 7, 8])
        first = rig.draft(9, K)
        rig.draft(10, K)
        for found, wanted in zip(rig.draft(9, K), first, strict=True):
            np.testing.assert_array_equal(found, wanted)
        alone.append([5, 6, 7, 8])
        np.testing.assert_array_equal(rig.logits([9, 1], grid=1), alone.logits([9, 1], grid=1))
