"""PFlash's scorer beside numpy: the same masses from the same file, with windows and without, for every family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadArgument, BadState, Cancelled, NativeError
from dflash_desktop.binding.native import NativeTarget, sized
from dflash_desktop.binding.native_scorer import NativeScorer, plan_scorer
from native.oracles import numpy_models
from native.oracles.checkpoints import Checkpoint, write_target
from support.native_library import load_library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]

SPECS = {
    "llama": Checkpoint(kind="llama", n_layers=5, seed=3),
    "qwen3": Checkpoint(kind="qwen3", n_layers=5, seed=4, n_head=8),
    "qwen35": Checkpoint(kind="qwen35", n_layers=12, seed=5),
}
N_TEXT, N_QUESTION = 150, 21
NOISE = 3e-3
OVERLAP = 64  # tokens of a window that are read again in the next


@pytest.fixture(params=SPECS, scope="module")
def scored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[NativeTarget, Path]]:
    path = write_target(SPECS[request.param], tmp_path_factory.mktemp("scorer") / f"{request.param}.gguf")
    with NativeTarget(load_library(), path, device=0, n_threads=1) as target:
        while not target.load_piece().is_complete:
            pass
        yield target, path


def tokens(n: int, seed: int = 0) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(3, 190, n)]


def masses(
    target: NativeTarget, text: list[int], question: list[int], weights: list[float] | None = None, **params: int
) -> Array:
    with NativeScorer(target, sized(abi.ScorerParams, text_tokens=len(text), **params)) as scorer:
        scorer.begin(text, question, weights)
        while not scorer.run().is_complete:
            pass
        return np.array(scorer.masses())


def plain_queries_and_keys(path: Path, ids: list[int], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Array, Array]]:
    """Queries and keys before rotation of every attention layer: what numpy's model hands to its own rotation."""
    seen: list[Array] = []
    rope = numpy_models.rope

    def recording(x: Array, *args: Any, **options: Any) -> Array:
        seen.append(x)
        return rope(x, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(numpy_models, "rope", recording)
        numpy_models.target(numpy_models.load(path), ids)
    return list(zip(seen[::2], seen[1::2], strict=True))


def expected(queries: list[Array], keys: list[Array], weights: Array) -> Array:
    """The definition: by head and token the largest weighted probability of a row, then the heads' geometric mean."""
    found = []
    for q, k in zip(queries, keys, strict=True):
        k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
        found.append(numpy_models.softmax(np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(q.shape[2])))
    largest = (np.concatenate(found) * weights[:, None]).max(axis=1)  # heads x tokens
    out: Array = np.exp(np.log(largest + NOISE).mean(axis=0)) - NOISE
    return out


def listened_to(n: int) -> slice:
    return slice(n * 2 // 5, max(n * 2 // 5 + 1, n * 4 // 5))


def test_masses_in_one_window_are_numpys(scored: tuple[NativeTarget, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    target, path = scored
    text, question = tokens(N_TEXT), tokens(N_QUESTION, 1)
    weights = np.linspace(0, 2, N_QUESTION)
    layers = plain_queries_and_keys(path, text + question, monkeypatch)
    chosen = layers[listened_to(len(layers))]
    truth = expected([q[N_TEXT:] for q, _ in chosen], [k[:N_TEXT] for _, k in chosen], weights / weights.max())
    found = masses(target, text, question, weights.tolist(), window_tokens=N_TEXT)
    assert np.abs(found - truth).max() <= 2e-3 * truth.max()  # keys are kept in F16


def test_windows_start_anew_and_read_a_little_again(
    scored: tuple[NativeTarget, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, path = scored
    text, question = tokens(N_TEXT), tokens(N_QUESTION, 1)
    window = 70
    keys: list[list[Array]] = []
    queries: list[Array] = []
    for start in range(0, N_TEXT, window):
        end, again = min(start + window, N_TEXT), min(OVERLAP, start)
        rows = text[start - again : end] + (question if end == N_TEXT else [])
        layers = plain_queries_and_keys(path, rows, monkeypatch)
        chosen = layers[listened_to(len(layers))]
        keys.append([k[again : again + end - start] for _, k in chosen])
        queries = [q[-N_QUESTION:] for q, _ in chosen]
    truth = expected(queries, [np.concatenate(parts) for parts in zip(*keys, strict=True)], np.ones(N_QUESTION))
    found = masses(target, text, question, window_tokens=window)
    assert np.abs(found - truth).max() <= 2e-3 * truth.max()


@pytest.mark.parametrize("together", [2, 3])
def test_windows_read_side_by_side_say_what_they_say_alone(scored: tuple[NativeTarget, Path], together: int) -> None:
    target, _ = scored
    text, question = tokens(700), tokens(N_QUESTION, 1)
    alone = masses(target, text, question, window_tokens=70, windows_together=1)
    assert np.array_equal(masses(target, text, question, window_tokens=70, windows_together=together), alone)


def test_more_windows_together_than_it_can_read_are_refused(scored: tuple[NativeTarget, Path]) -> None:
    for together in (-1, 17):
        with pytest.raises(BadArgument, match=f"windows_together is {together}; from 0 to 16 are possible"):
            NativeScorer(scored[0], sized(abi.ScorerParams, text_tokens=9, windows_together=together))


@pytest.mark.parametrize("n_shared", [0, 69, 70, 100, 140, 150, 160])
def test_what_two_texts_share_is_not_read_again_and_changes_nothing(
    scored: tuple[NativeTarget, Path], n_shared: int
) -> None:
    target, _ = scored
    window = 70
    first = tokens(160)
    second = first[:n_shared] + tokens(160 - n_shared, 7) if n_shared < 160 else first
    alone = masses(target, second, tokens(5, 2), window_tokens=window)
    with NativeScorer(target, sized(abi.ScorerParams, text_tokens=160, window_tokens=window)) as scorer:
        scorer.begin(first, tokens(9, 1))
        while not scorer.run().is_complete:
            pass
        scorer.begin(second, tokens(5, 2))
        n_first = scorer.run().n_done  # where reading began, and one piece
        while not scorer.run().is_complete:
            pass
        assert np.array_equal(scorer.masses(), alone)
        assert n_first > (n_shared if n_shared == 160 else min(n_shared // window * window, 140))


def test_many_rows_ask_as_few_do(scored: tuple[NativeTarget, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked at some at a time; 100 are several times."""
    target, path = scored
    text, question = tokens(40), tokens(100, 1)
    layers = plain_queries_and_keys(path, text + question, monkeypatch)
    chosen = layers[listened_to(len(layers))]
    truth = expected([q[40:] for q, _ in chosen], [k[:40] for _, k in chosen], np.ones(100))
    assert np.abs(masses(target, text, question) - truth).max() <= 2e-3 * truth.max()


def test_the_same_text_is_asked_again_and_again_without_reading_it(scored: tuple[NativeTarget, Path]) -> None:
    target, _ = scored
    text, questions = tokens(90), [tokens(n, n) for n in (5, 30, 5, 11)]
    with NativeScorer(target, sized(abi.ScorerParams, text_tokens=90, window_tokens=70)) as scorer:
        for i, question in enumerate(questions):
            scorer.begin(text, question)
            n_runs = 1
            while not scorer.run().is_complete:
                n_runs += 1
            assert n_runs == (1 if i else 3)
            assert np.array_equal(scorer.masses(), masses(target, text, question, window_tokens=70))


def test_the_plan_is_what_a_scorer_takes(scored: tuple[NativeTarget, Path]) -> None:
    target, path = scored
    params = sized(abi.ScorerParams, text_tokens=5000)
    with NativeScorer(target, params) as scorer:
        taken = scorer.memory()
    planned = plan_scorer(target.library, path, device=0, params=params)
    for part in ("kv_cache_bytes", "recurrent_bytes", "compute_bytes"):
        assert getattr(planned, part) == getattr(taken, part), part


def test_memory_grows_no_faster_than_the_text(scored: tuple[NativeTarget, Path]) -> None:
    target, path = scored

    def total(n: int) -> int:
        memory = plan_scorer(target.library, path, device=0, params=sized(abi.ScorerParams, text_tokens=n))
        return memory.kv_cache_bytes + memory.compute_bytes

    assert total(64_000) - total(32_000) <= 1.01 * (total(32_000) - total(16_000)) * 2


def test_what_makes_no_sense_is_refused(scored: tuple[NativeTarget, Path]) -> None:
    target, _ = scored
    for bad in (
        {"text_tokens": 0},
        {"text_tokens": 1 << 23},
        {"text_tokens": 9, "window_tokens": 3},
        {"text_tokens": 9, "end_layer": 99},
        {"text_tokens": 9, "first_layer": 2, "end_layer": 1},
    ):
        with pytest.raises(BadArgument):
            NativeScorer(target, sized(abi.ScorerParams, **bad))
    with NativeScorer(target, sized(abi.ScorerParams, text_tokens=9)) as scorer:
        for failing in (scorer.run, scorer.masses):
            with pytest.raises((BadState, NativeError)):
                failing()
        for text, question, weights in (
            (tokens(10), tokens(2), None),
            (tokens(9), tokens(513), None),
            ([-1], tokens(2), None),
            ([1], [100_000], None),
            ([1], [1, 2], [0.0, 0.0]),
            ([1], [1, 2], [1.0, -1.0]),
            ([1], [1, 2], [1.0, float("nan")]),
        ):
            with pytest.raises(BadArgument):
                scorer.begin(text, question, weights)


def test_cancelling_ends_a_piece_and_begin_starts_anew(scored: tuple[NativeTarget, Path]) -> None:
    target, _ = scored
    with NativeScorer(target, sized(abi.ScorerParams, text_tokens=9)) as scorer:
        scorer.begin(tokens(9), tokens(2))
        scorer.cancel()
        with pytest.raises(Cancelled):
            scorer.run()
        scorer.begin(tokens(9), tokens(2))
        while not scorer.run().is_complete:
            pass
        assert len(scorer.masses()) == 9
