"""Requests in a row, of every length and in every context: each reply is what a fresh engine would give.

The numbers B... are those of the collected fault reports of other programs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dflash_desktop.binding.abi import Finish, Reason
from dflash_desktop.binding.failures import BadState, Cancelled
from native.oracles import checkpoints, model_files
from native.oracles.checkpoints import Checkpoint
from native.oracles.prompts import AGENT_SYSTEM, PROMPTS, chat_ids
from native.oracles.rig import Reply, Rig
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AUTO, TREE, CHAIN, OFF = 0, 1, 2, 3
PLAIN: dict[str, float] = {"draft_mode": OFF}
SAMPLED: dict[str, float] = {"temperature": 0.8, "seed": 3}
"""For random models, whose greedy text is a loop that no draft guesses."""
MODES: dict[str, dict[str, float]] = {
    "chain": {"draft_mode": CHAIN},
    "tree": {"draft_mode": TREE, "tree_budget": 22},
    "auto": {"draft_mode": AUTO},
}


@pytest.fixture(scope="module")
def exact_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """In F32: on quantised weights near ties fall either way, see test_truth.py."""
    path = model_files.copy(QWEN35_MINI, tmp_path_factory.mktemp("f32") / "target.gguf", dequantised=True)
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def rig(exact_target: Path) -> Iterator[Rig]:
    with Rig(exact_target, QWEN35_MINI_DRAFT, context=1024, n_threads=1) as rig:
        yield rig


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Rig]:
    """A random pair with these keys in the target's metadata."""
    spec = Checkpoint(kind="qwen35", seed=41, n_vocab=40, n_rot=8, is_tied=False, logit_scale=0.6)
    draft = checkpoints.write_draft(spec, tmp_path / "draft.gguf")
    numbers = itertools.count()

    def open_one(keys: dict[str, object] | None = None, context: int = 128) -> Rig:
        path = checkpoints.write_target(spec, tmp_path / f"{next(numbers)}.gguf", keys)
        return Rig(path, draft, context=context, n_threads=1)

    return open_one


def same(one: Reply, other: Reply) -> bool:
    return one.tokens == other.tokens and one.steps[-1].finish == other.steps[-1].finish


@pytest.mark.parametrize("mode", MODES)
def test_the_twenty_first_request_is_answered_like_the_first(mode: str, rig: Rig) -> None:
    """B003, B021: nothing of a request is left over, of a cancelled one neither."""
    rig.reset()
    first = rig.generate(chat_ids(PROMPTS[0]), max_tokens=24, **MODES[mode])
    for question in PROMPTS[1:20]:
        rig.generate(chat_ids(question), max_tokens=4, **MODES[mode])
    rig.begin(chat_ids(PROMPTS[20], system=AGENT_SYSTEM), max_tokens=24, **MODES[mode])
    rig.session.step()
    rig.session.cancel()
    with pytest.raises(Cancelled):
        rig.session.step()
    with pytest.raises(BadState):
        rig.session.step()
    assert same(rig.generate(chat_ids(PROMPTS[0]), max_tokens=24, **MODES[mode]), first)


@pytest.mark.parametrize("mode", ["chain", "tree"])
def test_the_reply_does_not_depend_on_the_contexts_capacity(mode: str, exact_target: Path) -> None:
    """B008."""
    ids = chat_ids(PROMPTS[8])
    replies = []
    for context in (len(ids) + 25, 256, 1000, 2048):
        with Rig(exact_target, QWEN35_MINI_DRAFT, context=context, n_threads=1) as rig:
            replies.append(rig.generate(ids, max_tokens=24, **MODES[mode]))
    assert all(same(reply, replies[0]) for reply in replies)
    assert {reply.acceptance_length for reply in replies} == {replies[0].acceptance_length}


def test_prompts_of_one_to_twenty_tokens_take_trees_of_every_size(tiny: Callable[..., Rig]) -> None:
    """B009."""
    whole = [int(i) for i in np.random.RandomState(2).randint(0, 40, 20)]
    with tiny() as rig:
        for n in range(1, 21):
            plain = rig.generate(whole[:n], max_tokens=12, no_reuse=1, **SAMPLED, **PLAIN)
            for budget in range(1, 33):
                tree: dict[str, float] = {"draft_mode": TREE, "tree_budget": budget}
                assert same(rig.generate(whole[:n], max_tokens=12, no_reuse=1, **SAMPLED, **tree), plain), (n, budget)


@pytest.mark.parametrize("mode", MODES)
def test_a_token_limit_cuts_the_longer_reply(mode: str, tiny: Callable[..., Rig]) -> None:
    """B010, B084."""
    n_accepted = 0
    with tiny() as rig:
        whole = rig.generate([1, 2, 3], max_tokens=48, **SAMPLED, **PLAIN).tokens
        for limit in range(1, 49):
            reply = rig.generate([1, 2, 3], max_tokens=limit, **SAMPLED, **MODES[mode])
            assert reply.tokens == whole[:limit]
            assert reply.steps[-1].finish is Finish.LENGTH
            n_accepted += sum(step.n_accepted for step in reply.steps)
    assert n_accepted > 0 or mode != "tree"


def agent_prompts(n: int) -> list[list[int]]:
    """Code, Chinese and Japanese, tool JSON, long system texts."""
    call = '{"name": "read_file", "arguments": {"path": "src/main.py"}}'
    texts = [*PROMPTS[57:59], *PROMPTS[3:6], f"Result of {call}: def main(): ...", *PROMPTS[17:51]]
    return [chat_ids(text, system=AGENT_SYSTEM if i % 2 == 0 else None) for i, text in enumerate(texts[:n])]


def check_agent_prompts(rig: Rig, n_prompts: int, n_tokens: int) -> None:
    for number, ids in enumerate(agent_prompts(n_prompts)):
        plain = rig.generate(ids, max_tokens=n_tokens, **PLAIN)
        for mode in ("chain", "tree"):
            drafted = rig.generate(ids, max_tokens=n_tokens, **MODES[mode])
            assert same(drafted, plain), (number, mode)
            assert drafted.tokens
            # No silent fallback: only the last token of a limit leaves no room for a draft.
            assert {step.reason for step in drafted.steps[:-1]} <= {Reason.FIXED}


def test_agent_like_prompts_are_answered_as_without_a_draft(rig: Rig) -> None:
    """B022."""
    check_agent_prompts(rig, 6, 20)


@pytest.mark.slow
def test_forty_agent_like_prompts_are_answered_as_without_a_draft(rig: Rig) -> None:
    check_agent_prompts(rig, 40, 64)


def test_an_end_token_stops_wherever_it_sits_in_a_block(tiny: Callable[..., Rig]) -> None:
    """B024: make each token of a reply the end token in turn."""
    prompt = [1, 2, 3]
    with tiny() as rig:
        assert rig.stop_tokens == []
        whole = rig.generate(prompt, max_tokens=40, **SAMPLED, **PLAIN).tokens
    n_inside = 0
    for place in (i for i, token in enumerate(whole) if token not in whole[:i]):
        with tiny({"tokenizer.ggml.eos_token_id": whole[place]}) as rig:
            assert rig.stop_tokens == [whole[place]]
            for mode in (PLAIN, MODES["chain"], {"draft_mode": TREE, "tree_budget": 50}):
                reply = rig.generate(prompt, max_tokens=40, **SAMPLED, **mode)
                assert reply.tokens == whole[: place + 1]
                assert reply.steps[-1].finish is Finish.STOP
                n_inside += len(reply.steps[-1].tokens) <= reply.steps[-1].n_accepted
                # What was accepted behind the end is not kept: the next turn finds exactly prompt and reply.
                assert reply.steps[-1].n_positions == len(prompt) + place
    assert n_inside > 0, "no end token sat inside a block: the test shows nothing"


def test_end_tokens_come_from_the_file(tiny: Callable[..., Rig]) -> None:
    """B027."""
    texts = [f"<{i}>" for i in range(40)]
    texts[9], texts[12] = "<|im_end|>", "<|endoftext|>"
    for keys, expected in (
        ({"tokenizer.ggml.eos_token_id": 30}, [30]),
        ({"tokenizer.ggml.eot_token_id": 31}, [31]),
        ({"tokenizer.ggml.eos_token_id": 30, "tokenizer.ggml.eot_token_id": 31}, [30, 31]),
        ({"tokenizer.ggml.tokens": texts}, [9, 12]),
        ({"tokenizer.ggml.tokens": texts, "tokenizer.ggml.eos_token_id": 30}, [9, 12, 30]),
    ):
        with tiny(keys) as rig:
            assert sorted(rig.stop_tokens) == expected


@pytest.mark.parametrize("mode", ["plain", *MODES])
def test_a_reply_fills_the_context_exactly(mode: str, tiny: Callable[..., Rig]) -> None:
    """B028."""
    generation = PLAIN if mode == "plain" else MODES[mode]
    random = np.random.RandomState(1)
    with tiny(context=64) as rig:
        for n in range(40, 64):
            prompt = [int(i) for i in random.randint(0, 40, n)]
            reply = rig.generate(prompt, **generation)
            assert len(prompt) + len(reply.tokens) == 64
            assert reply.steps[-1].finish is Finish.CONTEXT
            assert reply.tokens == rig.generate(prompt, **PLAIN).tokens


@pytest.mark.parametrize("mode", ["plain", *MODES])
def test_the_next_turn_reuses_the_conversation_and_answers_as_without_a_cache(mode: str, rig: Rig) -> None:
    """B001, B005, B078: also the same prompt again, and a prompt that only begins alike."""
    generation = PLAIN if mode == "plain" else MODES[mode]
    rig.reset()
    ids = chat_ids("The password is ABRACADABRA.")
    for question in ("What is it?", "Write it backwards.", "And in lower case?"):
        reply = rig.generate(ids, max_tokens=20, **generation)
        again = rig.generate(ids, max_tokens=20, **generation)
        assert same(again, reply)
        assert again.n_reused == len(ids) - 1
        following = chat_ids(question)
        ids = ids + reply.tokens + following[following.index(2) + 1 :]  # from the end of the system's turn
        warm = rig.generate(ids, max_tokens=20, **generation)
        assert warm.n_reused > 0
        assert same(rig.generate(ids, max_tokens=20, no_reuse=1, **generation), warm)
    other = rig.generate(ids[:30] + chat_ids(PROMPTS[11]), max_tokens=10, **generation)
    assert same(rig.generate(ids[:30] + chat_ids(PROMPTS[11]), max_tokens=10, no_reuse=1, **generation), other)


def test_switching_the_draft_on_in_the_middle_of_a_chat_changes_nothing(rig: Rig) -> None:
    """Rows decoded without a draft have no context for one: they are computed again, not guessed."""
    rig.reset()
    ids = chat_ids(PROMPTS[9])
    plain = rig.generate(ids, max_tokens=30, **PLAIN)
    longer = ids + plain.tokens[:20]
    warm = rig.generate(longer, max_tokens=20, **MODES["chain"])
    cold = rig.generate(longer, max_tokens=20, no_reuse=1, **MODES["chain"])
    assert same(warm, cold)
    assert warm.acceptance_length == cold.acceptance_length


def test_the_number_of_threads_changes_no_token(exact_target: Path, rig: Rig) -> None:
    ids = chat_ids(PROMPTS[2])
    with Rig(exact_target, QWEN35_MINI_DRAFT, n_threads=2) as other:
        for generation in (PLAIN, MODES["chain"], MODES["tree"]):
            reply = other.generate(ids, max_tokens=16, **generation)
            assert same(reply, rig.generate(ids, max_tokens=16, **generation))
