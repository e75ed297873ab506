"""The owned handles: order of closing, threads, values of a file, statuses as exceptions."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import gguf
import pytest

from dflash_desktop.binding import abi
from dflash_desktop.binding.failures import (
    BadArgument,
    BadFile,
    BadState,
    Cancelled,
    LibraryMissing,
    NativeError,
    Unsupported,
)
from dflash_desktop.binding.native import (
    Library,
    NativeDraft,
    NativeFile,
    NativeSession,
    NativeTarget,
    sized,
)
from support.fixtures import QWEN35_MINI, QWEN35_MINI_DRAFT
from support.scripted_model import write_scripted

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def target(library: Library) -> Iterator[NativeTarget]:
    with NativeTarget(library, QWEN35_MINI, device=0, n_threads=1) as target:
        while not target.load_piece().is_complete:
            pass
        yield target


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(LibraryMissing, match=r"nothing\.so"):
        Library(tmp_path / "nothing.so")


def test_a_foreign_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(LibraryMissing, match=r"text\.so"):
        Library(tmp_path / "text.so")


def test_the_log_is_drained_into_logging(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(BadFile):
        NativeFile(library, Path("missing.gguf"))
    with caplog.at_level(logging.DEBUG):
        library.drain_log(logging.getLogger("native"))
        library.drain_log(logging.getLogger("native"))


def test_devices_are_listed(library: Library) -> None:
    assert any(device.kind == abi.DeviceKind.CPU for device in library.devices())


# ---- files -----------------------------------------------------------------------------------------------------


def test_all_kinds_of_values_come_back_as_written(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "values.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    expected = {
        "t.u8": 200, "t.i8": -100, "t.u16": 60_000, "t.i32": -2_000_000_000, "t.u64": 2**40, "t.i64": -(2**40),
        "t.f32": 0.5, "t.f64": 0.1, "t.bool": True, "t.string": "家庭 😀\0x", "t.empty": "",
    }  # fmt: skip
    writer.add_uint8("t.u8", 200)
    writer.add_int8("t.i8", -100)
    writer.add_uint16("t.u16", 60_000)
    writer.add_int32("t.i32", -2_000_000_000)
    writer.add_uint64("t.u64", 2**40)
    writer.add_int64("t.i64", -(2**40))
    writer.add_float32("t.f32", 0.5)
    writer.add_float64("t.f64", 0.1)
    writer.add_bool("t.bool", True)
    writer.add_string("t.string", "家庭 😀\0x")
    writer.add_string("t.empty", "")
    arrays = {"t.ints": [1, -2, 3], "t.reals": [0.5, -1.5], "t.bools": [True, False], "t.strings": ["a", "", "ü😀"]}
    for key, values in arrays.items():
        writer.add_array(key, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with NativeFile(library, path) as file:
        for key, value in (expected | arrays).items():
            if value != "":  # gguf's writer leaves an empty string out
                assert file.value(key) == value, key
                assert type(file.value(key)) is type(value), key
        assert file.value("t.missing") is None


def test_a_file_describes_itself(library: Library) -> None:
    with NativeFile(library, QWEN35_MINI_DRAFT) as file:
        info = file.describe()
    assert info.role == abi.Role.DRAFT
    assert info.block_size == 8
    assert list(info.feature_layers[: info.n_feature_layers]) == [1, 3, 5, 6]


def test_statuses_become_exceptions_with_the_engine_s_sentence(library: Library, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(BadFile, match=r"broken\.gguf") as caught:
        NativeFile(library, broken)
    assert caught.value.status is abi.Status.BAD_FILE
    with pytest.raises(BadArgument, match="NUL"):
        NativeFile(library, Path("a\0b.gguf"))
    with (
        NativeFile(library, QWEN35_MINI) as target,
        NativeFile(library, write_scripted(tmp_path / "f1.gguf", [b"ab"])) as other,
        pytest.raises((Unsupported, BadFile)),
    ):
        library.check_pair(target, other)


# ---- owned handles ---------------------------------------------------------------------------------------------


def test_a_closed_object_refuses_use_and_closing_twice_is_fine(library: Library) -> None:
    file = NativeFile(library, QWEN35_MINI)
    file.close()
    file.close()
    with pytest.raises(BadState, match="closed"):
        file.describe()


def test_what_is_in_use_cannot_be_closed(library: Library, target: NativeTarget) -> None:
    draft = NativeDraft(library, QWEN35_MINI_DRAFT, target, device=0, n_threads=1)
    while not draft.load_piece().is_complete:
        pass
    session = NativeSession(target, draft, sized(abi.SessionParams, context_tokens=64))
    for parent in (target, draft):
        with pytest.raises(BadState, match="still in use"):
            parent.close()
    session.close()
    with pytest.raises(BadState, match="still in use"):
        target.close()
    draft.close()


def test_an_object_belongs_to_the_thread_that_opened_it(library: Library) -> None:
    failures: list[NativeError] = []
    with NativeFile(library, QWEN35_MINI) as file:

        def use() -> None:
            try:
                file.describe()
            except NativeError as error:
                failures.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert [type(failure) for failure in failures] == [BadState]


def test_a_session_replies_is_cancelled_from_another_thread_and_goes_on(library: Library, target: NativeTarget) -> None:
    assert library.c is not None
    with NativeSession(target, None, sized(abi.SessionParams, context_tokens=128)) as session:
        assert session.memory().context_tokens == 128
        assert target.stop_tokens()

        def reply() -> list[int]:
            begun = session.begin([300, 301, 302], sized(abi.Generation, max_tokens=5, ignore_stop=1))
            assert (begun.n_prompt, begun.max_tokens) == (3, 5)
            while not session.prefill().is_complete:
                pass
            said: list[int] = []
            while True:
                step = session.step()
                said += step.tokens[: step.n_committed]
                if step.finish != abi.Finish.NONE:
                    assert step.finish == abi.Finish.LENGTH
                    return said

        first = reply()
        assert len(first) == 5
        session.begin([300, 301, 302], sized(abi.Generation, max_tokens=50, ignore_stop=1))
        thread = threading.Thread(target=session.cancel)
        thread.start()
        thread.join()

        def go_on() -> None:
            while True:
                session.prefill()
                session.step()

        with pytest.raises(Cancelled):
            go_on()
        assert reply() == first
    session.cancel()  # too late, and harmless


def test_a_wrong_order_is_an_error_and_no_crash(target: NativeTarget) -> None:
    with NativeSession(target, None, sized(abi.SessionParams, context_tokens=64)) as session:
        with pytest.raises(NativeError):
            session.step()
        for prompt in ([], [10**9], [-1], [5] * 65):
            with pytest.raises(BadArgument):
                session.begin(prompt, sized(abi.Generation))
