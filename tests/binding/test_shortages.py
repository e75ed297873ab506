"""Memory that runs out is told in numbers: what it was for, how much, and how much there was. In child processes."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import threading
from ctypes import byref
from typing import TYPE_CHECKING, Any

import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import BadFile, OutOfMemory
from dflash_desktop.binding.native import NativeFile, sized
from native.oracles.prompts import starter_pair
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT

if TYPE_CHECKING:
    from pathlib import Path

    from dflash_desktop.binding.native import Library

LIMITED = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")

CHILD = """
import ctypes, json, resource, sys
from contextlib import ExitStack
from pathlib import Path
from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import OutOfMemory
from dflash_desktop.binding.native import Library, NativeDraft, NativeSession, NativeTarget, sized

library = Library()
target_file, draft_file = map(Path, sys.argv[1:3])
cpu = next(device.index for device in library.devices() if device.kind == abi.DeviceKind.CPU)

def load(thing):
    while not thing.load_piece().is_complete:
        pass
    return thing

def open_pair(stack, context_tokens, kv=abi.KvTypeCode.F32):
    target = load(stack.enter_context(NativeTarget(library, target_file, device=cpu, n_threads=1)))
    draft = load(stack.enter_context(NativeDraft(library, draft_file, target, device=cpu, n_threads=1)))
    params = sized(abi.SessionParams, context_tokens=context_tokens, kv_k=kv, kv_v=kv)
    return stack.enter_context(NativeSession(target, draft, params))

def limit(n_bytes):
    "What the process may take from now on, and what that leaves."
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, resource.RLIM_INFINITY))

def taken():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

def told(error):
    short = error.shortage
    return [short.part.name, short.device, short.needed_bytes, short.free_bytes, str(error)]

with ExitStack() as stack:
    open_pair(stack, 256)  # what a process takes for itself, once
"""
LARGE_CONTEXT = """
limit(taken() + (400 << 20))
with ExitStack() as stack:
    try:
        open_pair(stack, 65536)
        found = []
    except OutOfMemory as error:
        found = told(error)
print(json.dumps(found))
"""
ALL_OF_A_SESSION = """
allowed = taken()
found = []
for _ in range(200):
    limit(allowed)
    with ExitStack() as stack:
        try:
            open_pair(stack, 16384)
            break
        except OutOfMemory as error:
            found.append(told(error))
            short = error.shortage
    # As much more as it says, and what pages and the allocators themselves take.
    allowed += max(short.needed_bytes - short.free_bytes, 0) + (8 << 20)
else:
    found.append("and no end")
print(json.dumps(found))
"""
UNMEASURED = """
limit(taken() + (200 << 20))
try:
    ids = (ctypes.c_int32 * 1)()
    logits = (ctypes.c_float * 4)()
    generation = sized(abi.Generation)
    # The history is copied before anything of it is read.
    library.check(library.c.dflash_probe_sample(logits, 4, ids, 2**31 - 1, ctypes.byref(generation), 1, ids))
    found = []
except OutOfMemory as error:
    found = told(error)
assert library.check(library.c.dflash_probe_sample(logits, 4, ids, 1, ctypes.byref(generation), 1, ids)) == 0
print(json.dumps(found))
"""


def run(script: str, target: Path, draft: Path) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD + script, str(target), str(draft)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def kv_row_bytes(library: Library, target: Path) -> int:
    """Keys and values of one token in F32, from the file's own words."""
    with NativeFile(library, target) as file:

        def number(key: str) -> int:
            value = file.value(f"llama.{key}")
            assert isinstance(value, int)
            return value

        head_dim = number("embedding_length") // number("attention.head_count")
        return number("block_count") * number("attention.head_count_kv") * head_dim * 2 * 4


@LIMITED
def test_a_context_far_too_large_says_what_its_cache_takes_and_what_is_free(library: Library) -> None:
    target, draft = starter_pair()
    part, device, needed, free, sentence = run(LARGE_CONTEXT, target, draft)
    assert (part, device) == ("KV_CACHE", "CPU")
    n_slots = 65536 + abi.MAX_ROWS + 1
    row = kv_row_bytes(library, target)
    assert n_slots * row <= needed <= (n_slots + 255) * row
    assert 0 < free <= 400 << 20
    found = re.search(r"([\d.]+) GiB are needed", sentence)
    assert found is not None, sentence
    assert float(found[1]) == pytest.approx(needed / 2**30, abs=0.06)
    assert "KV cache" in sentence
    assert "MiB are free" in sentence


@LIMITED
@pytest.mark.parametrize("is_hybrid", [False, True], ids=["dense", "hybrid"])
def test_given_what_each_refusal_says_is_missing_a_session_opens(is_hybrid: bool) -> None:
    """So every part says how much it is, and of what; the numbers are those that decide."""
    target, draft = (QWEN35_MINI, QWEN35_MINI_DRAFT) if is_hybrid else starter_pair()
    found = run(ALL_OF_A_SESSION, target, draft)
    assert "and no end" not in found
    parts = [part for part, *_ in found]
    assert {"KV_CACHE", "COMPUTE", "DRAFT"} <= set(parts)
    for part, device, needed, free, sentence in found:
        assert device == "CPU"
        assert needed > 0 or part == "UNKNOWN", sentence
        assert free < 1 << 40
        assert sentence.startswith("Not enough memory on CPU for the ")


@LIMITED
def test_memory_that_the_engine_took_for_itself_is_told_as_far_as_it_is_known() -> None:
    part, device, needed, free, sentence = run(UNMEASURED, *starter_pair())
    assert (part, device, needed) == ("UNKNOWN", "CPU", 0)
    assert 0 < free <= 200 << 20
    assert "are free" in sentence


def last_failure(library: Library) -> tuple[int, int, int, int, int]:
    failure = sized(abi.Failure)
    assert library.c.dflash_last_failure(byref(failure)) == abi.Status.OK
    return failure.status, failure.device, failure.part, failure.needed_bytes, failure.free_bytes


def test_the_last_failure_is_that_of_the_same_thread_and_call(library: Library, tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        NativeFile(library, tmp_path / "none.gguf")
    refused = (abi.Status.BAD_FILE, -1, abi.Part.UNKNOWN, 0, 0)
    assert last_failure(library) == refused
    elsewhere: list[tuple[int, int, int, int, int]] = []
    thread = threading.Thread(target=lambda: elsewhere.append(last_failure(library)))
    thread.start()
    thread.join()
    assert elsewhere[0] == (abi.Status.OK, -1, abi.Part.UNKNOWN, 0, 0)
    assert last_failure(library) == refused  # asking changes nothing
    wrong = abi.Failure(size=ctypes.sizeof(abi.Failure) - 4)
    assert library.c.dflash_last_failure(byref(wrong)) == abi.Status.BAD_ARGUMENT
    assert library.c.dflash_last_failure(None) == abi.Status.BAD_ARGUMENT
    assert last_failure(library) == refused
    library.devices()
    assert last_failure(library)[0] == abi.Status.OK


def test_a_shortage_that_nobody_measured_has_no_numbers() -> None:
    short = OutOfMemory("no room").shortage
    assert (short.part, short.device, short.needed_bytes, short.free_bytes) == (abi.Part.UNKNOWN, "", 0, 0)
