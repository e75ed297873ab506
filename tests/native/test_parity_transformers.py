"""Targets against transformers in F32: stored logits, made by native/oracles/transformers_reference.py."""

from __future__ import annotations

import importlib.util
import json
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from native.oracles import checkpoints, model_files, numpy_models, transformers_reference
from native.oracles.checkpoints import Checkpoint
from native.oracles.compare import relative
from native.oracles.rig import Rig
from support.fixtures import QWEN35_RANDOM_TINY

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

CHECKPOINTS = transformers_reference.CHECKPOINTS
TINY = QWEN35_RANDOM_TINY / "qwen35-random-tiny-f32.gguf"
GRIDS = (1, 2, 3, 7, 31, 32, 33, 64, 0)
"""Rows per pass: one by one, odd, around the edges of kernels, and as many as fit."""


def stored(name: str) -> npt.NDArray[np.float32]:
    with np.load(transformers_reference.REFERENCES) as found:
        rows: npt.NDArray[np.float32] = found[name]
        return rows


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_logits_are_those_of_transformers_whatever_the_chunks(name: str, tmp_path: Path) -> None:
    spec, expected = CHECKPOINTS[name], stored(name)
    ids = transformers_reference.token_ids(spec)
    with Rig(checkpoints.write_target(spec, tmp_path / "target.gguf"), n_threads=1) as rig:
        for grid in GRIDS:
            rig.reset()
            assert relative(rig.logits(ids, grid=grid), expected) <= 1e-4, grid


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_prompt_of_any_length_continues_as_transformers_does(name: str, tmp_path: Path) -> None:
    spec, expected = CHECKPOINTS[name], stored(name)
    ids = transformers_reference.token_ids(spec)
    target = checkpoints.write_target(spec, tmp_path / "target.gguf")
    for chunk in (1, 5, 16, 64):
        with Rig(target, n_threads=1, prefill_chunk=chunk) as rig:
            for n in (1, 2, 3, 4, 15, 16, 17, 63, 64, 65, 73):
                rig.reset()
                rig.append(ids[:n])
                assert relative(rig.logits(ids[n : n + 2]), expected[n : n + 2]) <= 1e-4, (chunk, n)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_numpy_models_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    spec = CHECKPOINTS[name]
    weights = numpy_models.load(checkpoints.write_target(spec, tmp_path / "target.gguf"), np.float64)
    found = numpy_models.target(weights, transformers_reference.token_ids(spec))
    assert relative(found.logits, stored(name)) <= 1e-4


@pytest.mark.parametrize("grid", GRIDS)
def test_the_random_tiny_model_gives_its_reference(grid: int) -> None:
    with np.load(QWEN35_RANDOM_TINY / "reference.npz") as found, Rig(TINY, n_threads=1) as rig:
        assert relative(rig.logits([int(i) for i in found["ids"]], grid=grid), found["logits"]) <= 1e-4


def test_checkpoints_are_converted_as_upstream_converts() -> None:
    raw = (QWEN35_RANDOM_TINY / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    hf = {
        name: np.frombuffer(raw, np.float32, int(np.prod(entry["shape"])), 8 + length + entry["data_offsets"][0])
        .reshape(entry["shape"])
        .copy()
        for name, entry in header.items()
    }
    spec = Checkpoint(kind="qwen35", n_ff=160, n_vocab=512, n_head=2, n_head_kv=1, head_dim=64, n_rot=16)
    ours, theirs = checkpoints.gguf_weights(spec, hf), model_files.read(TINY).floats()
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-6, atol=0, err_msg=name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_stored_logits_are_what_transformers_computes(name: str) -> None:
    if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None:
        pytest.skip("needs the extra `oracle`")
    assert relative(transformers_reference.logits(CHECKPOINTS[name]), stored(name)) <= 1e-5
