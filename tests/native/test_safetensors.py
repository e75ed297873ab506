"""Published drafts (model.safetensors, config.json): read like their GGUF, refused with a sentence when unsound."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadFile, NativeError, Unsupported
from dflash_desktop.binding.native import Library, NativeFile
from native.oracles.rig import Rig
from support.file_prober import probe_files
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT, QWEN35_MINI_DRAFT_HF, QWEN35_RANDOM_TINY
from support.native_library import load_library
from support.packed_safetensors import TENSORS, Entry, pack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 32,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "max_position_embeddings": 4096,
    "layer_types": ["full_attention", "sliding_attention"],
    "sliding_window": 128,
    "is_causal": False,
    "num_target_layers": 36,
    "dflash_config": {"block_size": 16, "mask_token_id": 31, "target_layer_ids": [1, 9, 17]},
}


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library()


@pytest.fixture
def draft(tmp_path: Path) -> Callable[..., Path]:
    """Write a draft; changes replace keys of config.json (None removes), `inner` those of dflash_config."""

    def write(
        tensors: dict[str, Entry] | bytes = TENSORS, inner: dict[str, object] | None = None, **changes: object
    ) -> Path:
        config: dict[str, Any] = {**CONFIG, **changes, "dflash_config": {**CONFIG["dflash_config"], **(inner or {})}}
        config = {key: value for key, value in config.items() if value is not None}
        config["dflash_config"] = {key: value for key, value in config["dflash_config"].items() if value is not None}
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        data = tensors if isinstance(tensors, bytes) else pack(tensors)
        (tmp_path / "model.safetensors").write_bytes(data)
        return tmp_path

    return write


def refusal(library: Library, path: Path, kind: type[NativeError] = BadFile) -> str:
    with pytest.raises(kind) as caught, NativeFile(library, path):
        pass
    sentence = str(caught.value)
    assert sentence.startswith(("model.safetensors: ", "config.json: ")) and sentence.isprintable()
    return sentence


# ---- sound drafts ---------------------------------------------------------------------------------------------------


def test_a_published_draft_has_the_metadata_of_its_gguf(library: Library) -> None:
    keys = (
        "general.architecture",
        "dflash.block_count",
        "dflash.context_length",
        "dflash.embedding_length",
        "dflash.feed_forward_length",
        "dflash.attention.head_count",
        "dflash.attention.head_count_kv",
        "dflash.attention.key_length",
        "dflash.attention.value_length",
        "dflash.attention.sliding_window",
        "dflash.attention.causal",
        "dflash.rope.freq_base",
        "dflash.block_size",
        "dflash.target_layers",
        "tokenizer.ggml.mask_token_id",
    )
    with NativeFile(library, QWEN35_MINI_DRAFT_HF) as ours, NativeFile(library, QWEN35_MINI_DRAFT) as theirs:
        assert {key: ours.value(key) for key in keys} == {key: theirs.value(key) for key in keys}
        epsilon = "dflash.attention.layer_norm_rms_epsilon"
        assert ours.value(epsilon) == pytest.approx(theirs.value(epsilon))
        assert ours.value("general.name") == QWEN35_MINI_DRAFT_HF.name
        assert ours.describe().n_parameters == theirs.describe().n_parameters
        assert list(ours.describe().feature_layers) == list(theirs.describe().feature_layers)
        with NativeFile(library, QWEN35_MINI) as target:
            library.check_pair(target, ours)


def test_a_published_draft_proposes_what_its_gguf_proposes() -> None:
    # The GGUF is the Q8_0 of the same weights: close numbers, nearly always the same first candidates.
    prompt = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 28, 5, 198, 2, 198, 1, 4093, 198]
    outputs = []
    for path in (QWEN35_MINI_DRAFT_HF, QWEN35_MINI_DRAFT):
        with Rig(QWEN35_MINI, path, context=64, n_threads=1) as rig:
            rig.append(prompt)
            outputs.append(rig.draft(prompt[-1], 4))
    (ids, logprobs, hidden), (q_ids, q_logprobs, q_hidden) = outputs
    assert (ids[:, 0] == q_ids[:, 0]).mean() >= 0.8
    assert np.abs(logprobs[:, 0] - q_logprobs[:, 0]).max() < 0.25
    cosine = (hidden * q_hidden).sum(1) / np.linalg.norm(hidden, axis=1) / np.linalg.norm(q_hidden, axis=1)
    assert cosine.min() > 0.995


def test_folder_and_file_open_the_same_draft(library: Library, draft: Callable[..., Path]) -> None:
    folder = draft()
    for path in (folder, folder / "model.safetensors"):
        with NativeFile(library, path) as file:
            info = file.describe()
            assert (info.role, info.can_run, info.reason) == (abi.Role.DRAFT, 1, b"")
            assert (info.n_layers, info.n_embd, info.block_size, info.mask_token) == (2, 8, 16, 31)
            assert list(info.feature_layers)[:3] == [1, 9, 17]
            assert file.value("dflash.target_layers") == [2, 10, 18]  # upstream counts inputs
            assert file.value("dflash.attention.sliding_window_pattern") == [False, True]
            assert file.value("dflash.attention.sliding_window") == 128
            assert file.value("dflash.attention.causal") is False
            assert file.value("dflash.rope.freq_base") == 1e6
            assert file.value("dflash.vocab_size") == 32


@pytest.mark.parametrize(
    ("changes", "inner", "expected"),
    [
        ({"rope_theta": None, "rope_parameters": {"rope_theta": 5e6}}, {}, {"dflash.rope.freq_base": 5e6}),
        ({"rope_parameters": {"rope_theta": 5e6}}, {}, {"dflash.rope.freq_base": 5e6}),
        ({}, {"block_size": None}, {"dflash.block_size": 16}),
        ({"block_size": 12}, {"block_size": None}, {"dflash.block_size": 12}),
        ({"is_causal": None}, {"causal": True}, {"dflash.attention.causal": True}),
        ({"is_causal": None}, {}, {"dflash.attention.causal": None}),
        ({"head_dim": None}, {}, {"dflash.attention.key_length": 4}),
        ({"use_sliding_window": False}, {}, {"dflash.attention.sliding_window": None}),
        ({"use_sliding_window": True}, {}, {"dflash.attention.sliding_window": 128}),
        ({"sliding_window": None}, {}, {"dflash.attention.sliding_window_pattern": None}),
        (
            {"layer_types": None},
            {"use_swa": True, "swa_window_size": 64},
            {"dflash.attention.sliding_window": 64, "dflash.attention.sliding_window_pattern": [True, True]},
        ),
        ({}, {"target_layer_ids": None}, {"dflash.target_layers": [2, 34]}),
        ({"num_hidden_layers": 1, "layer_types": None}, {"target_layer_ids": None}, {"dflash.target_layers": [19]}),
        ({"partial_rotary_factor": 0.5}, {}, {"dflash.rope.dimension_count": 2}),
        (
            {
                "rope_scaling": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 1024,
                    "attention_factor": 1.0,
                }
            },
            {},
            {
                "dflash.rope.scaling.type": "yarn",
                "dflash.rope.scaling.factor": 4.0,
                "dflash.rope.scaling.original_context_length": 1024,
                "dflash.rope.scaling.attn_factor": pytest.approx(1 / (0.1 * np.log(4) + 1)),
            },
        ),
    ],
)
def test_configs_of_every_generation_are_understood(
    library: Library,
    draft: Callable[..., Path],
    changes: dict[str, object],
    inner: dict[str, object],
    expected: dict[str, object],
) -> None:
    tensors = {
        name: entry for name, entry in TENSORS.items() if "layers.1." not in name or "num_hidden_layers" not in changes
    }
    with NativeFile(library, draft(tensors, inner=inner, **changes)) as file:
        assert {key: file.value(key) for key in expected} == expected


def test_later_kinds_of_draft_get_their_gguf_names(library: Library, draft: Callable[..., Path]) -> None:
    conv = {
        f"layers.{i}.{part}_conv.{name}": Entry(shape)
        for i in range(2)
        for part in ("attention", "mlp")
        for name, shape in {"base_kernel": (2, 2, 8), "kernel_projection.weight": (8, 8)}.items()
    }
    selector = {
        "candidate_selector.predecessor_codebook": Entry((32, 4)),
        "candidate_selector.successor_codebook": Entry((32, 4)),
        "candidate_selector.hidden_projection.weight": Entry((4, 8)),
    }
    inner = {"conv_kernel_size": 2, "conv_group_size": 4, "selector_rank": 4, "selector_top_k": 16}
    with NativeFile(
        library, draft({**TENSORS, **conv, **selector}, inner, architectures=["DFlash2DraftModel"])
    ) as file:
        assert {key: file.value(f"dflash.{key}") for key in inner} == inner
        assert file.describe().can_run or "DFlash2" in file.describe().reason.decode()
    markov = {"markov_head.markov_w1.weight": Entry((32, 4)), "markov_head.markov_w2.weight": Entry((32, 4))}
    confidence = {"confidence_head.proj.weight": Entry((1, 12)), "confidence_head.proj.bias": Entry((1,))}
    folder = draft(
        {**TENSORS, **markov, **confidence}, {"sample_from_anchor": True}, architectures=["Qwen3DSparkModel"]
    )
    with NativeFile(library, folder) as file:
        assert file.value("dflash.sample_from_anchor") is True
        assert file.describe().can_run or "DSpark" in file.describe().reason.decode()


def test_tensors_that_follow_from_others_are_left_out(library: Library, draft: Callable[..., Path]) -> None:
    spare = {"t2d": Entry((32,), "BOOL", n_bytes=32), "layers.0.self_attn.rotary_emb.inv_freq": Entry((2,), "F32")}
    with NativeFile(library, draft()) as plain:
        n_parameters = plain.describe().n_parameters
    with NativeFile(library, draft({**TENSORS, **spare})) as file:
        assert file.describe().n_parameters == n_parameters


# ---- unsound drafts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry((8, 24), "F16", begin=100_000), "is incomplete"),
        (Entry((8, 24), "F16", n_bytes=383), "needs 384"),
        (Entry((8, 24), "F16", n_bytes=0), "needs 384"),
        (Entry((8, 24), "F16", begin=-8, n_bytes=384), "no sound"),
        (Entry((8, 24), "F16", begin=2**63, n_bytes=384), "no sound"),
        (Entry((8, 2**62), "F16", n_bytes=384), "too large"),
        (Entry((2**33, 2**33), "F16", n_bytes=384), "too large"),
        (Entry((8, 0), "F16"), "dimension 1 is not a count"),
        (Entry((8, -3), "F16", n_bytes=384), "dimension 1 is not a count"),
        (Entry((8, "24"), "F16"), "dimension 1 is not a count"),
        (Entry((), "F16", n_bytes=2), "0 dimensions"),
        (Entry((1, 1, 1, 8, 24), "F16"), "5 dimensions"),
        (Entry((8, 24), "F16", begin=1), "boundary"),
        (Entry((12, 24), "F16", begin=0), "overlaps"),
    ],
)
def test_a_tensor_that_cannot_be_is_refused_by_name(
    library: Library, draft: Callable[..., Path], entry: Entry, words: str
) -> None:
    rest = {
        name: Entry(e.shape, e.dtype, begin=384 if i == 0 else None)
        for i, (name, e) in enumerate(list(TENSORS.items())[1:])
    }
    sentence = refusal(library, draft({"fc.weight": entry, **rest}))
    assert words in sentence and "tensor '" in sentence


def test_other_types_and_unknown_tensors_are_refused_by_name(library: Library, draft: Callable[..., Path]) -> None:
    eight_bit = {**TENSORS, "norm.weight": Entry((8,), "F8_E4M3", n_bytes=8)}
    assert "tensor 'norm.weight': type F8_E4M3" in refusal(library, draft(eight_bit), Unsupported)
    for name in (
        "surprise.weight",
        "layers.2.mlp.up_proj.weight",
        "layers.x.mlp.up_proj.weight",
        "layers.0.mlp.gate.weight",
    ):
        assert f"tensor '{name}': is not known" in refusal(library, draft({**TENSORS, name: Entry((8,))}), Unsupported)
    assert "'d2t'" in refusal(library, draft({**TENSORS, "d2t": Entry((4,), "I64")}), Unsupported)
    twice = {**TENSORS, "model.norm.weight": Entry((8,))}
    assert "'model.norm.weight': occurs twice" in refusal(library, draft(twice))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"{", "byte"),
        (b'{"a"}', "':' is expected"),
        (b'{"a":1,}', "a string is expected"),
        (b'{"a":1}{', "more text"),
        (b'{"a":1,"a":1}', "'a' occurs twice"),
        (b'{"a":' + b"[" * 100_000, "nested deeper"),
        (b'{"a":[' + b"0," * 400_000 + b"0]}", "more than"),
        (b'{"a":01}', "a value is expected"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":"\\x"}', "unknown escape"),
        (b'{"a":"\n"}', "control character"),
        (b'{"a":1e999}', "too large"),
        (b'{"fc.weight":[]}', "no sound dtype"),
        (b'{"fc.weight":{"dtype":"F16","shape":[8,24],"data_offsets":[0]}}', "no sound dtype"),
    ],
)
def test_a_header_that_is_no_json_of_tensors_is_refused(
    library: Library, draft: Callable[..., Path], header: bytes, words: str
) -> None:
    assert words in refusal(library, draft(pack({}, header=header)))


def test_a_cut_file_is_refused_with_tensor_expected_and_real_size(library: Library, draft: Callable[..., Path]) -> None:
    whole = pack(TENSORS)
    n_header = 8 + struct.unpack_from("<Q", whole)[0]
    sentence = refusal(library, draft(whole[:-1]))
    assert sentence.startswith("model.safetensors: tensor 'layers.1.mlp.down_proj.weight': ends at byte")
    assert f"the file has {len(whole) - 1} bytes; it is incomplete" in sentence
    for cut in (0, 1, 7, 8, 9, 100, n_header - 1, n_header, n_header + 1):
        refusal(library, draft(whole[:cut]))
    assert "impossible" in refusal(library, draft(struct.pack("<Q", len(whole) - 1) + whole[8:]))


@pytest.mark.parametrize(
    ("changes", "inner", "words", "kind"),
    [
        ({"rope_theta": None}, {}, "rope_theta: is missing", BadFile),
        ({"rope_theta": 0}, {}, "rope_theta: 0 is not a number from 1 to", BadFile),
        ({"rope_theta": float("nan")}, {}, "rope_theta: nan", BadFile),
        ({"rope_theta": "1e6"}, {}, "rope_theta: '1e6'", BadFile),
        ({"rms_norm_eps": 0.5}, {}, "rms_norm_eps: 0.5 is not", BadFile),
        ({"hidden_size": None}, {}, "hidden_size: is missing", BadFile),
        ({"hidden_size": 2**40}, {}, "hidden_size: 1099511627776", BadFile),
        ({"num_hidden_layers": 2.5}, {}, "num_hidden_layers: 2.5", BadFile),
        ({"num_attention_heads": 0}, {}, "num_attention_heads: 0", BadFile),
        ({}, {"mask_token_id": None}, "mask_token_id: is missing", BadFile),
        ({}, {"mask_token_id": -1}, "mask_token_id: -1", BadFile),
        ({}, {"target_layer_ids": []}, "target_layer_ids", BadFile),
        ({}, {"target_layer_ids": [1, "x"]}, "target_layer_ids: 'x'", BadFile),
        ({"num_target_layers": None}, {"target_layer_ids": None}, "num_target_layers: is missing", BadFile),
        ({"layer_types": ["full_attention"]}, {}, "1 entries for 2 layers", BadFile),
        ({"layer_types": ["full_attention", "linear"]}, {}, "'linear' is not known", BadFile),
        ({"architectures": ["Qwen3ForCausalLM"]}, {}, "not a DFlash draft", Unsupported),
        ({"hidden_act": "gelu"}, {}, "hidden_act: 'gelu'", Unsupported),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8}}, {}, "type 'llama3'", Unsupported),
        ({"rope_scaling": {"rope_type": "yarn"}}, {}, "rope_scaling.factor: is missing", BadFile),
        ({"rope_is_neox_style": False}, {}, "interleaved", Unsupported),
    ],
)
def test_a_config_that_cannot_be_is_refused_by_key(
    library: Library,
    draft: Callable[..., Path],
    changes: dict[str, object],
    inner: dict[str, object],
    words: str,
    kind: type[NativeError],
) -> None:
    sentence = refusal(library, draft(inner=inner, **changes), kind)
    assert sentence.startswith("config.json: ") and words in sentence


def test_missing_companions_are_named(library: Library, draft: Callable[..., Path]) -> None:
    folder = draft()
    (folder / "mask_embedding.pt").write_bytes(b"x")
    assert "mask_embedding.pt" in refusal(library, folder, Unsupported)
    (folder / "mask_embedding.pt").unlink()
    (folder / "config.json").unlink()
    assert refusal(library, folder).startswith("config.json: cannot be opened: there is no such file")
    (folder / "config.json").write_text("[]", encoding="utf-8")
    assert "not an object" in refusal(library, folder)


def test_a_target_in_this_format_is_refused_for_what_it_is(library: Library) -> None:
    assert "reads GGUF files" in refusal(library, QWEN35_RANDOM_TINY / "model.safetensors", Unsupported)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("mutated", ["model.safetensors", "config.json"])
def test_mutants_are_opened_or_refused(tmp_path: Path, draft: Callable[..., Path], mutated: str) -> None:
    folder = draft()
    base = tmp_path / "base"
    base.write_bytes((folder / mutated).read_bytes())
    n_header = 8 + struct.unpack_from("<Q", base.read_bytes())[0] if mutated == "model.safetensors" else 10_000
    jobs: list[dict[str, object]] = [
        {
            "name": f"{mutated} {seed}",
            "file": mutated,
            "open": "model.safetensors",
            "base": str(base),
            "header_bytes": n_header,
            "seed": seed,
            "keys": ["general.name", "dflash.target_layers", "dflash.attention.sliding_window_pattern"],
        }
        for seed in range(600)
    ]
    outcomes = probe_files(folder, jobs)
    assert len(outcomes) == len(jobs)
    for outcome in outcomes:
        assert outcome.status in (0, BadFile.status, Unsupported.status), outcome
        assert outcome.message.isprintable()
    assert sum(outcome.status != 0 for outcome in outcomes) > 300
