"""The prefix cache: agents in turn, prompts that part in the middle, bounds. Replies are those of a cold read."""

from __future__ import annotations

import random
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from dflash_desktop.binding.abi import KvTypeCode
from dflash_desktop.binding.failures import BadArgument, Cancelled
from native.oracles import checkpoints
from native.oracles.checkpoints import Checkpoint
from native.oracles.rig import Reply, Rig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[..., Rig]

CHUNK = 16
"""Rows per prefill pass here, and tokens of a block."""
STOP = 7
TREE, CHAIN, OFF = 1, 2, 3
MODES: dict[str, dict[str, float]] = {
    "plain": {"draft_mode": OFF},
    "chain": {"draft_mode": CHAIN},
    "tree": {"draft_mode": TREE, "tree_budget": 12},
}
SAMPLED: dict[str, float] = {"temperature": 0.8, "seed": 3, "ignore_stop": 1}
"""Random models say the same token over and over when they are asked for the likeliest one."""
SPECS = {
    "llama": Checkpoint(kind="llama", seed=43, n_vocab=40, is_tied=False, logit_scale=0.6),
    "qwen35": Checkpoint(kind="qwen35", seed=41, n_vocab=40, n_rot=8, is_tied=False, logit_scale=0.6),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("pairs")
    keys: dict[str, object] = {"tokenizer.ggml.eos_token_id": STOP}
    found = {}
    for kind, spec in SPECS.items():
        target = checkpoints.write_target(spec, folder / f"{kind}.gguf", keys)
        found[kind] = (target, checkpoints.write_draft(spec, folder / f"{kind}-draft.gguf"))
    return found


@pytest.fixture
def opened(files: dict[str, tuple[Path, Path]]) -> Iterator[Open]:
    """Sessions on a tiny pair; closed after the test."""
    with ExitStack() as stack:

        def open_one(kind: str, *, context: int = 512, kv: KvTypeCode = KvTypeCode.AUTO, prefix_bytes: int = 0) -> Rig:
            target, draft = files[kind]
            rig = Rig(
                target,
                draft,
                context=context,
                n_threads=1,
                max_nodes=12,
                prefill_chunk=CHUNK,
                kv=kv,
                prefix_bytes=prefix_bytes,
            )
            return stack.enter_context(rig)

        yield open_one


def text(seed: int, n: int) -> list[int]:
    """Some tokens, none of which ends a message."""
    source = random.Random(seed)
    return [source.randrange(8, 40) for _ in range(n)]


def same(one: Reply, other: Reply) -> bool:
    return one.tokens == other.tokens and one.steps[-1].finish == other.steps[-1].finish


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", SPECS)
def test_two_agents_in_turn_go_on_where_each_was(kind: str, mode: str, opened: Open) -> None:
    """With the same system text; text and acceptance are those of prompts read from the start."""
    rig, fresh = opened(kind), opened(kind, prefix_bytes=-1)
    system = [*text(1, 60), STOP]
    prompts = [system + text(2, 75), system + text(3, 90)]
    generation = {"max_tokens": 24, **SAMPLED, **MODES[mode]}
    n_said = [0, 0]
    for turn in range(3):
        for agent in (0, 1):
            reply = rig.generate(prompts[agent], **generation)
            cold = fresh.generate(prompts[agent], no_reuse=1, **generation)
            assert same(reply, cold), (turn, agent)
            assert reply.acceptance_length == cold.acceptance_length
            if turn:
                assert reply.n_reused == n_said[agent]
                assert reply.n_restored > 0
            n_said[agent] = len(prompts[agent]) + len(reply.tokens) - 1  # the last token has no row
            prompts[agent] = [*prompts[agent], *reply.tokens, *text(10 + turn, 20)]
    figures = rig.session.prefixes()
    assert figures.n_restores == 4
    assert 0 < figures.used_bytes <= figures.most_bytes
    assert rig.session.memory().prefix_bytes == figures.used_bytes
    assert fresh.session.prefixes().used_bytes == 0


def test_conversations_share_what_they_begin_with(opened: Open) -> None:
    rig = opened("llama")
    system, row_bytes = text(1, 160), SPECS["llama"].n_layers * 2 * 2 * 32 * 4 + 2 * 2 * 32 * 4
    for seed in range(2, 7):
        rig.generate(system + text(seed, 16), max_tokens=1, **MODES["chain"])
    used = rig.session.prefixes().used_bytes
    assert used <= (160 + 4 * 32) * row_bytes


@pytest.mark.parametrize("mode", MODES)
def test_a_hybrid_prompt_that_parts_in_the_middle_is_read_from_the_last_checkpoint(mode: str, opened: Open) -> None:
    """State and rows are then what a fresh read has, bit for bit: places lie where its chunks end."""
    rig, fresh = opened("qwen35"), opened("qwen35", prefix_bytes=-1)
    generation = {"max_tokens": 12, "want_logprobs": 1, **SAMPLED, **MODES[mode]}
    whole = text(1, 400)
    rig.generate(whole, **generation)
    for n_shared, least in ((300, 256), (200, 128), (350, 256)):
        prompt = whole[:n_shared] + text(n_shared, 40)
        warm = rig.generate(prompt, **generation)
        assert least <= warm.n_reused <= n_shared
        cold = fresh.generate(prompt, no_reuse=1, **generation)
        assert same(warm, cold)
        if warm.n_reused % CHUNK == 0:
            assert [step.logprobs for step in warm.steps] == [step.logprobs for step in cold.steps]
    assert fresh.generate(whole[:200] + text(5, 40), **generation).n_reused == 0


def test_checkpoints_lie_before_the_ends_of_messages(opened: Open) -> None:
    """The end of the first message, and of the last two before the prompt's end."""
    rig = opened("qwen35")
    messages = [[*text(1, 50), STOP], [*text(2, 18), STOP], [*text(3, 15), STOP], [*text(4, 15), STOP], text(5, 20)]
    rig.generate(list(chain.from_iterable(messages)), max_tokens=1, **MODES["plain"])
    for n_messages, expected in ((4, 96), (3, 80), (1, 48)):
        start = list(chain.from_iterable(messages[:n_messages]))
        assert rig.generate(start + text(9 + n_messages, 30), max_tokens=1, **MODES["plain"]).n_reused == expected


def test_state_is_taken_back_to_the_end_of_the_prompt_when_the_reply_is_dropped(opened: Open) -> None:
    """As templates do that leave thoughts out of later prompts; through another conversation, too."""
    rig, fresh = opened("qwen35"), opened("qwen35", prefix_bytes=-1)
    generation = {"max_tokens": 12, **SAMPLED, **MODES["tree"]}
    prompt = text(1, 137)
    rig.generate(prompt, **generation)
    rig.generate(text(2, 100), **generation)
    following = [*prompt, *text(3, 30)]
    reply = rig.generate(following, **generation)
    assert reply.n_reused == 136
    assert same(reply, fresh.generate(following, **generation))


@pytest.mark.parametrize("kind", SPECS)
def test_the_bound_holds_and_what_was_used_last_stays(kind: str, opened: Open) -> None:
    probe = opened(kind)
    conversations = [text(seed, 161) for seed in range(4)]
    for prompt in conversations[:2]:
        probe.generate(prompt, max_tokens=1, **MODES["chain"])
    each = probe.session.prefixes().used_bytes  # of the first; with a hybrid target also the second's checkpoints
    rig = opened(kind, prefix_bytes=2 * each + each // 2)
    for index in (0, 1, 2, 0):
        rig.generate(conversations[index], max_tokens=1, **MODES["chain"])
        figures = rig.session.prefixes()
        assert figures.used_bytes <= figures.most_bytes
    # 0 was asked for after 1; saving 2 and 3 costs what is older.
    rig.generate(conversations[3], max_tokens=1, **MODES["chain"])
    again = rig.generate(conversations[0], max_tokens=1, **MODES["chain"])
    assert again.n_restored >= 144
    forgotten = rig.generate(conversations[1], max_tokens=1, **MODES["chain"])
    assert forgotten.n_restored < again.n_restored
    figures = rig.session.prefixes()
    assert figures.n_evicted_tokens > 0
    assert figures.used_bytes <= figures.most_bytes


@pytest.mark.parametrize("n_bytes", [-1, 1, 1000, 60_000])
@pytest.mark.parametrize("kind", SPECS)
def test_with_little_or_no_room_there_is_less_reuse_and_no_error(kind: str, n_bytes: int, opened: Open) -> None:
    rig, fresh = opened(kind, prefix_bytes=n_bytes), opened(kind, prefix_bytes=-1)
    generation = {"max_tokens": 8, **SAMPLED, **MODES["tree"]}
    for turn in range(2):
        for seed in (1, 2):
            prompt = text(seed, 90) + text(turn, 10)
            assert same(rig.generate(prompt, **generation), fresh.generate(prompt, no_reuse=1, **generation))
    figures = rig.session.prefixes()
    assert figures.used_bytes <= max(n_bytes, 0) == figures.most_bytes
    with pytest.raises(BadArgument, match="bytes for prefixes"):
        opened(kind, prefix_bytes=-2)


@pytest.mark.parametrize("kind", SPECS)
def test_a_prompt_cancelled_in_the_middle_leaves_the_others_as_they_were(kind: str, opened: Open) -> None:
    rig, fresh = opened(kind), opened(kind, prefix_bytes=-1)
    generation = {"max_tokens": 16, **SAMPLED, **MODES["chain"]}
    first, second = text(1, 120), text(2, 200)
    rig.generate(first, **generation)
    for n_chunks in (0, 1, 5):
        rig.session.begin(second, rig.generation(**generation))
        for _ in range(n_chunks):
            rig.session.prefill()
        rig.session.cancel()
        with pytest.raises(Cancelled):
            rig.session.prefill()
        again = rig.generate(first, **generation)
        assert again.n_reused == 119
        assert same(again, fresh.generate(first, no_reuse=1, **generation))
    reply = rig.generate(second, **generation)
    assert reply.n_reused > 0 or kind == "qwen35"
    assert same(reply, fresh.generate(second, no_reuse=1, **generation))


@pytest.mark.parametrize("kv", [KvTypeCode.F16, KvTypeCode.Q8_0, KvTypeCode.Q4_0])
@pytest.mark.parametrize("kind", SPECS)
def test_rows_come_back_bit_for_bit_in_their_own_type(kind: str, kv: KvTypeCode, opened: Open) -> None:
    """A conversation with another in between goes on as one without."""
    interrupted, alone = opened(kind, kv=kv), opened(kind, kv=kv)
    generation = {"max_tokens": 20, "want_logprobs": 1, **SAMPLED, **MODES["tree"]}
    prompt = text(1, 140)
    interrupted.generate(prompt, **generation)
    said = alone.generate(prompt, **generation)
    interrupted.generate(text(2, 90), **generation)
    following = [*prompt, *said.tokens, *text(3, 25)]
    restored, kept = interrupted.generate(following, **generation), alone.generate(following, **generation)
    assert restored.n_reused == kept.n_reused == 140 + len(said.tokens) - 1
    assert restored.n_restored > 0
    assert kept.n_restored == 0
    assert [step.logprobs for step in restored.steps] == [step.logprobs for step in kept.steps]
    assert same(restored, kept)


def test_rows_without_draft_context_are_no_start_for_a_drafted_reply(opened: Open) -> None:
    """Decoded with the draft off, saved, and asked for with the draft on: read again, with all of its acceptance."""
    rig, fresh = opened("llama"), opened("llama", prefix_bytes=-1)
    prompt = text(1, 130)
    rig.generate(prompt, max_tokens=8, **SAMPLED, **MODES["plain"])
    rig.generate(text(2, 80), max_tokens=8, **SAMPLED, **MODES["plain"])
    for mode, n_reused in (("plain", 129), ("chain", 0)):
        generation = {"max_tokens": 24, **SAMPLED, **MODES[mode]}
        reply = rig.generate(prompt, **generation)
        assert reply.n_reused == n_reused
        cold = fresh.generate(prompt, no_reuse=1, **generation)
        assert same(reply, cold)
        assert reply.acceptance_length == cold.acceptance_length


def fresh_bytes(rig: Rig) -> int:
    """Memory that the cache has taken from the system so far."""
    return rig.session.prefixes().fresh_bytes


def test_what_is_forgotten_gives_its_memory_back(opened: Open) -> None:
    rig = opened("qwen35")
    rig.generate(text(1, 200), max_tokens=1, **MODES["chain"])
    rig.generate(text(2, 200), max_tokens=1, **MODES["chain"])
    assert rig.session.prefixes().used_bytes > 0
    rig.session.reset()
    assert rig.session.prefixes().used_bytes == 0


def test_a_prompt_like_the_one_before_takes_no_fresh_memory_for_its_checkpoints(opened: Open) -> None:
    """What an earlier prompt's took is used again, as is, within a prompt, what was thinned out."""
    rig = opened("qwen35", context=2048)
    taken, states = [], []
    for seed in (1, 2, 3):
        rig.session.begin(text(seed, 2001), rig.generation(no_reuse=1, max_tokens=1, **MODES["plain"]))
        while not rig.session.prefill().is_complete:
            states.append(rig.session.prefixes().used_bytes)
        taken.append(fresh_bytes(rig))
    assert len(set(states)) > 4  # several at a time
    assert 0 < taken[0] == taken[1] == taken[2]
    assert max(states) <= taken[0]


@pytest.mark.parametrize("kind", SPECS)
def test_a_full_cache_takes_hardly_any_fresh_memory(kind: str, opened: Open) -> None:
    """One conversation after the other: what makes room for the next is what it is kept in.

    Rows and recurrent states come in two sizes; where both are kept, the one sometimes has to make room for the other.
    """
    rig = opened(kind, prefix_bytes=1_500_000)
    taken = []
    for seed in range(40):
        rig.generate(text(seed, 20 * CHUNK), max_tokens=1, **MODES["plain"])  # whole blocks: others have no usual size
        figures = rig.session.prefixes()
        assert figures.used_bytes <= figures.most_bytes
        taken.append(figures.fresh_bytes)
    assert figures.n_evicted_tokens > 0
    of_each = taken[2] - taken[1]  # while there was room
    since_full = taken[-1] - taken[19]
    assert since_full == 0 if kind == "llama" else since_full < 20 * of_each * 2 // 3


class Forest:
    """Prompts from a small tree of starts: systems, questions, and what was answered."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        systems = [[*text(seed + i, self.random.randrange(20, 90)), STOP] for i in range(2)]
        self.starts = [[*system, *text(i, self.random.randrange(5, 70)), STOP] for i in range(3) for system in systems]

    def prompt(self) -> list[int]:
        start = self.random.choice(self.starts)
        if self.random.random() < 0.2:
            start = start[: self.random.randrange(1, len(start))]
        return [*start, *text(self.random.randrange(4), self.random.randrange(1, 30))]

    def hear(self, prompt: list[int], reply: list[int]) -> None:
        if len(prompt) < 260:
            self.starts[self.random.randrange(len(self.starts))] = [*prompt, *reply, STOP]


def check_sequences(kind: str, n_sequences: int, n_prompts: int, opened: Open) -> int:
    """Each sequence with its own bound on one session, beside one that reads all anew; tokens that were restored."""
    n_restored = 0
    fresh = opened(kind, prefix_bytes=-1)
    rigs = [opened(kind, prefix_bytes=n_bytes) for n_bytes in (0, 150_000, 700_000)]
    for sequence in range(n_sequences):
        forest, rig = Forest(sequence), rigs[sequence % len(rigs)]
        for turn in range(n_prompts):
            prompt = forest.prompt()
            mode = forest.random.choice(list(MODES))
            is_greedy = forest.random.random() < 0.5
            generation = {"max_tokens": 6, "ignore_stop": 1, **({} if is_greedy else SAMPLED), **MODES[mode]}
            if forest.random.random() < 0.1:
                rig.session.begin(prompt, rig.generation(**generation))
                rig.session.prefill()  # and never goes on
                continue
            warm = rig.generate(prompt, **generation)
            cold = fresh.generate(prompt, no_reuse=1, **generation)
            assert same(warm, cold), (sequence, turn, mode, warm.n_reused)
            assert warm.acceptance_length == cold.acceptance_length, (sequence, turn, mode)
            n_restored += warm.n_restored
            forest.hear(prompt, warm.tokens)
        figures = rig.session.prefixes()
        assert figures.used_bytes <= figures.most_bytes
    return n_restored


@pytest.mark.parametrize("kind", SPECS)
def test_random_sequences_of_prompts_are_answered_as_if_each_were_the_first(kind: str, opened: Open) -> None:
    assert check_sequences(kind, 24, 8, opened) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPECS)
def test_two_hundred_random_sequences_likewise(kind: str, opened: Open) -> None:
    assert check_sequences(kind, 200, 8, opened) > 10_000
