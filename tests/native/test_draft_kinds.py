"""Every kind of draft, in every dialect, against numpy, against z-lab's own code and against upstream's server."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from native.oracles import draft_references as references
from native.oracles import model_files, numpy_models
from native.oracles.numpy_drafts import DraftedBlock, draft_block
from native.oracles.rig import Rig, StepRecord
from support.drafts import (
    DraftSpec,
    lucebox_keys,
    lucebox_tensor,
    random_weights,
    write_gguf,
    write_lucebox,
    write_upstream,
    write_zlab,
)
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF

if TYPE_CHECKING:
    from pathlib import Path

K = 8  # candidates per position that a session asks for
N = 20
NODES = 24

SPECS = {
    "dflash": DraftSpec(),
    "dflash2": DraftSpec(kind="dflash2"),
    "dflash2, two taps": DraftSpec(kind="dflash2", conv_taps=2, conv_group=4, top_k=16),
    "dspark": DraftSpec(kind="dspark"),
    "dspark, bonus row, confidence of the hidden row": DraftSpec(
        kind="dspark", is_anchor_first=False, confidence="hidden"
    ),
    "dspark, no confidence": DraftSpec(kind="dspark", confidence="none"),
    "reduced vocabulary": DraftSpec(n_vocab_draft=200),
    "dflash2, reduced vocabulary": DraftSpec(kind="dflash2", n_vocab_draft=200),
    "dspark, reduced vocabulary": DraftSpec(kind="dspark", n_vocab_draft=200),
    "own embeddings, gate by head": DraftSpec(has_own_embeddings=True, gate="head"),
    "gate by channel, feature norms": DraftSpec(gate="channel", has_feature_norms=True),
    "normed context, sandwich norms": DraftSpec(is_context_normed=True, has_sandwich_norms=True),
    "scales": DraftSpec(
        embedding_scale=3,
        attention_scale=0.3,
        value_scale=0.5,
        logit_scale=2,
        logit_softcap=10,
        sliding=(True, False),
        window=7,
    ),
    "causal, sliding": DraftSpec(sliding=(False, True), window=7, is_causal=True),
    "gelu": DraftSpec(is_gelu=True, sliding=(True, True), window=7, is_causal=False),
}


def reference(spec: DraftSpec) -> DraftedBlock:
    embeddings = references.tiny_embeddings()
    features = references.tiny_features(spec.feature_layers, N)
    return draft_block(spec, random_weights(spec), embeddings, embeddings, features, references.tiny_ids()[N])


def first_step(rig: Rig, **generation: float) -> StepRecord:
    """The first step of a reply to the N + 1 first tokens."""
    rig.reset()
    return rig.generate(references.tiny_ids()[: N + 1], max_tokens=NODES + 1, **generation).steps[0]


def paths_of(step: StepRecord) -> list[tuple[int, ...]]:
    """The tokens from the root's first child down to each node."""
    paths: list[tuple[int, ...]] = [()]
    for token, parent in zip(step.node_tokens[1:], step.node_parents[1:], strict=True):
        paths.append((*paths[parent], token))
    return paths[1:]


@pytest.mark.parametrize("name", SPECS)
def test_hidden_rows_greedy_path_and_tree_are_those_of_the_formulas(tmp_path: Path, name: str) -> None:
    spec = SPECS[name]
    expected = reference(spec)
    tolerance = 1e-2 if spec.is_gelu else 3e-4  # ggml looks GELU up in a table of half precision
    path = write_upstream(tmp_path / "draft.gguf", spec, random_weights(spec))
    with Rig(references.TINY, path, context=128, max_nodes=NODES, n_threads=1) as rig:
        assert rig.block_size == spec.n_drafted + 1
        rig.append(references.tiny_ids()[:N])
        ids, logprobs, hidden = rig.draft(references.tiny_ids()[N], k=4)
        tree = first_step(rig, draft_mode=1, tree_budget=NODES)
        chain = first_step(rig, draft_mode=2)
    rows = len(expected.hidden)
    np.testing.assert_allclose(hidden[:rows], expected.hidden, atol=tolerance, rtol=0)
    assert ids[:, 0].tolist() == expected.greedy_path()
    assert list(chain.node_tokens[1:]) == expected.greedy_path()

    on_path = [expected.candidates(d, expected.greedy_path()[:d], K) for d in range(spec.n_drafted)]
    best = [sorted(found.values(), reverse=True)[:4] for found in on_path]
    np.testing.assert_allclose(logprobs, best, atol=10 * tolerance)

    weights = dict(zip(paths_of(tree), tree.node_logprobs[1:], strict=True))
    assert len(weights) == NODES
    for tokens, weight in weights.items():
        own = expected.candidates(len(tokens) - 1, tokens[:-1], K)[tokens[-1]]
        assert weight - weights.get(tokens[:-1], 0.0) == pytest.approx(own, abs=10 * tolerance), tokens
    heaviest = [weight for weight, _ in itertools.islice(expected.best_paths(K), NODES)]
    np.testing.assert_allclose(sorted(weights.values(), reverse=True), heaviest, atol=20 * tolerance)


@pytest.mark.parametrize("name", ["dflash2, two taps", "dspark", "gate by channel, feature norms"])
def test_a_lucebox_file_drafts_exactly_as_the_same_weights_in_llama_cpps_names(tmp_path: Path, name: str) -> None:
    spec, weights = SPECS[name], random_weights(SPECS[name])
    found = []
    for path in (
        write_upstream(tmp_path / "a.gguf", spec, weights),
        write_lucebox(tmp_path / "b.gguf", spec, weights),
        write_lucebox(tmp_path / "c.gguf", spec, weights, "dflash-draft"),
    ):
        with Rig(references.TINY, path, context=128, max_nodes=NODES, n_threads=1) as rig:
            rig.append(references.tiny_ids()[:N])
            found.append((rig.draft(references.tiny_ids()[N]), first_step(rig, draft_mode=1, tree_budget=NODES)))
    for block, step in found[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(block, found[0][0], strict=True))
        assert (step.node_tokens, step.node_logprobs) == (found[0][1].node_tokens, found[0][1].node_logprobs)


def rewritten(path: Path, architecture: str) -> Path:
    """The trained draft of qwen35-mini under Lucebox' names, its quantised bytes untouched."""
    source = model_files.read(QWEN35_MINI_DRAFT)
    own = {
        name: value
        for name, value in source.values.items()
        if name.startswith("dflash.") or name == "tokenizer.ggml.mask_token_id"
    }
    own["dflash.rope.freq_base"] = float(own["dflash.rope.freq_base"])
    keys = {name: value for name, value in lucebox_keys(own, architecture).items() if "dimension_sections" not in name}
    head = model_files.read(write_gguf(path, architecture, keys, {}))
    tensors = [
        model_files.Tensor(lucebox_tensor(tensor.name), tensor.shape, tensor.kind, tensor.data)
        for tensor in source.tensors.values()
    ]
    return model_files.write(path, bytes(head.keys), head.n_keys, tensors)


def drafts_on_the_trained_pair(draft: Path, n_texts: int = 3) -> list[Any]:
    """Blocks after the stored texts."""
    stored = references.stored()
    found = []
    with Rig(QWEN35_MINI, draft, context=256, max_nodes=1, n_threads=1) as rig:
        for number, text in enumerate(stored["texts"][:n_texts]):
            rig.reset()
            at = 0
            for block in stored["zlab_trained"]:
                if block["text"] == number:
                    rig.append(text[at : block["n"]])
                    at = block["n"]
                    found.append(rig.draft(text[at], k=4))
    return found


def test_the_trained_draft_is_the_same_whichever_program_named_its_tensors(tmp_path: Path) -> None:
    original = drafts_on_the_trained_pair(QWEN35_MINI_DRAFT, 1)
    for architecture in ("qwen35-dflash-draft", "gemma4-dflash-draft"):
        renamed = drafts_on_the_trained_pair(rewritten(tmp_path / "draft.gguf", architecture), 1)
        for one, other in zip(original, renamed, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("draft", [QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF / "model.safetensors"], ids=["q8_0", "f16"])
def test_the_trained_draft_drafts_what_z_labs_own_code_drafts(draft: Path) -> None:
    n_same, n = 0, 0
    for block, expected in zip(drafts_on_the_trained_pair(draft), references.stored()["zlab_trained"], strict=True):
        for token, theirs, margin in zip(block[0][:, 0].tolist(), expected["tokens"], expected["margins"], strict=True):
            # The target runs in Q8_0 here and in F32 there, so near ties may fall either way.
            assert token == theirs or margin < 0.25
            n_same, n = n_same + (token == theirs), n + 1
    assert n > 150 and n_same / n > 0.96


@pytest.mark.parametrize("name", references.ZLAB_SPECS)
def test_safetensors_drafts_do_what_z_labs_own_code_does(tmp_path: Path, name: str) -> None:
    spec, expected = references.ZLAB_SPECS[name], references.stored()["zlab_random"][name]
    path = write_zlab(tmp_path, spec, random_weights(spec))
    with Rig(references.TINY, path, context=128, max_nodes=4, n_threads=1) as rig:
        rig.append(references.tiny_ids()[: references.N_CONTEXT])
        ids, _, hidden = rig.draft(references.tiny_ids()[references.N_CONTEXT])
    assert ids[:, 0].tolist() == expected["tokens"]
    np.testing.assert_allclose(hidden, expected["hidden"], atol=3e-4)


@pytest.mark.parametrize("name", references.UPSTREAM_SPECS)
def test_drafts_are_those_of_upstreams_server(tmp_path: Path, name: str) -> None:
    spec, expected = references.UPSTREAM_SPECS[name], references.stored()["upstream_random"][name]
    text = references.tiny_ids()[:21] + expected["tokens"]
    path = write_upstream(tmp_path / "draft.gguf", spec, random_weights(spec))
    n_same, n = 0, 0
    with Rig(references.TINY, path, context=128, max_nodes=4, n_threads=1) as rig:
        for n_before, root, tokens, _ in expected["drafts"]:
            rig.append(text[0 if n_before == 21 else n_before - 1 : n_before])  # each block begins a token later
            ids, logprobs, _ = rig.draft(root, k=2)
            for mine, theirs, gap in zip(ids.tolist(), tokens, logprobs[:, 0] - logprobs[:, 1], strict=True):
                n, n_same = n + 1, n_same + (mine[0] == theirs)
                if mine[0] != theirs:  # upstream attends in half precision
                    assert gap < 0.1 and mine[1] == theirs
                    break  # what follows hangs on it
    assert n > 50 and n_same / n > 0.95


@pytest.mark.parametrize("name", references.stored()["upstream_random_cut"])
def test_confidence_cuts_where_upstreams_cuts(name: str) -> None:
    """Upstream drafts nothing from the first position on whose confidence is below p_min."""
    spec = references.UPSTREAM_SPECS[name]
    whole, cut = (references.stored()[key][name] for key in ("upstream_random", "upstream_random_cut"))
    assert whole["tokens"] == cut["tokens"]
    offered = {n_before: n for n_before, _, _, n in cut["drafts"]}
    embeddings = references.tiny_embeddings()
    for n_before, root, tokens, n_most in whole["drafts"]:
        features = references.tiny_features(spec.feature_layers, n_before)
        text = references.tiny_ids()[:21] + whole["tokens"]
        if text[:n_before] != references.tiny_ids()[:n_before]:
            continue  # the stored hidden states are those of another text
        block = draft_block(spec, random_weights(spec), embeddings, embeddings, features, root)
        confident = [block.confidence(d, before) >= references.P_MIN for d, before in enumerate([root, *tokens[:-1]])]
        assert offered.get(n_before, 0) == min(n_most, [*confident, False].index(False))


@pytest.mark.parametrize("name", ["dflash2", "dspark", "dspark, reduced vocabulary", "gate by channel, feature norms"])
def test_whatever_a_draft_proposes_the_reply_is_the_targets_own(tmp_path: Path, name: str) -> None:
    spec = SPECS[name]
    path = write_upstream(tmp_path / "draft.gguf", spec, random_weights(spec))
    prompt = references.tiny_ids()[:N]
    with Rig(references.TINY, path, context=128, n_threads=1) as rig:
        plain = rig.generate(prompt, max_tokens=40, draft_mode=3, ignore_stop=1).tokens
        for generation in ({}, {"draft_mode": 2}, {"draft_mode": 1, "tree_budget": 63}, {"block_size": 3}):
            assert rig.generate(prompt, max_tokens=40, ignore_stop=1, **generation).tokens == plain


def test_a_sliding_layer_sees_its_window_far_into_the_context(tmp_path: Path) -> None:
    spec = DraftSpec(sliding=(True, True), window=7)
    n = 1100
    text = np.random.RandomState(0).randint(0, spec.n_vocab, n + 1).tolist()
    outputs = numpy_models.target(numpy_models.load(references.TINY), text[:n]).outputs
    embeddings = references.tiny_embeddings()
    features = [outputs[layer] for layer in spec.feature_layers]
    expected = draft_block(spec, random_weights(spec), embeddings, embeddings, features, text[n])
    path = write_upstream(tmp_path / "draft.gguf", spec, random_weights(spec))
    with Rig(references.TINY, path, context=1200, max_nodes=4, n_threads=1) as rig:
        rig.append(text[:n])
        ids, _, hidden = rig.draft(text[n])
    np.testing.assert_allclose(hidden, expected.hidden, atol=2e-3)
    assert ids[:, 0].tolist() == expected.greedy_path()


# ---- oracles: the references once more, from the programs themselves --------------------------------------------


@pytest.mark.oracle
def test_z_labs_own_code_still_gives_the_stored_drafts(tmp_path: Path) -> None:
    pytest.importorskip("dflash", reason="needs z-lab's package dflash")
    stored = references.stored()
    for name, found in references.zlab_random(tmp_path).items():
        assert found["tokens"] == stored["zlab_random"][name]["tokens"]
        np.testing.assert_allclose(found["hidden"], stored["zlab_random"][name]["hidden"], atol=2e-4)
    for found, expected in zip(
        references.zlab_trained(stored["texts"], stored["starts"]), stored["zlab_trained"], strict=True
    ):
        assert found["n"] == expected["n"] and found["tokens"] == expected["tokens"]


@pytest.mark.slow
def test_upstreams_server_still_gives_the_stored_drafts(tmp_path: Path) -> None:
    stored = references.stored()
    assert references.upstream_random(tmp_path) == stored["upstream_random"]
    assert references.upstream_random(tmp_path, references.P_MIN) == stored["upstream_random_cut"]
