"""Arguments that ggml would end the process over are refused before it sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dflash_desktop.binding.failures import BadArgument
from native.oracles.rig import Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with Rig(QWEN35_MINI, QWEN35_MINI_DRAFT, context=64, n_threads=1, max_nodes=7, prefill_chunk=16) as opened:
        yield opened


@pytest.mark.parametrize("token", [-1, "n_vocab"])
def test_probes_take_tokens_of_the_vocabulary_alone(rig: Rig, token: int | str) -> None:
    outside = rig.n_vocab if token == "n_vocab" else int(token)
    rig.reset()
    with pytest.raises(BadArgument, match="vocabulary ends"):
        rig.append([1, outside, 2])
    with pytest.raises(BadArgument, match="vocabulary ends"):
        rig.verify([1, outside], [-1, 0])
    assert np.isfinite(rig.logits([1, 2, 3])).all()


def test_rows_are_committed_only_where_the_context_has_room(rig: Rig) -> None:
    rig.reset()
    rig.append([1] * 62)
    rig.verify([1, 2, 3], [-1, 0, 1])
    with pytest.raises(BadArgument, match="do not fit"):
        rig.commit([0, 1, 2])
    rig.commit([0, 1])


def test_a_proposal_cannot_be_settled_with_nothing_allowed(rig: Rig) -> None:
    rig.reset()
    rig.begin([1, 2, 3], max_tokens=4, ignore_stop=1)
    said = rig.session.propose()
    n_words = (rig.n_vocab + 31) // 32
    with pytest.raises(BadArgument, match="No token"):
        rig.session.settle(0, bytes(4 * n_words))
    step = rig.session.settle(1)  # a refusal changes nothing
    assert (step.n_committed, step.tokens[0]) == (1, said.tokens[0])
