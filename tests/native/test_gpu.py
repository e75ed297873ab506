"""What GPUs compute is true: the same checks as `bench.gpu.truth`, on whatever GPU the engine finds here.

    pytest -m gpu tests/native/test_gpu.py          DFLASH_TEST_DEVICE=Vulkan0 chooses among several

A software Vulkan device counts (GGML_VK_VISIBLE_DEVICES=0 shows Mesa's llvmpipe; 25 or newer), and takes minutes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.gpu import drafts, truth
from bench.gpu.rig import KV_TYPES, Rig
from dflash_desktop.base.paths import library_folder
from dflash_desktop.binding.abi import DeviceKind
from dflash_desktop.binding.native import Library
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.gpu

MODELS = QWEN35_MINI.parent


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


@pytest.fixture(scope="module")
def device(library: Library) -> str:
    """The name of a GPU. Without one the tests are skipped, with what to do about it."""
    found = [device.name.decode() for device in library.devices() if device.kind != DeviceKind.CPU]
    wanted = os.environ.get("DFLASH_TEST_DEVICE")
    if wanted and wanted not in found:
        pytest.fail(f"DFLASH_TEST_DEVICE: there is no {wanted}; present: {', '.join(found) or 'the CPU alone'}")
    if not found:
        backends = sorted(path.name for path in library_folder().glob("*ggml-*"))
        pytest.skip(
            f"the engine finds no GPU (backends: {', '.join(backends)}); build with DFLASH_CUDA=ON or _VULKAN=ON"
        )
    return wanted or found[0]


def failures_of(check: Callable[[], object]) -> list[str]:
    truth.failures.clear()
    check()
    return list(truth.failures)


def test_logits_of_chains_and_trees_are_the_reference_s(library: Library, device: str) -> None:
    assert failures_of(lambda: truth.check_parity(library, device, MODELS)) == []


def test_a_plan_is_what_loading_takes_and_refuses_with_numbers(library: Library, device: str) -> None:
    assert failures_of(lambda: truth.check_plan(library, device, MODELS)) == []


def test_a_prompt_says_the_same_in_long_and_in_short_chunks(library: Library, device: str) -> None:
    assert failures_of(lambda: truth.check_chunks(library, device, MODELS)) == []


@pytest.mark.parametrize("kv", ["f16", "q8_0", "q4_0"])
def test_drafting_of_every_kind_gives_plain_decoding_s_text(library: Library, device: str, kv: str) -> None:
    stored = json.loads(Path(truth.__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    prompts = [prompt["ids"] for prompt in stored["prompts"]][:2]
    kv_type = KV_TYPES[kv]
    with Rig(
        library, QWEN35_MINI, QWEN35_MINI_DRAFT, device=device, context_tokens=1024, kv_k=kv_type, kv_v=kv_type
    ) as rig:
        assert failures_of(lambda: truth.check_greedy(rig, f"KV {kv}", prompts, 48)) == []


def test_drafts_of_every_kind_propose_what_they_propose_on_the_cpu(
    library: Library, device: str, tmp_path: Path
) -> None:
    drafts.make(tmp_path)
    stored = json.loads(Path(truth.__file__).with_name("prompts.json").read_text(encoding="utf-8"))
    ids = (stored["prompts"][0]["ids"] * 4)[: drafts.N_CONTEXT + 1]
    wrong = [
        draft.stem
        for draft in sorted(tmp_path.glob("*.gguf"))
        if not drafts.check(library, QWEN35_MINI, draft, device, ids)
    ]
    assert wrong == []
