"""Draft files that do not fit themselves or their target: each is refused with the number, the key and the file."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dflash_desktop.binding.failures import NativeError, Unsupported
from dflash_desktop.binding.native import NativeFile
from native.oracles.draft_references import TINY
from support.draft_prober import DraftBase, DraftOutcome, mutants, probe_drafts
from support.drafts import (
    DraftSpec,
    header_bytes,
    lucebox_key,
    lucebox_keys,
    lucebox_tensor,
    random_weights,
    upstream_keys,
    write_gguf,
    write_upstream,
    write_zlab,
)
from support.native_library import load_library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LUCEBOX = "qwen35-dflash-draft"

Edit = dict[str, Any]
"""Keys or tensors to replace, or to remove (None)."""


def edited(original: Edit, changes: Edit) -> Edit:
    return {name: value for name, value in (original | changes).items() if value is not None}


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., str]:
    """Write a draft with some keys and tensors changed; what the engine says of it ("" when it fits the target)."""

    def say(
        spec: DraftSpec | None = None,
        *,
        keys: Edit | None = None,
        tensors: Edit | None = None,
        architecture: str = "dflash",
        is_lucebox: bool = False,
    ) -> str:
        spec = spec or DraftSpec()
        own, weights = upstream_keys(spec), random_weights(spec)
        if is_lucebox:
            own = lucebox_keys(own, architecture)
            weights = {lucebox_tensor(name): data for name, data in weights.items()}
        path = tmp_path / "draft.gguf"
        write_gguf(path, architecture, edited(own, keys or {}), edited(weights, tensors or {}))
        library = load_library()
        try:
            with NativeFile(library, TINY) as target, NativeFile(library, path) as file:
                info = file.describe()
                if not info.can_run:
                    return info.reason.decode()
                library.check_pair(target, file)
        except NativeError as error:
            return str(error)
        return ""

    return say


# ---- numbers that contradict the tensors (B036) ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("attention.head_count", 8, " is 8, which asks for 256 in blk.0.attn_q.weight; it has 128."),
        ("attention.head_count_kv", 4, " is 4, which asks for 128 in blk.0.attn_k.weight; it has 64."),
        ("block_count", 3, " is 3, but the file holds 2 layers."),
        ("block_count", 1, " is 1, but the file holds at least 2 layers."),
        ("embedding_length", 128, " is 128, which asks for 128 in output_norm.weight; it has 64."),
        ("feed_forward_length", 97, " is 97, which asks for 97 in blk.0.ffn_gate.weight; it has 96."),
        ("target_layers", [1, 2], " lists 2 layers, but fc.weight takes the output of 3."),
        ("target_layers", [1, 2, 3, 4], " lists 4 layers, but fc.weight takes the output of 3."),
        ("target_layers", [0, 1, 2], ": 0 is outside 1..4096"),
        ("block_size", 1, " is 1: a block of the root alone drafts nothing."),
        ("block_size", 65, " is 65; at most 64 positions can be verified."),
        ("attention.sliding_window_pattern", [True], " has 1 entries for 2 layers."),
    ],
)
def test_a_number_that_contradicts_a_tensor_is_named_with_both(
    judge: Callable[..., str], key: str, value: object, said: str
) -> None:
    assert judge(keys={f"dflash.{key}": value}) == f"draft.gguf: dflash.{key}{said}"


def test_heads_must_divide(judge: Callable[..., str]) -> None:
    said = judge(keys={"dflash.attention.head_count_kv": 3})
    assert said == "draft.gguf: dflash.attention.head_count: 4 heads of 32 over 3 key-value heads make no sense."


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("conv_kernel_size", 2, " is 2, but blk.0.attn_conv_base says 3."),
        ("conv_group_size", 8, " is 8, but blk.0.attn_conv_proj.weight says 16."),
        ("selector_rank", 8, " is 8, but selector_hidden.weight says 16."),
        ("selector_top_k", None, ": is missing"),
        ("selector_top_k", 33, ": 33 is outside 1..32"),
    ],
)
def test_numbers_of_a_selector_are_held_against_its_tensors_too(
    judge: Callable[..., str], key: str, value: object, said: str
) -> None:
    assert judge(DraftSpec(kind="dflash2"), keys={f"dflash.{key}": value}) == f"draft.gguf: dflash.{key}{said}"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("key", ["dflash.rope.freq_base", "dflash.attention.layer_norm_rms_epsilon"])
def test_a_rope_base_or_epsilon_that_is_no_sane_number_is_refused(
    judge: Callable[..., str], key: str, value: float
) -> None:
    assert judge(keys={key: value}).startswith(f"draft.gguf: {key}: ")


# ---- other names for the same thing (B032) -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "architecture", ["dflash", LUCEBOX, "dflash-draft", "qwen3-dflash-draft", "DFlash2", "qwen35_dflash"]
)
def test_a_draft_runs_under_every_architecture_name_that_says_dflash(
    judge: Callable[..., str], architecture: str
) -> None:
    assert judge(architecture=architecture) == ""
    assert judge(architecture=architecture, is_lucebox=True) == ""


def test_keys_are_found_wherever_writers_put_them(judge: Callable[..., str]) -> None:
    nested = {"dflash.block_size": None, "dflash.dflash.block_size": 6, "dflash.target_layers": None}
    assert judge(keys=nested | {"dflash.dflash.target_layer_ids": [0, 1, 2]}) == ""
    assert judge(keys={"tokenizer.ggml.mask_token_id": None, "dflash.mask_token_id": 5}) == ""
    flat = {f"{LUCEBOX}.dflash.block_size": None, f"{LUCEBOX}.block_size": 6}
    assert judge(keys=flat, architecture=LUCEBOX, is_lucebox=True) == ""
    numbers = {"dflash.attention.causal": 1, "dflash.context_kv_layer_norm": True}
    assert judge(keys=numbers) == ""


@pytest.mark.parametrize("is_lucebox", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        "dflash.block_count",
        "dflash.embedding_length",
        "dflash.feed_forward_length",
        "dflash.attention.head_count",
        "dflash.rope.freq_base",
        "dflash.block_size",
    ],
)
def test_a_key_under_an_unknown_name_is_missed_by_its_own(
    judge: Callable[..., str], key: str, *, is_lucebox: bool
) -> None:
    architecture = LUCEBOX if is_lucebox else "dflash"
    key = lucebox_key(key, architecture) if is_lucebox else key
    said = judge(keys={key: None, f"{key}_renamed": 2}, architecture=architecture, is_lucebox=is_lucebox)
    assert said.startswith(f"draft.gguf: {key}") and "missing" in said


def test_the_missing_layer_list_says_which_programs_write_it(judge: Callable[..., str]) -> None:
    assert judge(keys={"dflash.target_layers": None}) == (
        "draft.gguf: dflash.target_layers is missing: the file does not say which target layers the draft reads "
        "(llama.cpp's converter writes it; Lucebox's writes dflash.dflash.target_layer_ids)."
    )


def test_early_lucebox_files_without_the_list_get_the_customary_layers_and_a_warning(
    judge: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    library = load_library()
    library.drain_log(logging.getLogger("native"))
    said = judge(keys={f"{LUCEBOX}.dflash.target_layer_ids": None}, architecture=LUCEBOX, is_lucebox=True)
    assert said == ""
    library.drain_log(logging.getLogger("native"))
    assert "the file does not say which target layers it reads" in caplog.text


def test_two_layer_lists_must_agree(judge: Callable[..., str]) -> None:
    assert judge(keys={"dflash.target_layer_ids": [0, 1, 2]}) == ""
    assert "name different layers" in judge(keys={"dflash.target_layer_ids": [1, 2, 3]})


# ---- kinds that this engine does not run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "tensors", "said"),
    [
        ({}, {"dflash.domino.start": np.ones(8, np.float32)}, "it is a Domino draft"),
        ({"dflash.dflash.domino.enabled": 1}, {}, "it is a Domino draft"),
        ({"dflash.hyper_connection.count": 4}, {}, "it is a draft with hyper-connections"),
        ({"dflash.expert_count": 8}, {}, "it is a mixture-of-experts draft"),
        ({}, {"blk.0.attn_sinks.weight": np.ones(4, np.float32)}, "its attention has sinks"),
        ({}, {"blk.0.attn_v.weight": None}, "its layers have no attn_v.weight"),
        ({"dflash.hidden_activation": "relu"}, {}, "dflash.hidden_activation is 'relu'"),
        ({"dflash.rope.scaling.type": "longrope"}, {}, "dflash.rope.scaling.type is 'longrope'"),
    ],
)
def test_what_would_run_silently_worse_is_refused_by_name(
    judge: Callable[..., str], keys: Edit, tensors: Edit, said: str
) -> None:
    assert judge(keys=keys, tensors=tensors).startswith(f"draft.gguf: {said}")


@pytest.mark.parametrize(
    ("spec", "name", "tensor", "said"),
    [
        (DraftSpec(kind="dflash2"), "selector_successor.weight", None, "is missing"),
        (DraftSpec(kind="dflash2"), "blk.1.ffn_conv_proj.weight", None, "is missing"),
        (
            DraftSpec(kind="dflash2"),
            "selector_predecessor.weight",
            np.ones((511, 16), np.float32),
            "has 511 rows of 16 values; 512 rows of 16 are needed.",
        ),
        (DraftSpec(kind="dspark"), "markov_w2.weight", None, "is missing"),
        (DraftSpec(gate="head"), "blk.1.attn_gate.weight", None, "is missing"),
        (DraftSpec(has_feature_norms=True), "dflash.aux_hidden_norm.2.weight", None, "is missing"),
        (DraftSpec(has_sandwich_norms=True), "blk.1.post_ffw_norm.weight", None, "is missing"),
        (
            DraftSpec(n_vocab_draft=200),
            "d2t",
            np.full(200, 512, np.int64),
            "entry 0 is 512, which is not a token of the target",
        ),
    ],
)
def test_a_part_that_is_missing_or_misshapen_is_named(
    judge: Callable[..., str], spec: DraftSpec, name: str, tensor: object, said: str
) -> None:
    assert judge(spec, tensors={name: tensor}) == f"draft.gguf: tensor '{name}': {said}"


def test_a_head_that_is_promised_or_too_wide_is_named(judge: Callable[..., str]) -> None:
    said = judge(DraftSpec(kind="dspark"), tensors={"conf_proj.weight": None})
    assert said == "draft.gguf: dflash.has_confidence_head is true, but tensor 'conf_proj.weight' is missing."
    said = judge(DraftSpec(kind="dspark"), tensors={"conf_proj.weight": np.ones((1, 65), np.float32)})
    assert said == "draft.gguf: conf_proj.weight takes 65 values; 64 or 80 were expected."
    said = judge(DraftSpec(n_vocab_draft=200), tensors={"output.weight": None})
    assert said == "draft.gguf: it has a vocabulary of its own (d2t) but no output.weight"


@pytest.mark.parametrize(
    ("spec", "keys", "said"),
    [
        (DraftSpec(n_embd=128), {}, "the draft is 128 wide, the target 64."),
        (DraftSpec(feature_layers=(0, 2, 4)), {}, "it reads layer 5, the target has 4."),
        (DraftSpec(mask_token=512), {}, "its mask token is 512, the target's vocabulary ends at 511."),
        (DraftSpec(), {"dflash.vocab_size": 500}, "the draft's vocabulary has 500 tokens, the target's 512."),
        (DraftSpec(), {"tokenizer.ggml.tokens": ["a", "b"]}, "the draft's vocabulary has 2 tokens, the target's 512."),
    ],
)
def test_a_draft_for_another_target_is_told_from_a_broken_one(
    judge: Callable[..., str], spec: DraftSpec, keys: Edit, said: str
) -> None:
    assert judge(spec, keys=keys) == f"draft.gguf is not a draft for {TINY.name}: {said}"


def test_a_draft_describes_itself(tmp_path: Path) -> None:
    library = load_library()
    for spec in (
        DraftSpec(),
        DraftSpec(kind="dflash2"),
        DraftSpec(kind="dspark"),
        DraftSpec(kind="dspark", is_anchor_first=False),
    ):
        with NativeFile(library, write_upstream(tmp_path / "draft.gguf", spec, random_weights(spec))) as file:
            info = file.describe()
        assert info.can_run and info.mask_token == 5
        assert list(info.feature_layers[: info.n_feature_layers]) == [0, 1, 2]
        # The root counts, whether or not its row drafts: a block adds one token less than that.
        assert info.block_size == spec.n_drafted + 1


@pytest.mark.parametrize("kind", ["i8", "i32", "i64", "f64", "q8_1"])
def test_weights_of_a_type_that_nothing_multiplies_are_refused(tmp_path: Path, kind: str) -> None:
    import gguf

    spec = DraftSpec()
    weights = random_weights(spec)
    number = gguf.GGMLQuantizationType[kind.upper()]
    writer = gguf.GGUFWriter(tmp_path / "draft.gguf", "dflash")
    from support.drafts import add_keys

    add_keys(writer, upstream_keys(spec))
    for name, data in weights.items():
        if name == "blk.1.ffn_down.weight":
            elements, size = gguf.GGML_QUANT_SIZES[number]
            writer.add_tensor(name, np.zeros((64, 96 // elements * size), np.uint8), raw_dtype=number)
        else:
            writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    library = load_library()
    with (
        NativeFile(library, TINY) as target,
        NativeFile(library, tmp_path / "draft.gguf") as draft,
        pytest.raises(Unsupported, match=f"of type {kind}, which is not a type for weights"),
    ):
        library.check_pair(target, draft)


# ---- hostile files -----------------------------------------------------------------------------------------------

HOSTILE = {
    "d1": DraftSpec(sliding=(True, False), window=7),
    "d2": DraftSpec(kind="dflash2"),
    "d3": DraftSpec(kind="dspark"),
    "d4": DraftSpec(kind="dspark", n_vocab_draft=200, gate="head", has_sandwich_norms=True),
    "d5": DraftSpec(has_feature_norms=True, has_own_embeddings=True),
}


def hostile_bases(folder: Path) -> list[DraftBase]:
    bases = []
    for name, spec in HOSTILE.items():
        (folder / name).mkdir()
        path = write_upstream(folder / name / "draft.gguf", spec, random_weights(spec))
        bases.append(DraftBase(path, path, header_bytes(path) + 2000))
        if name in ("d1", "d2"):
            path = write_zlab(folder / f"{name}-zlab", spec, random_weights(spec))
            bases.append(DraftBase(path, path, header_bytes(path) + 500))
            bases.append(DraftBase(path, path.parent / "config.json", 100_000))
    return bases


def structured_bases(folder: Path, seeds: range) -> list[DraftBase]:
    """Sound files that are wrong as drafts."""
    bases: list[DraftBase] = []
    for name, spec in HOSTILE.items():
        own = folder / f"{name}-structured"
        own.mkdir()
        paths = mutants(own, upstream_keys(spec), random_weights(spec), seeds)
        bases.extend(DraftBase(path, path, 0) for path in paths)
    return bases


def check_hostile(outcomes: list[DraftOutcome]) -> None:
    for outcome in outcomes:
        # Whatever ends a draft on its way says so in a sentence fit for a person.
        assert (outcome.message == "") == (outcome.reached == "stepped"), outcome
        assert outcome.message.isprintable() and len(outcome.message) < 600, outcome
    reached = Counter(outcome.reached for outcome in outcomes)
    assert reached["stepped"] > 0 and reached["described"] + reached["nothing"] > 0


def test_changed_drafts_never_end_the_process(tmp_path: Path) -> None:
    bases = hostile_bases(tmp_path)
    (tmp_path / "out").mkdir()
    check_hostile(probe_drafts(TINY, tmp_path / "out", bases, range(8)))
    check_hostile(probe_drafts(TINY, tmp_path / "out", structured_bases(tmp_path, range(12)), range(1)))


@pytest.mark.slow
def test_thousands_of_changed_drafts_never_end_the_process(tmp_path: Path) -> None:
    bases = hostile_bases(tmp_path)
    (tmp_path / "out").mkdir()
    check_hostile(probe_drafts(TINY, tmp_path / "out", bases, range(8, 240)))
    check_hostile(probe_drafts(TINY, tmp_path / "out", structured_bases(tmp_path, range(12, 420)), range(1)))
