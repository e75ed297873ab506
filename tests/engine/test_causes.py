"""What fails says why in a code with its names and numbers, beside the sentence: on the real engine."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest

from dflash_desktop.base.causes import Cause
from dflash_desktop.base.errors import AppError
from dflash_desktop.binding.failures import DeviceFailed, LibraryMissing, OutOfMemory
from dflash_desktop.engine.causes import about_device, cause_of
from dflash_desktop.engine.events import JobFailed, PairLoaded
from dflash_desktop.engine.inspect import inspect_file
from dflash_desktop.engine.pairs import built_in_pairs
from dflash_desktop.engine.prompt import ContextExceeded
from dflash_desktop.engine.requests import LoadOptions
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.native_library import load_library
from support.real_engine import running_engine, try_load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dflash_desktop.engine.engine import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as running:
        yield running


def why(engine: Engine, target: Path, draft: Path | None = None, **options: Any) -> Cause:
    failed = try_load(engine, target, draft, LoadOptions(n_threads=1, **options))
    assert isinstance(failed, JobFailed)
    assert failed.message
    assert failed.cause is not None, failed.message
    return failed.cause


def test_a_file_that_is_gone(engine: Engine, tmp_path: Path) -> None:
    cause = why(engine, tmp_path / "gone.gguf")
    assert (cause.code, cause.name("file"), cause.name("folder")) == ("file_missing", "gone.gguf", str(tmp_path))


def test_a_file_that_is_damaged_as_target_and_as_draft(engine: Engine, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(QWEN35_MINI.read_bytes()[:5000])
    for cause in (why(engine, cut), why(engine, QWEN35_MINI, cut)):
        assert (cause.code, cause.name("file")) == ("file_broken", "cut.gguf")


def test_a_draft_in_the_place_of_a_target_and_the_other_way_round(engine: Engine) -> None:
    cause = why(engine, QWEN35_MINI_DRAFT)
    assert (cause.code, cause.name("role"), cause.name("wanted")) == ("wrong_role", "draft", "target")
    cause = why(engine, QWEN35_MINI, QWEN35_MINI)
    assert (cause.code, cause.name("role"), cause.name("wanted")) == ("wrong_role", "target", "draft")


def test_a_draft_of_another_target(engine: Engine) -> None:
    pairs = built_in_pairs()
    if not pairs:
        pytest.skip("this build has no built-in pair")
    cause = why(engine, pairs[0].target, QWEN35_MINI_DRAFT)
    assert cause.code == "draft_mismatch"
    assert (cause.name("draft"), cause.name("target")) == (QWEN35_MINI_DRAFT.name, pairs[0].target.name)


def test_a_device_that_is_not_there(engine: Engine) -> None:
    cause = why(engine, QWEN35_MINI, device="CUDA77")
    assert (cause.code, cause.name("device")) == ("device_missing", "CUDA77")
    assert "CPU" in cause.name("present")


def test_after_all_that_a_good_pair_loads(engine: Engine) -> None:
    options = LoadOptions(context_tokens=256, n_threads=1)
    assert isinstance(try_load(engine, QWEN35_MINI, QWEN35_MINI_DRAFT, options), PairLoaded)


def test_where_it_was_computed_is_part_of_the_cause() -> None:
    with pytest.raises(OutOfMemory) as caught, about_device("CUDA0"):
        raise OutOfMemory("The device CUDA0 ran out of memory during the prefill.")
    assert caught.value.cause is not None
    assert (caught.value.cause.code, caught.value.cause.name("device")) == ("out_of_memory", "CUDA0")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "no_memory"),
        (OSError(errno.ENOSPC, "No space left on device", "/data/x"), "disk_full"),
        (OutOfMemory("no room"), "out_of_memory"),
        (DeviceFailed("it hangs"), "device_failed"),
        (LibraryMissing("not there"), "engine_missing"),
        (ContextExceeded(9000, 8192), "context_exceeded"),
    ],
)
def test_what_the_kind_of_an_error_tells_by_itself(error: Exception, code: str) -> None:
    cause = cause_of(error, "CPU")
    assert cause is not None
    assert cause.code == code


def test_a_bug_in_the_program_has_no_cause_of_the_world() -> None:
    assert cause_of(KeyError("x")) is None


def write_header(path: Path, architecture: str, **more: int) -> Path:
    """A sound file of that architecture, with hardly anything in it."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_layer_norm_rms_eps(1e-5)
    for key, value in more.items():
        writer.add_uint32(f"{architecture}.{key}", value)
    writer.add_tensor("token_embd.weight", np.zeros((8, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_why_a_sound_file_cannot_run_is_told_in_a_code_too(tmp_path: Path) -> None:
    library = load_library()
    found = inspect_file(write_header(tmp_path / "mamba.gguf", "mamba2"), library)
    assert found.cause == Cause("architecture_unknown", {"file": "mamba.gguf", "architecture": "mamba2"})
    found = inspect_file(write_header(tmp_path / "moe.gguf", "llama", expert_count=8), library)
    assert found.cause == Cause("experts_unsupported", {"file": "moe.gguf"})
    found = inspect_file(write_header(tmp_path / "short.gguf", "llama"), library)
    assert found.cause is not None
    assert (found.cause.code, found.cause.name("reason")) == ("file_unsupported", found.reason)
    bad_draft = bytearray(QWEN35_MINI_DRAFT.read_bytes())
    (tmp_path / "draft.gguf").write_bytes(bad_draft.replace(b"dflash.block_size", b"dflash.block_sizf"))
    found = inspect_file(tmp_path / "draft.gguf", library)
    assert (found.role, found.can_run) == ("draft", False)
    assert found.cause is not None
    assert found.cause.code == "draft_unsupported"
    assert inspect_file(QWEN35_MINI, library).cause is None


def test_a_file_that_cannot_be_opened_says_why_in_a_code(tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(QWEN35_MINI.read_bytes()[:5000])
    for name, code in (("cut.gguf", "file_broken"), ("gone.gguf", "file_missing")):
        with pytest.raises(AppError) as caught:
            inspect_file(tmp_path / name, load_library())
        assert caught.value.cause is not None
        assert (caught.value.cause.code, caught.value.cause.name("file")) == (code, name)
